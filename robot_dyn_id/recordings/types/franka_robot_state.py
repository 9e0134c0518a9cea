# SPDX-License-Identifier: Apache-2.0
"""franka_msgs/msg/FrankaRobotState: measured joint torques of the link side, gravity included."""

from __future__ import annotations

from dataclasses import replace

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import JointColumns, MessageType, locate_header_stamp
from robot_dyn_id.recordings.types.joint_state import list_columns


def _columns(layout: MessageLayout) -> JointColumns:
    return replace(list_columns(layout, "measured_joint_state."), stamp=locate_header_stamp(layout))


FRANKA_ROBOT_STATE = MessageType("franka_msgs/msg/FrankaRobotState", _columns, effort_is_torque=True)
