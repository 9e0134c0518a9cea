# SPDX-License-Identifier: Apache-2.0
"""Friction laws of terms: the shapes that a forward simulation integrates."""

from __future__ import annotations

import math
from dataclasses import dataclass

INERTIA, CONSTANT, VISCOUS, SIGN, DAHL, POWER, ARCTAN, SPRING, SINE, COSINE = (
    *("inertia", "constant", "viscous", "sign"),
    *("dahl", "power", "arctan", "spring", "sine", "cosine"),
)
"""Shapes of laws; see `FrictionLaw`."""


@dataclass(frozen=True)
class FrictionLaw:
    """One summand of a column of a term, for the coordinate's position y, velocity v and acceleration a.

    | shape | value |
    |---|---|
    | `inertia` | a |
    | `constant` | 1 |
    | `viscous` | v |
    | `sign` | tanh(v / c), with c = 0 the hard sign |
    | `dahl` | z, with z' = v / c (1 - z sign v) |
    | `power` | sign(v) abs(v)^c, c > 0 |
    | `arctan` | arctan(v / c) |
    | `spring` | y - c |
    | `sine` | sin(c y) |
    | `cosine` | cos(c y) |

    Attributes:
        shape: shape of the law.
        constant: c.
        side: 1 or -1: the value is 0 for velocities of the other sign; 0: both directions.
        factor: factor of the value.
        symbol: index of the column.
        fading: f of the factor exp(-(v / f)^2) of a `sign`; infinite: no such factor.
    """

    shape: str
    constant: float = 0.0
    side: int = 0
    factor: float = 1.0
    symbol: int = 0
    fading: float = math.inf
