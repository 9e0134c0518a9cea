# SPDX-License-Identifier: Apache-2.0
"""Stribeck friction: [fc + (fb - fc) exp(-(dq / vs)^2)] sign(dq), linear in fc and fb - fc for a given vs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import FreeConstant, Term
from robot_dyn_id.dynamics.terms.laws import SIGN, FrictionLaw
from robot_dyn_id.dynamics.terms.sign import SMOOTHING_WIDTH, compute_width_slope, sign, sign_slope
from robot_dyn_id.options import NotNegative, Positive

STRIBECK_VELOCITY = FreeConstant("stribeck_velocity", 1e-4, 0.5)
"""Range of a Stribeck velocity."""


@dataclass(frozen=True)
class Stribeck(Term):
    """Dry friction that falls from breakaway to sliding while the joint gathers speed.

    Attributes:
        stribeck_velocity: vs, speed [rad/s or m/s] at which fb - fc has fallen to 1/e.
        smoothing_width: velocity [rad/s or m/s] within which the sign is smoothed, well below `stribeck_velocity`; 0 is
            the hard sign.
    """

    stribeck_velocity: Positive = 0.05
    smoothing_width: NotNegative = 0.0

    name: ClassVar[str] = "stribeck"
    symbols: ClassVar[tuple[str, ...]] = ("fcs", "dfs")
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0), (0, 0))
    not_negative: ClassVar[tuple[str, ...]] = ("fcs",)
    differences: ClassVar[Mapping[str, str]] = {"dfs": "fcs"}
    rises: ClassVar[tuple[str, ...]] = ("dfs",)
    includes: ClassVar[frozenset[str]] = frozenset(("coulomb",))
    peaked: ClassVar[bool] = True

    @property
    def step_width(self) -> float:
        """See `Term.step_width`."""
        return self.smoothing_width

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        s = sign(dy, self.smoothing_width)
        return np.array([s, self._share(dy) * s])

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of `columns` with respect to position, velocity and acceleration, shape (3, symbols, N)."""
        s = sign(dy, self.smoothing_width)
        ds = sign_slope(dy, self.smoothing_width)
        share = self._share(dy)
        slopes = np.zeros((3, 2, len(dy)))
        slopes[1] = ds, share * (ds - 2.0 * dy / self.stribeck_velocity**2 * s)
        return slopes

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        sliding = FrictionLaw(SIGN, self.smoothing_width)
        return sliding, replace(sliding, symbol=1, fading=self.stribeck_velocity)

    @property
    def free_constants(self) -> tuple[FreeConstant, ...]:
        """The Stribeck velocity, and the width unless the sign is hard."""
        return (STRIBECK_VELOCITY, SMOOTHING_WIDTH) if self.smoothing_width > 0.0 else (STRIBECK_VELOCITY,)

    def constant_slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.constant_slopes`."""
        s = sign(dy, self.smoothing_width)
        share = self._share(dy)
        slopes = np.zeros((len(self.free_constants), 2, len(dy)))
        slopes[0, 1] = 2.0 * dy**2 / self.stribeck_velocity**3 * share * s
        if self.smoothing_width > 0.0:
            slopes[1] = np.array([np.ones_like(dy), share]) * compute_width_slope(dy, self.smoothing_width)
        return slopes

    def _share(self, dy: Array) -> Array:
        """The share of fb - fc that is left at a speed, shape (N,)."""
        return np.asarray(np.exp(-((dy / self.stribeck_velocity) ** 2)))
