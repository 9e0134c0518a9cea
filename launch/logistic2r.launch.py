# SPDX-License-Identifier: Apache-2.0
"""Closed-loop identification of docs/papers/logistic2r.md: move, identify, update the controller, repeat."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, share_path, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "folder",
            "autostart",
            start="true",
            rehearsal="false",  # nothing can be damaged by this simulator
            use_sim_time="true",  # only simulated time can pause until the controller has answered
            recording="required",
            robot="logistic2r",
            urdf=urdf_of_robot(),
            identification_config=share_path("config", "identification", "logistic2r.yaml"),
            law="computed_torque",
        ),
        start_node("simulator", ["latency", "urdf"], clock="{use_sim_time}", control="effort", brakes=True),
        start_node("computed_torque_controller", ["latency", "law", "autostart"]),
        start_node(
            "excitation_publisher",
            ["latency", "start", "autostart", "rehearsal", "recording"],
            command_topic="computed_torque_controller/joint_trajectory",
        ),
        start_node("identifier", ["folder"], config="{identification_config}"),
        start_node("torque_residual_monitor", ["latency"]),
    )
