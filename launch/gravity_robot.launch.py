# SPDX-License-Identifier: Apache-2.0
"""Gravity calibration of an arm without torque sensors, and compensation with the result, each on request."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, require_parameters, start_node


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "urdf",
            "bag",
            "folder",
            "controller",
            "effort_controller",
            "trajectory",
            "calibration",
            "trust_urdf_mass",
            "start",
            "autostart",
            "compensate",
            "rehearsal",
            "require_effort",
            recording="required",
        ),
        require_parameters(),
        start_node(
            "excitation_publisher",
            ["latency", "urdf", "start", "autostart", "rehearsal", "recording", "require_effort", "trajectory"],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", folder="{bag}"),
        start_node("gravity_calibrator", ["urdf", "folder", "trust_urdf_mass", "calibration"]),
        start_node(
            "gravity_compensator",
            ["latency", "urdf"],
            autostart="{compensate}",
            remappings=[("effort_command", "{effort_controller}/commands")],
        ),
    )
