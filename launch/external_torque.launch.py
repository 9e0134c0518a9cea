# SPDX-License-Identifier: Apache-2.0
"""External torque, wrench and contacts of a simulated robot, which is pushed through the topic applied_wrench."""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import declare_arguments, share_path, start_node


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments(
                "parameters",
                "folder",
                "frame",
                robot="arm7",
                urdf=[share_path("urdf"), "/", LaunchConfiguration("robot"), ".urdf"],
                start="true",
                rehearsal="false",
            ),
            start_node("simulator", ["urdf"], clock="{use_sim_time}"),
            start_node("identifier", ["parameters", "folder"], listen=False),
            start_node("excitation_publisher", ["start", "rehearsal"], recording="ignore", periods=20),
            start_node("external_torque_estimator", ["frame"], quiet=30.0),
        ]
    )
