# SPDX-License-Identifier: Apache-2.0
"""lbr_fri_idl/msg/LBRState of FRI 1 and 2: seven axes without names and velocities, stamped by the controller."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import TAU, JointColumns, MessageType, Q


def _columns(layout: MessageLayout) -> JointColumns:
    return JointColumns(
        names=(),
        channels={Q: layout.numbers["measured_joint_position"], TAU: layout.numbers["measured_torque"]},
        stamp=(layout.numbers["time_stamp_sec"], layout.numbers["time_stamp_nano_sec"]),
    )


LBR_STATE = MessageType(
    name="lbr_fri_idl/msg/LBRState",
    columns=_columns,
    effort_is_torque=True,
    default_names=tuple(f"A{number}" for number in range(1, 8)),
)
