# SPDX-License-Identifier: Apache-2.0
"""Filters of samples, run over all channels at once: Butterworth low-passes and autoregressions.

`scipy.signal` has the same and takes half a second to import; its transposed copies of every signal take as long as the
filter itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.kernels.compiled import COMPILED, compiled, samples


@lru_cache(maxsize=32)
def design_butterworth_sections(order: int, cutoff: float, rate: float) -> Array:
    """Digital Butterworth low-pass by the bilinear transform (Oppenheim and Schafer, Discrete-Time Signal Processing).

    Args:
        order: number of poles.
        cutoff: frequency of -3 dB [Hz], below half of the rate.
        rate: samples per second [Hz].

    Returns:
        Sections b0, b1, b2, a1, a2 with gain 1 at rest, the slowest poles last, shape (ceil(order / 2), 5).
    """
    warped = math.tan(math.pi * cutoff / rate)
    sections = []
    if order % 2:
        pole = (1.0 - warped) / (1.0 + warped)
        sections.append([0.5 * (1.0 - pole), 0.5 * (1.0 - pole), 0.0, -pole, 0.0])
    for number in range(order // 2 - 1, -1, -1):
        angle = 0.5 * math.pi * (2 * number + 1) / order  # from the imaginary axis
        analog = warped * complex(-math.sin(angle), math.cos(angle))
        pole_pair = (1.0 + analog) / (1.0 - analog)
        first, second = -2.0 * pole_pair.real, abs(pole_pair) ** 2
        gain = 0.25 * (1.0 + first + second)
        sections.append([gain, 2.0 * gain, gain, first, second])
    return np.array(sections)


@compiled
def run_sections(sections: Array, backward: bool, values: Array, state: Array) -> None:
    """Run the sections over samples in place, from the state in which the first sample has always been the input.

    Args:
        sections: from `design_butterworth_sections`, shape (s, 5).
        backward: whether the last sample is the first.
        values: samples, shape (N, n).
        state: work space, shape (3, s, n).
    """
    count, channels = values.shape
    start = count - 1 if backward else 0
    for section in range(len(sections)):
        first = 1.0 - sections[section, 0]
        second = sections[section, 2] - sections[section, 4]
        for k in samples(channels):
            state[0, section, k] = first * values[start, k]
            state[1, section, k] = second * values[start, k]
    for step in range(count):
        row = count - 1 - step if backward else step
        for section in range(len(sections)):
            b0, b1, b2, a1, a2 = sections[section]
            for k in samples(channels):
                state[2, section, k] = b0 * values[row, k] + state[0, section, k]
                state[0, section, k] = b1 * values[row, k] - a1 * state[2, section, k] + state[1, section, k]
                state[1, section, k] = b2 * values[row, k] - a2 * state[2, section, k]
                values[row, k] = state[2, section, k]


def filter_both_ways(sections: Array, values: Array, pad: int) -> Array:
    """Filter forward and backward along the last axis, with ends continued by a point reflection.

    Args:
        sections: from `design_butterworth_sections`, shape (s, 5).
        values: samples, shape (..., N).
        pad: number of samples by which the ends are continued, less than N.

    Returns:
        The filtered samples, shape of `values`.
    """
    count = values.shape[-1]
    rows = values.reshape(-1, count).T
    work = np.empty((count + 2 * pad, rows.shape[1]))
    work[pad : pad + count] = rows
    if pad:
        work[:pad] = 2.0 * rows[0] - rows[pad:0:-1]
        work[pad + count :] = 2.0 * rows[-1] - rows[-2 : -pad - 2 : -1]
    if COMPILED:
        state = np.empty((3, len(sections), rows.shape[1]))
        run_sections(sections, False, work, state)
        run_sections(sections, True, work, state)
    else:  # a loop over the samples in Python takes seconds
        work = _run_both_ways(sections, work)
    return np.ascontiguousarray(work[pad : pad + count].T).reshape(values.shape)


def _run_both_ways(sections: Array, values: Array) -> Array:
    """The two calls of `run_sections`, by SciPy."""
    from scipy.signal import sosfilt

    rows = np.insert(sections, 3, 1.0, axis=1)
    rest = np.stack([1.0 - sections[:, 0], sections[:, 2] - sections[:, 4]], axis=1)[:, :, None]
    for _ in range(2):
        values = sosfilt(rows, values, axis=0, zi=rest * values[0])[0][::-1]
    return np.asarray(values)


@compiled
def run_autoregression(coefficients: Array, values: Array) -> None:
    """Filter samples in place by y(t) = x(t) - a1 y(t - 1) - ... - ap y(t - p).

    Args:
        coefficients: 1, a1, ..., ap, shape (p + 1,).
        values: p past results and N samples, shape (p + N, n).
    """
    order, channels = len(coefficients) - 1, values.shape[1]
    for row in range(order, len(values)):
        for lag in range(1, order + 1):
            for k in samples(channels):
                values[row, k] -= coefficients[lag] * values[row - lag, k]


def filter_autoregressive(coefficients: Array, values: Array, past: Array) -> tuple[Array, Array]:
    """Filter samples with an autoregression, from its past results on.

    Args:
        coefficients: 1, a1, ..., ap, shape (p + 1,).
        values: samples, shape (n, N).
        past: the last p results, the oldest first, shape (p, n).

    Returns:
        The filtered samples, shape (n, N), and the last p of past and present results, shape (p, n).
    """
    order = len(coefficients) - 1
    work = np.concatenate([past, values.T])
    if COMPILED:
        run_autoregression(coefficients, work)
    elif order:  # a loop over the samples in Python takes seconds
        from scipy.signal import lfilter, lfiltic

        start = np.stack([lfiltic([1.0], coefficients, one) for one in past[::-1].T])
        work[order:] = lfilter([1.0], coefficients, values, axis=1, zi=start)[0].T
    return np.ascontiguousarray(work[order:].T), work[len(work) - order :].copy()
