# SPDX-License-Identifier: Apache-2.0
"""Covariance of sums of scores whose noise neither is stationary nor of one joint alone (Newey and West 1987).

The noise of encoders comes and goes with the motion: it is large where a joint turns round, and there the columns are
special as well. No model of a stationary residual knows that. Here nothing is assumed of the noise but that it has
forgotten itself after some time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.sandwich import compute_sandwich, rescale_covariance

MEMORY = 1.0
"""Time after which noise is taken to have forgotten itself [s]: a period of 1 Hz, slower than the noise of encoders and
faster than most motions; the weight of a product of scores falls to zero over it."""


def compute_larger_sandwich(
    problem: LinearProblem, columns: LinearProblem, values: Array, bread: Array, weights: Array, order: int
) -> tuple[Array, Array]:
    """See `fitting.sandwich`, with the larger of its standard deviations and those of the long-run covariance.

    Args:
        problem: rows that leave the residuals.
        columns: rows that these are multiplied with.
        values: of the parameters, shape (p,).
        bread: G of the estimate G sum w^2 Z' tau, shape (p, p).
        weights: of the joints.
        order: of the autoregressive model.
    """
    noise, covariance = compute_sandwich(problem, values, bread, weights, order, columns)
    scores = compute_newey_west(problem, columns, values, weights)
    spread = np.einsum("ij,jk,ik->i", bread, scores, bread)
    return noise, rescale_covariance(covariance, np.sqrt(np.maximum(np.diag(covariance), spread)))


def compute_newey_west(problem: LinearProblem, columns: LinearProblem, values: Array, weights: Array) -> Array:
    """Covariance of sum w^2 Z' r over all rows, r residuals of the problem and Z rows of `columns`, shape (p, p).

    Products of scores l rows apart count 1 - l / L, L rows in `MEMORY`: the mean over all stretches of L rows of the
    square of their sum, in which scores beyond the ends of a segment are zero.
    """
    length = max(1, round(MEMORY * problem.rate))
    total, rows = np.zeros((len(values), len(values))), 0
    segment, before = -1, np.zeros((len(values), length))
    for number, scores in _windows(problem, columns, values, weights):
        if number != segment:
            total += _squares(before, np.zeros_like(before), length)
            segment, before = number, np.zeros((len(values), length))
        total += _squares(before, scores, length)
        rows += scores.shape[1]
        before = np.concatenate([before, scores], axis=1)[:, -length:]
    total += _squares(before, np.zeros_like(before), length)
    return total * rows / max(1.0, rows - len(values) / len(weights))


def _squares(before: Array, scores: Array, length: int) -> Array:
    """Sum of the squares of the sums of all stretches that end in these scores, over their length."""
    summed = np.cumsum(np.concatenate([before, scores], axis=1), axis=1)
    sums = summed[:, length:] - summed[:, :-length]
    return np.asarray(sums @ sums.T / length)


def _windows(
    problem: LinearProblem, columns: LinearProblem, values: Array, weights: Array
) -> Iterator[tuple[int, Array]]:
    """Segment and scores of each window, the joints' tiles of the same instants added, shape (p, N)."""
    scores, segment, last = np.zeros((len(values), 0)), -1, len(weights)
    for tile, other in zip(problem.tiles(), columns.tiles(), strict=True):
        support = problem.supports[tile.joint]
        if tile.joint <= last:
            if last < len(weights):
                yield segment, scores
            scores = np.zeros((len(values), tile.block.shape[1]))
        segment, last = tile.segment, tile.joint
        residual = tile.block[-1] - values[support] @ tile.block[:-1]
        scores[support] += weights[tile.joint] ** 2 * residual * other.block[:-1]
    yield segment, scores
