# SPDX-License-Identifier: Apache-2.0
"""Feasible generalized least squares: whiten, weight and solve in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.weighting import compute_weights, solve_reweighted
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening


@dataclass(frozen=True)
class WhitenedSolution:
    """Solution of prewhitened rows.

    Attributes:
        plain: compressed rows before whitening.
        ordinary: their ordinary solution.
        solution: solution of the white rows, weighted to unit variance: its `inverse` is a covariance.
        noise: RMS of each joint's white residual [N m or N], shape (n,).
        white: compressed white rows; with the weights 1 / noise they have unit variance.
    """

    plain: Factors
    ordinary: Solution
    solution: Solution
    noise: Array
    white: Factors

    def make_estimate(self, problem: LinearProblem, regularized_towards: str = "") -> Estimate:
        """Make the estimate; its covariance is the inverse of the information of the white rows."""
        estimate = Estimate.from_solution(
            problem.names, self.plain, self.ordinary, self.solution, self.solution.inverse, self.noise
        )
        return replace(estimate, regularized_towards=regularized_towards)


def solve_whitened(
    problem: LinearProblem, order: int, passes: int, method: str, solve: Callable[[Factors, Array], Solution]
) -> WhitenedSolution:
    """Whiten, weight and solve in turn.

    Args:
        problem: the rows.
        order: AR order of the noise model.
        passes: number of whitening passes.
        method: `qr` or `gram`.
        solve: function that solves the white rows with one weight per joint.

    Raises:
        InputError: fewer rows than parameters.
    """
    plain = compress_rows(problem, method)
    ordinary, solution, _ = solve_reweighted(plain)
    white = plain
    weights = np.ones(len(plain.counts))
    lagged = LaggedGrams.from_problem(problem, order)
    taken = np.zeros((len(plain.counts), order + 1))
    for _ in range(passes):
        whitening = fit_whitening(lagged.residual_autocovariance(solution.values) + taken, lagged.counts)
        white = Factors.from_problem(problem, whitening.whiten_tiles(problem), method)
        for _ in range(2):
            weights = compute_weights(white, solution.values)
            solution = solve(white, weights)
        taken = lagged.absorbed_autocovariance(solution.inverse)
    return WhitenedSolution(plain, ordinary, solution, 1.0 / weights, white)
