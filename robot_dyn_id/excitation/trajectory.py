# SPDX-License-Identifier: Apache-2.0
"""Trajectories: joint positions over a finite time with their derivatives; repetition, scaling and limit checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.limits import MotionLimits

CHECK_STEP_S = 1e-3
"""Time step at which a motion is checked against its limits [s]."""

CHECK_BLOCK_SAMPLES = 10_000
"""Number of samples checked at a time, so that memory does not grow with the duration of a motion."""

REST_RATIO = 1e-6
"""Largest velocity and acceleration at both ends of an excitation, relative to their peaks [-]."""

Sample = tuple[Array, Array, Array, Array]
"""Position, velocity, acceleration and jerk, shape (n, N) each."""


@runtime_checkable
class Trajectory(Protocol):
    """Interface of a motion of n joints.

    Position, velocity and acceleration are continuous; the jerk may have steps.
    """

    @property
    def duration(self) -> float:
        """Duration [s]."""

    def evaluate(self, t: Array) -> Sample:
        """Evaluate the motion.

        Args:
            t: times between 0 and the duration [s], shape (N,).

        Returns:
            Position, velocity, acceleration and jerk, shape (n, N) each.
        """


class Excitation(Trajectory, Protocol):
    """A motion that excites the dynamics, with zero velocity and acceleration at both ends."""

    @property
    def center(self) -> Array:
        """Configuration about which the amplitude can be scaled [rad or m], shape (n,)."""

    @property
    def fastest(self) -> float:
        """Shortest period contained in the motion [s], which determines the necessary sampling rate."""


class Stretchable(Excitation, Protocol):
    """An excitation whose duration can be scaled; implementations are frozen dataclasses."""

    TIMES: ClassVar[tuple[str, ...]]
    """Names of the fields that are times: they scale with the duration."""
    RATES: ClassVar[tuple[str, ...]]
    """Names of the fields that are frequencies or rates: they scale inversely with the duration."""


def smooth_step(x: Array) -> Sample:
    """Quintic step from 0 to 1 with zero first and second derivatives at both ends.

    Args:
        x: arguments; the step is constant outside 0 to 1.

    Returns:
        Value and three derivatives, each of the shape of `x`.
    """
    inside = (x > 0.0) & (x < 1.0)
    x = np.clip(x, 0.0, 1.0)
    return (
        x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
        30.0 * x**2 * (1.0 - x) ** 2,
        60.0 * x * (1.0 - x) * (1.0 - 2.0 * x),
        np.where(inside, 60.0 - 360.0 * x + 360.0 * x**2, 0.0),
    )


STEP_PEAKS = 15.0 / 8.0, 10.0 / np.sqrt(3.0), 60.0
"""Largest absolute values of the three derivatives of `smooth_step`."""


def step_time(limits: MotionLimits, distance: Array) -> float:
    """Shortest time in which all joints move by a `smooth_step` within their limits [s].

    Args:
        limits: motion limits of the n joints.
        distance: distance of each joint [rad or m], shape (n,).
    """
    bounds = (limits.velocity, limits.acceleration, limits.jerk)
    times = [
        (peak * distance / bound) ** (1.0 / order)
        for order, (peak, bound) in enumerate(zip(STEP_PEAKS, bounds, strict=True), start=1)
    ]
    return float(np.max(times))


def smooth_ramp(x: Array) -> Array:
    """Integral of `smooth_step` from 0: 0 for negative arguments, x - 1/2 for arguments above 1."""
    inside = np.clip(x, 0.0, 1.0)
    return inside**4 * (2.5 - 3.0 * inside + inside**2) + np.maximum(x - 1.0, 0.0)


def window(t: Array, duration: float, blend: float) -> Sample:
    """Window that rises from 0 to 1 and falls back to 0 by quintics.

    Args:
        t: times [s], shape (N,).
        duration: end of the window [s].
        blend: duration of the rise and of the fall [s].

    Returns:
        Value and three time derivatives, shape (N,) each.
    """
    rise, fall = smooth_step(t / blend), smooth_step((t - (duration - blend)) / blend)
    w0, w1, w2, w3 = ((rise[d] - fall[d]) / blend**d for d in range(4))
    return w0, w1, w2, w3


def multiply(a: Sample, b: Sample) -> Sample:
    """Product of two functions of time and its derivatives (Leibniz rule)."""
    return (
        a[0] * b[0],
        a[1] * b[0] + a[0] * b[1],
        a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2],
        a[3] * b[0] + 3.0 * a[2] * b[1] + 3.0 * a[1] * b[2] + a[0] * b[3],
    )


def compose(outer: Sample, inner: Sample) -> Sample:
    """Composition of two functions and its time derivatives (chain rule).

    Args:
        outer: value and derivatives of the outer function with respect to its argument, at the inner values.
        inner: value and time derivatives of the inner function.
    """
    f, df, ddf, dddf = outer
    _, ds, dds, ddds = inner
    return f, df * ds, ddf * ds**2 + df * dds, dddf * ds**3 + 3.0 * ddf * ds * dds + df * ddds


@dataclass(frozen=True)
class Repeated:
    """A closed motion repeated without stops.

    Attributes:
        cycle: one period of the motion.
        periods: number of repetitions.
    """

    cycle: Excitation
    periods: int

    @property
    def duration(self) -> float:
        """Duration [s]."""
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
        before = np.minimum(np.maximum(np.floor(t / one), 0), self.periods - 1)
        return self.cycle.evaluate(np.minimum(np.maximum(t - one * before, 0.0), one))


@dataclass(frozen=True)
class Scaled:
    """A motion with scaled speed and amplitude.

    Attributes:
        motion: the original motion.
        speed: speed factor; 0.5 doubles the duration.
        amplitude: factor of the distance from the center.
    """

    motion: Excitation
    speed: float
    amplitude: float

    @property
    def duration(self) -> float:
        """Duration [s]."""
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
    """Check a motion against the limits of position, velocity, acceleration and jerk on a fine time grid.

    Args:
        trajectory: the motion.
        limits: motion limits of the joints.
        span: start and end of the part that is checked [s]; the entire motion by default.

    Raises:
        MotionError: a limit is exceeded; names the first such joint and by how much.
    """
    begin, end = span or (0.0, trajectory.duration)
    times = np.linspace(begin, end, 2 + int((end - begin) / CHECK_STEP_S))
    for block in np.array_split(times, -(-len(times) // CHECK_BLOCK_SAMPLES)):
        q, dq, ddq, dddq = trajectory.evaluate(block)
        limits.check_positions(q)
        limits.check_rates(dq, ddq, dddq)


def check_excitation(cycle: Trajectory, periods: int, joint_names: tuple[str, ...]) -> None:
    """Check that a motion can be executed as an excitation: finite, not constant, at rest at both ends.

    Args:
        cycle: one period of the motion.
        periods: number of repetitions; above 1 the motion must end where it begins.
        joint_names: names of its joints.

    Raises:
        MotionError: a condition does not hold; names the first such joint.
    """
    q, dq, ddq, dddq = cycle.evaluate(
        np.linspace(0.0, cycle.duration, min(CHECK_BLOCK_SAMPLES, 2 + int(cycle.duration / CHECK_STEP_S)))
    )
    if not np.all(np.isfinite([q, dq, ddq, dddq])):
        raise MotionError("the motion has positions or derivatives that are not finite")
    if not np.ptp(q, axis=1).any():
        raise MotionError("the motion moves no joint: its amplitude is 0")
    for j, name in enumerate(joint_names):
        for word, values in (("velocity", dq[j]), ("acceleration", ddq[j])):
            if max(abs(values[0]), abs(values[-1])) > REST_RATIO * np.abs(values).max():
                raise MotionError(f"joint {name}: the motion does not begin and end without {word}")
        if periods > 1 and abs(q[j, -1] - q[j, 0]) > REST_RATIO * np.ptp(q[j]):
            raise MotionError(f"joint {name}: the motion cannot be repeated, it does not end where it begins")
