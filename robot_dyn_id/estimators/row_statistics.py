# SPDX-License-Identifier: Apache-2.0
"""Weighted least squares from statistics of rows that can be merged: the rows themselves are not needed again.

A factor of the rows (TSQR; Demmel et al. 2012) and the covariance of their scores determine the weighted estimate and
its covariance. Both add up over recordings: a set is updated with further recordings, and a fleet is identified, from
the statistics alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.sandwich import compute_joint_scores
from robot_dyn_id.estimators.weighting import solve_reweighted


@dataclass(frozen=True)
class RowStatistics:
    """Statistics for weighted least squares of the rows of a problem with n joints and p parameters.

    Attributes:
        factors: the compressed rows.
        scores: covariance of each joint's score W' r with a weight of 1, r its residual, shape (support, support).
        noise: sum of squares of each joint's white residual [N^2 m^2 or N^2], shape (n,).
    """

    factors: Factors
    scores: tuple[Array, ...]
    noise: Array

    @classmethod
    def from_problem(cls, problem: LinearProblem, order: int) -> RowStatistics:
        """Compress the rows, and estimate the covariance of their scores about their own weighted solution.

        Args:
            problem: the problem.
            order: AR order of the noise model.

        Raises:
            InputError: no rows at all.
        """
        factors = Factors.from_problem(problem)
        _, solution, weights = solve_reweighted(factors)
        noise, grams = compute_joint_scores(problem, solution.values, solution.inverse, weights, order)
        scores = tuple(np.ascontiguousarray(matrix[:-1, :-1]) for matrix in grams.matrices)
        return cls(factors, scores, factors.counts * noise**2)

    @classmethod
    def merged(cls, parts: Sequence[RowStatistics]) -> RowStatistics:
        """Statistics of the rows of several problems with the same parameters, whose noise is independent.

        Args:
            parts: at least one.
        """
        scores = tuple(np.sum(of_joint, axis=0) for of_joint in zip(*(part.scores for part in parts), strict=True))
        factors = Factors.merged([part.factors for part in parts])
        return cls(factors, scores, np.sum([part.noise for part in parts], axis=0))

    def score_covariance(self, weights: Array) -> Array:
        """Covariance of the score sum w^2 W' r of all joints, with one weight per joint, shape (p, p)."""
        total = np.zeros((self.factors.parameters, self.factors.parameters))
        for support, matrix, weight in zip(self.factors.supports, self.scores, weights, strict=True):
            total[np.ix_(support, support)] += weight**4 * matrix
        return total

    def estimate(self, names: tuple[str, ...]) -> Estimate:
        """The estimate of `WeightedLeastSquares` from the rows.

        The covariance is its sandwich covariance with a noise model per merged part.

        Args:
            names: names of the p parameters.
        """
        factors = self.factors
        ordinary, solution, weights = solve_reweighted(factors)
        covariance = solution.inverse @ self.score_covariance(weights) @ solution.inverse
        noise = np.sqrt(self.noise / np.maximum(factors.counts, 1))
        return Estimate.from_solution(names, factors, ordinary, solution, covariance, noise)
