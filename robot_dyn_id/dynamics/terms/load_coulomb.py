# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction that grows with the load of the gear: fl |load| sign(dq).

The load is the torque of the URDF's own masses and inertias along the coordinate at this position and velocity, without
acceleration: gravity, Coriolis and centrifugal torque. It is known before the estimation, so that the column is linear
in fl, and depends on the state alone, so that the model keeps its mass matrix and forward dynamics. For a more accurate
load, export the identified model and identify again with that URDF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.laws import SIGN, FrictionLaw
from robot_dyn_id.dynamics.terms.sign import SignTerm


@dataclass(frozen=True)
class LoadCoulomb(SignTerm):
    """Friction proportional to the load, in addition to the load-independent Coulomb friction."""

    name: ClassVar[str] = "load_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fl",)
    not_negative: ClassVar[tuple[str, ...]] = ("fl",)
    signal: ClassVar[str] = "load"

    def factor(self, weights: Array, signal: Array) -> Array:
        """Absolute load along the coordinates: the torque along each that alone would give the joints `signal`."""
        return np.asarray(np.abs(weights @ signal) / (weights**2).sum(axis=1, keepdims=True))

    def unit(self, effort_unit: str, index: int) -> str:
        """A share of the load has no unit."""
        return "1"

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(SIGN, self.smoothing_width),)
