# SPDX-License-Identifier: Apache-2.0
"""Constant offset of the effort sensor (or of an asymmetric friction)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Term
from robot_dyn_id.dynamics.terms.laws import CONSTANT, FrictionLaw


@dataclass(frozen=True)
class Offset(Term):
    """A constant."""

    name: ClassVar[str] = "offset"
    symbols: ClassVar[tuple[str, ...]] = ("off",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0),)

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return np.ones((1, len(y)))

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`."""
        return np.zeros((3, 1, len(y)))

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(CONSTANT),)
