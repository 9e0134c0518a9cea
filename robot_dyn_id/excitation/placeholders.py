# SPDX-License-Identifier: Apache-2.0
"""Detection of placeholder limits: values written into a URDF because limits are mandatory but unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.errors import ModelError
from robot_dyn_id.model.robot import RobotModel

VELOCITIES = (10.0, 100.0, 1000.0, 10_000.0)
"""Velocity limits taken as placeholders, in addition to 0 [rad/s or m/s]."""

EFFORTS = (1000.0, 10_000.0, 100_000.0, 1_000_000.0)
"""Effort limits taken as placeholders, in addition to 0 [N m or N]."""

KINDS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N m", "N")}
"""Kinds of limits with their units for revolute and prismatic joints."""


@dataclass(frozen=True)
class Placeholder:
    """A joint limit that is a placeholder.

    Attributes:
        joint: joint name.
        kind: kind of the limit, a key of `KINDS`.
        value: value in the URDF.
        unit: unit of the value.
    """

    joint: str
    kind: str
    value: float
    unit: str

    def __str__(self) -> str:
        """Description for messages."""
        value = "0 and 0" if self.kind == "position" else f"{self.value:g}"
        return f"{self.kind} {value} {self.unit} of {self.joint}"


def find_placeholder_limits(
    model: RobotModel, known: Mapping[str, Collection[str]], kinds: Collection[str] = tuple(KINDS)
) -> tuple[Placeholder, ...]:
    """Find limits that are placeholders: 0 and 0, or the round numbers of `VELOCITIES` and `EFFORTS`.

    A joint without limits in the URDF, such as a continuous joint, has no placeholders.

    Args:
        model: robot model with the limits of the URDF.
        known: joints whose limit the user has confirmed or replaced, by kind of limit.
        kinds: kinds of limits to check.
    """
    limits = model.limits
    suspicious = {
        "position": (limits.lower == 0.0) & (limits.upper == 0.0),
        "velocity": np.isin(limits.velocity, (0.0, *VELOCITIES)),
        "effort": np.isin(limits.effort, (0.0, *EFFORTS)),
    }
    values = {"position": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
    return tuple(
        Placeholder(name, kind, float(values[kind][j]), KINDS[kind][int(model.slides[j])])
        for j, name in enumerate(model.joint_names)
        for kind in KINDS
        if kind in kinds and suspicious[kind][j] and name not in known.get(kind, ())
    )


def refuse_placeholders(found: Collection[Placeholder], action: str) -> None:
    """Raise an error if there are placeholders.

    Args:
        found: the placeholders.
        action: instruction how to provide the true limits; followed by the lines of `joint_limits.yaml` to fill in.

    Raises:
        ModelError: `found` is not empty.
    """
    if found:
        raise ModelError(
            f"the URDF has placeholders instead of limits: {', '.join(map(str, found))}; {action}, with the values of "
            f"the data sheet filled in:\n{format_lines_to_fill_in(found)}"
        )


def format_lines_to_fill_in(found: Collection[Placeholder]) -> str:
    """Lines of MoveIt's `joint_limits.yaml` for the joints concerned, without values."""
    lines = ["joint_limits:"]
    for joint in dict.fromkeys(placeholder.joint for placeholder in found):
        lines.append(f"  {joint}:")
        for placeholder in found:
            if placeholder.joint == joint:
                lines.append(f"    has_{placeholder.kind}_limits: true")
                keys = (("min_",) if placeholder.kind == "position" else ()) + ("max_",)
                lines += [f"    {key}{placeholder.kind}:   # [{placeholder.unit}]" for key in keys]
    return "\n".join(lines)
