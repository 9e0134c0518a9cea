# SPDX-License-Identifier: Apache-2.0
"""The sign of a velocity, hard or smoothed, and the terms that are made of it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import FreeConstant, Term
from robot_dyn_id.dynamics.terms.laws import SIGN, FrictionLaw
from robot_dyn_id.options import NotNegative

SMOOTHING_WIDTH = FreeConstant("smoothing_width", 1e-4, 0.5)
"""Range of a smoothing width."""


def sign(dy: Array, width: float) -> Array:
    """tanh(dy / width), or the hard sign with width 0, shape (N,)."""
    return np.sign(dy) if width == 0.0 else np.tanh(dy / width)


def sign_slope(dy: Array, width: float) -> Array:
    """Derivative of `sign` with respect to the velocity; 0 of the hard one, shape (N,)."""
    return np.zeros_like(dy) if width == 0.0 else (1.0 - np.tanh(dy / width) ** 2) / width


def compute_width_slope(dy: Array, width: float) -> Array:
    """Derivative of `sign` with respect to a positive width, shape (N,)."""
    return np.asarray(-dy / width * sign_slope(dy, width))


@dataclass(frozen=True)
class SignTerm(Term):
    """A term with the sign of the velocity as its only column.

    Attributes:
        smoothing_width: velocity [rad/s or m/s] within which the sign is smoothed; 0 is the hard sign.
    """

    smoothing_width: NotNegative = 0.02

    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0),)

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(SIGN, self.smoothing_width),)

    @property
    def step_width(self) -> float:
        """See `Term.step_width`."""
        return self.smoothing_width

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return sign(dy, self.smoothing_width)[None, :]

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of `columns` with respect to position, velocity and acceleration, shape (3, symbols, N)."""
        return np.array([np.zeros_like(dy), sign_slope(dy, self.smoothing_width), np.zeros_like(dy)])[:, None, :]

    @property
    def free_constants(self) -> tuple[FreeConstant, ...]:
        """The width, unless the sign is hard."""
        return (SMOOTHING_WIDTH,) if self.smoothing_width > 0.0 else ()

    def constant_slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.constant_slopes`."""
        if not self.free_constants:
            return np.zeros((0, 1, len(dy)))
        return compute_width_slope(dy, self.smoothing_width)[None, None, :]
