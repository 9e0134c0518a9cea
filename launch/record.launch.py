# SPDX-License-Identifier: Apache-2.0
"""Recording of a robot that is moved by other nodes."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import declare_arguments, start_node


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments("bag", "topics"),
            start_node("recorder", ["topics"], folder="{bag}"),
        ]
    )
