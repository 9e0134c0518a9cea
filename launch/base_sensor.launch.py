# SPDX-License-Identifier: Apache-2.0
"""Simulated robot on a 6-axis sensor, excited and recorded with its wrench, for `robot-dyn-id chain --wrench base`."""

from robot_dyn_id.nodes.launching import declare_simulation, describe, start_node


def generate_launch_description():
    return describe(
        *declare_simulation(),
        start_node(
            "simulator",
            ["latency", "urdf", "terms"],
            clock="{use_sim_time}",
            controller="{controller}",
            base_wrench=True,
            base_wrench_noise=[0.1, 0.01],
        ),
        start_node(
            "excitation_publisher",
            ["latency", "start", "autostart", "rehearsal", "recording", "trajectory"],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", folder="{bag}", topics=["joint_states", "base_wrench"]),
    )
