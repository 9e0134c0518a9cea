"""Ordinary and weighted least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.whitening import fit_whitening, residual_autocovariance
from robot_dyn_id.regressor import LinearProblem


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Least squares with one weight per joint, made efficient by whitening its residuals.

    First pass: weights 1 / residual RMS, iterated on the compressed rows. Then `passes` times: an autoregressive model of
    each joint's residual, columns and torques filtered with it, and the weighted problem solved again. The covariance
    is that of the whitened problem, so it holds for filtered data.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
        passes: whitening passes.
        method: `qr` or `gram`.
    """

    autoregressive_order: int = 6
    passes: int = 2
    method: str = "qr"

    name: ClassVar[str] = "weighted"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        plain = Factors.of(problem, method=self.method)
        _require_rows(plain, problem)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        factors, solution, weights = plain, ordinary, _inverse_rms(plain, ordinary.values)
        for _ in range(3):
            solution = factors.solve(weights)
            weights = _inverse_rms(factors, solution.values)
        if self.autoregressive_order:
            for _ in range(self.passes):
                covariances, counts = residual_autocovariance(problem, solution.values, self.autoregressive_order)
                whitening = fit_whitening(covariances, counts)
                factors = Factors.of(problem, whitening.tiles(problem), self.method)
                for _ in range(2):
                    weights = _inverse_rms(factors, solution.values)
                    solution = factors.solve(weights)
        return _conclude(problem, plain, factors, ordinary, solution, solution.inverse)


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Least squares with every row alike, N and N m alike: for comparison, not for use.

    Its covariance counts for correlated residuals by sandwiching the residuals' autocovariance, from the same
    autoregressive model that `WeightedLeastSquares` whitens with.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from.
        method: `qr` or `gram`.
    """

    autoregressive_order: int = 6
    method: str = "qr"

    name: ClassVar[str] = "ols"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = Factors.of(problem, method=self.method)
        _require_rows(factors, problem)
        solution = factors.solve(np.ones(len(factors.counts)))
        middle = _score_covariance(problem, solution.values)
        covariance = solution.inverse @ middle @ solution.inverse
        return _conclude(problem, factors, factors, solution, solution, covariance)


BLOCK = 1.0
"""Length of the blocks within which residuals may be correlated in any way [s] (ordinary least squares)."""


def _score_covariance(problem: LinearProblem, values: Array) -> Array:
    """Covariance of W' r, from blocks of `BLOCK` seconds of each joint (block sandwich; Newey and West 1987)."""
    length = max(1, round(BLOCK * problem.rate))
    total = np.zeros((len(values), len(values)))
    for tile in problem.tiles():
        support = problem.supports[tile.joint]
        residual = tile.block[-1] - values[support] @ tile.block[:-1]
        scores = tile.block[:-1] * residual
        starts = np.arange(0, len(residual), length)
        sums = np.add.reduceat(scores, starts, axis=1)
        total[np.ix_(support, support)] += sums @ sums.T
    return total


def _require_rows(factors: Factors, problem: LinearProblem) -> None:
    rows = int(factors.counts.sum())
    if rows < len(problem.names):
        raise InputError(
            f"only {rows} rows for {len(problem.names)} parameters: record longer, or identify fewer joints or terms"
        )


def _inverse_rms(factors: Factors, values: Array) -> Array:
    """Weights 1 / residual RMS, each joint's own share of the parameters taken off its rows."""
    squares = factors.squared_residuals(values)
    share = factors.parameters * factors.counts / max(1, factors.counts.sum())
    freedom = np.maximum(factors.counts - share, 1.0)
    rms = np.sqrt(squares / freedom)
    largest = rms.max(initial=0.0)
    return 1.0 / np.maximum(rms, 1e-9 * largest if largest > 0 else 1.0)


def _conclude(
    problem: LinearProblem, plain: Factors, used: Factors, ordinary: Solution, solution: Solution, covariance: Array
) -> Estimate:
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Estimate(
        values=solution.values,
        covariance=covariance,
        standard_deviations=np.where(solution.unseen, np.inf, sigma),
        condition_number=ordinary.condition_number,
        residual_rms=np.sqrt(plain.squared_residuals(solution.values) / np.maximum(plain.counts, 1)),
        noise_rms=1.0 / _inverse_rms(used, solution.values),
        rows=int(plain.counts.sum()),
        unseen=tuple(np.array(problem.names)[solution.unseen]),
    )
