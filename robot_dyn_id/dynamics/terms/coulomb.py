# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction: fc tanh(dq / width), or fc sign(dq) with width 0; also with two widths at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Term
from robot_dyn_id.dynamics.terms.laws import SIGN, FrictionLaw
from robot_dyn_id.dynamics.terms.sign import SignTerm, sign, sign_slope
from robot_dyn_id.options import NotNegative


@dataclass(frozen=True)
class Coulomb(SignTerm):
    """Friction that depends on the direction of motion only."""

    name: ClassVar[str] = "coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fc",)
    not_negative: ClassVar[tuple[str, ...]] = ("fc",)


@dataclass(frozen=True)
class DoubleCoulomb(Term):
    """Coulomb friction with a narrow and a wide smoothing width, each with a level of its own.

    No width has to be searched: the data distribute the friction between both.

    Attributes:
        narrow_width: velocity [rad/s or m/s] within which the first sign is smoothed; 0 is the hard sign.
        wide_width: the same of the second sign.
    """

    narrow_width: NotNegative = 0.003
    wide_width: NotNegative = 0.02

    name: ClassVar[str] = "double_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fca", "fcb")
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0), (0, 0))
    not_negative: ClassVar[tuple[str, ...]] = symbols
    includes: ClassVar[frozenset[str]] = frozenset(("coulomb",))

    @property
    def step_width(self) -> float:
        """See `Term.step_width`."""
        return min(self.narrow_width, self.wide_width)

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return np.array([sign(dy, self.narrow_width), sign(dy, self.wide_width)])

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`."""
        slopes = np.zeros((3, 2, len(dy)))
        slopes[1] = sign_slope(dy, self.narrow_width), sign_slope(dy, self.wide_width)
        return slopes

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return tuple(FrictionLaw(SIGN, width, symbol=k) for k, width in enumerate((self.narrow_width, self.wide_width)))

    @property
    def design_term(self) -> Term:
        """Coulomb friction with the wide width: the shares of both widths differ in slow motion only."""
        return Coulomb(self.wide_width)
