# SPDX-License-Identifier: Apache-2.0
"""What estimators by least squares share: weights, covariances, whitening, and the estimate that they conclude with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import METHODS, Factors, Grams, Solution, check_any, kept
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening

CORRECTIONS = 1
"""Passes that give the residual back what the fit has taken from it, before its autocovariance is used."""


def check_options(name: str, order: int, method: str = "qr", **counts: int) -> None:
    """Refuse options that no estimator can have.

    Args:
        name: of the estimator.
        order: of the autoregressive model of residuals.
        method: of factorisation.
        counts: options that must be 1 or more, `passes` say, by their names.

    Raises:
        UsageError: a negative order, an unknown method, a count below 1.
    """
    for option, count in counts.items():
        if count < 1:
            raise UsageError(f"{name}: {option} must be 1 or more, not {count}")
    if order < 0:
        raise UsageError(f"{name}: autoregressive_order must be 0 or more, not {order}")
    if method not in METHODS:
        raise UsageError(f"{name}: factorisation {method!r} is not known; use one of {', '.join(METHODS)}")


def factors_of(problem: LinearProblem, method: str = "qr") -> Factors:
    """The compressed rows.

    Raises:
        InputError: fewer rows than parameters.
    """
    factors = Factors.of(problem, method=method)
    rows = int(factors.counts.sum())
    if rows < len(problem.names):
        raise _too_few(rows, problem)
    return factors


def check_rows(problem: LinearProblem) -> None:
    """Walk until there are as many rows as parameters.

    Raises:
        InputError: there are not.
    """
    rows = 0
    for tile in problem.tiles():
        rows += int(np.count_nonzero(kept(tile.block)))
        if rows >= len(problem.names):
            return
    check_any(rows)
    raise _too_few(rows, problem)


def _too_few(rows: int, problem: LinearProblem) -> InputError:
    return InputError(
        f"only {rows} rows for {len(problem.names)} parameters: record longer, or identify fewer joints or terms"
    )


def refined(problem: LinearProblem, solution: Solution, weights: Array, method: str) -> Solution:
    """One step of iterative refinement for `gram`, whose solution has lost half of its digits; `qr` needs none."""
    if method != "gram":
        return solution
    gradient = np.zeros_like(solution.values)
    for tile in problem.tiles():
        support = problem.supports[tile.joint]
        residual = tile.block[-1] - solution.values[support] @ tile.block[:-1]
        gradient[support] += weights[tile.joint] ** 2 * (tile.block[:-1] @ residual)
    return replace(solution, values=solution.values + solution.inverse @ gradient)


def reweighted(factors: Factors) -> tuple[Solution, Solution, Array]:
    """Ordinary solution, weighted solution, and the weights that it was found with."""
    ordinary = factors.solve(np.ones(len(factors.counts)))
    solution, weights = ordinary, np.ones(len(factors.counts))
    for _ in range(4):
        weights = inverse_rms(factors, solution.values)
        solution = factors.solve(weights)
    return ordinary, solution, weights


def sandwich(
    problem: LinearProblem,
    values: Array,
    bread: Array,
    weights: Array,
    order: int,
    scores: LinearProblem | None = None,
) -> tuple[Array, Array]:
    """RMS of each joint's white noise, and the covariance G (sum w^4 Z' Omega Z) G' of G sum w^2 Z' tau.

    Weighted least squares has the inverse of its normal matrix for G and its own rows for Z (`scores`). Omega is the
    covariance of a joint's residual, C C' with C the autoregressive model run forward on white noise. For stationary
    residuals C' C is the same up to the ends, so W' Omega W is the Gram matrix of the coloured columns C W.
    """
    lagged = LaggedGrams.of(problem, order)
    residual = lagged.residual(values)
    autocovariance = residual * (lagged.counts / freedom(len(values), lagged.counts))[:, None]
    for _ in range(1 + CORRECTIONS):
        whitening = fit_whitening(autocovariance, lagged.counts)
        coloured = Grams.of(problem, whitening.coloured_tiles(scores or problem))
        middle = coloured.total(weights**2 * whitening.noise_rms)[:-1, :-1]
        covariance = bread @ middle @ bread.T
        autocovariance = residual + lagged.fitted(covariance)
    return whitening.noise_rms, covariance


def resized(covariance: Array, spread: Array) -> Array:
    """The correlations of a covariance, with other standard deviations, shape (p, p)."""
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    share = np.divide(spread, sigma, out=np.zeros_like(spread), where=sigma > 0.0)
    return np.asarray(covariance * np.outer(share, share))


def freedom(parameters: int, counts: Array | Integers) -> Array:
    """Rows of each joint less its share of the parameters, at least 1."""
    return np.asarray(np.maximum(counts - parameters * counts / max(1.0, float(counts.sum())), 1.0))


def inverse_rms(factors: Factors, values: Array) -> Array:
    """Weights 1 / residual RMS, each joint's own share of the parameters taken off its rows."""
    return weights_of(factors.squared_residuals(values), factors.parameters, factors.counts)


