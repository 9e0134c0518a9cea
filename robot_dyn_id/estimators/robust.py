# SPDX-License-Identifier: Apache-2.0
"""Robust regression: outliers are weighted less, or not at all (Huber 1964; Beaton and Tukey 1974)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.weighting import degrees_of_freedom
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.options import CheckedOptions, Choice, Count, Order

TUNING_DEVIATIONS = {"huber": 1.345, "bisquare": 4.685}
"""Residuals [standard deviations] above which weights fall, linearly or to 0: 95 % efficient in normal noise."""

OUTLIER_DEVIATIONS = 8.0
"""Residuals [standard deviations] above which rows are left out before whitening: its filter would spread their errors
over the rows that follow."""

MAD_TO_SIGMA = 1.4826
"""Ratio of the standard deviation of normal residuals to the median of their absolute values."""

MIN_NOISE_RATIO = 1e-10
"""Minimum standard deviation of residuals, as a share of the median torque: smaller ones are rounding."""

CONVERGED_DEVIATIONS = 1e-3
"""Change of a parameter [standard deviations] below which the iteration has converged."""

WHITENING_PASSES = 2
"""Number of whitening passes."""

TileSource = Callable[[], Iterator[Tile]]
"""Function that starts a new pass over tiles."""
"""Function that starts a new pass over tiles."""


@dataclass(frozen=True)
class Robust(CheckedOptions):
    """`generalized` by iteratively reweighted least squares: rows with large white residuals are weighted less.

    Each joint's noise is estimated from the median of its absolute residuals, which outliers do not affect. Only
    outliers of torques are detected: wrong positions make wrong columns, which weights by residual cannot reveal.

    Attributes:
        loss: `huber`: linear loss above 1.345 sigma; `bisquare`: rows above 4.685 sigma are ignored.
        autoregressive_order: AR order of the noise model.
        iterations: maximum number of iterations.
    """

    loss: Annotated[str, Choice(tuple(TUNING_DEVIATIONS))] = "bisquare"
    autoregressive_order: Order = 6
    iterations: Count = 100

    name: ClassVar[str] = "robust"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True
    expensive: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        plain = compress_rows(problem)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        # Huber's loss is convex for given noise: its minimum is the start for the other loss
        values, noise = self._iterate(problem, problem.tiles, ordinary.values, "huber")
        clean = replace(problem, tiles=lambda: _without_outliers(problem, values, OUTLIER_DEVIATIONS * noise))
        lagged = LaggedGrams.from_problem(clean, self.autoregressive_order)
        taken = np.zeros((len(plain.counts), self.autoregressive_order + 1))
        now = values
        for _ in range(WHITENING_PASSES):
            whitening = fit_whitening(lagged.residual_autocovariance(now) + taken, lagged.counts)
            now, noise = self._iterate(problem, lambda w=whitening: w.whiten_tiles(clean), now, self.loss)  # type: ignore[misc]
            solution, covariance = self._covariance(problem, lambda w=whitening: w.whiten_tiles(clean), now, noise)  # type: ignore[misc]
            taken = lagged.absorbed_autocovariance(covariance)
        return Estimate.from_solution(problem.names, plain, ordinary, replace(solution, values=now), covariance, noise)

    def _iterate(self, problem: LinearProblem, source: TileSource, start: Array, loss: str) -> tuple[Array, Array]:
        """Reweight the rows until parameters and noise have converged.

        Returns:
            Parameters, shape (p,), and standard deviation of each joint's noise, shape (n,).

        Raises:
            ConvergenceError: they have not converged after all iterations.
        """
        values = start
        least = _rounding(_residuals(problem, source(), np.zeros_like(values)))
        noise = _noise(_residuals(problem, source(), values), len(values), least)
        for _ in range(self.iterations):
            residuals: list[list[Array]] = [[np.zeros(0)] for _ in problem.supports]
            tiles = _weight_rows(problem, source(), values, noise, loss, residuals)
            solution = Factors.from_problem(problem, tiles).solve(1.0 / noise)
            step = np.abs(solution.values - values) / np.sqrt(np.maximum(np.diag(solution.inverse), 1e-300))
            values = solution.values
            before = noise
            noise = _noise([np.concatenate(parts) for parts in residuals], len(values), least)
            change = np.abs(noise / before - 1.0).max(initial=0.0)
            if step[~solution.unexcited].max(initial=0.0) < CONVERGED_DEVIATIONS and change < CONVERGED_DEVIATIONS:
                return values, noise
        raise ConvergenceError(
            f"robust: not converged after {self.iterations} iterations: increase iterations, or use loss huber"
        )

    def _covariance(
        self, problem: LinearProblem, source: TileSource, values: Array, noise: Array
    ) -> tuple[Solution, Array]:
        """Huber's sandwich covariance H^-1 (sum q W' W / s^2) H^-1 with H = sum m W' W / s^2 (Huber 1973).

        q is the mean square of a joint's bounded residuals in units of its noise s, m their mean slope.

        Returns:
            The solution with the normal matrix H, and the covariance, shape (p, p).
        """
        residuals = _residuals(problem, source(), values)
        slope = np.ones(len(noise))
        square = np.ones(len(noise))
        for joint, residual in enumerate(residuals):
            if len(residual):
                u = residual / noise[joint]
                slope[joint] = max(float(np.mean(_slope(u, self.loss))), 0.1)
                square[joint] = float(np.mean((_weight(u, self.loss) * u) ** 2))
        factors = Factors.from_problem(problem, source())
        solution = factors.solve(np.sqrt(slope) / noise)
        square *= factors.counts / degrees_of_freedom(factors.parameters, factors.counts)
        middle = np.zeros_like(solution.inverse)
        for support, triangle, share in zip(factors.supports, factors.triangles, square / noise**2, strict=True):
            middle[np.ix_(support, support)] += share * (triangle[:, :-1].T @ triangle[:, :-1])
        return solution, solution.inverse @ middle @ solution.inverse


def _weight(u: Array, loss: str) -> Array:
    """Weights of rows with residuals `u` in standard deviations."""
    limit = TUNING_DEVIATIONS[loss]
    size = np.abs(u)
    if loss == "huber":
        return np.asarray(limit / np.maximum(size, limit))
    return np.asarray(np.maximum(1.0 - (u / limit) ** 2, 0.0) ** 2)


def _slope(u: Array, loss: str) -> Array:
    """Derivative of the bounded residual, weight times u."""
    limit = TUNING_DEVIATIONS[loss]
    if loss == "huber":
        return np.asarray(np.abs(u) <= limit, dtype=np.float64)
    share = np.minimum((u / limit) ** 2, 1.0)
    return np.asarray((1.0 - share) * (1.0 - 5.0 * share))


def _residual(problem: LinearProblem, tile: Tile, values: Array) -> Array:
    return np.asarray(tile.block[-1] - values[problem.supports[tile.joint]] @ tile.block[:-1])


def _residuals(problem: LinearProblem, tiles: Iterator[Tile], values: Array) -> tuple[Array, ...]:
    """Residuals of the rows of each joint that are not left out."""
    found: list[list[Array]] = [[] for _ in problem.supports]
    for tile in tiles:
        found[tile.joint].append(_residual(problem, tile, values)[find_used_rows(tile.block)])
    return tuple(np.concatenate(parts) if parts else np.zeros(0) for parts in found)


def _rounding(torques: Sequence[Array]) -> Array:
    """Minimum standard deviation of each joint's residual: rounding, shape (n,)."""
    size = np.array([float(np.median(np.abs(tau))) if len(tau) else 0.0 for tau in torques])
    return np.asarray(MIN_NOISE_RATIO * np.where(size > 0.0, size, size.max(initial=0.0) or 1.0))


