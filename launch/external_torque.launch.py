# SPDX-License-Identifier: Apache-2.0
"""External torque, wrench and contacts of a simulated robot, which is pushed through the topic applied_wrench."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "parameters",
            "folder",
            "frame",
            robot="arm7",
            urdf=urdf_of_robot(),
            start="true",
            rehearsal="false",
        ),
        start_node("simulator", ["latency", "urdf"], clock="{use_sim_time}"),
        start_node("identifier", ["parameters", "folder"], listen=False),
        start_node("excitation_publisher", ["latency", "start", "rehearsal"], recording="ignore", periods=20),
        start_node("external_torque_estimator", ["latency", "frame"], quiet=30.0),
    )
