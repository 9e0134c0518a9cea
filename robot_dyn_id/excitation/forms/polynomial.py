# SPDX-License-Identifier: Apache-2.0
"""Periodic polynomials with boundary conditions (Chen et al. 2021): no velocity, acceleration or jerk at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.bspline import clamped_splines
from robot_dyn_id.excitation.forms.linear import Combination, LinearParametrization
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand

ENDS = 4
"""Position, velocity, acceleration and jerk at one end: as many Bernstein coefficients are 0 there."""


@dataclass(frozen=True)
class Polynomial(Combination):
    """q_j(t) = center_j + sum_m coefficients_jm b_m(t / length), Bernstein polynomials of one degree.

    Powers of t would lose digits at high degrees. Of degree 8, only c t^4 (T - t)^4 fulfils the conditions.

    Attributes:
        coefficients: Bernstein coefficients, from the center, shape (n, degree + 1) [rad or m].
        length: how long it takes [s].
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
        """A polynomial of degree d has at most d / 2 waves [s]."""
        return 2.0 * self.length / (self.functions - 1)

    @property
    def functions(self) -> int:
        """One more than the degree."""
        return len(self.coefficients.T)

    def basis(self, t: Array) -> Array:
        """See `Combination`."""
        return clamped_splines(self.length, self.functions - 1, self.functions, t)

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Polynomials that begin and end at the center without velocity, acceleration or jerk.

        Raises:
            UsageError: a degree below 8, which leaves nothing free.
            MotionError: a posture outside the limits.
        """
        degree = demand.degree or 10
        if degree < 2 * ENDS:
            raise UsageError(
                f"a polynomial of degree {degree} is fixed by its {2 * ENDS} conditions at the ends: make it at least "
                f"{2 * ENDS}"
            )
        family = cls(np.zeros(1), np.zeros((1, degree + 1)), demand.period)
        bound = np.r_[:ENDS, degree + 1 - ENDS : degree + 1]
        return LinearParametrization(limits, demand, family, np.eye(degree + 1)[bound], True)
