# SPDX-License-Identifier: Apache-2.0
"""Identification in closed loop (docs/papers/logistic2r.md): move, identify, let the controller use it, move again."""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from robot_dyn_id.nodes.launching import arguments, node, shared


def generate_launch_description():
    return LaunchDescription(
        [
            # the simulator's own clock: it can wait for the controller, as no clock of a computer does
            *arguments("config", "namespace", "folder", start="true", use_sim_time="true", recording="required"),
            *arguments(robot="logistic2r", urdf=[shared("urdf"), "/", LaunchConfiguration("robot"), ".urdf"]),
            *arguments(settings=shared("config", "identification", "logistic2r.yaml"), law="computed_torque"),
            node("simulator", ["urdf"], clock="{use_sim_time}", control="effort", brakes=True),
            node("computed_torque_controller", ["law"]),
            node(
                "excitation_publisher",
                ["start", "recording"],
                command_topic="computed_torque_controller/joint_trajectory",
            ),
            node("identifier", ["folder"], config="{settings}"),
            node("torque_residual_monitor"),
        ]
    )
