# SPDX-License-Identifier: Apache-2.0
"""95 % intervals of linear combinations of parameters some of which are not negative.

The estimate without bounds, x0, is normal with covariance V. With W = V^-1 and C the parameters whose bounds hold,

    d2(t) = least (x - x0)' W (x - x0) over x in C with a' x = t

and the interval of a combination a holds all t with d2(t) <= least d2 + 1.96^2: the profile of the likelihood (Rust and
Burrus 1972; one-at-a-time strict bounds of Patil, Kuusela and Hobbs 2022). Parameters that share their torque with
others, such as those of nearly collinear friction columns, thus have the intervals of what the others may take over
within their signs. An estimate at its bound has an interval from zero on.

Where many others are truly zero the level of a parameter's profile can fall below 95 % (Batlle and others, 2023);
`benchmarks/automatic_intervals.py` measures it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.estimators.non_negative import minimize_non_negative
from robot_dyn_id.kernels.profile import follow_profile

NORMAL = 1.96
"""Upper quantile of normal 95 % intervals."""

SCORE_RIDGE = 1e-9
"""Relative addition to the variances of the scores: scores of columns that are equal within it may be dependent."""

LEAST_VARIANCE = 1e-12
"""Least variance of a score, as a share of their mean: data without noise have intervals of rounding."""

RIDGE = 1e-10
"""Added to the unit diagonal of metrics that are inverted."""

MAX_SWEEPS = 50
"""Largest number of sweeps over the deviations to fit."""

LEAST_DEVIATION = 1e-6
"""Least deviation that is fitted, as a share of that with all else known."""

SAME_DEVIATION = 1e-3
"""Relative difference of deviations that ends the sweeps."""


@dataclass(frozen=True)
class BoundedNormal:
    """Normal estimate without bounds, of parameters some of which are not negative.

    Attributes:
        center: estimate without bounds x0, shape (c,).
        metric: inverse W of its covariance, shape (c, c).
        bounded: mask of the parameters that are not negative, shape (c,).
    """

    center: Array
    metric: Array
    bounded: Mask

    @classmethod
    def from_scores(cls, normal: Array, right: Array, covariance: Array, bounded: Mask) -> BoundedNormal:
        """Make it from normal equations.

        Args:
            normal: normal matrix H, positive definite, shape (c, c).
            right: right side, the scores g, shape (c,).
            covariance: covariance M of the scores, shape (c, c); the metric is H M^-1 H.
            bounded: mask of the parameters that are not negative, shape (c,).
        """
        size = 1.0 / np.sqrt(np.diag(normal))
        unit = normal * size * size[:, None]
        scores = covariance * size * size[:, None]
        variances = np.diag(scores)
        least = LEAST_VARIANCE * max(float(variances.mean()), np.finfo(np.float64).tiny ** 0.5)
        root = cholesky(scores + np.diag(SCORE_RIDGE * variances + least), lower=True)
        rows = solve_triangular(root, unit, lower=True) / size
        center = size * np.linalg.solve(unit, size * right)
        return cls(center, rows.T @ rows, bounded)

    def find_intervals(self, combinations: Array) -> Array:
        """Ends of the intervals of some combinations of the parameters, shape (p, 2).

        Args:
            combinations: coefficients a of each combination, shape (p, c).
        """
        minimum = self._reduced.minimize()
        return np.array([self._reduced.find_ends(minimum, row) for row in combinations])

    def find_covariance(self, deviations: Array) -> Array:
        """Covariance of a normal distribution that has given standard deviations, shape (c, c).

        Its information is W and, of each bounded parameter, an addition of its own, not below zero: correlations of
        parameters that share their torque are kept. Deviations are fitted in turn (iterative proportional fitting);
        some remain smaller, where the intervals are wider than a normal distribution that knows the sums allows.

        Args:
            deviations: standard deviations, shape (c,); not used where the parameter is not bounded.
        """
        size = 1.0 / np.sqrt(np.diag(self.metric))
        unit = self.metric * size * size[:, None] + RIDGE * np.eye(len(size))
        covariance = np.linalg.inv(unit)
        precision = np.zeros(len(size))
        least = (size / np.maximum(deviations, LEAST_DEVIATION * size)) ** 2
        for _ in range(MAX_SWEEPS):
            before = np.diag(covariance).copy()
            for at in np.flatnonzero(self.bounded):
                change = max(least[at] - 1.0 / covariance[at, at], -precision[at])
                precision[at] += change
                column = covariance[:, at].copy()
                covariance -= np.outer(column, column * (change / (1.0 + change * column[at])))
            if np.all(np.abs(np.diag(covariance) / before - 1.0) < SAME_DEVIATION):
                break
        return np.asarray(0.5 * (covariance + covariance.T) * np.outer(size, size))

    @cached_property
    def _reduced(self) -> _Reduced:
        return _Reduced.from_normal(self)


@dataclass(frozen=True)
class _Minimum:
    """Minimum of the reduced quadratic form within the bounds.

    Attributes:
        tableau: principal pivot transform of the metric for the positive parameters, shape (l, l).
        free: mask of these, shape (l,).
        values: the parameters where they are positive, elsewhere their multipliers, shape (l,).
    """

    tableau: Array
    free: Mask
    values: Array

    @property
    def positive_values(self) -> Array:
        """The parameters, shape (l,)."""
        return np.where(self.free, self.values, 0.0)


@dataclass(frozen=True)
class _Reduced:
    """The bounded parameters, scaled to a unit diagonal, after the others were eliminated.

    Attributes:
        normal: the estimate.
        factor: Cholesky factor of the metric of the parameters without bounds.
        shared: what these change by per unit of the bounded ones, with the opposite sign, shape (c - l, l).
        size: scale of each bounded parameter, shape (l,).
        metric: metric of the scaled parameters, shape (l, l).
        linear: this metric times the estimate without bounds, shape (l,).
    """

    normal: BoundedNormal
    factor: tuple[Array, bool]
    shared: Array
    size: Array
    metric: Array
    linear: Array

    @classmethod
    def from_normal(cls, normal: BoundedNormal) -> _Reduced:
        """Eliminate the parameters without bounds."""
        some, rest = normal.bounded, ~normal.bounded
        metric = normal.metric
        factor = cho_factor(metric[np.ix_(rest, rest)])
        shared = cho_solve(factor, metric[np.ix_(rest, some)])
        reduced = metric[np.ix_(some, some)] - metric[np.ix_(some, rest)] @ shared
        size = 1.0 / np.sqrt(np.maximum(np.diag(reduced), np.finfo(np.float64).tiny))
        reduced = 0.5 * (reduced + reduced.T) * size * size[:, None] + RIDGE * np.eye(len(size))
        return cls(normal, factor, shared, size, reduced, reduced @ (normal.center[some] / size))

    def minimize(self) -> _Minimum:
        """Minimum of y' metric y / 2 - linear' y within the bounds."""
        metric, linear = self.metric, self.linear
        _, free = minimize_non_negative(metric, linear, linear > 0.0)
        bound = ~free
        inverse = np.linalg.inv(metric[np.ix_(free, free)])
        across = metric[np.ix_(bound, free)] @ inverse
        tableau = np.empty_like(metric)
        tableau[np.ix_(free, free)] = inverse
        tableau[np.ix_(free, bound)] = -across.T
        tableau[np.ix_(bound, free)] = across
        tableau[np.ix_(bound, bound)] = metric[np.ix_(bound, bound)] - across @ metric[np.ix_(free, bound)]
        values = np.empty(len(linear))
        values[free] = inverse @ linear[free]
        values[bound] = across @ linear[free] - linear[bound]
        return _Minimum(tableau, free, np.maximum(values, 0.0))

    def find_ends(self, minimum: _Minimum, combination: Array) -> tuple[float, float]:
        """Ends of the interval of a combination of all parameters."""
        some = self.normal.bounded
        of_some, of_rest = combination[some], combination[~some]
        bounded = self.size * minimum.positive_values
        rest = self.normal.center[~some] - self.shared @ (bounded - self.normal.center[some])
        value = float(of_rest @ rest + of_some @ bounded)
        linear = self.size * (of_some - self.shared.T @ of_rest)
        constant = float(of_rest @ cho_solve(self.factor, of_rest))
        below, above = (
            follow_profile(minimum.tableau, minimum.free, minimum.values, way * linear, constant, NORMAL**2)
            for way in (-1.0, 1.0)
        )
        return value - below, value + above
