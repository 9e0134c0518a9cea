# SPDX-License-Identifier: Apache-2.0
"""sensor_msgs/msg/JointState."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import DQ, TAU, JointColumns, MessageType, Q, locate_header_stamp


def list_columns(layout: MessageLayout, path: str = "") -> JointColumns:
    """Channels of the JointState at a path; its stamp is that of the message that holds it."""
    fields = {Q: "position", DQ: "velocity", TAU: "effort"}
    return JointColumns(
        names=layout.texts[f"{path}name"],
        channels={channel: layout.numbers[f"{path}{field}"] for channel, field in fields.items()},
        stamp=locate_header_stamp(layout),
    )


JOINT_STATE = MessageType("sensor_msgs/msg/JointState", list_columns)
