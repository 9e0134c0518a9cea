# SPDX-License-Identifier: Apache-2.0
"""Interpolation by cubic not-a-knot splines (de Boor, A Practical Guide to Splines, 1978), all signals at once.

`scipy.interpolate.CubicSpline` gives the same; its checks and coefficients cost several times the solution.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.kernels.compiled import COMPILED, compiled, samples

SHORTEST = 4
"""Fewest samples of a cubic spline; fewer determine a polynomial."""


@compiled
def solve_slopes(stamps: Array, values: Array, slopes: Array, upper: Array) -> None:
    """Solve for the slopes for which the second derivative is continuous, and the third next to the ends.

    The equations are tridiagonal, and are eliminated without pivoting: after the first row, diagonals dominate.

    Args:
        stamps: ascending stamps, shape (N,), N at least `SHORTEST`.
        values: samples, shape (N, k).
        slopes: output, shape (N, k).
        upper: work space, shape (N,).
    """
    count, signals = values.shape
    first, second = stamps[1] - stamps[0], stamps[2] - stamps[1]
    both = first + second
    upper[0] = both / second
    for k in samples(signals):
        slopes[0, k] = (
            (first + 2.0 * both) * second * (values[1, k] - values[0, k]) / first
            + first * first * (values[2, k] - values[1, k]) / second
        ) / (both * second)
    for row in range(1, count - 1):
        before, after = stamps[row] - stamps[row - 1], stamps[row + 1] - stamps[row]
        pivot = 2.0 * (before + after) - after * upper[row - 1]
        upper[row] = before / pivot
        left, right = 3.0 * after / before, 3.0 * before / after
        for k in samples(signals):
            slopes[row, k] = (
                left * (values[row, k] - values[row - 1, k])
                + right * (values[row + 1, k] - values[row, k])
                - after * slopes[row - 1, k]
            ) / pivot
    last, previous = stamps[count - 1] - stamps[count - 2], stamps[count - 2] - stamps[count - 3]
    both = last + previous
    pivot = previous - both * upper[count - 2]
    for k in samples(signals):
        slopes[count - 1, k] = (
            (
                last * last * (values[count - 2, k] - values[count - 3, k]) / previous
                + (2.0 * both + last) * previous * (values[count - 1, k] - values[count - 2, k]) / last
            )
            / both
            - both * slopes[count - 2, k]
        ) / pivot
    for back in range(1, count):
        row = count - 1 - back
        for k in samples(signals):
            slopes[row, k] -= upper[row] * slopes[row + 1, k]


@compiled
def evaluate_pieces(times: Array, stamps: Array, values: Array, slopes: Array, pieces: Integers, found: Array) -> None:
    """Values of the cubic pieces between samples.

    Args:
        times: requested times, shape (m,).
        stamps: ascending stamps, shape (N,).
        values: samples, shape (N, k).
        slopes: their slopes, shape (N, k).
        pieces: number of the sample before each time, shape (m,).
        found: output, shape (m, k).
    """
    signals = values.shape[1]
    for row in range(len(times)):
        piece = pieces[row]
        width = stamps[piece + 1] - stamps[piece]
        at = times[row] - stamps[piece]
        for k in samples(signals):
            secant = (values[piece + 1, k] - values[piece, k]) / width
            bend = (slopes[piece, k] + slopes[piece + 1, k] - 2.0 * secant) / width
            found[row, k] = values[piece, k] + at * (
                slopes[piece, k] + at * ((secant - slopes[piece, k]) / width - bend + at * bend / width)
            )


def interpolate(times: Array, stamps: Array, values: Array) -> Array:
    """Interpolate columns of samples; outside of the stamps the outermost pieces continue.

    Args:
        times: requested times, shape (m,).
        stamps: strictly ascending stamps, shape (N,), N at least 1.
        values: samples, shape (N, k).

    Returns:
        Signals at the requested times, shape (m, k).
    """
    count = len(stamps)
    if count < SHORTEST:
        middle, width = stamps.mean(), max(float(np.ptp(stamps)), 1e-300)
        basis = np.vander((stamps - middle) / width, increasing=True)
        return np.asarray(np.vander((times - middle) / width, count, increasing=True) @ np.linalg.solve(basis, values))
    if not COMPILED:  # a loop over the samples in Python takes seconds
        from scipy.interpolate import CubicSpline

        return np.asarray(CubicSpline(stamps, values)(times))
    values = np.ascontiguousarray(values)
    slopes, found = np.empty(values.shape), np.empty((len(times), values.shape[1]))
    solve_slopes(stamps, values, slopes, np.empty(count))
    pieces = np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, count - 2)
    evaluate_pieces(times, stamps, values, slopes, pieces, found)
    return found
