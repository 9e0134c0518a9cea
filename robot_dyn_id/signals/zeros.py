# SPDX-License-Identifier: Apache-2.0
"""Zeros of the efforts that differ between recordings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask

FEWEST_RECORDINGS = 2
"""Fewest recordings between which zeros can differ."""


@dataclass(frozen=True)
class EffortZeros:
    """Zero of each joint's effort in each of R recordings, relative to the mean of all samples.

    Attributes:
        values: difference from the mean zero, which is the offset of the model [N m or N], shape (R, n); 0 where a
            joint has the same zero in all recordings.
        judged: recordings whose zeros were estimated, shape (R,); the others have the mean zero.
        counts: samples of each joint that its zeros were estimated from, shape (R, n).
    """

    values: Array
    judged: Mask
    counts: Array

    @property
    def joints(self) -> Mask:
        """Joints whose zeros differ, shape (n,)."""
        return np.asarray(self.values.any(axis=0))

    @property
    def deviations(self) -> Array:
        """Standard deviation of each joint's zero between recordings [N m or N], shape (n,)."""
        values = self.values[self.judged]
        if len(values) < FEWEST_RECORDINGS:
            return np.zeros(values.shape[1])
        return np.asarray(np.std(values, axis=0, ddof=1))

    @property
    def variances_of_another(self) -> Array:
        """Variance of the zero of another recording about the mean zero, squared units of `values`, shape (n,).

        It is s^2 (1 + sum of w^2): the mean of all samples gives each recording the weight w, its share of the samples.
        """
        counts = self.counts[self.judged]
        weights = counts / np.maximum(counts.sum(axis=0), 1.0)
        return np.asarray(self.deviations**2 * (1.0 + (weights**2).sum(axis=0)))
