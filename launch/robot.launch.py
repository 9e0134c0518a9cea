# SPDX-License-Identifier: Apache-2.0
"""A real arm behind a trajectory controller: excite (once it is asked to), record, identify, watch."""

from launch import LaunchDescription

from robot_dyn_id.nodes.launching import arguments, needs_configuration, node


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("robot", "config", "urdf", "namespace", "use_sim_time", "bag", "folder", "settings"),
            *arguments("controller", "start", "require_effort", recording="required"),
            needs_configuration(),
            node(
                "excitation_publisher",
                ["urdf", "start", "recording", "require_effort"],
                command_topic="{controller}/joint_trajectory",
                command_action="{controller}/follow_joint_trajectory",
            ),
            node("recorder", folder="{bag}"),
            node("identifier", ["urdf", "folder"], config="{settings}"),
            node("torque_residual_monitor"),
        ]
    )
