# SPDX-License-Identifier: Apache-2.0
"""Autoregressive noise models and prewhitening of autocorrelated residuals.

Zero-phase filters, unmodeled friction and drives make adjacent residuals similar, and least squares then reports
errors that are several times too small. Each joint's residual is modeled as an autoregressive (AR) process, and both
sides of the problem are filtered with that model (Cochrane and Orcutt 1949; generalized least squares).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.kernels.filters import filter_autoregressive

MIN_RESIDUAL_RATIO = 1e-12
"""Mean squares of residuals below this share of the torque's are rounding: they are taken as white."""


@dataclass(frozen=True)
class Whitening:
    """One prediction-error filter per joint.

    Attributes:
        filters: 1 - a1 z^-1 - ... - ap z^-p, shape (n, order + 1).
        noise_rms: RMS of each joint's prediction error, shape (n,).
    """

    filters: Array
    noise_rms: Array

    @property
    def order(self) -> int:
        """AR order: number of past samples that a sample is predicted from."""
        return int(self.filters.shape[1]) - 1

    def whiten_tiles(self, problem: LinearProblem) -> Iterator[Tile]:
        """Yield the problem's tiles with columns and torques whitened.

        The first `order` rows of a segment are lost, and so are `order` rows after a row that is left out.
        """
        for tile, joined, _ in _with_past(problem, self.order):
            if joined.shape[1] > self.order:
                filtered = sum(
                    weight * joined[:, self.order - lag : joined.shape[1] - lag]
                    for lag, weight in enumerate(self.filters[tile.joint].tolist())
                )
                whole = np.lib.stride_tricks.sliding_window_view(find_used_rows(joined), self.order + 1).all(axis=1)
                yield Tile(tile.joint, tile.segment, np.where(whole, filtered, 0.0))

    def color_tiles(self, problem: LinearProblem) -> Iterator[Tile]:
        """Yield the problem's tiles, columns and torques filtered as the noise model filters white noise."""
        states: dict[int, tuple[int, Array]] = {}
        for tile in problem.tiles():
            at_rest = np.zeros((self.order, len(tile.block)))
            segment, state = states.get(tile.joint, (-1, at_rest))
            past = state if segment == tile.segment else at_rest
            filtered, state = filter_autoregressive(self.filters[tile.joint], tile.block, past)
            states[tile.joint] = (tile.segment, state)
            yield Tile(tile.joint, tile.segment, filtered)


@dataclass(frozen=True)
class LaggedGrams:
    """Mean products of the rows [w tau] of each joint at several lags: they determine all autocovariances of residuals.

    Attributes:
        products: mean over t of row_t' row_(t - lag) for each joint, shape (order + 1, support + 1, support + 1).
        supports: for each joint the parameters in its rows.
        counts: number of rows of each joint that are not left out, shape (n,).
    """

    products: tuple[Array, ...]
    supports: tuple[Integers, ...]
    counts: Array

    @classmethod
    def from_problem(cls, problem: LinearProblem, order: int) -> LaggedGrams:
        """Accumulate the products in one pass over the problem."""
        sizes = [len(support) + 1 for support in problem.supports]
        sums = [np.zeros((order + 1, size, size)) for size in sizes]
        counts = np.zeros(len(sizes))
        every = np.zeros(len(sizes))
        pairs = np.zeros((2, len(sizes), order + 1))
        for tile, joined, start in _with_past(problem, order):
            rows = joined.shape[1]
            present = find_used_rows(joined)
            for lag in range(min(order + 1, rows)):
                first = max(start, lag)
                sums[tile.joint][lag] += joined[:, first:] @ joined[:, first - lag : rows - lag].T
                both = np.count_nonzero(present[first:] & present[first - lag : rows - lag])
                pairs[:, tile.joint, lag] += both, rows - first
            counts[tile.joint] += np.count_nonzero(present[start:])
            every[tile.joint] += rows - start
        share = pairs[0] / np.maximum(pairs[1], 1.0)  # pairs of rows of which neither is left out
        totals = np.maximum(every[:, None] * share, 1.0)
        means = tuple(total / count[:, None, None] for total, count in zip(sums, totals, strict=True))
        return cls(means, problem.supports, counts)

    def residual_autocovariance(self, values: Array) -> Array:
        """Autocovariance of each joint's residual at lags 0 to `order`, shape (n, order + 1)."""
        rows = []
        for product, support in zip(self.products, self.supports, strict=True):
            weights = np.append(-values[support], 1.0)
            row = weights @ product @ weights
            if row[0] <= MIN_RESIDUAL_RATIO * product[0, -1, -1]:
                row = np.append(max(row[0], 0.0), np.zeros(len(row) - 1))
            rows.append(row)
        return np.array(rows)

    def absorbed_autocovariance(self, covariance: Array) -> Array:
        """Autocovariance of the prediction errors that parameter errors cause, shape (n, order + 1).

        To first order, the fit has removed this much noise from the residual (degrees of freedom).

        Args:
            covariance: covariance of the parameters, shape (p, p).
        """
        return np.array(
            [
                np.einsum("lij,ij->l", product[:, :-1, :-1], covariance[np.ix_(support, support)])
                for product, support in zip(self.products, self.supports, strict=True)
            ]
        )


def _with_past(problem: LinearProblem, order: int) -> Iterator[tuple[Tile, Array, int]]:
    """Yield each tile, its rows after up to `order` earlier rows of the segment, and the number of these."""
    past: dict[int, tuple[int, Array]] = {}
    for tile in problem.tiles():
        segment, before = past.get(tile.joint, (-1, tile.block[:, :0]))
        if segment != tile.segment:
            before = tile.block[:, :0]
        joined = np.concatenate([before, tile.block], axis=1)
        past[tile.joint] = (tile.segment, joined[:, max(0, joined.shape[1] - order) :].copy())
        yield tile, joined, before.shape[1]


def fit_whitening(autocovariance: Array, counts: Sequence[float] | Array) -> Whitening:
    """Prediction-error filters by the Yule-Walker equations.

    Autocovariances of residuals with gaps, or with a correction for degrees of freedom, need not belong to any process:
    the filter that colors white noise could then be unstable. The order ends before the first one that is.

    Args:
        autocovariance: autocovariance of each joint's residual at lags 0 to the order, shape (n, order + 1).
        counts: number of rows of each joint; the order is at most a twentieth of it.
    """
    joints, lags = autocovariance.shape
    filters = np.zeros((joints, lags))
    filters[:, 0] = 1.0
    variance = autocovariance[:, 0].copy()
    for joint, row in enumerate(autocovariance):
        order = int(min(lags - 1, counts[joint] // 20))
        if order and row[0] > 0:
            stable = _prediction_error_filter(row[: order + 1])
            filters[joint, : len(stable)] = stable
            variance[joint] = stable @ row[: len(stable)]
    return Whitening(filters, np.sqrt(np.maximum(variance, 0.0)))


def _prediction_error_filter(row: Array) -> Array:
    """Prediction-error filter of an autocovariance by the Levinson-Durbin recursion, shape (order + 1,).

    It is stable as long as all reflection coefficients are within 1: the order ends before the first that is not.
    """
    # a trace of white noise keeps the equations solvable for residuals that are almost predictable
    found, error = np.ones(1), float(row[0]) * (1.0 + 1e-9)
    for order in range(1, len(row)):
        reflection = -float(found @ row[order:0:-1]) / error
        if not abs(reflection) < 1.0:
            break
        longer = np.append(found, 0.0)
        found = longer + reflection * longer[::-1]
        error *= 1.0 - reflection**2
    return found
