# SPDX-License-Identifier: Apache-2.0
"""Parametrizations with a free period: motions of another family with scaled time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Parametrization
from robot_dyn_id.excitation.trajectory import Sample, Stretchable

RANDOM_FACTOR_MAX = 2.0
"""Largest factor of the period of random motions; the smallest is its inverse [-]."""


def slow_down(motion: Stretchable, factor: float) -> Stretchable:
    """Scale the duration of a motion by `factor`; its path does not change."""
    times = {name: getattr(motion, name) * factor for name in motion.TIMES}
    rates = {name: getattr(motion, name) / factor for name in motion.RATES}
    return replace(motion, **times, **rates)  # type: ignore[type-var]


class FreePeriodParametrization:
    """A parametrization extended by one coefficient: the logarithm of a factor of the period.

    Times are those of the original family: its time t corresponds to the time factor t of the motion, so that the
    samples used in a search stay at the same phases of the motion.

    Attributes:
        duration, periodic, windows, passages: those of the original family, see `Parametrization`.
    """

    def __init__(self, make: Callable[[MotionLimits], Parametrization], limits: MotionLimits) -> None:
        """Wrap a family.

        Args:
            make: function that makes the family for given limits.
            limits: motion limits of the joints.

        Raises:
            RobotDynIdError: raised by `make`.
        """
        self._make = make
        self._limits = limits
        self._family = make(limits)
        self.name = self._family.name
        self.duration = self._family.duration
        self.periodic = self._family.periodic
        self.windows = self._family.windows
        self.passages = self._family.passages

    @property
    def size(self) -> int:
        """See `Parametrization`."""
        return self._family.size + 1

    def trajectory(self, x: Array) -> Stretchable:
        """See `Parametrization`."""
        return slow_down(self._family.trajectory(x[:-1]), float(np.exp(x[-1])))

    def sample(self, x: Array, t: Array) -> Sample:
        """See `Parametrization`."""
        q, dq, ddq, dddq = self._family.sample(x[:-1], t)
        rate = np.exp(-x[-1])
        return q, rate * dq, rate**2 * ddq, rate**3 * dddq

    def pull_back(self, x: Array, t: Array, gradient: Sample) -> Array:
        """See `Parametrization`."""
        rate = np.exp(-x[-1])
        g0, g1, g2, g3 = (rate**d * gradient[d] for d in range(4))
        _, dq, ddq, dddq = self._family.sample(x[:-1], t)
        by_factor = -np.sum(g1 * dq + 2.0 * g2 * ddq + 3.0 * g3 * dddq, axis=(-2, -1))
        own = self._family.pull_back(x[:-1], t, (g0, g1, g2, g3))
        return np.concatenate([own, by_factor[..., None]], axis=-1)

    def random(self, rng: np.random.Generator, share: float = 0.9) -> Array:
        """See `Parametrization`; the factor is between 1 / `RANDOM_FACTOR_MAX` and `RANDOM_FACTOR_MAX`."""
        factor = rng.uniform(-1.0, 1.0) * np.log(RANDOM_FACTOR_MAX)
        # slowed down by f, a motion within limits f, f^2 and f^3 times as large is within the limits
        velocity, acceleration, jerk = (
            getattr(self._limits, name) * np.exp(order * factor)
            for order, name in enumerate(("velocity", "acceleration", "jerk"), start=1)
        )
        limits = replace(self._limits, velocity=velocity, acceleration=acceleration, jerk=jerk)
        return np.append(self._make(limits).random(rng, share), factor)

    def scaled(self, x: Array, factor: Array) -> Array:
        """See `Parametrization`."""
        return np.append(self._family.scaled(x[:-1], factor), x[-1])
