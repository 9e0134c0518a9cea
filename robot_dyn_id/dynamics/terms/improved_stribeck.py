# SPDX-License-Identifier: Apache-2.0
"""The improved Stribeck friction of Jing et al. (Actuators 2025, 14(10), 497, eq. 2).

[fc + (fb - fc) exp(-(dq / vs)^2)] sign(dq) + kv1 dq + kv2 dq^2 + kv3 dq^3, the sign on the whole bracket: on the
exponential alone, Coulomb friction would drive the joint backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.laws import POWER, VISCOUS, FrictionLaw
from robot_dyn_id.dynamics.terms.stribeck import Stribeck


@dataclass(frozen=True)
class ImprovedStribeck(Stribeck):
    """Stribeck friction with viscous friction up to the cube of the velocity.

    In vacuum kv2 and kv3 are zero: that law is `viscous` and `stribeck` side by side.

    Attributes:
        signed_square: whether the quadratic column is dq |dq|, which is the same friction in both directions, and not
            dq^2 as in the paper, which is even: it brakes in one direction and drives in the other.
    """

    signed_square: bool = False

    name: ClassVar[str] = "improved_stribeck"
    symbols: ClassVar[tuple[str, ...]] = ("fci", "dfi", "kva", "kvb", "kvc")
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0), (0, 0), (1, 1), (2, 2), (3, 3))
    not_negative: ClassVar[tuple[str, ...]] = ("fci",)
    differences: ClassVar[Mapping[str, str]] = {"dfi": "fci"}
    rises: ClassVar[tuple[str, ...]] = ("dfi",)
    includes: ClassVar[frozenset[str]] = frozenset(("viscous", "coulomb", "stribeck"))

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        square = FrictionLaw(POWER, 2.0, symbol=3)
        if self.signed_square:
            squares: tuple[FrictionLaw, ...] = (square,)
        else:
            squares = replace(square, side=1), replace(square, side=-1, factor=-1.0)
        return (*super().laws, FrictionLaw(VISCOUS, symbol=2), *squares, FrictionLaw(POWER, 3.0, symbol=4))

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        square = dy * np.abs(dy) if self.signed_square else dy**2
        return np.concatenate([super().columns(y, dy, ddy), [dy, square, dy * dy * dy]])

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of `columns` with respect to position, velocity and acceleration, shape (3, symbols, N)."""
        slopes = np.zeros((3, 5, len(dy)))
        slopes[:, :2] = super().slopes(y, dy, ddy)
        slopes[1, 2:] = np.ones_like(dy), 2.0 * (np.abs(dy) if self.signed_square else dy), 3.0 * dy**2
        return slopes

    def constant_slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.constant_slopes`."""
        slopes = super().constant_slopes(y, dy, ddy)
        return np.concatenate([slopes, np.zeros((len(slopes), 3, len(dy)))], axis=1)
