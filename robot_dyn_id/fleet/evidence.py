# SPDX-License-Identifier: Apache-2.0
"""Evidence of recordings about the parameters of each robot, as one small linear model per robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.estimators.factors import MIN_SINGULAR_VALUE_RATIO, Factors
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.estimators.weighting import solve_reweighted


@dataclass(frozen=True)
class Evidence:
    """Linear models y = X x + e of N robots, where x are scaled parameters: p values divided by `scales`.

    The p rows are the combinations of a robot's rows that contain its parameters (the score, in coordinates in which
    its information is X' X). Combinations that are not excited are rows of zeros with unit noise.

    Attributes:
        scales: size of one unit of each scaled parameter, so that the mean information has ones on its diagonal,
            shape (p,).
        designs: X of each robot, shape (N, p, p).
        targets: y of each robot, shape (N, p).
        noise: covariance of e, shape (N, p, p).
        ranks: number of parameter combinations that each robot's recordings excite, shape (N,).
        weights: weights of the joints in all rows, those of the median robot, shape (n,).
        dispersion: variance of the noise between recordings over that within one, see `overdispersion`.
    """

    scales: Array
    designs: Array
    targets: Array
    noise: Array
    ranks: Integers
    weights: Array
    dispersion: float

    @classmethod
    def from_statistics(cls, robots: Sequence[RowStatistics], dispersion: float = 1.0) -> Evidence:
        """Linear models of robots from the statistics of their rows.

        Args:
            robots: statistics of each robot's rows, N.
            dispersion: variance of the noise between recordings over that within one, see `overdispersion`.
        """
        weights = np.median([solve_reweighted(one.factors)[2] for one in robots], axis=0)
        triangles = [_triangle(one.factors, weights) for one in robots]
        mean = np.mean([(triangle[:, :-1] ** 2).sum(axis=0) for triangle in triangles], axis=0)
        scales = 1.0 / np.sqrt(np.where(mean > 0.0, mean, 1.0))
        models = [
            make_linear_model(one, triangle, weights, scales, dispersion)
            for one, triangle in zip(robots, triangles, strict=True)
        ]
        designs, targets, noise, ranks = (np.array(part) for part in zip(*models, strict=True))
        return cls(scales, designs, targets, noise, ranks, weights, dispersion)

    def model_of(self, rows: RowStatistics) -> tuple[Array, Array, Array]:
        """Linear model of other rows: design, shape (p, p), target, shape (p,), and noise, shape (p, p)."""
        return make_linear_model(
            rows, _triangle(rows.factors, self.weights), self.weights, self.scales, self.dispersion
        )[:3]

    def __len__(self) -> int:
        """Number of robots N."""
        return len(self.targets)


def make_linear_model(
    rows: RowStatistics, triangle: Array, weights: Array, scales: Array, dispersion: float
) -> tuple[Array, Array, Array, int]:
    """Linear model of rows, see `Evidence`.

    Args:
        rows: statistics of the rows.
        triangle: the rows, weighted and compressed, shape (any, p + 1).
        weights: weights of the joints, shape (n,).
        scales: size of one unit of each scaled parameter, shape (p,).
        dispersion: variance of the noise between recordings over that within one.

    Returns:
        Design, shape (p, p), target, shape (p,), noise, shape (p, p), and rank.
    """
    count = len(scales)
    left, singular, right = np.linalg.svd(triangle[:, :-1] * scales, full_matrices=False)
    rank = int(np.count_nonzero(singular > MIN_SINGULAR_VALUE_RATIO * singular.max(initial=0.0)))
    design, target, noise = np.zeros((count, count)), np.zeros(count), np.eye(count)
    design[:rank] = singular[:rank, None] * right[:rank]
    target[:rank] = left[:, :rank].T @ triangle[:, -1]
    root = right[:rank] * scales / singular[:rank, None]
    noise[:rank, :rank] = dispersion * (root @ rows.score_covariance(weights) @ root.T)
    return design, target, noise, rank


def _triangle(factors: Factors, weights: Array) -> Array:
    """Rows [W tau] of all joints, compressed to at most p + 1, shape (any, p + 1)."""
    return np.asarray(np.linalg.qr(factors.stack(weights), mode="r"))
