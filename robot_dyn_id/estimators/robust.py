# SPDX-License-Identifier: Apache-2.0
"""Robust regression: rows that do not fit count less, or not at all (Huber 1964; Beaton and Tukey 1974)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.weighting import degrees_of_freedom
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.options import CheckedOptions, Choice, OptionRanges, Range

TUNING_DEVIATIONS = {"huber": 1.345, "bisquare": 4.685}
"""Residuals in standard deviations beyond which rows count less, or not at all: 95 % efficient with normal noise."""

OUTLIER_DEVIATIONS = 8.0
"""Rows with residuals beyond this many standard deviations are left out before the colour of the others is looked at:
filtered with the rows behind them they would spoil those."""

MAD_TO_SIGMA = 1.4826
"""Standard deviation of normal residuals over the median of their sizes."""

MIN_NOISE_RATIO = 1e-10
"""Residuals below this share of the median torque are rounding."""

CONVERGED_DEVIATIONS = 1e-3
"""Change of a parameter in its standard deviations that is none."""

WHITENING_PASSES = 2
"""Of whitening."""

TileSource = Callable[[], Iterator[Tile]]


@dataclass(frozen=True)
class Robust(CheckedOptions):
    """`generalized` by iteratively reweighted least squares: rows with large white residuals count less.

    Each joint's noise is the median of its residuals' sizes, so that outliers, however large, do not move it. They are
    found in torques: a wrong position makes wrong columns, which no such weights can tell.

    Attributes:
        loss: `huber`: beyond 1.345 sigma residuals count linearly; `bisquare`: beyond 4.685 sigma not at all.
        autoregressive_order: past rows that a residual is predicted from.
        iterations: after which it is given up.
    """

    loss: str = "bisquare"
    autoregressive_order: int = 6
    iterations: int = 100

    name: ClassVar[str] = "robust"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "loss": Choice(tuple(TUNING_DEVIATIONS)),
        "autoregressive_order": Range(0),
        "iterations": Range(1),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        plain = compress_rows(problem)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        # Huber's loss is convex for given noise, so it finds the way; the other starts from there
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
        return Estimate.from_solution(problem, plain, ordinary, replace(solution, values=now), covariance, noise)

    def _iterate(self, problem: LinearProblem, walk: TileSource, start: Array, loss: str) -> tuple[Array, Array]:
        """Parameters and each joint's noise, by reweighting until neither moves.

        Raises:
            ConvergenceError: they still move after all iterations.
        """
        values = start
        least = _rounding(_residuals(problem, walk(), np.zeros_like(values)))
        noise = _noise(_residuals(problem, walk(), values), len(values), least)
        for _ in range(self.iterations):
            seen: list[list[Array]] = [[np.zeros(0)] for _ in problem.supports]
            tiles = _weighted(problem, walk(), values, noise, loss, seen)
            solution = Factors.from_problem(problem, tiles).solve(1.0 / noise)
            moved = np.abs(solution.values - values) / np.sqrt(np.maximum(np.diag(solution.inverse), 1e-300))
            values, before = solution.values, noise
            noise = _noise([np.concatenate(parts) for parts in seen], len(values), least)
            change = np.abs(noise / before - 1.0).max(initial=0.0)
            if moved[~solution.unexcited].max(initial=0.0) < CONVERGED_DEVIATIONS and change < CONVERGED_DEVIATIONS:
                return values, noise
        raise ConvergenceError(
            f"robust: the parameters still move after {self.iterations} iterations: give more, or use loss huber"
        )

    def _covariance(
        self, problem: LinearProblem, walk: TileSource, values: Array, noise: Array
    ) -> tuple[Solution, Array]:
        """H^-1 (sum q W' W / s^2) H^-1 with H = sum m W' W / s^2 (Huber 1973), and the solution that H is from.

        q is the mean square of a joint's bounded residuals in units of its noise s, m their mean slope.
        """
        residuals = _residuals(problem, walk(), values)
        slope, square = np.ones(len(noise)), np.ones(len(noise))
        for joint, residual in enumerate(residuals):
            if len(residual):
                u = residual / noise[joint]
                slope[joint] = max(float(np.mean(_slope(u, self.loss))), 0.1)
                square[joint] = float(np.mean((_weight(u, self.loss) * u) ** 2))
        factors = Factors.from_problem(problem, walk())
        solution = factors.solve(np.sqrt(slope) / noise)
        square *= factors.counts / degrees_of_freedom(factors.parameters, factors.counts)
        middle = np.zeros_like(solution.inverse)
        for support, triangle, share in zip(factors.supports, factors.triangles, square / noise**2, strict=True):
            middle[np.ix_(support, support)] += share * (triangle[:, :-1].T @ triangle[:, :-1])
        return solution, solution.inverse @ middle @ solution.inverse


def _weight(u: Array, loss: str) -> Array:
    """What a row counts, by its residual in standard deviations."""
    limit, size = TUNING_DEVIATIONS[loss], np.abs(u)
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
    """Of the rows of each joint that are not left out: one number per row is all that is kept of the data."""
    found: list[list[Array]] = [[] for _ in problem.supports]
    for tile in tiles:
        found[tile.joint].append(_residual(problem, tile, values)[find_used_rows(tile.block)])
    return tuple(np.concatenate(parts) if parts else np.zeros(0) for parts in found)


def _rounding(torques: Sequence[Array]) -> Array:
    """Least standard deviation of each joint's residual, shape (n,)."""
    size = np.array([float(np.median(np.abs(tau))) if len(tau) else 0.0 for tau in torques])
    return np.asarray(MIN_NOISE_RATIO * np.where(size > 0.0, size, size.max(initial=0.0) or 1.0))


def _noise(residuals: Sequence[Array], parameters: int, least: Array) -> Array:
    """Robust standard deviation of each joint's residual, its share of the parameters taken off, shape (n,)."""
    counts = np.array([len(residual) for residual in residuals])
    noise = np.array([MAD_TO_SIGMA * float(np.median(np.abs(r))) if len(r) else 0.0 for r in residuals])
    return np.asarray(np.maximum(noise * np.sqrt(counts / degrees_of_freedom(parameters, counts)), least))


def _weighted(
    problem: LinearProblem, walk: Iterator[Tile], values: Array, noise: Array, loss: str, seen: list[list[Array]]
) -> Iterator[Tile]:
    """The tiles with each row times the root of its weight; the residuals of each joint's rows are added to `seen`."""
    for tile in walk:
        residual = _residual(problem, tile, values)
        seen[tile.joint].append(residual[find_used_rows(tile.block)])
        root = np.sqrt(_weight(residual / noise[tile.joint], loss))
        yield replace(tile, block=np.ascontiguousarray(tile.block * root))


def _without_outliers(problem: LinearProblem, values: Array, limits: Array) -> Iterator[Tile]:
    for tile in problem.tiles():
        outside = np.abs(_residual(problem, tile, values)) > limits[tile.joint]
        yield replace(tile, block=np.where(outside, 0.0, tile.block)) if outside.any() else tile
