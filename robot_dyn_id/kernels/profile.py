# SPDX-License-Identifier: Apache-2.0
"""Profile of a quadratic form over non-negative parameters, along a linear combination of them."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.kernels.compiled import compiled

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
    work, positive, now = tableau.copy(), free.copy(), values.copy()
    multiplier, grown, squared = 0.0, 0.0, 0.0
    for _ in range(MAX_EXCHANGES):
        moved = np.where(positive, linear, 0.0)
        direction = np.dot(work, moved) - np.where(positive, 0.0, linear)
        slope = max(0.0, constant + np.sum(moved * direction))
        step = np.inf
        at = 0
        falling = direction < -FLAT * np.sqrt(np.sum(direction**2))
        if np.any(falling):
            steps = np.where(falling, -now / np.where(falling, direction, 1.0), np.inf)
            at = int(np.argmin(steps))
            step = max(0.0, steps[at])
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
        now = now + step * direction
        now[at] = 0.0
        pivot = work[at, at]
        column, row = work[:, at].copy(), work[at].copy()
        work -= np.outer(column, row / pivot)
        work[:, at] = column / pivot
        work[at] = -row / pivot
        work[at, at] = 1.0 / pivot
        positive[at] = not positive[at]
    return grown
