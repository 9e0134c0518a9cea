# SPDX-License-Identifier: Apache-2.0
"""Record a robot that something else moves."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import arguments, node


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("robot", "config", "namespace", "use_sim_time", "bag", "topics"),
            node("recorder", ["topics"], folder="{bag}"),
        ]
    )
