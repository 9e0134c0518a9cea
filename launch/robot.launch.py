# SPDX-License-Identifier: Apache-2.0
"""A real arm behind a joint trajectory controller: excite on request, record, identify, monitor."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, require_parameters, start_node


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "urdf",
            "bag",
            "folder",
            "identification_config",
            "controller",
            "start",
            "autostart",
            "rehearsal",
            "require_effort",
            recording="required",
        ),
        require_parameters(),
        start_node(
            "excitation_publisher",
            ["latency", "urdf", "start", "autostart", "rehearsal", "recording", "require_effort"],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", folder="{bag}"),
        start_node("identifier", ["urdf", "folder"], config="{identification_config}"),
        start_node("torque_residual_monitor", ["latency"]),
    )
