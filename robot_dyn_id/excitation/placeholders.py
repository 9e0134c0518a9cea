# SPDX-License-Identifier: Apache-2.0
"""Placeholder limits: values written into a URDF, which must have limits, in place of unknown ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.errors import ModelError
from robot_dyn_id.model.robot import RobotModel

VELOCITIES = (10.0, 100.0, 1000.0, 10_000.0)
"""Velocity limits that are placeholders [rad/s or m/s]; so is 0."""

EFFORTS = (1000.0, 10_000.0, 100_000.0, 1_000_000.0)
"""Effort limits that are placeholders [N m or N]; so is 0."""

KINDS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N m", "N")}
"""Kinds of limits, and their units for joints that turn and that slide."""


@dataclass(frozen=True)
class Placeholder:
    """A limit of a joint that is none.

    Attributes:
        joint: its name.
        kind: a key of `KINDS`.
        value: in the URDF.
        unit: of the value.
    """

    joint: str
    kind: str
    value: float
    unit: str

    def __str__(self) -> str:
        """A phrase for messages."""
        value = "0 and 0" if self.kind == "position" else f"{self.value:g}"
        return f"{self.kind} {value} {self.unit} of {self.joint}"


def placeholder_limits(
    model: RobotModel, known: Mapping[str, Collection[str]], kinds: Collection[str] = tuple(KINDS)
) -> tuple[Placeholder, ...]:
    """The limits of a robot that are placeholders: 0 and 0, or the round numbers of `VELOCITIES` and `EFFORTS`.

    A joint without limits in the URDF, as a continuous one may be, has none that are placeholders.

    Args:
        model: the robot.
        known: by kind, the joints whose limit the user has confirmed or replaced.
        kinds: that are looked at.
    """
    limits = model.limits
    suspicious = {
        "position": (limits.lower == 0.0) & (limits.upper == 0.0),
        "velocity": np.isin(limits.velocity, (0.0, *VELOCITIES)),
        "effort": np.isin(limits.effort, (0.0, *EFFORTS)),
    }
    values = {"position": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
    return tuple(
        Placeholder(name, kind, float(values[kind][j]), KINDS[kind][model.effort_units[j] == "N"])
        for j, name in enumerate(model.joint_names)
        for kind in KINDS
        if kind in kinds and suspicious[kind][j] and name not in known.get(kind, ())
    )


def refuse_placeholders(found: Collection[Placeholder], action: str) -> None:
    """Refuse limits that are placeholders.

    Args:
        found: the placeholders.
        action: what gives the robot its true limits; the lines of `joint_limits.yaml` to fill in follow it.

    Raises:
        ModelError: there are some.
    """
    if found:
        raise ModelError(
            f"the URDF has placeholders instead of limits: {', '.join(map(str, found))}; {action}, with the values of "
            f"the data sheet filled in:\n{lines_to_fill_in(found)}"
        )


def lines_to_fill_in(found: Collection[Placeholder]) -> str:
    """Lines of MoveIt's `joint_limits.yaml` for the joints concerned; the values are left open."""
    lines = ["joint_limits:"]
    for joint in dict.fromkeys(placeholder.joint for placeholder in found):
        lines.append(f"  {joint}:")
        for placeholder in found:
            if placeholder.joint == joint:
                lines.append(f"    has_{placeholder.kind}_limits: true")
                keys = (("min_",) if placeholder.kind == "position" else ()) + ("max_",)
                lines += [f"    {key}{placeholder.kind}:   # [{placeholder.unit}]" for key in keys]
    return "\n".join(lines)
