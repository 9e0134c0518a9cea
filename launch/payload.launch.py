# SPDX-License-Identifier: Apache-2.0
"""Payload of a robot whose bare arm has been identified, on request; with a simulated robot or your own."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launch_arguments import read_argument
from robot_dyn_id.nodes.launching import SIMULATOR_TRAJECTORY, declare_arguments, share_path, start_node


def simulator(context):
    """The simulated robot, where one is wanted."""
    if not read_argument("simulated", LaunchConfiguration("simulated").perform(context)):
        return []
    return [
        start_node(
            "simulator",
            ["urdf", "terms", "payload"],
            clock="{use_sim_time}",
            remappings=[(SIMULATOR_TRAJECTORY, "{controller}/joint_trajectory")],
        )
    ]


def generate_launch_description():
    return LaunchDescription(
        [
            *declare_arguments(
                "parameters",
                "link",
                "payload",
                "declared",
                "driver",
                "folder",
                "controller",
                "terms",
                "simulated",
                robot="arm7",
                urdf=[share_path("urdf"), "/", LaunchConfiguration("robot"), ".urdf"],
            ),
            OpaqueFunction(function=simulator),
            start_node(
                "payload_identifier",
                ["urdf", "parameters", "link", "declared", "driver", "folder"],
                command_topic="{controller}/joint_trajectory",
                command_action="{controller}/follow_joint_trajectory",
            ),
            start_node(
                "torque_residual_monitor",
                remappings=[("identified_parameters", "payload_identifier/loaded_parameters")],
            ),
        ]
    )
