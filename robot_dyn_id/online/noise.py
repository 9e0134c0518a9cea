# SPDX-License-Identifier: Apache-2.0
"""Residuals of one moment after the other: their autocovariance, and rows that are filtered until they are white."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.estimators.whitening import Whitening, fit_whitening


class Autocovariance:
    """Mean products of each joint's residual with itself some samples earlier, of the samples that count."""

    def __init__(self, joints: int, order: int) -> None:
        """Begin, for lags from 0 to `order`."""
        self._sums, self._counts = np.zeros((2, order + 1, joints))
        self.restart()

    def restart(self) -> None:
        """The next sample does not follow the one before."""
        self._past = np.zeros_like(self._sums)
        self._valid = np.zeros_like(self._sums)

    def add(self, residual: Array, counts: Mask) -> None:
        """Take up a sample, and which joints' count, shape (n,) each."""
        self._past = np.concatenate([residual[None], self._past[:-1]])
        self._valid = np.concatenate([counts[None].astype(np.float64), self._valid[:-1]])
        both = self._valid * self._valid[0]
        self._sums += both * self._past * residual
        self._counts += both

    def fit(self) -> Whitening:
        """The prediction-error filters of the joints (Yule-Walker)."""
        return fit_whitening((self._sums / np.maximum(self._counts, 1.0)).T, self._counts[0])


class RowWhitening:
    """Runs the rows of all joints through their prediction-error filters and scales them to unit variance."""

    def __init__(self, whitening: Whitening) -> None:
        """Make it. Joints whose residual was always zero tell nothing: their rows become zero."""
        known = whitening.noise_rms > 0.0
        scale = np.where(known, 1.0 / np.where(known, whitening.noise_rms, 1.0), 0.0)
        self._filters: Array = (whitening.filters * scale[:, None]).T[:, :, None]  # (order + 1, n, 1)
        self.restart()

    def restart(self) -> None:
        """The next sample does not follow the one before."""
        self._past: Array | None = None
        self._valid: Mask = np.full(self._filters.shape[:2], False)

    def add(self, rows: Array, counts: Mask) -> Array:
        """Take up the rows of a sample, shape (n, any), and which joints' count, shape (n,).

        Returns:
            The whitened rows; zeros for joints of which this or a sample that the filter looks back on does not count.
        """
        if self._past is None:
            self._past = np.zeros((len(self._filters), *rows.shape))
        self._past[1:], self._past[0] = self._past[:-1].copy(), rows
        self._valid = np.concatenate([counts[None], self._valid[:-1]])
        white = np.sum(self._filters * self._past, axis=0)
        return np.asarray(np.where(np.all(self._valid, axis=0, keepdims=True).T, white, 0.0))
