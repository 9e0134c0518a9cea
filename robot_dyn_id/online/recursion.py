# SPDX-License-Identifier: Apache-2.0
"""Recursive weighted least squares as a square-root information filter with forgetting and bounded covariance.

The rows seen so far are kept as the triangular R of [W tau] (Bierman, Factorization Methods for Discrete Sequential
Estimation, 1977, chapter 5); new rows are folded in by Householder reflections, which never make a covariance
indefinite. Forgetting alone lets the covariance of what the motion does not show grow without bound (windup): therefore
a share of a prior is given back with each step, as much as is forgotten of it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack, solve_triangular

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError

PANEL = 8
"""Block size of the triangular-pentagonal QR; few rows at a time want small ones."""

CERTAIN = 1e-10
"""Least eigenvalue of a correlation matrix that an information is made of: below, it is rounding."""


def information_root(covariance: Array, limits: Array) -> Array:
    """Rows whose square is the information of a covariance, and of a prior beside it, shape (any, p).

    Args:
        covariance: of p parameters, shape (p, p); infinite or NaN where nothing is known.
        limits: standard deviations of the prior, shape (p,).
    """
    rows = [np.diag(1.0 / limits)]
    known = np.flatnonzero(np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0.0))
    if len(known):
        scale = np.sqrt(np.diag(covariance)[known])
        values, vectors = np.linalg.eigh(covariance[np.ix_(known, known)] / scale / scale[:, None])
        root = np.zeros((len(known), len(covariance)))
        root[:, known] = (vectors / np.sqrt(np.maximum(values, CERTAIN))).T / scale
        rows.append(root)
    return np.concatenate(rows)


class RecursiveLeastSquares:
    """Estimate of p parameters from rows that come one sample after the other, their errors white and of unit variance.

    Without rows it goes back to `values` with the standard deviations `limits`, exponentially; with many it knows what
    the last rows within its memory told.
    """

    def __init__(self, values: Array, limits: Array, root: Array | None = None) -> None:
        """Begin.

        Args:
            values: expected before any rows, shape (p,).
            limits: standard deviations that they never exceed by more than what is forgotten in p steps, shape (p,).
            root: rows whose square is the information at the beginning, shape (any, p); that of `limits` by default.

        Raises:
            InputError: a limit that is not a positive number.
        """
        if not np.all((limits > 0.0) & np.isfinite(limits)):
            raise InputError(f"limits of standard deviations must be positive numbers, not {limits.tolist()}")
        self._values, self._limits = values, limits
        self._p, self._turn = len(values), 0
        self._prior = np.column_stack([np.diag(1.0 / limits), values / limits])
        rows = self._prior if root is None else np.column_stack([root, root @ values])
        self._factor = np.zeros((self._p + 1, self._p + 1), order="F")
        self._take(rows)

    def extended(self, limits: Array) -> RecursiveLeastSquares:
        """The same with further parameters in front, expected to be zero within `limits`, shape (k,)."""
        size = len(limits)
        values = np.concatenate([np.zeros(size), self._values])
        both = RecursiveLeastSquares(values, np.concatenate([limits, self._limits]))
        both._factor[:] = 0.0
        both._factor[range(size), range(size)] = 1.0 / limits
        both._factor[size:, size:] = self._factor
        return both

    def update(self, rows: Array, targets: Array, keep: float = 1.0) -> None:
        """Take up the rows of one sample.

        Args:
            rows: whitened, shape (m, p).
            targets: what they gave, shape (m,).
            keep: share of the information before that is kept, exp(-step / memory); 1 forgets nothing.
        """
        block = np.empty((len(rows) + (keep < 1.0), self._p + 1))
        block[: len(rows), :-1], block[: len(rows), -1] = rows, targets
        if keep < 1.0:
            # one row of the prior in turn: after p steps all of them, at a cost that does not depend on p
            self._factor *= math.sqrt(keep)
            block[-1] = math.sqrt(1.0 - keep**self._p) * self._prior[self._turn]
            self._turn = (self._turn + 1) % self._p
        self._take(block)

    def _take(self, block: Array) -> None:
        panel = min(PANEL, self._p + 1)
        rows = np.asfortranarray(block)
        self._factor = lapack.dtpqrt(0, panel, self._factor, rows, overwrite_a=1, overwrite_b=1)[0]

    @property
    def values(self) -> Array:
        """The estimate, shape (p,)."""
        return np.asarray(solve_triangular(self._factor[:-1, :-1], self._factor[:-1, -1], check_finite=False))

    @property
    def inverse_root(self) -> Array:
        """V with V V' = covariance, shape (p, p)."""
        return np.asarray(solve_triangular(self._factor[:-1, :-1], np.eye(self._p), check_finite=False))

    @property
    def covariance(self) -> Array:
        """Of the estimate, shape (p, p)."""
        root = self.inverse_root
        return np.asarray(root @ root.T)

    @property
    def gain(self) -> float:
        """By how much the estimate explains the targets better than zeros do: drop of the sum of squares."""
        return float(np.sum(self._factor[:-1, -1] ** 2))
