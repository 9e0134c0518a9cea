# SPDX-License-Identifier: Apache-2.0
"""The arm of Wang et al. 2025, excited joint by joint; a twin with the identified model runs in parallel."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, include_launch_file, share_path


def generate_launch_description():
    return describe(
        *declare_arguments(
            robot="planar3r",
            trajectory=share_path("config", "trajectories", "planar3r_sines.yaml"),
            identification_config=share_path("config", "identification", "planar3r.yaml"),
        ),
        include_launch_file("simulation"),
        include_launch_file("twin"),
    )