def _noise(residuals: Sequence[Array], parameters: int, least: Array) -> Array:
    """Robust standard deviation of each joint's residual, corrected for degrees of freedom, shape (n,)."""
    counts = np.array([len(residual) for residual in residuals])
    noise = np.array([MAD_TO_SIGMA * float(np.median(np.abs(r))) if len(r) else 0.0 for r in residuals])
    return np.asarray(np.maximum(noise * np.sqrt(counts / degrees_of_freedom(parameters, counts)), least))


def _weight_rows(
    problem: LinearProblem, tiles: Iterator[Tile], values: Array, noise: Array, loss: str, residuals: list[list[Array]]
) -> Iterator[Tile]:
    """Yield tiles with each row times the root of its weight; append the residuals of each joint to `residuals`."""
    for tile in tiles:
        residual = _residual(problem, tile, values)
        residuals[tile.joint].append(residual[find_used_rows(tile.block)])
        root = np.sqrt(_weight(residual / noise[tile.joint], loss))
        yield replace(tile, block=np.ascontiguousarray(tile.block * root))


def _without_outliers(problem: LinearProblem, values: Array, limits: Array) -> Iterator[Tile]:
    for tile in problem.tiles():
        outside = np.abs(_residual(problem, tile, values)) > limits[tile.joint]
        yield replace(tile, block=np.where(outside, 0.0, tile.block)) if outside.any() else tile
