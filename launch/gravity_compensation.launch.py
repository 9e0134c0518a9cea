# SPDX-License-Identifier: Apache-2.0
"""Compensation of gravity with an earlier calibration, alone: no other node can end it."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node


def generate_launch_description():
    return describe(
        *declare_arguments("latency", "urdf", "calibration", "effort_controller", "compensate"),
        start_node(
            "gravity_compensator",
            ["latency", "urdf", "calibration"],
            autostart="{compensate}",
            remappings=[("effort_command", "{effort_controller}/commands")],
        ),
    )
