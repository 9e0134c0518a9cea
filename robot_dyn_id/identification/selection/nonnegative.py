# SPDX-License-Identifier: Apache-2.0
"""Least squares from normal equations, with some parameters bounded below by zero."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls

from robot_dyn_id.arrays import Array, Mask

RIDGE = 1e-9
"""Added to the unit diagonal of the scaled normal matrix: columns that are equal within it share their parameter."""

MAX_PIVOTS_PER_PARAMETER = 30
"""Maximum number of changes of the active set, per bounded parameter."""


def solve_nonnegative(normal: Array, target: Array, bounded: Mask) -> Array:
    """Minimize x' N x / 2 - t' x subject to x >= 0 for the bounded parameters, shape (p,).

    The free parameters are eliminated first (Schur complement), and the bounded ones found by the active-set method of
    Lawson and Hanson (1974).

    Args:
        normal: N, positive semidefinite, shape (p, p).
        target: t, shape (p,).
        bounded: mask of the bounded parameters, shape (p,).
    """
    diagonal = np.diag(normal)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit = normal * scale * scale[:, None] + RIDGE * np.eye(len(scale))
    scaled = target * scale
    free = ~bounded
    found = np.zeros(len(scale))
    factor = cho_factor(unit[np.ix_(free, free)], lower=True)
    alone = cho_solve(factor, scaled[free])
    if bounded.any():
        mixed = unit[np.ix_(free, bounded)]
        shared = cho_solve(factor, mixed)
        reduced = unit[np.ix_(bounded, bounded)] - mixed.T @ shared
        lower = np.linalg.cholesky(0.5 * (reduced + reduced.T) + RIDGE * np.eye(len(reduced)))
        right = solve_triangular(lower, scaled[bounded] - mixed.T @ alone, lower=True)
        found[bounded] = nnls(lower.T, right, maxiter=MAX_PIVOTS_PER_PARAMETER * len(right))[0]
        alone = alone - shared @ found[bounded]
    found[free] = alone
    return np.asarray(found * scale)
