# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction that changes with the temperature of the joint: ft (T - T0) sign(dq)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Coordinate
from robot_dyn_id.dynamics.terms.sign import SignTerm
from robot_dyn_id.options import Range

ABSOLUTE_ZERO_CELSIUS = -273.15


@dataclass(frozen=True)
class TemperatureCoulomb(SignTerm):
    """Change of Coulomb friction per kelvin; negative if the lubricant gets thinner when it is warm.

    If the temperature is unknown (a controller without sensors), the reference temperature is assumed.

    Attributes:
        reference_temperature: T0 [degrees Celsius], at which `coulomb` is the friction.
    """

    reference_temperature: Annotated[float, Range(ABSOLUTE_ZERO_CELSIUS)] = 20.0

    name: ClassVar[str] = "temperature_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("ft",)
    signal: ClassVar[str] = "temperature"

    def factor(self, weights: Array, signal: Array) -> Array:
        """T - T0; the temperature of a coupling is the mean of its joints, weighted."""
        shares = np.abs(weights) / np.abs(weights).sum(axis=1, keepdims=True)
        return np.asarray(shares @ signal - self.reference_temperature)

    def unit(self, coordinate: Coordinate, index: int) -> str:
        """Effort per kelvin."""
        return f"{coordinate.effort_unit}/K"
