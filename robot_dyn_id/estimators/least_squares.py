# SPDX-License-Identifier: Apache-2.0
"""Ordinary, weighted and generalized least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Method, compress_rows
from robot_dyn_id.estimators.feasible_gls import solve_whitened
from robot_dyn_id.estimators.sandwich import compute_sandwich
from robot_dyn_id.estimators.weighting import refine_solution, solve_reweighted
from robot_dyn_id.options import CheckedOptions, Count, Order


@dataclass(frozen=True)
class OrdinaryLeastSquares(CheckedOptions):
    """Ordinary least squares: all rows have the same weight, whatever their unit. For comparison with other tools.

    Attributes:
        autoregressive_order: AR order of the noise model, for the covariance; 0: white residuals.
        method: `qr` or `gram`.
    """

    autoregressive_order: Order = 6
    method: Method = "qr"

    name: ClassVar[str] = "ols"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = compress_rows(problem, self.method)
        weights = np.ones(len(factors.counts))
        solution = refine_solution(problem, factors.solve(weights), weights, self.method)
        noise, covariance = compute_sandwich(
            problem, solution.values, solution.inverse, weights, self.autoregressive_order
        )
        return Estimate.from_solution(problem.names, factors, solution, solution, covariance, noise)


@dataclass(frozen=True)
class WeightedLeastSquares(CheckedOptions):
    """Least squares with one weight per joint, 1 / RMS of its residual, iterated on the compressed rows.

    The covariance accounts for autocorrelated residuals (filters, unmodeled friction): a sandwich with an
    autoregressive model of each joint's residual.

    Attributes:
        autoregressive_order: AR order of the noise model; 0: white residuals.
        method: `qr` or `gram`.
    """

    autoregressive_order: Order = 6
    method: Method = "qr"

    name: ClassVar[str] = "weighted"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = compress_rows(problem, self.method)
        ordinary, solution, weights = solve_reweighted(factors)
        solution = refine_solution(problem, solution, weights, self.method)
        noise, covariance = compute_sandwich(
            problem, solution.values, solution.inverse, weights, self.autoregressive_order
        )
        return Estimate.from_solution(problem.names, factors, ordinary, solution, covariance, noise)


@dataclass(frozen=True)
class GeneralizedLeastSquares(CheckedOptions):
    """Weighted least squares of prewhitened rows.

    More accurate than `weighted` if the residuals are noise: columns and torques are filtered with an autoregressive
    model of each joint's residual, and the problem is solved again. If the residuals are slow model errors instead, it
    gives fast motion too much weight and predicts worse: compare the held-out errors.

    Attributes:
        autoregressive_order: AR order of the noise model.
        passes: number of whitening passes.
        method: `qr` or `gram`.
    """

    autoregressive_order: Order = 6
    passes: Count = 2
    method: Method = "qr"

    name: ClassVar[str] = "generalized"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        found = solve_whitened(problem, self.autoregressive_order, self.passes, self.method, Factors.solve)
        return found.make_estimate(problem)
