# SPDX-License-Identifier: Apache-2.0
"""Simulator of an identified model that follows the trajectories of the robot or of a played bag, in namespace twin."""

from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import SIMULATOR_TRAJECTORY, declare_arguments, describe, start_node

ROBOT_MODEL = ("identified_parameters", "{root}/identified_parameters")


def twin(context):
    """Nodes in the namespace `twin`, with the model of the file `parameters` or, if empty, that of the robot."""
    parameters = LaunchConfiguration("parameters").perform(context)
    model = [] if parameters else [ROBOT_MODEL]
    nodes = [
        start_node(
            "simulator",
            ["latency"],
            inner_namespace="twin",
            model="parameters",
            remappings=[*model, (SIMULATOR_TRAJECTORY, "{root}/{controller}/joint_trajectory")],
        ),
        start_node(
            "torque_residual_monitor",
            ["latency"],
            inner_namespace="twin",
            remappings=[*model, ("joint_states", "{root}/joint_states")],
        ),
    ]
    if parameters:
        nodes.insert(0, start_node("identifier", ["parameters", "folder"], inner_namespace="twin", listen=False))
    return nodes


def generate_launch_description():
    return describe(
        *declare_arguments("latency", "parameters", "folder", "controller"),
        OpaqueFunction(function=twin),
    )
