# SPDX-License-Identifier: Apache-2.0
"""Gravity calibration of a simulated arm without torque sensors, and compensation with the result."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, share_path, start_node, urdf_of_robot


def generate_launch_description():
    return describe(
        *declare_arguments(
            "bag",
            "folder",
            "controller",
            "trajectory",
            "calibration",
            "trust_urdf_mass",
            "autostart",
            latency="3.0",  # a simulator on a busy computer may pause for longer than a robot's driver
            compensate="true",
            start="true",
            rehearsal="false",  # nothing can be damaged by this simulator
            use_sim_time="true",  # only simulated time can pause until the compensator has answered
            recording="required",
            robot="so101",
            urdf=urdf_of_robot(),
            terms=share_path("config", "terms", "so101.yaml"),
        ),
        start_node("simulator", ["latency", "urdf", "terms"], clock="{use_sim_time}", controller="{controller}"),
        start_node(
            "excitation_publisher",
            ["latency", "start", "autostart", "rehearsal", "recording", "trajectory"],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
            effort_scale=0.0,  # the efforts are in drive units, and the limits of the URDF in N m
        ),
        start_node("recorder", folder="{bag}"),
        start_node("gravity_calibrator", ["folder", "trust_urdf_mass", "calibration"]),
        start_node("gravity_compensator", ["latency"], autostart="{compensate}"),
    )
