# SPDX-License-Identifier: Apache-2.0
"""Actuators of a robot behind a joint trajectory controller: a designed motion, recorded, and their identification."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, require_parameters, start_node

MOTION = ["trajectory", "speed_scale", "amplitude_scale", "dry_run"]

CONTROLLER_STATE = "{controller}/controller_state"


def generate_launch_description():
    return describe(
        *declare_arguments(
            "latency",
            "urdf",
            "bag",
            "folder",
            "identification_config",
            "controller",
            "start",
            "autostart",
            "rehearsal",
            *MOTION,
            require_effort="false",
            recording="required",
        ),
        require_parameters(),
        start_node(
            "excitation_publisher",
            ["latency", "urdf", "recording", "start", "autostart", "rehearsal", "require_effort", *MOTION],
            command_topic="{controller}/joint_trajectory",
            command_action="{controller}/follow_joint_trajectory",
        ),
        start_node("recorder", folder="{bag}", topics=["joint_states", CONTROLLER_STATE]),
        start_node(
            "identifier",
            ["urdf", "folder"],
            # its recording, of the controller's state, is its own; the motion waits for that of the joint states
            remappings=[
                ("joint_states", CONTROLLER_STATE),
                ("identifier_recording_status", "identifier/recording_status"),
            ],
            config="{identification_config}",
            model="actuators",
            joint_states_type="control_msgs/msg/JointTrajectoryControllerState",
        ),
    )
