# SPDX-License-Identifier: Apache-2.0
"""The arm of Jing et al. 2025 with its Stribeck friction: excite, record, identify, and run a twin."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, include_launch_file, share_path


def generate_launch_description():
    return describe(
        *declare_arguments(
            robot="space6r",
            terms=share_path("config", "terms", "space6r.yaml"),
            identification_config=share_path("config", "identification", "space6r.yaml"),
        ),
        include_launch_file("simulation"),
        include_launch_file("twin"),
    )
