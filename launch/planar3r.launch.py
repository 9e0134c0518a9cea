# SPDX-License-Identifier: Apache-2.0
"""The arm of Wang et al. 2025: one joint after the other is excited; a twin of what was identified stands beside it."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import arguments, included, shared


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments(
                robot="planar3r",
                trajectory=shared("config", "trajectories", "planar3r_sines.yaml"),
                settings=shared("config", "identification", "planar3r.yaml"),
            ),
            included("simulation"),
            included("twin"),
        ]
    )
