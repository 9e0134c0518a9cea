# SPDX-License-Identifier: Apache-2.0
"""Periodic polynomials with zero velocity, acceleration and jerk at both ends (Chen et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.bspline import evaluate_clamped_splines
from robot_dyn_id.excitation.forms.linear import LinearMotion, LinearParametrization
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand

CONDITIONS_PER_END = 4
"""Position, velocity, acceleration and jerk: the same number of Bernstein coefficients is 0 at each end."""


@dataclass(frozen=True)
class Polynomial(LinearMotion):
    """q_j(t) = center_j + sum_m coefficients_jm b_m(t / length), Bernstein polynomials of one degree.

    Powers of t would be ill-conditioned at high degrees. For degree 8, only c t^4 (T - t)^4 satisfies the conditions.

    Attributes:
        coefficients: Bernstein coefficients relative to the center, shape (n, degree + 1) [rad or m].
        length: duration [s].
    """

    name: ClassVar[str] = "polynomial"
    FORMULA: ClassVar[str] = (
        "center_j + sum_m c_jm binomial(d, m) s^m (1 - s)^(d - m), s = t / length; a row of the coefficients is "
        "c_j0 ... c_jd"
    )

    length: float

    @property
    def duration(self) -> float:
        """See `Trajectory`."""
        return self.length

    @property
    def fastest(self) -> float:
        """Shortest period [s]: a polynomial of degree d has at most d / 2 oscillations."""
        return 2.0 * self.length / (self.functions - 1)

    @property
    def functions(self) -> int:
        """Number of functions: the degree plus one."""
        return len(self.coefficients.T)

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        return evaluate_clamped_splines(self.length, self.functions - 1, self.functions, t)

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of polynomials that begin and end at rest at the center.

        Raises:
            UsageError: a degree below 8, which leaves no free coefficient.
            MotionError: the center configuration is outside the limits.
        """
        degree = demand.degree or 10
        if degree < 2 * CONDITIONS_PER_END:
            raise UsageError(
                f"a polynomial of degree {degree} is fully determined by its {2 * CONDITIONS_PER_END} boundary "
                f"conditions: use a degree of at least {2 * CONDITIONS_PER_END}"
            )
        family = cls(np.zeros(1), np.zeros((1, degree + 1)), demand.period)
        fixed = np.r_[:CONDITIONS_PER_END, degree + 1 - CONDITIONS_PER_END : degree + 1]
        return LinearParametrization(limits, demand, family, np.eye(degree + 1)[fixed], periodic=True)
