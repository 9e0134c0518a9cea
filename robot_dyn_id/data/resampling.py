# SPDX-License-Identifier: Apache-2.0
"""Interpolation of sampled signals at other times."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.kernels.splines import interpolate


def interpolate_linear(times: Array, stamps: Array, samples: Array, *, hold_ends: bool = False) -> Array:
    """Interpolate columns of samples linearly.

    Args:
        times: requested times [s], shape (m,).
        stamps: ascending times of the samples [s], shape (N,).
        samples: one column per signal, shape (N, k).
        hold_ends: whether the first and the last sample hold outside the stamps; NaN there otherwise.

    Returns:
        Signals at the requested times, shape (m, k); NaN if there are no samples.
    """
    if not len(stamps):
        return np.full((len(times), samples.shape[1]), np.nan)
    outside = None if hold_ends else np.nan
    return np.stack([np.interp(times, stamps, signal, left=outside, right=outside) for signal in samples.T], axis=1)


def interpolate_cubic(times: Array, stamps: Array, samples: Array) -> Array:
    """Interpolate columns of samples with cubic not-a-knot splines.

    Args:
        times: requested times within the stamps [s], shape (m,).
        stamps: strictly ascending times of the samples [s], shape (N,).
        samples: one column per signal, shape (N, k).

    Returns:
        Signals at the requested times, shape (m, k).
    """
    return interpolate(times, stamps, samples)
