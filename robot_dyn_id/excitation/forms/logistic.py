# SPDX-License-Identifier: Apache-2.0
"""Sequential logistic strokes (Qian et al.): velocity and acceleration are functions of the angle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.forms.sequential import SequentialMotion, SequentialParametrization
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand, find_moving_joints
from robot_dyn_id.excitation.trajectory import Sample, compose, smooth_ramp, window

EASE_RATIO = 0.05
"""Fraction of a stroke at each end over which the motion is brought to rest exactly [-]."""

END_EXPONENT = 10.0
"""Exponent at the ends of a stroke, where the logistic is 4.5e-5 of its span away from its limit [-]."""

RANDOM_STEEPNESS_MAX = 2.0
"""Largest steepness of random strokes relative to the one with that exponent [-]."""


def logistic(u: Array) -> Array:
    """Logistic function 1 / (1 + exp(-u)) and four derivatives, shape (5, N)."""
    s = 0.5 * (1.0 + np.tanh(u / 2.0))  # does not overflow
    d1 = s * (1.0 - s)
    odd = 1.0 - 2.0 * s
    d3 = d1 * (1.0 - 6.0 * d1)
    return np.array([s, d1, d1 * odd, d3, d1 * odd * (1.0 - 12.0 * d1)])


@dataclass(frozen=True)
class Logistic(SequentialMotion):
    """q_j = center_j + span_j (1 / (1 + exp(-steepness_j s)) - 1/2) rising, then the same falling, in joint j's turn.

    s is the time from the middle of the stroke. In the first and the last 5 % of a stroke, s is slowed down to a stop,
    so that joints are exactly at rest at the ends, where the logistic alone only becomes slow; in between
    `rates_at_angle` is exact.

    Attributes:
        span: length of the stroke [rad or m], shape (n,).
        steepness: steepness of the stroke [1/s], shape (n,).
    """

    name: ClassVar[str] = "logistic"
    RATES: ClassVar[tuple[str, ...]] = ("steepness",)
    FORMULA: ClassVar[str] = (
        "center_j + span_j (1 / (1 + exp(-steepness_j s)) - 1/2) in the first half of every period of joint j's turn, "
        "the same back in the second half, s from the middle of the half, eased to rest at its ends over 5 % of it"
    )

    span: Array
    steepness: Array

    @property
    def turn(self) -> float:
        """See `SequentialMotion`."""
        return self.periods * self.period

    @property
    def middles(self) -> tuple[float, ...]:
        """See `SequentialMotion`."""
        return tuple((stroke + 0.5) * self.period / 2.0 for stroke in range(2 * self.periods))

    @property
    def passage(self) -> tuple[float, float]:
        """See `SequentialMotion`: the first stroke."""
        return 0.0, self.period / 2.0

    @property
    def fastest(self) -> float:
        """Shortest period, that of the steepest stroke [s]."""
        return float(2.0 * np.pi / self.steepness.max())

    def numbers(self) -> tuple[Array, ...]:
        """See `SequentialMotion`."""
        return self.span, self.steepness

    def clock(self, t: Array) -> tuple[Sample, Array]:
        """Eased time from the middle of a stroke with its derivatives, and the direction (1 or -1), shape (N,) each."""
        half = self.period / 2.0
        local = t % self.period
        falling = local >= half
        local = np.where(falling, local - half, local)
        ease = EASE_RATIO * half
        s = (
            ease * (smooth_ramp(local / ease) - smooth_ramp((local - (half - ease)) / ease))
            - find_eased_time(self.period) / 2
        )
        speed, rise, curve, _ = window(local, half, ease)
        return (s, speed, rise, curve), np.where(falling, -1.0, 1.0)

    def rest(self, joint: int) -> float:
        """See `SequentialMotion`."""
        end = logistic(np.array([-self.steepness[joint] * find_eased_time(self.period) / 2.0]))[0, 0]
        return float(self.span[joint] * (end - 0.5))

    def move(self, joint: int, t: Array) -> Array:
        """See `SequentialMotion`."""
        clock, direction = self.clock(t)
        w = self.steepness[joint]
        f, f1, f2, f3, _ = logistic(w * clock[0])
        shape = np.array(compose((f - 0.5, w * f1, w**2 * f2, w**3 * f3), clock))
        return np.asarray(self.span[joint] * direction * shape)

    def steepness_derivative(self, joint: int, t: Array) -> Array:
        """Derivative of `move` with respect to the steepness, shape (4, N)."""
        clock, direction = self.clock(t)
        w, s = self.steepness[joint], clock[0]
        _, f1, f2, f3, f4 = logistic(w * s)
        outer = (s * f1, f1 + w * s * f2, 2.0 * w * f2 + w**2 * s * f3, 3.0 * w**2 * f3 + w**3 * s * f4)
        return np.asarray(self.span[joint] * direction * np.array(compose(outer, clock)))

    @staticmethod
    def make(limits: MotionLimits, demand: Demand) -> SequentialParametrization:
        """Make the parametrization by spans and steepnesses.

        Raises:
            MotionError: the center configuration is outside the limits.
        """
        return _Strokes(limits, demand)


def find_eased_time(period: float) -> float:
    """Range of the eased time s in one of the two strokes of a period [s]."""
    return period / 2.0 * (1.0 - EASE_RATIO)


class _Strokes(SequentialParametrization):
    """Two coefficients for each joint: its span in units of twice the reach, and the logarithm of its steepness.

    The latter is 0 if the exponent at the ends of a stroke is `END_EXPONENT`.
    """

    AMPLITUDES: ClassVar[slice] = slice(0, 1)

    def __init__(self, limits: MotionLimits, demand: Demand) -> None:
        self._demand = demand
        self._order = tuple(reversed(find_moving_joints(limits, demand).tolist()))
        self._slowest = 2.0 * END_EXPONENT / find_eased_time(demand.period)
        n = len(limits.joint_names)
        prototype = self._motion(np.zeros(n), np.ones(n), np.full(n, RANDOM_STEEPNESS_MAX * self._slowest))
        half, ease = demand.period / 2.0, EASE_RATIO * demand.period / 2.0
        steps = [k * half + side for k in range(2) for side in (0.0, ease, half - ease)]
        super().__init__(limits, demand, prototype, coefficients=2, jerk_steps=(*steps, demand.period))

    def _motion(self, center: Array, span: Array, steepness: Array) -> Logistic:
        return Logistic(center, self._demand.period, self._demand.periods, self._order, span, steepness)

    def trajectory(self, x: Array) -> Logistic:
        numbers, center = self._parts(x)
        motion = self._motion(center, 2.0 * self.reach * numbers[:, 0], self._slowest * np.exp(numbers[:, 1]))
        return replace(motion, **self._visiting(x))

    def _derivatives(self, motion: SequentialMotion, joint: int, t: Array) -> Array:
        assert isinstance(motion, Logistic)
        wider = motion.move(joint, t) / motion.span[joint] * 2.0 * self.reach[joint]
        return np.array([wider, motion.steepness_derivative(joint, t) * motion.steepness[joint]])

    def _draw(self, rng: np.random.Generator) -> Array:
        n = len(self.reach)
        return np.column_stack([np.ones(n), rng.uniform(0.0, np.log(RANDOM_STEEPNESS_MAX), n)])
