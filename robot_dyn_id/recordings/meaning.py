# SPDX-License-Identifier: Apache-2.0
"""Meaning of the columns of a file, as the user states it where the file does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from robot_dyn_id.errors import UsageError
from robot_dyn_id.recordings.reading import Unreadable

POSITION_UNITS: Mapping[str, float] = {"rad": 1.0, "deg": math.pi / 180.0}
"""Units of positions, each with its size [rad]."""


@dataclass(frozen=True)
class ColumnMeaning:
    """Statements about the columns of a file.

    Attributes:
        joint_names: names of the joints in the order of their columns, where the file has none; its own must be the
            same; empty: not stated.
        position_unit: unit of the positions, a key of `POSITION_UNITS`, where the file does not state it; empty: not
            stated.
    """

    joint_names: Sequence[str] = ()
    position_unit: str = ""

    def __post_init__(self) -> None:
        """Check the unit.

        Raises:
            UsageError: another unit.
        """
        if self.position_unit and self.position_unit not in POSITION_UNITS:
            raise UsageError(f"position_unit must be {' or '.join(POSITION_UNITS)}, not {self.position_unit!r}")

    def joints(self, count: int, own: Sequence[str] = (), usual: Sequence[str] = ()) -> tuple[str, ...]:
        """Names of the joints of a file.

        Args:
            count: number of its joints.
            own: names that the file has; empty: none.
            usual: names that its format means where neither the file nor the user has any; empty: none.

        Raises:
            Unreadable: no names, another number of them, or stated ones that differ from those of the file: columns
                would silently belong to other joints.
        """
        stated = tuple(self.joint_names)
        if own and stated and stated != tuple(own):
            raise Unreadable(
                f"its own joint names are {', '.join(own)}, and `recorded_joints` states {', '.join(stated)}; remove "
                "`recorded_joints`, or correct the names in the file"
            )
        names = tuple(own) or stated or tuple(usual)
        if not names:
            raise Unreadable(
                f"{count} joints without names; state them in the order of the columns: `recorded_joints: [...]` of "
                "the configuration (`--config FILE`)"
            )
        if len(names) != count:
            raise Unreadable(f"{count} joints, and {len(names)} names ({', '.join(names)}); state one name per joint")
        if len(set(names)) < count:
            raise Unreadable(f"joint names must differ: {', '.join(names)}")
        return names

    def radians(self) -> float:
        """Size of the unit of positions [rad].

        Raises:
            Unreadable: it is not stated.
        """
        if not self.position_unit:
            raise Unreadable(
                "the file does not state the unit of its positions; state it: `position_unit: deg` or `position_unit: "
                "rad` of the configuration"
            )
        return POSITION_UNITS[self.position_unit]


STATED_BY_FILE = ColumnMeaning()
"""No statement: the file has to state everything."""
