# SPDX-License-Identifier: Apache-2.0
"""Recursive low-passes of samples at any times, exact for inputs that are linear between samples."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.kernels.compiled import compiled


def compute_steps_since(last: float, t: Array) -> Array:
    """Time of each of N samples since the one before it, the first since `last`, shape (N,); `np.diff` takes longer."""
    steps = np.empty(len(t))
    steps[0] = t[0] - last
    np.subtract(t[1:], t[:-1], out=steps[1:])
    return steps


@compiled
def first_order(keep, before, now, u, y):  # type: ignore[no-untyped-def]
    """Run y[k] = keep[k] y[k - 1] + before[k] u[k - 1] + now[k] u[k] from k = 1 on.

    Args:
        keep: weight of the last output, shape (N, n).
        before: weight of the last input, shape (N, n).
        now: weight of the input, shape (N, n).
        u: inputs, shape (N, m, n).
        y: outputs, shape (N, m, n): its first row is given, the others are filled.
    """
    for k in range(1, len(u)):
        y[k] = keep[k] * y[k - 1] + before[k] * u[k - 1] + now[k] * u[k]


@compiled
def second_order(w, step, decay, u, y, dy):  # type: ignore[no-untyped-def]
    """Run y'' + 2 w y' + w^2 y = w^2 u from the second sample on.

    The output follows a linear input with a lag of 2 / w; the initial difference decays.

    Args:
        w: both poles are at -w [rad/s].
        step: time since the sample before [s], shape (N,).
        decay: exp(-w step), shape (N,).
        u: inputs, shape (N, m).
        y: outputs, shape (N, m): its first row is given, the others are filled.
        dy: derivatives of the outputs, in the same way.
    """
    for k in range(1, len(u)):
        h = step[k]
        slope = (u[k] - u[k - 1]) / h
        first = y[k - 1] - (u[k - 1] - 2.0 * slope / w)
        second = dy[k - 1] - slope + w * first
        y[k] = u[k] - 2.0 * slope / w + (first + second * h) * decay[k]
        dy[k] = slope + (second - w * (first + second * h)) * decay[k]
