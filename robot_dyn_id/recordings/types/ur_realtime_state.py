# SPDX-License-Identifier: Apache-2.0
"""ur_msgs/msg/RobotStateRTMsg: six axes without names, with motor currents and temperatures."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import CURRENT, DQ, REFERENCE, TEMPERATURE, JointColumns, MessageType, Q


def _columns(layout: MessageLayout) -> JointColumns:
    paths = {Q: "q_actual", DQ: "qd_actual", CURRENT: "i_actual", TEMPERATURE: "motor_temperatures"}
    paths[REFERENCE] = "q_target"
    return JointColumns(
        names=(),
        channels={channel: layout.numbers[path] for channel, path in paths.items()},
        stamp=(layout.numbers["time"],),
    )


UR_REALTIME_STATE = MessageType(
    name="ur_msgs/msg/RobotStateRTMsg",
    columns=_columns,
    default_names=(
        *("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"),
        *("wrist_1_joint", "wrist_2_joint", "wrist_3_joint"),
    ),
)
