# SPDX-License-Identifier: Apache-2.0
"""Fourier series blended in and out by quintics, so that the series itself need not be at rest at its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.fourier import Harmonics
from robot_dyn_id.excitation.forms.linear import LinearParametrization
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.excitation.trajectory import multiply, window


@dataclass(frozen=True)
class FourierBlend(Harmonics):
    """q_j(t) = center_j + v(t) (sum_k a_jk sin(k w s) + b_jk cos(k w s)), w = 2 pi / period, s = t - blend.

    The window v(t) rises from 0 to 1 over the time `blend`, is 1 for all periods and falls back over the time `blend`.

    Attributes:
        coefficients: a_j1 ... a_jH, b_j1 ... b_jH, shape (n, 2 H) [rad or m].
        period: period of the series [s].
        periods: number of periods with full amplitude.
        blend: duration of each blend [s].
    """

    name: ClassVar[str] = "fourier_blend"
    TIMES: ClassVar[tuple[str, ...]] = ("period", "blend")
    FORMULA: ClassVar[str] = (
        "center_j + v(t) (sum_k a_jk sin(k w s) + b_jk cos(k w s)), w = 2 pi / period, s = t - blend, v a quintic in "
        "and out over the time blend; a row of the coefficients is a_j1 ... a_jH b_j1 ... b_jH"
    )

    periods: int
    blend: float

    @property
    def duration(self) -> float:
        """Duration of all periods and both blends [s]."""
        return self.periods * self.period + 2.0 * self.blend

    @property
    def fastest(self) -> float:
        """Period of the highest harmonic, or twice the blend time if that is shorter [s]."""
        return min(self.period / self.harmonics, 2.0 * self.blend)

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        series = self.series(t - self.blend)
        factors = window(t, self.duration, self.blend)
        return np.array(multiply(factors, (series[0], series[1], series[2], series[3])))

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of blended series, whose coefficients are all free.

        Raises:
            UsageError: less than one harmonic.
            MotionError: the center configuration is outside the limits.
        """
        if demand.harmonics < 1:
            raise UsageError(f"a blended Fourier series needs at least 1 harmonic, not {demand.harmonics}")
        coefficients = np.zeros((1, 2 * demand.harmonics))
        family = cls(np.zeros(1), coefficients, demand.period, demand.periods, demand.blend)
        end = family.duration
        steps = (0.0, demand.blend, end - demand.blend, end)
        unconstrained = np.zeros((0, family.functions))
        return LinearParametrization(limits, demand, family, unconstrained, periodic=False, jerk_steps=steps)
