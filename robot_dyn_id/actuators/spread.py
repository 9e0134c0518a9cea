# SPDX-License-Identifier: Apache-2.0
"""Covariance of fitted actuators from the spread of the estimate between blocks of time and between recordings.

What remains of the errors is mostly that of the model, correlated over seconds, and different in every part of a
motion. Nothing is assumed of it but that blocks are independent: each is left out in turn (jackknife, CR3 of MacKinnon,
Nielsen and Webb 2023), by the normal equations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from robot_dyn_id.arrays import Array, Integers

LEAST_GROUPS = 6
"""Least number of groups of blocks that are left out in turn."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """Uncertainty of p parameters.

    Attributes:
        covariance: covariance, shape (p, p).
        half_width: half the width of the 95 % intervals, shape (p,).
    """

    covariance: Array
    half_width: Array


def leave_out(matrices: Array, scores: Array) -> Array:
    """Changes of the estimate when a group is left out, shape (groups, p).

    Args:
        matrices: contributions of the groups to the normal matrix, shape (groups, p, p).
        scores: contributions to the gradient, shape (groups, p).
    """
    total, gradient = matrices.sum(axis=0), scores.sum(axis=0)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(total), np.finfo(float).tiny))
    ridge = 1e-12 * np.eye(len(scale))
    changes = []
    for matrix, score in zip(matrices, scores, strict=True):
        left = (total - matrix) * scale * scale[:, None] + ridge
        changes.append(scale * np.linalg.solve(left, scale * (gradient - score)))
    return np.array(changes)


def group(numbers: Integers, matrices: Array, scores: Array) -> tuple[Array, Array]:
    """Sums of blocks with the same number."""
    kinds = np.unique(numbers)
    return (
        np.array([matrices[numbers == kind].sum(axis=0) for kind in kinds]),
        np.array([scores[numbers == kind].sum(axis=0) for kind in kinds]),
    )


def jackknife(matrices: Array, scores: Array) -> tuple[Array, Array]:
    """Covariance and half width of 95 % intervals from groups that are left out in turn."""
    changes = leave_out(matrices, scores)
    groups = len(changes)
    apart = changes - changes.mean(axis=0)
    covariance = (groups - 1) / groups * apart.T @ apart
    return covariance, float(student.ppf(0.5 + 0.5 * CONFIDENCE, groups - 1)) * np.sqrt(np.diag(covariance))
