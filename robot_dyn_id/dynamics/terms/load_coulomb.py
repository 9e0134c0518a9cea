# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction that grows with the load of the gear: fl |load| sign(dq).

The load is the torque along the coordinate that the URDF's own masses and inertias need at this position and velocity,
without acceleration: gravity, Coriolis and centrifugal torque. It is known before anything is estimated, so the column
stays linear in fl, and it depends on the state alone, so the model keeps its mass matrix and its forward dynamics. A
better load comes from a better URDF: export what was identified, and identify once more with that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.sign import SignTerm


@dataclass(frozen=True)
class LoadCoulomb(SignTerm):
    """Friction in proportion to the load, beside the Coulomb friction of the joint without load."""

    name: ClassVar[str] = "load_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fl",)
    not_negative: ClassVar[tuple[str, ...]] = ("fl",)
    signal: ClassVar[str] = "load"

    def factor(self, weights: Array, signal: Array) -> Array:
        """|load| along the coordinates: the torque that gives the joints `signal`, were it the only one."""
        return np.asarray(np.abs(weights @ signal) / (weights**2).sum(axis=1, keepdims=True))

    def unit(self, effort_unit: str, index: int) -> str:
        """A share of the load has no unit."""
        return "1"
