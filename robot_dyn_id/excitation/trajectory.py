# SPDX-License-Identifier: Apache-2.0
"""What every motion of a robot is: positions over a finite time, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.limits import MotionLimits

FINE = 1e-3
"""Grid on which a motion is compared with its limits [s]."""

BLOCK = 10_000
"""Samples that are compared at a time: memory does not grow with the length of a motion."""

REST = 1e-6
"""An excitation begins and ends with less than this velocity and acceleration, as a share of the largest in it."""

Sample = tuple[Array, Array, Array, Array]
"""Position, velocity, acceleration and jerk, shape (n, N) each."""


@runtime_checkable
class Trajectory(Protocol):
    """The contract of a motion of n joints; a form of excitation is at rest, without acceleration, at both ends.

    Position, velocity and acceleration are continuous; the jerk may have steps.
    """

    @property
    def duration(self) -> float:
        """How long it takes [s]."""

    def evaluate(self, t: Array) -> Sample:
        """Position, velocity, acceleration and jerk at times `t` within 0 and the duration [s], shape (n, N) each."""


class Excitation(Trajectory, Protocol):
    """A motion that excites the dynamics, at rest without acceleration at both ends."""

    @property
    def center(self) -> Array:
        """Posture about which its amplitude can be scaled [rad or m], shape (n,)."""

    @property
    def fastest(self) -> float:
        """Period of the fastest wave in it [s]: how finely it must be sampled."""


class Timed(Excitation, Protocol):
    """An excitation whose time can be stretched: it is a frozen dataclass."""

    TIMES: ClassVar[tuple[str, ...]]
    """Fields that are times, in proportion to which the motion is slower."""
    RATES: ClassVar[tuple[str, ...]]
    """Fields that are frequencies or rates, in inverse proportion to which it is."""


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


def smooth_ramp(x: Array) -> Array:
    """Integral of `smooth_step` from 0 on: 0 before 0, x - 1/2 after 1."""
    inside = np.clip(x, 0.0, 1.0)
    return inside**4 * (2.5 - 3.0 * inside + inside**2) + np.maximum(x - 1.0, 0.0)


def window(t: Array, duration: float, blend: float) -> Sample:
    """Grows by a quintic from 0 to 1 in the first `blend` seconds and falls back in the last, shape (N,) each."""
    rise, fall = smooth_step(t / blend), smooth_step((t - (duration - blend)) / blend)
    w0, w1, w2, w3 = ((rise[d] - fall[d]) / blend**d for d in range(4))
    return w0, w1, w2, w3


def product(a: Sample, b: Sample) -> Sample:
    """Product of two functions of time and its derivatives (Leibniz)."""
    return (
        a[0] * b[0],
        a[1] * b[0] + a[0] * b[1],
        a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2],
        a[3] * b[0] + 3.0 * a[2] * b[1] + 3.0 * a[1] * b[2] + a[0] * b[3],
    )


def composed(outer: Sample, inner: Sample) -> Sample:
    """A function of a function of time and its derivatives (chain rule).

    Args:
        outer: value and derivatives with respect to the inner function, at its values.
        inner: value and derivatives with respect to time.
    """
    f, df, ddf, dddf = outer
    _, ds, dds, ddds = inner
    return f, df * ds, ddf * ds**2 + df * dds, dddf * ds**3 + 3.0 * ddf * ds * dds + df * ddds


@dataclass(frozen=True)
class Repeated:
    """A motion that ends where it begins, several times without a stop between.

    Attributes:
        cycle: the motion.
        periods: how many.
    """

    cycle: Excitation
    periods: int

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.periods * self.cycle.duration

    @property
    def center(self) -> Array:
        """See `Excitation`."""
        return self.cycle.center

    @property
    def fastest(self) -> float:
        """See `Excitation`."""
        return self.cycle.fastest

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        one = self.cycle.duration
        return self.cycle.evaluate(np.clip(t - one * np.clip(np.floor(t / one), 0, self.periods - 1), 0.0, one))


@dataclass(frozen=True)
class Scaled:
    """A motion made slower, and smaller about its center.

    Attributes:
        motion: the motion.
        speed: 1 for its own, less for a longer time.
        amplitude: 1 for its own, less for a smaller distance from its center.
    """

    motion: Excitation
    speed: float
    amplitude: float

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.motion.duration / self.speed

    @property
    def center(self) -> Array:
        """See `Excitation`."""
        return self.motion.center

    @property
    def fastest(self) -> float:
        """See `Excitation`."""
        return self.motion.fastest / self.speed

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        q, dq, ddq, dddq = self.motion.evaluate(np.minimum(t * self.speed, self.motion.duration))
        middle, a, s = self.center[:, None], self.amplitude, self.speed
        return middle + a * (q - middle), a * s * dq, a * s**2 * ddq, a * s**3 * dddq


def check_limits(trajectory: Trajectory, limits: MotionLimits, span: tuple[float, float] | None = None) -> None:
    """Compare a motion with the limits, those of the jerk included, on a fine grid.

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
        q, dq, ddq, dddq = trajectory.evaluate(block)
        limits.check_positions(q)
        limits.check_rates(dq, ddq, dddq)


def check_excitation(cycle: Trajectory, periods: int, joint_names: tuple[str, ...]) -> None:
    """Whether a motion may be executed as an excitation: it moves, rests at both ends, and closes if it is repeated.

    Args:
        cycle: the motion.
        periods: how many times.
        joint_names: of its joints.

    Raises:
        MotionError: names the first joint that does not.
    """
    q, dq, ddq, dddq = cycle.evaluate(np.linspace(0.0, cycle.duration, min(BLOCK, 2 + int(cycle.duration / FINE))))
    if not np.all(np.isfinite([q, dq, ddq, dddq])):
        raise MotionError("the motion has positions or derivatives that are not finite")
    if not np.ptp(q, axis=1).any():
        raise MotionError("the motion moves no joint: its amplitude is 0")
    for j, name in enumerate(joint_names):
        for word, values in (("velocity", dq[j]), ("acceleration", ddq[j])):
            if max(abs(values[0]), abs(values[-1])) > REST * np.abs(values).max():
                raise MotionError(f"joint {name}: the motion does not begin and end without {word}")
        if periods > 1 and abs(q[j, -1] - q[j, 0]) > REST * np.ptp(q[j]):
            raise MotionError(f"joint {name}: the motion cannot be repeated, it does not end where it begins")