def weights_of(squares: Array, parameters: int, counts: Integers) -> Array:
    """The same from the sums of squared residuals of each joint, shape (n,)."""
    rms = np.sqrt(squares / freedom(parameters, counts))
    largest = rms.max(initial=0.0)
    return np.asarray(1.0 / np.maximum(rms, 1e-9 * largest if largest > 0 else 1.0))


@dataclass(frozen=True)
class Whitened:
    """A solution of rows whose residuals were made white.

    Attributes:
        plain: the rows as they were.
        ordinary: their ordinary solution.
        solution: of the white rows, weighted to unit variance: its `inverse` is a covariance.
        noise: RMS of each joint's white residual, shape (n,).
        white: the white rows; with the weights 1 / noise they have unit variance.
    """

    plain: Factors
    ordinary: Solution
    solution: Solution
    noise: Array
    white: Factors


def whitened(
    problem: LinearProblem, order: int, passes: int, method: str, solve: Callable[[Factors, Array], Solution]
) -> Whitened:
    """Whiten, weight and solve in turn.

    Args:
        problem: the rows.
        order: past rows that a residual is predicted from.
        passes: of whitening.
        method: `qr` or `gram`.
        solve: of the white rows with one weight per joint.

    Raises:
        InputError: fewer rows than parameters.
    """
    plain = factors_of(problem, method)
    ordinary, solution, _ = reweighted(plain)
    white, weights = plain, np.ones(len(plain.counts))
    lagged = LaggedGrams.of(problem, order)
    taken = np.zeros((len(plain.counts), order + 1))
    for _ in range(passes):
        whitening = fit_whitening(lagged.residual(solution.values) + taken, lagged.counts)
        white = Factors.of(problem, whitening.tiles(problem), method)
        for _ in range(2):
            weights = inverse_rms(white, solution.values)
            solution = solve(white, weights)
        taken = lagged.fitted(solution.inverse)
    return Whitened(plain, ordinary, solution, 1.0 / weights, white)


def conclude(
    problem: LinearProblem,
    plain: Factors,
    ordinary: Solution,
    solution: Solution,
    covariance: Array,
    noise: Array,
    drawn_to: str = "",
) -> Estimate:
    """The estimate of a solution; what the rows do not show is told by their ordinary solution."""
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Estimate(
        values=solution.values,
        covariance=covariance,
        standard_deviations=np.where(solution.unseen, np.inf, sigma),
        condition_number=ordinary.condition_number,
        residual_rms=np.sqrt(plain.squared_residuals(solution.values) / np.maximum(plain.counts, 1)),
        noise_rms=noise,
        rows=int(plain.counts.sum()),
        unseen=tuple(str(name) for name in np.array(problem.names)[solution.unseen | ordinary.unseen]),
        drawn_to=drawn_to,
    )
