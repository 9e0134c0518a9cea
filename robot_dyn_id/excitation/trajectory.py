"""What every motion of a robot is: positions over a finite time, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.excitation.limits import MotionLimits

FINE = 1e-3
"""Grid on which a motion is compared with its limits [s]."""

BLOCK = 10_000
"""Samples that are compared at a time: memory does not grow with the length of a motion."""

Sample = tuple[Array, Array, Array, Array]
"""Position, velocity, acceleration and jerk, shape (n, N) each."""


class Trajectory(Protocol):
    """The contract of a motion of n joints; a form of excitation is at rest, without acceleration, at both ends.

    Position, velocity and acceleration are continuous; the jerk may have steps.
    """

    @property
    def duration(self) -> float:
        """How long it takes [s]."""

    def evaluate(self, t: Array) -> Sample:
        """Position, velocity, acceleration and jerk at times `t` within 0 and the duration [s], shape (n, N) each."""


def smooth_step(x: Array) -> Sample:
    """The quintic from 0 to 1 with no slope and no curvature at both ends, and its three derivatives.

    Before 0 and after 1 it stands.
    """
    inside = (x > 0.0) & (x < 1.0)
    x = np.clip(x, 0.0, 1.0)
    return (
        x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
        30.0 * x**2 * (1.0 - x) ** 2,
        60.0 * x * (1.0 - x) * (1.0 - 2.0 * x),
        np.where(inside, 60.0 - 360.0 * x + 360.0 * x**2, 0.0),
    )


@dataclass(frozen=True)
class Repeated:
    """A periodic motion, several periods long.

    Attributes:
        cycle: can be evaluated beyond its duration, which is its period.
        periods: how many.
    """

    cycle: Trajectory
    periods: int

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.periods * self.cycle.duration

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        return self.cycle.evaluate(t)


def check_limits(trajectory: Trajectory, limits: MotionLimits, span: tuple[float, float] | None = None) -> None:
    """Compare a motion with the limits, on a fine grid.

    Args:
        trajectory: the motion.
        limits: of the joints.
        span: part of it [s]; all of it by default.

    Raises:
        MotionError: names the first joint that leaves its limits, and by how much.
    """
    begin, end = span or (0.0, trajectory.duration)
    times = np.linspace(begin, end, 2 + int((end - begin) / FINE))
    for block in np.array_split(times, -(-len(times) // BLOCK)):
        q, dq, ddq, _ = trajectory.evaluate(block)
        limits.check_positions(q)
        limits.check_rates(dq, ddq)
