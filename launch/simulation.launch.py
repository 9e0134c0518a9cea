# SPDX-License-Identifier: Apache-2.0
"""The complete pipeline on a simulated robot: excite, record, identify, monitor."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "bag",
            "folder",
            "identification_config",
            "controller",
            "trajectory",
            "terms",
            "autostart",
            start="true",
            rehearsal="false",  # nothing can be damaged by this simulator
            recording="required",
            robot="arm7",
            urdf=urdf_of_robot(),
        ),
        start_node(
            "simulator",
            ["latency", "urdf", "terms"],
            clock="{use_sim_time}",
            controller="{controller}",
        ),
        start_node(
            "excitation_publisher",
            ["latency", "start", "autostart", "rehearsal", "recording", "trajectory"],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", folder="{bag}"),
        start_node("identifier", ["folder"], config="{identification_config}"),
        start_node("torque_residual_monitor", ["latency"]),
    )
