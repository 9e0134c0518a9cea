# SPDX-License-Identifier: Apache-2.0
"""Computed-torque control of the simulated robot with an identified model, through effort commands."""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import declare_arguments, share_path, start_node


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments(
                "folder",
                "parameters",
                "law",
                "autostart",
                robot="arm7",
                urdf=[share_path("urdf"), "/", LaunchConfiguration("robot"), ".urdf"],
            ),
            start_node("simulator", ["urdf"], clock="{use_sim_time}", control="effort"),
            start_node("identifier", ["parameters", "folder"], listen=False),
            start_node("computed_torque_controller", ["law", "autostart"]),
            start_node("torque_residual_monitor"),
        ]
    )
