# SPDX-License-Identifier: Apache-2.0
"""Viscous friction that differs between both directions, as a difference: fvd |dq|."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Term
from robot_dyn_id.dynamics.terms.laws import VISCOUS, FrictionLaw


@dataclass(frozen=True)
class AbsoluteVelocity(Term):
    """Half the difference of viscous friction between forward and backward motion, in addition to `viscous`.

    It may have either sign: the friction is fv + fvd forward and fv - fvd backward, and passive while |fvd| <= fv.
    """

    name: ClassVar[str] = "absolute_velocity"
    symbols: ClassVar[tuple[str, ...]] = ("fvd",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((1, 1),)

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return FrictionLaw(VISCOUS, side=1), FrictionLaw(VISCOUS, side=-1, factor=-1.0)

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return np.abs(dy)[None, :]

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`."""
        return np.array([np.zeros_like(dy), np.sign(dy), np.zeros_like(dy)])[:, None]
