# SPDX-License-Identifier: Apache-2.0
"""Identification from recordings; the model is published for any subscriber."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node


def generate_launch_description():
    return describe(
        *declare_arguments("urdf", "data", "validation", "folder", "identification_config", "parameters"),
        start_node(
            "identifier",
            ["urdf", "data", "validation", "folder", "parameters"],
            config="{identification_config}",
        ),
    )
