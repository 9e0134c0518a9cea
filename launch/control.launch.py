# SPDX-License-Identifier: Apache-2.0
"""The example controller moves the simulated robot by efforts, with an identified model."""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import arguments, node, shared


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("config", "namespace", "use_sim_time", "folder", "parameters", "law"),
            *arguments(robot="arm7", urdf=[shared("urdf"), "/", LaunchConfiguration("robot"), ".urdf"]),
            node("simulator", ["urdf"], clock="{use_sim_time}", control="effort"),
            node("identifier", ["parameters", "folder"], listen=False),
            node("computed_torque_controller", ["law"]),
            node("torque_residual_monitor"),
        ]
    )
