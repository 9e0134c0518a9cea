# SPDX-License-Identifier: Apache-2.0
"""Profile of a quadratic form over non-negative parameters, along a linear combination of them."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.kernels.compiled import compiled, samples

MAX_EXCHANGES = 400
"""Largest number of bounds that begin or cease to hold along a profile; 1 to 20 are typical."""

FLAT = 1e-12
"""Slopes below this share of the largest are rounding."""


@compiled
def follow_profile(tableau: Array, free: Mask, values: Array, linear: Array, constant: float, limit: float) -> float:
    """Follow the least quadratic form along a combination from its minimum until it has grown by a limit.

    The multiplier s of the combination a' x grows from 0. The minimum of x' Q x / 2 - g' x - s a' x with x >= 0 is
    piecewise linear in s; along it a' x changes by slope ds, and the quadratic form by 2 s slope ds. At each kink one
    parameter reaches its bound, or leaves it, and the tableau of the linear complementarity problem is pivoted
    (parametric principal pivoting: Cottle, Pang and Stone 2009).

    Args:
        tableau: principal pivot transform of Q for the positive parameters at the minimum, shape (l, l).
        free: mask of these parameters, shape (l,).
        values: the parameters where they are positive, elsewhere their multipliers, shape (l,).
        linear: coefficients a, shape (l,).
        constant: slope of parameters without bounds, which were eliminated.
        limit: growth of the quadratic form at which to stop.

    Returns:
        Growth of the combination; less than the limit allows if the bounds stop it.
    """
    count = len(values)
    work, now, positive = tableau.copy(), values.copy(), np.empty(count)
    moved, row, column, products = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for k in samples(count):  # in loops: most of NumPy's functions take seconds to compile
        positive[k] = free[k]
    multiplier, grown, squared = 0.0, 0.0, 0.0
    for _ in range(MAX_EXCHANGES):
        for k in samples(count):
            moved[k] = positive[k] * linear[k]
        direction = np.dot(work, moved)
        for k in samples(count):
            direction[k] -= (1.0 - positive[k]) * linear[k]
        for k in samples(count):
            products[k] = moved[k] * direction[k]
        slope = max(0.0, constant + np.sum(products))
        for k in samples(count):
            products[k] = direction[k] * direction[k]
        flat = FLAT * np.sqrt(np.sum(products))
        step, at = np.inf, 0
        for i in range(count):
            if direction[i] < -flat and -now[i] / direction[i] < step:
                step, at = -now[i] / direction[i], i
        step = max(0.0, step)
        last = np.inf  # at slope 0 a bound holds the combination until its multiplier is zero
        if slope > 0.0:
            last = np.sqrt(multiplier**2 + (limit - squared) / slope) - multiplier
        step = min(step, last)
        if step == np.inf:
            break
        done = step == last
        squared += slope * ((multiplier + step) ** 2 - multiplier**2)
        grown += slope * step
        if done:
            break
        multiplier += step
        pivot = work[at, at]
        for k in samples(count):
            now[k] += step * direction[k]
            column[k] = work[k, at]
            row[k] = work[at, k] / pivot
        now[at] = 0.0
        for i in range(count):
            for k in samples(count):
                products[k] = column[i] * row[k]
            for k in samples(count):
                work[i, k] -= products[k]
        for k in samples(count):
            work[k, at] = column[k] / pivot
        for k in samples(count):
            work[at, k] = -row[k]
        work[at, at] = 1.0 / pivot
        positive[at] = 1.0 - positive[at]
    return grown
