# SPDX-License-Identifier: Apache-2.0
"""Largest and mean values within a running window, as `scipy.ndimage` gives them, whose import takes 50 ms."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array


def running_maximum(values: Array, before: int, after: int) -> Array:
    """Largest of every sample and its neighbors; the first and the last sample continue outside.

    The maxima of a window are those of the end of one block and of the begin of the next (van Herk, A fast algorithm
    for local minimum and maximum filters on rectangular and octagonal kernels, 1992).

    Args:
        values: samples, shape (N,).
        before: number of neighbors before a sample.
        after: number of neighbors after it.

    Returns:
        Maxima, shape (N,).
    """
    count, size = len(values), before + after + 1
    if not count:
        return values.copy()
    blocks = -(-(count + size - 1) // size) * size
    padded = np.concatenate([np.full(before, values[0]), values, np.full(blocks - count - before, values[-1])]).reshape(
        -1, size
    )
    to_the_right = np.maximum.accumulate(padded, axis=1).ravel()
    to_the_left = np.maximum.accumulate(padded[:, ::-1], axis=1)[:, ::-1].ravel()
    return np.maximum(to_the_left[:count], to_the_right[size - 1 : size - 1 + count])


def running_mean(values: Array, size: int) -> Array:
    """Means of `size` successive samples, shape (N - size + 1,), N at least `size`.

    Args:
        values: samples, shape (N,).
        size: samples of a mean.
    """
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, size).mean(axis=1))
