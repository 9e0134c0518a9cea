# SPDX-License-Identifier: Apache-2.0
"""Least squares with non-negative parameters."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.kernels.cholesky import CholeskyFactor

MAX_EXCHANGES = 200
"""Maximum number of exchanges between the sets; 3 to 10 are typical."""

BLOCK_EXCHANGES = 5
"""Exchanges of all violating parameters in turn that do not reduce their number, before they are exchanged singly."""

ROUNDING = 1e-10
"""Negative parameters and multipliers above minus this share of the largest are rounding."""


RIDGE = 1e-9
"""Added to the unit diagonal of scaled normal equations: columns that are equal within it share their parameter."""


def minimize_non_negative(quadratic: Array, linear: Array, free: Mask) -> tuple[Array, Mask]:
    """Minimize u' S u / 2 - r' u with u >= 0, by block principal pivoting (Kim and Park 2011).

    Args:
        quadratic: S, positive definite with a unit diagonal, shape (l, l).
        linear: r, shape (l,).
        free: mask of the parameters that are positive at the start of the iteration, shape (l,).

    Returns:
        The minimum, and the mask of its positive parameters; if rounding prevents convergence, the last iterate with
        its negative parameters set to zero.
    """
    free = free.copy()
    least, patience = len(linear) + 1, BLOCK_EXCHANGES
    values = np.zeros(len(linear))
    negligible = ROUNDING * float(np.abs(linear).max(initial=0.0))
    for _ in range(MAX_EXCHANGES):
        values = np.zeros(len(linear))
        at = np.flatnonzero(free)
        with suppress(np.linalg.LinAlgError):  # rounding: exchanged singly in the end
            values[at] = CholeskyFactor.from_matrix(quadratic.take(at, 0).take(at, 1), overwrite=True).solve(linear[at])
        multipliers = quadratic @ values - linear
        wrong = np.where(free, values < -ROUNDING * float(np.abs(values).max(initial=0.0)), multipliers < -negligible)
        count = int(np.count_nonzero(wrong))
        if not count:
            break
        if count < least:
            least, patience = count, BLOCK_EXCHANGES
        elif patience:
            patience -= 1
        else:
            wrong = np.arange(len(linear)) == np.flatnonzero(wrong)[-1]
        free ^= wrong
    values = np.maximum(values, 0.0)
    return values, values > 0.0


def solve_bounded(normal: Array, target: Array, bounded: Mask, positive: Mask | None = None) -> Array:
    """Minimize x' N x / 2 - t' x subject to x >= 0 for the bounded parameters, shape (p,).

    The free parameters are eliminated first (Schur complement).

    Args:
        normal: N, positive semidefinite, shape (p, p).
        target: t, shape (p,).
        bounded: mask of the bounded parameters, shape (p,).
        positive: mask of the bounded parameters that are positive at the start of the iteration, such as those of a
            similar problem, shape (l,); None: all.
    """
    diagonal = np.diag(normal)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit = normal * scale * scale[:, None]
    unit[np.diag_indices_from(unit)] += RIDGE
    scaled = target * scale
    free, bound = np.flatnonzero(~bounded), np.flatnonzero(bounded)
    found = np.zeros(len(scale))
    factor = CholeskyFactor.from_matrix(unit[free[:, None], free], overwrite=True)
    alone = factor.solve(scaled[free])
    if len(bound):
        mixed = unit[free[:, None], bound]
        shared = factor.solve(mixed)
        reduced = unit[bound[:, None], bound] - mixed.T @ shared
        size = 1.0 / np.sqrt(np.maximum(np.diag(reduced), RIDGE))
        reduced = 0.5 * (reduced + reduced.T) * size * size[:, None]
        reduced[np.diag_indices_from(reduced)] += RIDGE
        right = (scaled[bound] - mixed.T @ alone) * size
        start = np.ones(len(size), dtype=bool) if positive is None else positive
        found[bound] = minimize_non_negative(reduced, right, start)[0] * size
        alone = alone - shared @ found[bound]
    found[free] = alone
    return np.asarray(found * scale)
