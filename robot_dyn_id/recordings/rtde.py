# SPDX-License-Identifier: Apache-2.0
"""Column names of recordings of the real-time data exchange (RTDE) of Universal Robots: `timestamp actual_q_0 ...`.

Source: Universal Robots, Real-Time Data Exchange (RTDE) Guide, robot controller outputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from robot_dyn_id.recordings.meaning import ColumnMeaning
from robot_dyn_id.recordings.reading import Unreadable

JOINTS = (
    *("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"),
    *("wrist_1_joint", "wrist_2_joint", "wrist_3_joint"),
)
"""Joints in the order of RTDE: base, shoulder, elbow, wrist 1 to 3."""

CHANNELS = {
    "actual_q": "q_",
    "actual_qd": "dq_",
    "actual_current": "current_",
    "actual_current_as_torque": "tau_",
    "joint_temperatures": "temperature_",
    "target_q": "reference_",
}
"""Outputs that are read: measured positions [rad], velocities [rad/s], motor currents [A], currents as torques [N m],
temperatures [degrees Celsius], and commanded positions [rad]. `target_moment` is computed by the controller's own model
and is not a measurement."""

_TIME = "timestamp"
_COLUMN = re.compile(r"(.+)_(\d+)")


def translate_names(names: Sequence[str], meaning: ColumnMeaning) -> list[str] | None:
    """The column names of an RTDE recording as those of this package's tables: `q_<joint>` for `actual_q_0`.

    Args:
        names: column names of a table.
        meaning: names of the joints, if they are not the usual six.

    Returns:
        One name per column, those without a meaning here as they are; None if it is a table of another kind.

    Raises:
        Unreadable: columns that are missing, or a number of joints without names.
    """
    parts = [match.groups() if (match := _COLUMN.fullmatch(name)) else (name, "") for name in names]
    numbers = {(name, int(number)) for name, number in parts if number}
    joints = sorted(number for name, number in numbers if name == "actual_q")
    if not joints:
        return None
    count = joints[-1] + 1
    recorded = [name for name in CHANNELS if any(name == one for one, _ in numbers)]
    missing = [f"{name}_{number}" for name in recorded for number in range(count) if (name, number) not in numbers]
    missing = [_TIME] * (_TIME not in names) + missing
    if missing:
        raise Unreadable(f"no column {', '.join(missing)}; record them again with the others")
    joint_names = meaning.joints(count, usual=JOINTS if count == len(JOINTS) else ())
    return [
        "t"
        if original == _TIME
        else f"{CHANNELS[name]}{joint_names[int(number)]}"
        if number and name in CHANNELS and int(number) < count
        else original
        for original, (name, number) in zip(names, parts, strict=True)
    ]
