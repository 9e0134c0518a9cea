# SPDX-License-Identifier: Apache-2.0
"""Thinning of held-out data for plots, and the extremes of the curves between the samples that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.signals.windows import FilteredWindow

CURVES = ("raw", "measured", "predicted", "residual")
"""Curves whose extremes are kept."""


@dataclass
class Thinning:
    """Every `stride`-th used sample of held-out data, counted from the first one of each segment of a fold.

    Attributes:
        stride: number of used samples of which one is kept.
    """

    stride: int
    _place: tuple[int, int, int] = (-1, -1, -1)
    _passed: int = 0

    def pick(self, fold: int, window: FilteredWindow, used: int) -> Integers:
        """Places of the kept ones among the used samples of the next window.

        Args:
            fold: number of the fold.
            window: the window; windows come in their order.
            used: number of its used samples.
        """
        place = (fold, window.trial, window.segment)
        if place != self._place:
            self._place, self._passed = place, 0
        kept = np.arange(-self._passed % self.stride, used, self.stride)
        self._passed += used
        return kept


@dataclass
class ExtremeCurves:
    """Smallest and largest values of curves from each sample that is kept up to the next one.

    Attributes:
        thinning: the samples that are kept.
        pieces: extremes by window with kept samples, shape (2, 4, n, K) each: smallest and largest, by `CURVES`.
    """

    thinning: Thinning
    pieces: list[Array] = field(default_factory=list)

    def add(self, fold: int, window: FilteredWindow, curves: Sequence[Array]) -> None:
        """Add the used samples of the next window.

        Args:
            fold: number of the fold.
            window: the window.
            curves: values of `CURVES` at its used samples, shape (n, N) each.
        """
        values = np.stack(curves)
        kept = self.thinning.pick(fold, window, values.shape[-1])
        first = int(kept[0]) if len(kept) else values.shape[-1]
        if first and self.pieces:  # these belong to the last sample that was kept
            low, high = self.pieces[-1][..., -1]
            np.minimum(low, values[..., :first].min(axis=-1), out=low)
            np.maximum(high, values[..., :first].max(axis=-1), out=high)
        if len(kept):
            self.pieces.append(
                np.stack([np.minimum.reduceat(values, kept, axis=-1), np.maximum.reduceat(values, kept, axis=-1)])
            )
