# SPDX-License-Identifier: Apache-2.0
"""The whole line on a simulated robot: excite, record, identify, watch."""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import TRAJECTORY, arguments, node, shared


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments(recording="required"),
            *arguments("config", "namespace", "use_sim_time", "bag", "folder", "controller", "trajectory"),
            *arguments(settings=shared("config", "identification", "consistent.yaml")),
            *arguments(robot="arm7", urdf=[shared("urdf"), "/", LaunchConfiguration("robot"), ".urdf"], start="true"),
            node(
                "simulator",
                ["urdf"],
                clock="{use_sim_time}",
                remappings=[(TRAJECTORY, "{controller}/joint_trajectory")],
            ),
            node(
                "excitation_publisher",
                ["start", "recording", "trajectory"],
                command_topic="{controller}/joint_trajectory",
            ),
            node("recorder", folder="{bag}"),
            node("identifier", ["folder"], config="{settings}"),
            node("torque_residual_monitor"),
        ]
    )
