# SPDX-License-Identifier: Apache-2.0
"""Friction that grows less than proportionally with the speed: shear thinning of grease, and gears at high speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Term
from robot_dyn_id.dynamics.terms.laws import ARCTAN, POWER, FrictionLaw
from robot_dyn_id.options import Positive

EXPONENTS = (1.0 / 2.0, 1.0 / 3.0)
"""Powers of the speed."""


@dataclass(frozen=True)
class SaturatingViscous(Term):
    """sign(dq) |dq|^(1/2), sign(dq) |dq|^(1/3) and arctan(dq / w), each with a coefficient of its own.

    Together with viscous and Coulomb friction, all with coefficients of 0 or more, they span concave laws between
    these two without a constant that has to be searched.

    Attributes:
        saturation_velocity: w [rad/s or m/s], velocity at which the arctangent has half of its greatest value.
    """

    saturation_velocity: Positive = 0.1

    name: ClassVar[str] = "saturating_viscous"
    symbols: ClassVar[tuple[str, ...]] = ("fsa", "fsb", "fsc")
    powers: ClassVar[tuple[tuple[float, float], ...]] = (*((power, power) for power in EXPONENTS), (0, 0))
    not_negative: ClassVar[tuple[str, ...]] = symbols

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        powers = (FrictionLaw(POWER, power, symbol=k) for k, power in enumerate(EXPONENTS))
        return (*powers, FrictionLaw(ARCTAN, self.saturation_velocity, symbol=len(EXPONENTS)))

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        powers = (np.sign(dy) * np.abs(dy) ** power for power in EXPONENTS)
        return np.array([*powers, np.arctan(dy / self.saturation_velocity)])

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`; the infinite slope of the powers at rest counts as that of a step."""
        speed = np.where(dy == 0.0, np.inf, np.abs(dy))
        relative = dy / self.saturation_velocity
        slopes = np.zeros((3, 3, len(dy)))
        slopes[1, :2] = [power * speed ** (power - 1.0) for power in EXPONENTS]
        slopes[1, 2] = 1.0 / (self.saturation_velocity * (1.0 + relative**2))
        return slopes

    @property
    def velocity_scales(self) -> tuple[float, ...]:
        """See `Term.velocity_scales`."""
        return (self.saturation_velocity,)

    @property
    def design_term(self) -> None:
        """None: `viscous` and Coulomb friction bound its columns on either side."""
        return
