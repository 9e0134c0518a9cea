# SPDX-License-Identifier: Apache-2.0
"""Simulated robot on a 6-axis sensor, excited and recorded with its wrench, for `robot-dyn-id chain --wrench base`."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "bag",
            "controller",
            "trajectory",
            "terms",
            "autostart",
            start="true",
            rehearsal="false",  # nothing can be damaged by this simulator
            recording="required",
            robot="arm7",
            urdf=urdf_of_robot(),
        ),
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
