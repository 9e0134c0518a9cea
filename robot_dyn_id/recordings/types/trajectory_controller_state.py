# SPDX-License-Identifier: Apache-2.0
"""control_msgs/msg/JointTrajectoryControllerState of all releases: reference and feedback in one message."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import DQ, REFERENCE, TAU, JointColumns, MessageType, Q, locate_header_stamp


def _columns(layout: MessageLayout) -> JointColumns:
    """Up to Galactic the fields are `desired` and `actual`; Humble has both names and fills the new ones."""
    actual, wanted = ("feedback", "reference") if "feedback.positions" in layout.numbers else ("actual", "desired")
    paths = {Q: f"{actual}.positions", DQ: f"{actual}.velocities", TAU: f"{actual}.effort"}
    paths[REFERENCE] = f"{wanted}.positions"
    return JointColumns(
        names=layout.texts["joint_names"],
        channels={channel: layout.numbers[path] for channel, path in paths.items()},
        stamp=locate_header_stamp(layout),
    )


TRAJECTORY_CONTROLLER_STATE = MessageType("control_msgs/msg/JointTrajectoryControllerState", _columns)
