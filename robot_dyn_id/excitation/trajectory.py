"""What every motion of a robot is: positions over a finite time, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.excitation.limits import MotionLimits

FINE = 1e-3
"""Grid on which a motion is compared with its limits [s]."""

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


def grid(trajectory: Trajectory, step: float = FINE) -> Array:
    """Times from 0 to the duration, both included, at most `step` apart."""
    return np.linspace(0.0, trajectory.duration, 1 + int(np.ceil(trajectory.duration / step)))


def check_limits(trajectory: Trajectory, limits: MotionLimits) -> None:
    """Compare a whole motion with the limits, on a fine grid.

    Raises:
        MotionError: names the first joint that leaves its limits, and by how much.
    """
    q, dq, ddq, _ = trajectory.evaluate(grid(trajectory))
    limits.check_positions(q)
    limits.check_rates(dq, ddq)
