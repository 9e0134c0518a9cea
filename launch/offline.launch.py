# SPDX-License-Identifier: Apache-2.0
"""Identify from recordings, and publish what was identified to whoever subscribes."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import arguments, node


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("robot", "config", "urdf", "namespace", "use_sim_time", "data", "validation", "folder"),
            *arguments("settings", "parameters"),
            node("identifier", ["urdf", "data", "validation", "folder", "parameters"], config="{settings}"),
        ]
    )
