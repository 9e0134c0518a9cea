# SPDX-License-Identifier: Apache-2.0
"""control_msgs/msg/MultiDOFStateStamped, from pid_controller: reference and feedback by degree of freedom."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import (
    DQ,
    REFERENCE,
    JointColumns,
    MessageType,
    Q,
    gather_numbers,
    locate_header_stamp,
)


def _columns(layout: MessageLayout) -> JointColumns:
    numbers = range(layout.counts["dof_states"])
    fields = {Q: "feedback", DQ: "feedback_dot", REFERENCE: "reference"}
    return JointColumns(
        names=tuple(layout.texts[f"dof_states.{number}.name"][0] for number in numbers),
        channels={
            channel: gather_numbers(layout, [f"dof_states.{number}.{field}" for number in numbers])
            for channel, field in fields.items()
        },
        stamp=locate_header_stamp(layout),
    )


DEGREES_OF_FREEDOM = MessageType("control_msgs/msg/MultiDOFStateStamped", _columns)
