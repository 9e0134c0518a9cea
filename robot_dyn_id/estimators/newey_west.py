# SPDX-License-Identifier: Apache-2.0
"""Heteroskedasticity- and autocorrelation-consistent (HAC) covariance of scores (Newey and West 1987).

Encoder noise depends on the motion: it is largest where a joint reverses, and there the columns are special as well.
No stationary model of the residual covers that. Here the noise is only assumed to be uncorrelated beyond a lag.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.sandwich import compute_sandwich, rescale_covariance

NOISE_MEMORY_S = 1.0
"""Lag beyond which noise is assumed to be uncorrelated [s]: longer than the correlation time of encoder noise and
shorter than most motions; the weight of a product of scores falls to zero over it."""


def compute_larger_sandwich(
    problem: LinearProblem, columns: LinearProblem, values: Array, bread: Array, weights: Array, order: int
) -> tuple[Array, Array]:
    """Covariance of G sum w^2 Z' tau with the larger standard deviations of `compute_sandwich` and of Newey and West.

    Args:
        problem: rows whose residuals are used.
        columns: rows Z that the residuals are multiplied by.
        values: parameters, shape (p,).
        bread: G, shape (p, p).
        weights: weights of the joints, shape (n,).
        order: AR order of the noise model.

    Returns:
        RMS of each joint's white residual, shape (n,), and the covariance, shape (p, p); correlations are those of
        `compute_sandwich`. NaN, without a pass over the rows, if only the values of the estimate are used.
    """
    noise, covariance = compute_sandwich(problem, values, bread, weights, order, columns)
    if problem.values_only:
        return noise, covariance
    scores = compute_newey_west(problem, columns, values, weights)
    spread = np.einsum("ij,jk,ik->i", bread, scores, bread)
    return noise, rescale_covariance(covariance, np.sqrt(np.maximum(np.diag(covariance), spread)))


def compute_newey_west(problem: LinearProblem, columns: LinearProblem, values: Array, weights: Array) -> Array:
    """Covariance of sum w^2 Z' r over all rows, r residuals of the problem and Z rows of `columns`, shape (p, p).

    Bartlett weights: products of scores l rows apart are weighted by 1 - l / L with L rows in `NOISE_MEMORY_S`. This is
    the mean, over all windows of L rows, of the square of their sum; scores outside a segment are zero.
    """
    length = max(1, round(NOISE_MEMORY_S * problem.rate))
    total = np.zeros((len(values), len(values)))
    rows = 0
    segment = -1
    before = np.zeros((len(values), length))
    for number, scores in _windows(problem, columns, values, weights):
        if number != segment:
            total += _squares(before, np.zeros_like(before), length)
            segment = number
            before = np.zeros((len(values), length))
        total += _squares(before, scores, length)
        rows += scores.shape[1]
        before = np.concatenate([before, scores], axis=1)[:, -length:]
    total += _squares(before, np.zeros_like(before), length)
    return total * rows / max(1.0, rows - len(values) / len(weights))


def _squares(before: Array, scores: Array, length: int) -> Array:
    """Sum of the squares of the sums of all windows that end in these scores, divided by their length."""
    summed = np.cumsum(np.concatenate([before, scores], axis=1), axis=1)
    sums = summed[:, length:] - summed[:, :-length]
    return np.asarray(sums @ sums.T / length)


def _windows(
    problem: LinearProblem, columns: LinearProblem, values: Array, weights: Array
) -> Iterator[tuple[int, Array]]:
    """Yield segment and scores of each window, shape (p, N): the sum over the joints' tiles of the same samples."""
    scores = np.zeros((len(values), 0))
    segment = -1
    last = len(weights)
    for tile, other in zip(problem.tiles(), columns.tiles(), strict=True):
        support = problem.supports[tile.joint]
        if tile.joint <= last:
            if last < len(weights):
                yield segment, scores
            scores = np.zeros((len(values), tile.block.shape[1]))
        segment = tile.segment
        last = tile.joint
        residual = tile.block[-1] - values[support] @ tile.block[:-1]
        scores[support] += weights[tile.joint] ** 2 * residual * other.block[:-1]
    yield segment, scores
