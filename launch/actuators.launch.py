# SPDX-License-Identifier: Apache-2.0
"""A designed motion behind a joint trajectory controller, recorded with what the controller commands."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, require_parameters, start_node

MOTION = ["trajectory", "speed_scale", "amplitude_scale", "dry_run"]


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "urdf",
            "bag",
            "controller",
            "start",
            "autostart",
            "rehearsal",
            *MOTION,
            require_effort="false",
            recording="required",
        ),
        require_parameters(),
        start_node(
            "excitation_publisher",
            ["latency", "urdf", "recording", "start", "autostart", "rehearsal", "require_effort", *MOTION],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", folder="{bag}", topics=["joint_states", "{controller}/controller_state"]),
    )
