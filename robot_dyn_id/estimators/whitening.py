"""Autoregressive prewhitening: residuals that follow one another are not independent.

Zero-phase filters, unmodelled friction and drives make neighbouring residuals alike, and least squares then reports
errors several times too small. Each joint's residual is modelled as its own past plus white noise, and both sides of
the problem are filtered with that model (Cochrane and Orcutt 1949; generalised least squares).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_toeplitz
from scipy.signal import lfilter

from robot_dyn_id.dataset import Array
from robot_dyn_id.regressor import LinearProblem, Tile


@dataclass(frozen=True)
class Whitening:
    """One prediction-error filter per joint.

    Attributes:
        filters: 1 - a1 z^-1 - ... - ap z^-p, shape (n, order + 1).
        noise_rms: what is left of each residual when its own past is taken off, shape (n,).
    """

    filters: Array
    noise_rms: Array

    @property
    def order(self) -> int:
        """Number of past samples that are looked at."""
        return int(self.filters.shape[1]) - 1

    def tiles(self, problem: LinearProblem) -> Iterator[Tile]:
        """Walk the problem with columns and torques filtered; the first `order` rows of a segment are lost."""
        past: dict[int, tuple[int, Array]] = {}
        for tile in problem.tiles():
            segment, before = past.get(tile.joint, (-1, tile.block[:, :0]))
            if segment != tile.segment:
                before = tile.block[:, :0]
            joined = np.concatenate([before, tile.block], axis=1)
            past[tile.joint] = (tile.segment, joined[:, max(0, joined.shape[1] - self.order) :].copy())
            if joined.shape[1] > self.order:
                filtered = lfilter(self.filters[tile.joint], [1.0], joined, axis=1)[:, self.order :]
                yield Tile(tile.joint, tile.segment, np.ascontiguousarray(filtered))

    def coloured_tiles(self, problem: LinearProblem) -> Iterator[Tile]:
        """Walk the problem with columns and torques run through the inverse filters, which colour white noise."""
        states: dict[int, tuple[int, Array]] = {}
        for tile in problem.tiles():
            at_rest = np.zeros((len(tile.block), self.order))
            segment, state = states.get(tile.joint, (-1, at_rest))
            filtered, state = lfilter(
                [1.0],
                self.filters[tile.joint],
                tile.block,
                axis=1,
                zi=state if segment == tile.segment else at_rest,
            )
            states[tile.joint] = (tile.segment, state)
            yield Tile(tile.joint, tile.segment, np.ascontiguousarray(filtered))


def residual_autocovariance(problem: LinearProblem, values: Array, order: int) -> tuple[Array, Array]:
    """Autocovariance of each joint's residual at lags 0 to `order`, and its rows, shapes (n, order + 1) and (n,)."""
    joints = len(problem.joint_names)
    sums, counts = np.zeros((joints, order + 1)), np.zeros(joints)
    past: dict[int, tuple[int, Array]] = {}
    for tile in problem.tiles():
        residual = tile.block[-1] - values[problem.supports[tile.joint]] @ tile.block[:-1]
        segment, before = past.get(tile.joint, (-1, residual[:0]))
        joined = residual if segment != tile.segment else np.concatenate([before, residual])
        start = len(joined) - len(residual)
        for lag in range(min(order + 1, len(joined))):
            first = max(start, lag)
            sums[tile.joint, lag] += joined[first:] @ joined[first - lag : len(joined) - lag]
        counts[tile.joint] += len(residual)
        past[tile.joint] = (tile.segment, joined[max(0, len(joined) - order) :])
    return sums / np.maximum(counts, 1.0)[:, None], counts


def fit_whitening(autocovariance: Array, counts: Sequence[float] | Array) -> Whitening:
    """Yule-Walker prediction-error filters, of an order that the number of rows can carry."""
    joints, lags = autocovariance.shape
    filters = np.zeros((joints, lags))
    filters[:, 0] = 1.0
    variance = autocovariance[:, 0].copy()
    for joint, row in enumerate(autocovariance):
        order = int(min(lags - 1, counts[joint] // 20))
        if order and row[0] > 0:
            # a trace of white noise keeps the equations solvable for residuals that are all but predictable
            column = row[:order].copy()
            column[0] *= 1.0 + 1e-9
            filters[joint, 1 : order + 1] = -solve_toeplitz(column, row[1 : order + 1])
            variance[joint] = filters[joint, : order + 1] @ row[: order + 1]
    return Whitening(filters, np.sqrt(np.maximum(variance, 0.0)))
