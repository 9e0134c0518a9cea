# SPDX-License-Identifier: Apache-2.0
"""Computed-torque control of the simulated robot with an identified model, through effort commands."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "folder",
            "parameters",
            "law",
            "autostart",
            robot="arm7",
            urdf=urdf_of_robot(),
        ),
        start_node("simulator", ["latency", "urdf"], clock="{use_sim_time}", control="effort"),
        start_node("identifier", ["parameters", "folder"], listen=False),
        start_node("computed_torque_controller", ["latency", "law", "autostart"]),
        start_node("torque_residual_monitor", ["latency"]),
    )
