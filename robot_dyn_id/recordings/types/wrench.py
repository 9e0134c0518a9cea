# SPDX-License-Identifier: Apache-2.0
"""geometry_msgs/msg/WrenchStamped: its six components are read like the positions of six joints."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import JointColumns, MessageType, Q, gather_numbers, locate_header_stamp

AXES = tuple(f"{part}.{axis}" for part in ("force", "torque") for axis in "xyz")
"""Names of the components, in the order of the message."""


def _columns(layout: MessageLayout) -> JointColumns:
    return JointColumns(
        AXES, {Q: gather_numbers(layout, [f"wrench.{axis}" for axis in AXES])}, locate_header_stamp(layout)
    )


WRENCH = MessageType("geometry_msgs/msg/WrenchStamped", _columns)
