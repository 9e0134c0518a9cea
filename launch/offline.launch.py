# SPDX-License-Identifier: Apache-2.0
"""Identification from recordings; the model is published for any subscriber."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import declare_arguments, start_node


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments("urdf", "data", "validation", "folder", "identification_config", "parameters"),
            start_node(
                "identifier",
                ["urdf", "data", "validation", "folder", "parameters"],
                config="{identification_config}",
            ),
        ]
    )
