# SPDX-License-Identifier: Apache-2.0
"""Streaming autocovariance of residuals, and whitening of rows."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.estimators.whitening import Whitening, fit_whitening


class Autocovariance:
    """Autocovariance of each joint's residual over the samples that count."""

    def __init__(self, joints: int, order: int) -> None:
        """Start with no samples, for lags from 0 to `order`."""
        self._sums = np.zeros((order + 1, joints))
        self._counts = np.zeros((order + 1, joints))
        self.restart()

    def restart(self) -> None:
        """Reset: the next sample does not follow the previous one."""
        self._past = np.zeros_like(self._sums)
        self._valid = np.zeros_like(self._sums)

    def add(self, residual: Array, counts: Mask) -> None:
        """Add the residuals of a sample and flags of the joints that count, shape (n,) each."""
        self._past = np.concatenate([residual[None], self._past[:-1]])
        self._valid = np.concatenate([counts[None].astype(np.float64), self._valid[:-1]])
        both = self._valid * self._valid[0]
        self._sums += both * self._past * residual
        self._counts += both

    def fit(self) -> Whitening:
        """Estimate the prediction-error filters of the joints (Yule-Walker)."""
        return fit_whitening((self._sums / np.maximum(self._counts, 1.0)).T, self._counts[0])


class RowWhitening:
    """Whitening of the rows of all joints by their prediction-error filters, scaled to unit variance."""

    def __init__(self, whitening: Whitening) -> None:
        """Use the filters of `whitening`. Rows of joints whose residual was always zero become zero."""
        known = whitening.noise_rms > 0.0
        scale = np.where(known, 1.0 / np.where(known, whitening.noise_rms, 1.0), 0.0)
        self._filters: Array = (whitening.filters * scale[:, None]).T[:, :, None]  # (order + 1, n, 1)
        self.restart()

    def restart(self) -> None:
        """Reset: the next sample does not follow the previous one."""
        self._past: Array | None = None
        self._valid: Mask = np.full(self._filters.shape[:2], False)

    def add(self, rows: Array, counts: Mask) -> Array:
        """Filter the rows of a sample, shape (n, any), given flags of the joints that count, shape (n,).

        Returns:
            Whitened rows; zeros for joints of which this or one of the filter's past samples does not count.
        """
        if self._past is None:
            self._past = np.zeros((len(self._filters), *rows.shape))
        self._past[1:], self._past[0] = self._past[:-1].copy(), rows
        self._valid = np.concatenate([counts[None], self._valid[:-1]])
        white = np.sum(self._filters * self._past, axis=0)
        return np.asarray(np.where(np.all(self._valid, axis=0, keepdims=True).T, white, 0.0))
