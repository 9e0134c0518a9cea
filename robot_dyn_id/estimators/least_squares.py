"""Ordinary, weighted and generalised least squares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import METHODS, Factors, Solution
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.problem import LinearProblem
from robot_dyn_id.regressor import Integers

CORRECTIONS = 1
"""Passes that give the residual back what the fit has taken from it, before its autocovariance is used."""


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Least squares with every row alike, N and N m alike: for comparison, not for use.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from, for the covariance.
        method: `qr` or `gram`.
    """

    autoregressive_order: int = 6
    method: str = "qr"

    name: ClassVar[str] = "ols"

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: a negative order, an unknown method.
        """
        _check(self.autoregressive_order, self.method)

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = _factors(problem, self.method)
        weights = np.ones(len(factors.counts))
        solution = _refined(problem, factors.solve(weights), weights, self.method)
        noise, covariance = _sandwich(problem, solution, weights, self.autoregressive_order)
        return _conclude(problem, factors, solution, solution, covariance, noise)


@dataclass(frozen=True)
class WeightedLeastSquares:
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

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: a negative order, an unknown method.
        """
        _check(self.autoregressive_order, self.method)

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        factors = _factors(problem, self.method)
        ordinary, solution, weights = _reweighted(factors)
        solution = _refined(problem, solution, weights, self.method)
        noise, covariance = _sandwich(problem, solution, weights, self.autoregressive_order)
        return _conclude(problem, factors, ordinary, solution, covariance, noise)


@dataclass(frozen=True)
class GeneralizedLeastSquares:
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

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: a negative order, no pass at all, an unknown method.
        """
        _check(self.autoregressive_order, self.method)
        if self.passes < 1:
            raise UsageError(f"generalized: passes must be 1 or more, not {self.passes}")

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        plain = _factors(problem, self.method)
        ordinary, solution, _ = _reweighted(plain)
        white, weights = plain, np.ones(len(plain.counts))
        lagged = LaggedGrams.of(problem, self.autoregressive_order)
        taken = np.zeros((len(plain.counts), self.autoregressive_order + 1))
        for _ in range(self.passes):
            whitening = fit_whitening(lagged.residual(solution.values) + taken, lagged.counts)
            white = Factors.of(problem, whitening.tiles(problem), self.method)
            for _ in range(2):
                weights = _inverse_rms(white, solution.values)
                solution = white.solve(weights)
            taken = lagged.fitted(solution.inverse)
        return _conclude(problem, plain, ordinary, solution, solution.inverse, 1.0 / weights)


def _check(order: int, method: str) -> None:
    if order < 0:
        raise UsageError(f"autoregressive_order must be 0 or more, not {order}")
    if method not in METHODS:
        raise UsageError(f"factorisation {method!r} is not known; use one of {', '.join(METHODS)}")


def _factors(problem: LinearProblem, method: str) -> Factors:
    factors = Factors.of(problem, method=method)
    rows = int(factors.counts.sum())
    if rows < len(problem.names):
        raise InputError(
            f"only {rows} rows for {len(problem.names)} parameters: record longer, or identify fewer joints or terms"
        )
    return factors


def _refined(problem: LinearProblem, solution: Solution, weights: Array, method: str) -> Solution:
    """One step of iterative refinement for `gram`, whose solution has lost half of its digits; `qr` needs none."""
    if method != "gram":
        return solution
    gradient = np.zeros_like(solution.values)
    for tile in problem.tiles():
        support = problem.supports[tile.joint]
        residual = tile.block[-1] - solution.values[support] @ tile.block[:-1]
        gradient[support] += weights[tile.joint] ** 2 * (tile.block[:-1] @ residual)
    return replace(solution, values=solution.values + solution.inverse @ gradient)


def _reweighted(factors: Factors) -> tuple[Solution, Solution, Array]:
    """Ordinary solution, weighted solution, and the weights that it was found with."""
    ordinary = factors.solve(np.ones(len(factors.counts)))
    solution, weights = ordinary, np.ones(len(factors.counts))
    for _ in range(4):
        weights = _inverse_rms(factors, solution.values)
        solution = factors.solve(weights)
    return ordinary, solution, weights


def _sandwich(problem: LinearProblem, solution: Solution, weights: Array, order: int) -> tuple[Array, Array]:
    """RMS of each joint's white noise, and the covariance H^-1 (sum w^4 W' Omega W) H^-1 of a weighted solution.

    Omega is the covariance of a joint's residual, C C' with C the autoregressive model run forward on white noise. For
    stationary residuals C' C is the same up to the ends, so W' Omega W is the Gram matrix of the coloured columns C W.
    """
    lagged = LaggedGrams.of(problem, order)
    residual = lagged.residual(solution.values)
    autocovariance = residual * (lagged.counts / _freedom(len(solution.values), lagged.counts))[:, None]
    for _ in range(1 + CORRECTIONS):
        whitening = fit_whitening(autocovariance, lagged.counts)
        coloured = Factors.of(problem, whitening.coloured_tiles(problem))
        middle = np.zeros_like(solution.inverse)
        for joint, weight in enumerate(weights):
            support, columns = coloured.supports[joint], coloured.triangles[joint][:, :-1]
            scale = weight**4 * whitening.noise_rms[joint] ** 2
            middle[np.ix_(support, support)] += scale * (columns.T @ columns)
        covariance = solution.inverse @ middle @ solution.inverse
        autocovariance = residual + lagged.fitted(covariance)
    return whitening.noise_rms, covariance


def _freedom(parameters: int, counts: Array | Integers) -> Array:
    """Rows of each joint less its share of the parameters, at least 1."""
    return np.asarray(np.maximum(counts - parameters * counts / max(1.0, float(counts.sum())), 1.0))


def _inverse_rms(factors: Factors, values: Array) -> Array:
    """Weights 1 / residual RMS, each joint's own share of the parameters taken off its rows."""
    rms = np.sqrt(factors.squared_residuals(values) / _freedom(factors.parameters, factors.counts))
    largest = rms.max(initial=0.0)
    return np.asarray(1.0 / np.maximum(rms, 1e-9 * largest if largest > 0 else 1.0))


def _conclude(
    problem: LinearProblem,
    plain: Factors,
    ordinary: Solution,
    solution: Solution,
    covariance: Array,
    noise: Array,
) -> Estimate:
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Estimate(
        values=solution.values,
        covariance=covariance,
        standard_deviations=np.where(solution.unseen, np.inf, sigma),
        condition_number=ordinary.condition_number,
        residual_rms=np.sqrt(plain.squared_residuals(solution.values) / np.maximum(plain.counts, 1)),
        noise_rms=noise,
        rows=int(plain.counts.sum()),
        unseen=tuple(str(name) for name in np.array(problem.names)[solution.unseen]),
    )
