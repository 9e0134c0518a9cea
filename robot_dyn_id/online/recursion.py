# SPDX-License-Identifier: Apache-2.0
"""Recursive weighted least squares as a square-root information filter with forgetting and bounded covariance.

Past rows are stored as the triangular R of [W tau] (Bierman, Factorization Methods for Discrete Sequential Estimation,
1977, chapter 5); new rows are added by Householder reflections, which never make a covariance indefinite. Exponential
forgetting alone would let the covariance of unexcited parameters grow without bound (windup); each step therefore
restores the share of the prior that it has discounted.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack, solve_triangular

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.compression import add_few_rows

PANEL = 8
"""Block size of the triangular-pentagonal QR; small, as few rows are added at a time."""

CERTAIN = 1e-10
"""Minimum eigenvalue of a correlation matrix before inversion; smaller ones are rounding errors."""


def compute_information_root(covariance: Array, limits: Array) -> Array:
    """Square root of the information matrix of a covariance plus a prior, shape (any, p).

    Args:
        covariance: covariance of p parameters, shape (p, p); infinite or NaN for unknown ones.
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
    """Recursive estimate of p parameters from whitened rows, whose errors are white and of unit variance.

    Without excitation the estimate returns exponentially to `values` with the standard deviations `limits`; with
    excitation it is determined by the latest rows within the memory.
    """

    def __init__(self, values: Array, limits: Array, root: Array | None = None) -> None:
        """Start from a prior.

        Args:
            values: prior mean, shape (p,).
            limits: prior standard deviations, which the estimate exceeds at most by the discount of p steps, shape
                (p,).
            root: square root of the initial information matrix, shape (any, p); that of `limits` by default.

        Raises:
            InputError: a limit that is not a positive number.
        """
        if not np.all((limits > 0.0) & np.isfinite(limits)):
            raise InputError(f"limits of standard deviations must be positive numbers, not {limits.tolist()}")
        self._values, self._limits = values, limits
        self._p, self._turn = len(values), 0
        self._prior = np.column_stack([np.diag(1.0 / limits), values / limits])
        rows = self._prior if root is None else np.column_stack([root, root @ values])
        self._factor = np.zeros((self._p + 1, self._p + 1))
        self._take(rows, 1.0)

    def extended(self, limits: Array) -> RecursiveLeastSquares:
        """Copy with further parameters in front, of zero prior mean and standard deviations `limits`, shape (k,)."""
        size = len(limits)
        values = np.concatenate([np.zeros(size), self._values])
        both = RecursiveLeastSquares(values, np.concatenate([limits, self._limits]))
        both._factor[:] = 0.0
        both._factor[range(size), range(size)] = 1.0 / limits
        both._factor[size:, size:] = self._factor
        return both

    def update(self, rows: Array, targets: Array, keep: float = 1.0) -> None:
        """Add the rows of one sample.

        Args:
            rows: whitened rows, shape (m, p).
            targets: whitened right-hand side, shape (m,).
            keep: forgetting factor exp(-step / memory): share of the previous information that is kept.
        """
        block = np.empty((len(rows) + (keep < 1.0), self._p + 1))
        block[: len(rows), :-1], block[: len(rows), -1] = rows, targets
        if keep < 1.0:
            # one row of the prior per step, all of them in p steps, at a cost that does not depend on p
            block[-1] = math.sqrt(1.0 - keep**self._p) * self._prior[self._turn]
            self._turn = (self._turn + 1) % self._p
        self._take(block, math.sqrt(keep))

    def _take(self, block: Array, scale: float) -> None:
        """Add rows, shape (m, p + 1), to the factor times `scale`."""
        if COMPILED:
            add_few_rows(self._factor, np.ascontiguousarray(block), scale)
            return
        panel = min(PANEL, self._p + 1)
        self._factor = lapack.dtpqrt(0, panel, scale * self._factor, np.asfortranarray(block), overwrite_b=1)[0]

    @property
    def values(self) -> Array:
        """Estimated parameters, shape (p,)."""
        return np.asarray(solve_triangular(self._factor[:-1, :-1], self._factor[:-1, -1], check_finite=False))

    @property
    def inverse_root(self) -> Array:
        """V with V V' = covariance, shape (p, p)."""
        return np.asarray(solve_triangular(self._factor[:-1, :-1], np.eye(self._p), check_finite=False))

    @property
    def covariance(self) -> Array:
        """Covariance of the estimate, shape (p, p)."""
        root = self.inverse_root
        return np.asarray(root @ root.T)

    @property
    def gain(self) -> float:
        """Drop of the sum of squares relative to zero parameters."""
        return float(np.sum(self._factor[:-1, -1] ** 2))
