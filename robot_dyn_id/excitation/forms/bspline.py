# SPDX-License-Identifier: Apache-2.0
"""B-splines: local in time, so that a design shapes one part of a motion without touching the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.interpolate import BSpline

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.linear import Combination, LinearParametrization, at_ends
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand

DEGREE = 5
"""Unless told otherwise: the jerk is smooth."""

LOWEST_DEGREE = 3
"""Below it the acceleration has steps."""


@lru_cache(maxsize=8)
def _splines(duration: float, degree: int, count: int) -> list[Any]:
    knots = knots_of(duration, degree, count)
    knots = np.concatenate([np.zeros(degree), knots, np.full(degree, duration)])
    functions = BSpline(knots, np.eye(count), degree)
    return [functions.derivative(d) if d else functions for d in range(4)]


def knots_of(duration: float, degree: int, count: int) -> Array:
    """Equally spaced knots of a clamped spline with `count` control points, the multiple ends once [s]."""
    return np.linspace(0.0, duration, count - degree + 1)


def clamped_splines(duration: float, degree: int, count: int, t: Array) -> Array:
    """Clamped B-spline functions and three derivatives, shape (4, count, N).

    With degree + 1 control points they are the Bernstein polynomials.
    """
    return np.array([spline(np.clip(t, 0.0, duration)).T for spline in _splines(duration, degree, count)])


@dataclass(frozen=True)
class Spline(Combination):
    """q_j(t) = center_j + sum_m coefficients_jm B_m(t), clamped B-spline functions on equally spaced knots.

    Attributes:
        coefficients: control points, from the center, shape (n, M) [rad or m].
        length: how long it takes [s].
        degree: at least 3.
    """

    name: ClassVar[str] = "bspline"
    FORMULA: ClassVar[str] = (
        "center_j + sum_m c_jm B_m(t), clamped B-spline functions of the degree on equally spaced knots from 0 to "
        "length; a row of the coefficients are the control points c_j1 ... c_jM"
    )

    length: float
    degree: int

    def __post_init__(self) -> None:
        """See `Combination`.

        Raises:
            UsageError: also a degree below 3, or fewer control points than such a spline has.
        """
        if self.degree < LOWEST_DEGREE:
            raise UsageError(f"a spline of degree {self.degree} has steps in its acceleration: make it at least 3")
        if self.functions <= self.degree:
            raise UsageError(
                f"a spline of degree {self.degree} has at least {self.degree + 1} control points, not {self.functions}"
            )
        super().__post_init__()

    @property
    def duration(self) -> float:
        """See `Trajectory`."""
        return self.length

    @property
    def fastest(self) -> float:
        """Twice the time between two knots [s]."""
        return 2.0 * self.length / (self.functions - self.degree)

    @property
    def functions(self) -> int:
        """One for each control point."""
        return len(self.coefficients.T)

    def basis(self, t: Array) -> Array:
        """See `Combination`."""
        return clamped_splines(self.length, self.degree, self.functions, t)

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Splines at rest without acceleration at both ends, whose control points have the mean 0.

        Raises:
            UsageError: a degree below 3, too few control points, an open spline that is to be repeated.
            MotionError: a posture outside the limits.
        """
        if demand.periods > 1 and not demand.closed:
            raise UsageError("a spline that does not end where it begins cannot be repeated: ask for one period")
        family = cls(np.zeros(1), np.zeros((1, demand.control_points)), demand.period, demand.degree or DEGREE)
        ends = family.basis(np.array([0.0, family.duration]))[0]
        # a constant would be a second center
        conditions = [at_ends(family), np.ones((1, family.functions)), *([np.diff(ends).T] if demand.closed else [])]
        knots = knots_of(family.length, family.degree, family.functions)
        return LinearParametrization(limits, demand, family, np.concatenate(conditions), demand.closed, tuple(knots))
