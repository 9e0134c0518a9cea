# SPDX-License-Identifier: Apache-2.0
"""Excitation of a robot behind a joint trajectory controller along a designed trajectory, with recording."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, require_parameters, start_node

START = ["start", "autostart", "rehearsal", "require_effort"]

MOTION = ["trajectory", "speed_scale", "amplitude_scale", "dry_run"]


def generate_launch_description():
    return describe(
        *declare_arguments("latency", "urdf", "bag", "topics", "controller", *START, *MOTION, recording="required"),
        require_parameters(),
        start_node(
            "excitation_publisher",
            ["latency", "urdf", "recording", *START, *MOTION],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", ["topics"], folder="{bag}"),
    )
