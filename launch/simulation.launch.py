# SPDX-License-Identifier: Apache-2.0
"""The complete pipeline on a simulated robot: excite, record, identify, monitor."""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import declare_arguments, share_path, start_node


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments(
                "bag",
                "folder",
                "identification_config",
                "controller",
                "trajectory",
                "terms",
                "autostart",
                start="true",
                rehearsal="false",  # nothing can be damaged by this simulator
                recording="required",
                robot="arm7",
                urdf=[share_path("urdf"), "/", LaunchConfiguration("robot"), ".urdf"],
            ),
            start_node(
                "simulator",
                ["urdf", "terms"],
                clock="{use_sim_time}",
                controller="{controller}",
            ),
            start_node(
                "excitation_publisher",
                ["start", "autostart", "rehearsal", "recording", "trajectory"],
                command_topic="{controller}/joint_trajectory",
                command_action="{controller}/follow_joint_trajectory",
            ),
            start_node("recorder", folder="{bag}"),
            start_node("identifier", ["folder"], config="{identification_config}"),
            start_node("torque_residual_monitor"),
        ]
    )
