# SPDX-License-Identifier: Apache-2.0
"""Sums of sines of given frequencies; random ones have Schroeder phases, which give low peaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.fourier import waves
from robot_dyn_id.excitation.forms.linear import LinearMotion, LinearParametrization, rest_conditions
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand

HARMONIC_TOLERANCE = 1e-9
"""Relative deviation of frequency x duration from an integer below which a frequency counts as a harmonic [-]."""


@dataclass(frozen=True)
class Multisine(LinearMotion):
    """q_j(t) = center_j + sum_k a_jk sin(2 pi f_k t) + b_jk cos(2 pi f_k t).

    Attributes:
        coefficients: a_j1 ... a_jK, b_j1 ... b_jK, shape (n, 2 K) [rad or m].
        length: duration [s].
        frequencies: frequencies f_1 ... f_K [Hz], shape (K,).
    """

    name: ClassVar[str] = "multisine"
    RATES: ClassVar[tuple[str, ...]] = ("frequencies",)
    FORMULA: ClassVar[str] = (
        "center_j + sum_k a_jk sin(2 pi f_k t) + b_jk cos(2 pi f_k t); a row of the coefficients is "
        "a_j1 ... a_jK b_j1 ... b_jK"
    )

    length: float
    frequencies: Array

    @property
    def duration(self) -> float:
        """See `Trajectory`."""
        return self.length

    @property
    def fastest(self) -> float:
        """Period of the highest frequency [s]."""
        return float(1.0 / self.frequencies.max())

    @property
    def functions(self) -> int:
        """Number of functions: a sine and a cosine of each frequency."""
        return 2 * len(self.frequencies)

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        return waves(self.frequencies, t)

    def draw(self, rng: np.random.Generator, joints: int) -> Array:
        """Draw coefficients: amplitudes that decrease with frequency, Schroeder phases (1970), random time shifts."""
        size = 1.0 / self.frequencies
        power = size**2 / np.sum(size**2)
        # phase_k = -2 pi sum over l < k of (k - l) power_l, computed as a double cumulative sum
        phase = -2.0 * np.pi * np.concatenate([[0.0], np.cumsum(np.cumsum(power))[:-1]])
        shifted = phase + 2.0 * np.pi * self.frequencies * rng.uniform(0.0, self.length, (joints, 1))
        return np.asarray(np.concatenate([size * np.sin(shifted), size * np.cos(shifted)], axis=1))

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of sums of sines at rest at both ends; they are periodic if all are harmonics.

        Raises:
            UsageError: a frequency is given twice, or repetitions of a motion that is not periodic.
            MotionError: the center configuration is outside the limits.
        """
        given = demand.frequencies or tuple(k / demand.period for k in range(1, demand.harmonics + 1))
        frequencies = np.unique(given)
        if len(frequencies) < len(given):
            raise UsageError(f"a frequency is given twice in {list(given)}: remove the duplicate")
        turns = frequencies * demand.period
        periodic = bool(np.all(np.abs(turns - np.round(turns)) < HARMONIC_TOLERANCE * turns))
        if demand.periods > 1 and not periodic:
            raise UsageError(
                f"a multisine of {demand.period:g} s can be repeated only if all frequencies are multiples of "
                f"{1.0 / demand.period:g} Hz"
            )
        family = cls(np.zeros(1), np.zeros((1, 2 * len(frequencies))), demand.period, frequencies)
        return LinearParametrization(limits, demand, family, rest_conditions(family), periodic=periodic)
