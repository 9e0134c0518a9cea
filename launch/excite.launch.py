# SPDX-License-Identifier: Apache-2.0
"""A designed trajectory on a robot behind a joint trajectory controller, and the recorder."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import arguments, needs_configuration, node


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("robot", "config", "urdf", "namespace", "use_sim_time", "bag", "controller", "start"),
            *arguments(
                "trajectory", "speed_scale", "amplitude_scale", "dry_run", "require_effort", recording="required"
            ),
            needs_configuration(),
            node(
                "excitation_publisher",
                [
                    "urdf",
                    "start",
                    "recording",
                    "trajectory",
                    "speed_scale",
                    "amplitude_scale",
                    "dry_run",
                    "require_effort",
                ],
                command_topic="{controller}/joint_trajectory",
                command_action="{controller}/follow_joint_trajectory",
            ),
            node("recorder", folder="{bag}"),
        ]
    )
