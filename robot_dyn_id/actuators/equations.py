# SPDX-License-Identifier: Apache-2.0
"""Gauss-Newton equations of a fit of actuators, by blocks of time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers

RIDGE = 1e-9
"""Addition to the normal matrix of initial states, relative to its largest element: a joint that sticks has no initial
velocity."""


@dataclass(frozen=True)
class NormalEquations:
    """Gauss-Newton equations of the parameters, by blocks of time, with the initial states eliminated.

    Attributes:
        matrices: contribution of each block to the normal matrix, shape (blocks, p, p).
        scores: contribution of each block to the gradient, shape (blocks, p).
        squares: weighted square errors of each block, shape (blocks,).
        recordings: number of the recording of each block, shape (blocks,).
        initial: changes of the initial state of each stretch at the present parameters, shape (m,) each.
        shares: what a change of the parameters takes from them, shape (m, p) each.
        limited: share of the time in which each joint's effort is at its limit, shape (n,).
        ended: share of the time in which each joint is at a stop, or its reference beyond its range, shape (n,).
        largest: largest effort that each joint's drive commands in each stretch, were it not limited [N m or N], shape
            (stretches, n); 0 for joints of other limbs.
        loads: smallest and largest load of each joint, without its sign [N m or N], shape (2, n).
    """

    matrices: Array = field(repr=False)
    scores: Array = field(repr=False)
    squares: Array = field(repr=False)
    recordings: Integers
    initial: tuple[Array, ...] = field(repr=False)
    shares: tuple[Array, ...] = field(repr=False)
    limited: Array
    ended: Array
    largest: Array
    loads: Array

    @property
    def matrix(self) -> Array:
        """Normal matrix, shape (p, p)."""
        return np.asarray(self.matrices.sum(axis=0))

    @property
    def gradient(self) -> Array:
        """Gradient, shape (p,)."""
        return np.asarray(self.scores.sum(axis=0))

    def select(self, parameters: Integers) -> NormalEquations:
        """Equations of some of the parameters, whose numbers are given, shape (p',), while the others stay."""
        return replace(
            self,
            matrices=self.matrices[:, parameters[:, None], parameters],
            scores=self.scores[:, parameters],
            shares=tuple(share[:, parameters] for share in self.shares),
        )


def eliminate_initial(slopes: Array, count: int, error: Array, weights: Array, blocks: Integers) -> tuple[Array, ...]:
    """Normal equations of a stretch by blocks, without its initial state.

    Args:
        slopes: derivatives of the positions by p parameters and m values of the initial state, shape (N, n, p + m).
        count: number of parameters p.
        error: measured less simulated positions, shape (N, n).
        weights: weights of the joints, shape (n,).
        blocks: first sample of each block.

    Returns:
        Matrices (blocks, p, p), gradients (blocks, p), squares (blocks,), initial state (m,) and shares (m, p).
    """
    samples, n, width = slopes.shape
    root = np.sqrt(weights)
    rows, rest = (slopes * root[:, None]).reshape(-1, width), (error * root).reshape(-1)
    shared, own = rows[:, :count], rows[:, count:]
    matrix = own.T @ own
    matrix += RIDGE * np.diag(matrix).max() * np.eye(len(matrix))
    solution = np.linalg.solve(matrix, np.column_stack([own.T @ shared, own.T @ rest]))
    share, initial = solution[:, :-1], solution[:, -1]
    shared, rest = shared - own @ share, rest - own @ initial
    ends = [*(blocks[1:] * n).tolist(), samples * n]
    parts = [slice(first * n, last) for first, last in zip(blocks.tolist(), ends, strict=True)]
    return (
        np.array([shared[part].T @ shared[part] for part in parts]),
        np.array([shared[part].T @ rest[part] for part in parts]),
        np.array([rest[part] @ rest[part] for part in parts]),
        np.asarray(initial),
        np.asarray(share),
    )
