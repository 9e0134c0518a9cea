# SPDX-License-Identifier: Apache-2.0
"""Viscous friction: fv dq."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Term
from robot_dyn_id.dynamics.terms.laws import VISCOUS, FrictionLaw


@dataclass(frozen=True)
class Viscous(Term):
    """Friction proportional to velocity."""

    name: ClassVar[str] = "viscous"
    symbols: ClassVar[tuple[str, ...]] = ("fv",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((1, 1),)
    not_negative: ClassVar[tuple[str, ...]] = symbols

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return dy[None, :]

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`."""
        return np.array([np.zeros_like(y), np.ones_like(y), np.zeros_like(y)])[:, None]

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(VISCOUS),)
