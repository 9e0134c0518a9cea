# SPDX-License-Identifier: Apache-2.0
"""Chirps: swept sines through a band of frequencies, upward and downward at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.linear import LinearParametrization
from robot_dyn_id.excitation.forms.swept import SweptMotion, read_frequencies
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.excitation.trajectory import compose, multiply, window


@dataclass(frozen=True)
class Chirp(SweptMotion):
    """q_j(t) = center_j + v(t) (a_j sin p(t) + b_j cos p(t) + c_j sin p(length - t) + d_j cos p(length - t)).

    p(t) = 2 pi (first t + (last - first) t^2 / (2 length)): one part sweeps from the first to the last frequency, the
    other from the last to the first, so that joints differ in more than their phase. The window v(t) rises from 0 to 1
    over the time `blend` and falls back at the end.

    Attributes:
        coefficients: a_j b_j c_j d_j, shape (n, 4) [rad or m].
    """

    name: ClassVar[str] = "chirp"
    FORMULA: ClassVar[str] = (
        "center_j + v(t) (a_j sin p(t) + b_j cos p(t) + c_j sin p(length - t) + d_j cos p(length - t)), "
        "p(t) = 2 pi (first t + (last - first) t^2 / (2 length)), v a quintic in and out over the time blend; a row of "
        "the coefficients is a_j b_j c_j d_j"
    )

    @property
    def functions(self) -> int:
        """Number of functions: sine and cosine of both sweeps."""
        return 4

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        factors = window(t, self.length, self.blend)
        functions = [function for back in (False, True) for function in self._sweep(t, back)]
        return np.array([multiply(factors, function) for function in functions]).transpose(1, 0, 2)  # type: ignore[arg-type]

    def _sweep(self, t: Array, back: bool) -> list[Array]:
        """Sine and cosine of one sweep with three derivatives, shape (4, N) each."""
        own, direction = (self.length - t, -1.0) if back else (t, 1.0)
        rate = (self.last - self.first) / self.length
        turn = 2.0 * np.pi
        phase = turn * (self.first * own + rate * own**2 / 2.0)
        clock = (phase, direction * turn * (self.first + rate * own), np.full_like(t, turn * rate), np.zeros_like(t))
        return [
            np.array(compose(tuple(np.sin(phase + (d + quarter) * np.pi / 2) for d in range(4)), clock))  # type: ignore[arg-type]
            for quarter in (0, 1)
        ]

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of sweeps between two frequencies.

        Raises:
            UsageError: not exactly two frequencies, or the blends are longer than the motion.
            MotionError: the center configuration is outside the limits.
        """
        first, last = read_frequencies(demand, (1.0 / demand.period, demand.harmonics / demand.period))
        if 2.0 * demand.blend > demand.period:
            raise UsageError(f"a chirp of {demand.period:g} s is too short for two blends of {demand.blend:g} s each")
        family = cls(np.zeros(1), np.zeros((1, 4)), demand.period, first, last, demand.blend)
        steps = (0.0, demand.blend, demand.period - demand.blend, demand.period)
        return LinearParametrization(limits, demand, family, np.zeros((0, 4)), periodic=True, jerk_steps=steps)
