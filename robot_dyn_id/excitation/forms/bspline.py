# SPDX-License-Identifier: Apache-2.0
"""Clamped B-splines, whose control points each affect only a limited time interval of the motion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.linear import LinearMotion, LinearParametrization, rest_conditions
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand

DEFAULT_DEGREE = 5
"""Default degree, with a continuously differentiable jerk."""

LOWEST_DEGREE = 3
"""Lowest degree with a continuous acceleration."""


@lru_cache(maxsize=8)
def _splines(duration: float, degree: int, count: int) -> list[Any]:
    from scipy.interpolate import BSpline  # slow to import, and seldom used

    knots = place_knots(duration, degree, count)
    knots = np.concatenate([np.zeros(degree), knots, np.full(degree, duration)])
    functions = BSpline(knots, np.eye(count), degree)
    return [functions.derivative(d) if d else functions for d in range(4)]


def place_knots(duration: float, degree: int, count: int) -> Array:
    """Equally spaced knots of a clamped spline with `count` control points, end knots listed once [s]."""
    return np.linspace(0.0, duration, count - degree + 1)


def evaluate_clamped_splines(duration: float, degree: int, count: int, t: Array) -> Array:
    """Clamped B-spline functions and three derivatives at times `t` [s], shape (4, count, N).

    With degree + 1 control points they are the Bernstein polynomials.
    """
    return np.array([spline(np.clip(t, 0.0, duration)).T for spline in _splines(duration, degree, count)])


@dataclass(frozen=True)
class Spline(LinearMotion):
    """q_j(t) = center_j + sum_m coefficients_jm B_m(t), clamped B-spline functions on equally spaced knots.

    Attributes:
        coefficients: control points relative to the center, shape (n, M) [rad or m].
        length: duration [s].
        degree: degree of the spline, at least 3.
    """

    name: ClassVar[str] = "bspline"
    FORMULA: ClassVar[str] = (
        "center_j + sum_m c_jm B_m(t), clamped B-spline functions of the degree on equally spaced knots from 0 to "
        "length; a row of the coefficients are the control points c_j1 ... c_jM"
    )

    length: float
    degree: int

    def __post_init__(self) -> None:
        """See `LinearMotion`.

        Raises:
            UsageError: also if the degree is below 3, or there are not more control points than the degree.
        """
        if self.degree < LOWEST_DEGREE:
            raise UsageError(
                f"a spline of degree {self.degree} has a discontinuous acceleration: use degree 3 or higher"
            )
        if self.functions <= self.degree:
            raise UsageError(
                f"a spline of degree {self.degree} needs at least {self.degree + 1} control points, "
                f"not {self.functions}"
            )
        super().__post_init__()

    @property
    def duration(self) -> float:
        """See `Trajectory`."""
        return self.length

    @property
    def fastest(self) -> float:
        """Twice the knot spacing [s]."""
        return 2.0 * self.length / (self.functions - self.degree)

    @property
    def functions(self) -> int:
        """Number of control points."""
        return len(self.coefficients.T)

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        return evaluate_clamped_splines(self.length, self.degree, self.functions, t)

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of splines at rest at both ends, whose control points have the mean 0.

        Raises:
            UsageError: a degree below 3, too few control points, or repetitions of a spline that is not closed.
            MotionError: the center configuration is outside the limits.
        """
        if demand.periods > 1 and not demand.closed:
            raise UsageError("a spline that is not closed cannot be repeated: set periods to 1")
        family = cls(np.zeros(1), np.zeros((1, demand.control_points)), demand.period, demand.degree or DEFAULT_DEGREE)
        ends = family.basis(np.array([0.0, family.duration]))[0]
        zero_mean = np.ones((1, family.functions))  # a constant would duplicate the center
        conditions = [rest_conditions(family), zero_mean, *([np.diff(ends).T] if demand.closed else [])]
        knots = place_knots(family.length, family.degree, family.functions)
        return LinearParametrization(
            limits, demand, family, np.concatenate(conditions), periodic=demand.closed, jerk_steps=tuple(knots)
        )
