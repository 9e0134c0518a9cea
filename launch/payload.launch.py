# SPDX-License-Identifier: Apache-2.0
"""Payload of a simulated robot whose bare arm has been identified, on request, and the monitor with the result."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "parameters",
            "payload",
            "declared",
            "driver",
            "folder",
            "controller",
            "terms",
            "autostart",
            robot="arm7",
            urdf=urdf_of_robot(),
            link="link7",
        ),
        start_node(
            "simulator",
            ["latency", "urdf", "terms", "payload"],
            clock="{use_sim_time}",
            controller="{controller}",
        ),
        start_node(
            "payload_identifier",
            ["latency", "parameters", "link", "declared", "driver", "folder", "autostart"],
            command_topic="{controller}/joint_trajectory",
        ),
        start_node(
            "torque_residual_monitor",
            ["latency"],
            remappings=[("identified_parameters", "payload_identifier/loaded_parameters")],
        ),
    )
