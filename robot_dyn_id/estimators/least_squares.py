# SPDX-License-Identifier: Apache-2.0
"""Ordinary, weighted and generalised least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import METHODS, Factors, compress_rows
from robot_dyn_id.estimators.feasible_gls import solve_whitened
from robot_dyn_id.estimators.sandwich import compute_sandwich
from robot_dyn_id.estimators.weighting import refine_solution, solve_reweighted
from robot_dyn_id.options import CheckedOptions, Choice, OptionRanges, Range


@dataclass(frozen=True)
class OrdinaryLeastSquares(CheckedOptions):
    """Least squares with every row alike, N and N m alike: for comparison, not for use.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from, for the covariance.
        method: `qr` or `gram`.
    """

    autoregressive_order: int = 6
    method: str = "qr"

    name: ClassVar[str] = "ols"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "autoregressive_order": Range(0),
        "method": Choice(METHODS),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = compress_rows(problem, self.method)
        weights = np.ones(len(factors.counts))
        solution = refine_solution(problem, factors.solve(weights), weights, self.method)
        noise, covariance = compute_sandwich(
            problem, solution.values, solution.inverse, weights, self.autoregressive_order
        )
        return Estimate.from_solution(problem, factors, solution, solution, covariance, noise)


@dataclass(frozen=True)
class WeightedLeastSquares(CheckedOptions):
    """Least squares with one weight per joint, 1 / RMS of its residual, iterated on the compressed rows.

    Its covariance counts for residuals that follow one another (filters, unmodelled friction): a sandwich with an
    autoregressive model of each joint's residual in the middle.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
        method: `qr` or `gram`.
    """

    autoregressive_order: int = 6
    method: str = "qr"

    name: ClassVar[str] = "weighted"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "autoregressive_order": Range(0),
        "method": Choice(METHODS),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = compress_rows(problem, self.method)
        ordinary, solution, weights = solve_reweighted(factors)
        solution = refine_solution(problem, solution, weights, self.method)
        noise, covariance = compute_sandwich(
            problem, solution.values, solution.inverse, weights, self.autoregressive_order
        )
        return Estimate.from_solution(problem, factors, ordinary, solution, covariance, noise)


@dataclass(frozen=True)
class GeneralizedLeastSquares(CheckedOptions):
    """Weighted least squares of rows whose residuals were made white.

    Smaller errors than `weighted` if the residuals are noise: columns and torques are filtered with an autoregressive
    model of each joint's residual, and the problem is solved again. Where the residuals are model errors instead,
    which are slow, it trusts fast motion too much and predicts worse: compare the held-out errors.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from.
        passes: whitening passes.
        method: `qr` or `gram`.
    """

    autoregressive_order: int = 6
    passes: int = 2
    method: str = "qr"

    name: ClassVar[str] = "generalized"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "autoregressive_order": Range(0),
        "passes": Range(1),
        "method": Choice(METHODS),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        found = solve_whitened(problem, self.autoregressive_order, self.passes, self.method, Factors.solve)
        return found.make_estimate(problem)
