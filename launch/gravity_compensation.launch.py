# SPDX-License-Identifier: Apache-2.0
"""Compensation of gravity with an earlier calibration, alone: no other node can end it."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import declare_arguments, start_node


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments("urdf", "calibration", "effort_controller", "compensate"),
            start_node(
                "gravity_compensator",
                ["urdf", "calibration"],
                autostart="{compensate}",
                remappings=[("effort_command", "{effort_controller}/commands")],
            ),
        ]
    )
