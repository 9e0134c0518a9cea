# SPDX-License-Identifier: Apache-2.0
"""Cosine and sine in loops that the compiler vectorizes: calls of the mathematical library would stop it."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.kernels.compiled import inlined

ROUND = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to the nearest whole number
REACH = 1e6
"""Largest angle [rad] whose cosine and sine are found to rounding: its quarter turns are counted in 20 bits."""


def wrap_within_reach(q: Array) -> Array:
    """The same angles, those beyond `REACH` turned back by whole turns."""
    near = np.abs(q) <= REACH
    return q if near.all() else np.where(near, q, np.arctan2(np.sin(q), np.cos(q)))


@inlined
def cos_sin(x):  # type: ignore[no-untyped-def]
    """Cosine and sine of an angle within `REACH`: less quarter turns (pi/2 in three parts), by fdlibm's series."""
    quarters = (x * 0.63661977236758134308 + ROUND) - ROUND
    x = x - quarters * 1.57079632673412561417
    x = x - quarters * 6.07710050630396597660e-11
    x = x - quarters * 2.02226624879595063154e-21
    z = x * x
    s = 8.33333333332248946124e-03 + z * (
        -1.98412698298579493134e-04
        + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10))
    )
    s = x + x * z * (-1.66666666666666324348e-01 + z * s)
    c = 2.48015872894767294178e-05 + z * (
        -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
    )
    c = 1.0 - 0.5 * z + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * c))
    # cosine and sine of the quarter turns: (1, 0) at 0, (0, +-1) at +-1, (-1, 0) at +-2
    quarters = quarters - 4.0 * ((0.25 * quarters + ROUND) - ROUND)
    square = quarters * quarters
    odd = square * (4.0 - square) * (1.0 / 3.0)
    turned, half = odd * quarters, (1.0 - odd) * (1.0 - 0.5 * square)
    return half * c - turned * s, half * s + turned * c
