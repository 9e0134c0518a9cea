# SPDX-License-Identifier: Apache-2.0
"""A simulator of an identified model beside the robot (or a bag that is played), following the same trajectories."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import TRAJECTORY, arguments, node

ROBOTS = [("identified_parameters", "{root}/identified_parameters")]


def twin(context):
    """All in the namespace `twin`; a file of parameters is published there, else the robot's model is the twin's."""
    given = LaunchConfiguration("parameters").perform(context)
    model = [] if given else ROBOTS
    nodes = [
        node(
            "simulator",
            inside="twin",
            model="parameters",
            remappings=[*model, (TRAJECTORY, "{root}/{controller}/joint_trajectory")],
        ),
        node("torque_residual_monitor", inside="twin", remappings=[*model, ("joint_states", "{root}/joint_states")]),
    ]
    if given:
        nodes.insert(0, node("identifier", ["parameters", "folder"], inside="twin", listen=False))
    return nodes


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("robot", "config", "namespace", "use_sim_time", "parameters", "folder", "controller"),
            OpaqueFunction(function=twin),
        ]
    )
