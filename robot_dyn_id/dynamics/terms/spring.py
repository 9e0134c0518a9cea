# SPDX-License-Identifier: Apache-2.0
"""Joint spring: k (q - q0), a balancer, a cable or hose package, a torsion spring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import REST, Term
from robot_dyn_id.dynamics.terms.laws import SPRING, FrictionLaw
from robot_dyn_id.options import Range


@dataclass(frozen=True)
class Spring(Term):
    """Torque proportional to the deviation from a rest position.

    If that position is unknown, add the term `offset`: q0 = rest_position - off / ks.

    Attributes:
        rest_position: q0 [rad or m].
    """

    rest_position: Annotated[float, Range()] = 0.0

    name: ClassVar[str] = "spring"
    symbols: ClassVar[tuple[str, ...]] = ("ks",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((1, 0),)
    cause: ClassVar[str] = REST

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return (y - self.rest_position)[None, :]

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of `columns` with respect to position, velocity and acceleration, shape (3, symbols, N)."""
        return np.array([np.ones_like(y), np.zeros_like(y), np.zeros_like(y)])[:, None, :]

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(SPRING, self.rest_position),)
