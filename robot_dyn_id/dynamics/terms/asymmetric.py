# SPDX-License-Identifier: Apache-2.0
"""Friction that differs between both directions: fcp + fvp dq for dq > 0, -fcn + fvn dq for dq < 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import FreeConstant, Term
from robot_dyn_id.dynamics.terms.laws import SIGN, VISCOUS, FrictionLaw
from robot_dyn_id.dynamics.terms.sign import SMOOTHING_WIDTH, compute_width_slope, sign, sign_slope
from robot_dyn_id.options import NotNegative


@dataclass(frozen=True)
class Asymmetric(Term):
    """Separate Coulomb and viscous friction for each direction.

    It cannot be combined with `offset`: a constant torque and a difference of Coulomb frictions have the same columns.

    Attributes:
        smoothing_width: velocity [rad/s or m/s] within which the sign is smoothed; 0 is the hard sign.
    """

    smoothing_width: NotNegative = 0.02

    name: ClassVar[str] = "asymmetric"
    symbols: ClassVar[tuple[str, ...]] = ("fcp", "fcn", "fvp", "fvn")
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0), (0, 0), (1, 1), (1, 1))
    not_negative: ClassVar[tuple[str, ...]] = symbols
    includes: ClassVar[frozenset[str]] = frozenset(("viscous", "coulomb", "offset", "absolute_velocity"))

    @property
    def step_width(self) -> float:
        """See `Term.step_width`."""
        return self.smoothing_width

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return np.concatenate([_halves(sign(dy, self.smoothing_width), dy), _halves(dy, dy)])

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of `columns` with respect to position, velocity and acceleration, shape (3, symbols, N)."""
        slopes = np.zeros((3, 4, len(dy)))
        slopes[1, :2] = _halves(sign_slope(dy, self.smoothing_width), dy)
        slopes[1, 2:] = _halves(np.ones_like(dy), dy)
        return slopes

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        dry = (FrictionLaw(SIGN, self.smoothing_width, side, symbol=k) for k, side in enumerate((1, -1)))
        return (*dry, *(FrictionLaw(VISCOUS, side=side, symbol=k) for k, side in enumerate((1, -1), start=2)))

    @property
    def free_constants(self) -> tuple[FreeConstant, ...]:
        """The smoothing width, unless the sign is hard."""
        return (SMOOTHING_WIDTH,) if self.smoothing_width > 0.0 else ()

    def constant_slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.constant_slopes`."""
        slopes = np.zeros((len(self.free_constants), 4, len(dy)))
        if self.free_constants:
            slopes[0, :2] = _halves(compute_width_slope(dy, self.smoothing_width), dy)
        return slopes


def _halves(values: Array, dy: Array) -> Array:
    """The values where the motion is forward, and where it is backward, shape (2, N)."""
    return np.array([np.where(dy > 0, values, 0.0), np.where(dy < 0, values, 0.0)])
