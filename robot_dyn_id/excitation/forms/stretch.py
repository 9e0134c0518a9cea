# SPDX-License-Identifier: Apache-2.0
"""Families of motions whose period is chosen too: a motion of a family of a given period, made slower or faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Parametrization
from robot_dyn_id.excitation.trajectory import Sample, Timed

RANGE = 2.0
"""Random motions take this many times their period at most, and this part of it at least."""


def slower(motion: Timed, factor: float) -> Timed:
    """The motion of the same form that takes `factor` times as long, at the same positions."""
    times = {name: getattr(motion, name) * factor for name in motion.TIMES}
    rates = {name: getattr(motion, name) / factor for name in motion.RATES}
    return replace(motion, **times, **rates)  # type: ignore[type-var]


class Stretched:
    """A family, and the logarithm of the factor that its motions are slower by as the last coefficient.

    Times are the family's own: at time t of it the motion is at time factor t. So the instants at which a search looks
    stay at the same phases of the motion.

    Attributes:
        duration, periodic, windows: the family's own, see `Parametrization`.
    """

    def __init__(self, make: Callable[[MotionLimits], Parametrization], limits: MotionLimits) -> None:
        """Take a family.

        Args:
            make: it, for limits.
            limits: of the joints.

        Raises:
            RobotDynIdError: the family's own.
        """
        self._make, self._limits, self._family = make, limits, make(limits)
        self.name = self._family.name
        self.duration, self.periodic, self.windows = (
            self._family.duration, self._family.periodic, self._family.windows
        )  # fmt: skip

    @property
    def size(self) -> int:
        """See `Parametrization`."""
        return self._family.size + 1

    def trajectory(self, x: Array) -> Timed:
        """See `Parametrization`."""
        return slower(self._family.trajectory(x[:-1]), float(np.exp(x[-1])))

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
        by_factor = -float(np.sum(g1 * dq) + 2.0 * np.sum(g2 * ddq) + 3.0 * np.sum(g3 * dddq))
        return np.append(self._family.pull_back(x[:-1], t, (g0, g1, g2, g3)), by_factor)

    def random(self, rng: np.random.Generator, share: float = 0.9) -> Array:
        """See `Parametrization`; the factor is between 1 / `RANGE` and `RANGE`."""
        factor = rng.uniform(-1.0, 1.0) * np.log(RANGE)
        # a motion that is slower by f keeps limits that are reached by one that is not, at f, f^2, f^3 times the rates
        velocity, acceleration, jerk = (
            getattr(self._limits, name) * np.exp(order * factor)
            for order, name in enumerate(("velocity", "acceleration", "jerk"), start=1)
        )
        limits = replace(self._limits, velocity=velocity, acceleration=acceleration, jerk=jerk)
        return np.append(self._make(limits).random(rng, share), factor)

    def scaled(self, x: Array, factor: Array) -> Array:
        """See `Parametrization`."""
        return np.append(self._family.scaled(x[:-1], factor), x[-1])
