# SPDX-License-Identifier: Apache-2.0
"""Rotor inertia reflected to the joint (motor inertia times the gear ratio squared; Ia, armature): Ir ddq."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import REST, Term
from robot_dyn_id.dynamics.terms.laws import INERTIA, FrictionLaw


@dataclass(frozen=True)
class RotorInertia(Term):
    """Torque proportional to the joint's own acceleration.

    The gyroscopic coupling of the spinning rotor with the proximal links is neglected (high gear ratios).
    """

    name: ClassVar[str] = "rotor_inertia"
    symbols: ClassVar[tuple[str, ...]] = ("Ir",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((1, 2),)
    cause: ClassVar[str] = REST
    not_negative: ClassVar[tuple[str, ...]] = symbols

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return ddy[None, :]

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`."""
        return np.array([np.zeros_like(y), np.zeros_like(y), np.ones_like(y)])[:, None]

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(INERTIA),)
