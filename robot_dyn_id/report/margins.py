# SPDX-License-Identifier: Apache-2.0
"""Margins of a motion to the limits of its joints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.model.robot import RobotModel

SAMPLING_TOLERANCE = 1e-6
"""Share of a limit by which a peak between the samples of a design's search may exceed it."""


@dataclass(frozen=True)
class PlannedMotion:
    """A motion of n joints at N times.

    Attributes:
        t: increasing times [s], shape (N,).
        q, dq, ddq: positions [rad or m], velocities, accelerations, shape (n, N) each.
        effort: that the motion needs [N m or N], shape (n, N); None where it is not known.
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    effort: Array | None = None

    def __post_init__(self) -> None:
        """Check what does not fit together.

        Raises:
            UsageError: other shapes, less than two times, times that do not increase, values that are not numbers.
        """
        for name in ("q", "dq", "ddq", "effort"):
            values = getattr(self, name)
            if values is not None and values.shape != (len(self.q), len(self.t)):
                raise UsageError(f"motion: {name} has shape {values.shape}, expected {(len(self.q), len(self.t))}")
            if values is not None and not np.isfinite(values).all():
                raise UsageError(f"motion: {name} holds values that are not finite")
        if len(self.t) < 2 or not (np.diff(self.t) > 0.0).all():
            raise UsageError("motion: needs two times at least, each later than the one before")


@dataclass(frozen=True)
class LimitRow:
    """Margin of a motion to a limit.

    Attributes:
        joint, quantity, unit: what it is.
        values: values of the motion, shape (N,).
        lower, upper: limits, infinite where unlimited.
    """

    joint: str
    quantity: str
    unit: str
    values: Array
    lower: float
    upper: float

    @property
    def lowest(self) -> float:
        """Smallest value."""
        return float(self.values.min())

    @property
    def highest(self) -> float:
        """Largest value."""
        return float(self.values.max())

    @property
    def margin(self) -> float:
        """Margin to the nearer limit; negative outside it."""
        return min(self.lowest - self.lower, self.upper - self.highest)

    @property
    def exceeded(self) -> bool:
        """Whether it is beyond a limit, by more than the sampling of a design explains."""
        return self.margin < -SAMPLING_TOLERANCE * max(
            1.0, *(abs(x) for x in (self.lower, self.upper) if math.isfinite(x)), 0.0
        )


def limit_rows(model: RobotModel, motion: PlannedMotion, limits: MotionLimits | None = None) -> list[LimitRow]:
    """Position, velocity, acceleration and effort of every joint against its limits, joint by joint.

    Without `limits` those of the URDF, which has none of acceleration.
    """
    given = model.limits
    free = np.full(len(model.joint_names), math.inf)
    lower, upper, velocity, acceleration = (
        (given.lower, given.upper, given.velocity, free)
        if limits is None
        else (limits.lower, limits.upper, limits.velocity, limits.acceleration)
    )
    rows = []
    for j, (name, unit) in enumerate(zip(model.joint_names, model.position_units, strict=True)):
        rows += [
            LimitRow(name, "position", unit, motion.q[j], float(lower[j]), float(upper[j])),
            LimitRow(name, "velocity", f"{unit}/s", motion.dq[j], *_both(velocity[j])),
            LimitRow(name, "acceleration", f"{unit}/s²", motion.ddq[j], *_both(acceleration[j])),
        ]
        if motion.effort is not None:
            rows.append(LimitRow(name, "effort", model.effort_units[j], motion.effort[j], *_both(given.effort[j])))
    return rows


def _both(limit: float) -> tuple[float, float]:
    return -float(limit), float(limit)
