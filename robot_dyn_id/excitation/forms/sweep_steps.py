# SPDX-License-Identifier: Apache-2.0
"""Sweeps of constant speed, then steps: motions of all joints at once that show actuators under position commands."""

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

SWEEPS = 4
"""Functions of the sweeps: sine and cosine of both."""

STEPS = 2
"""Steps there and back."""

STEP_SHARE = 0.25
"""Share of the time in which the joints step."""

FREQUENCIES_HZ = (0.1, 3.0)
"""Band of the sweeps where none is given: from friction alone to the bandwidth of position loops, and so high in short
motions that the steps fit into their part."""


@dataclass(frozen=True)
class SweepSteps(SweptMotion):
    """q_j(t) = center_j + v(t) (A(p) (a_j sin p + b_j cos p) + A(r) (c_j sin r + d_j cos r)) + sum_k e_jk s_k(t).

    p sweeps from the first to the last frequency in three quarters of the time, r from the last to the first. Their
    amplitudes A are inverse to their frequencies, which keeps speeds: fast waves do not make slow ones small. The
    window v(t) rises and falls over the time `blend`. In the last quarter each s_k steps from 0 to 1 and back, by
    polynomials of degree 7 that take half a period of the higher frequency.

    Attributes:
        coefficients: a_j b_j c_j d_j e_j1 ... e_jK, shape (n, 4 + K) [rad or m].
    """

    name: ClassVar[str] = "sweep_steps"
    FORMULA: ClassVar[str] = (
        "center_j + v(t) (A(t) (a_j sin p(t) + b_j cos p(t)) + A(m - t) (c_j sin p(m - t) + d_j cos p(m - t))) "
        "+ sum_k e_jk (s((t - m - k w) / u) - s((t - m - (k + 1/2) w) / u)), p(t) = 2 pi (first t + (last - first) "
        "t^2 / (2 m)), A(t) = first / (first + (last - first) t / m), m = 0.75 length, w = (length - m) / K, "
        "u = 1 / (2 max(first, last)), k from 0, s of degree 7 from 0 to 1, v a quintic in and out over the time blend "
        "within m; a row of the coefficients is a_j b_j c_j d_j e_j0 e_j1 ..."
    )

    @property
    def functions(self) -> int:
        """Number of functions: those of the sweeps, and at least one step."""
        return max(SWEEPS + 1, int(self.coefficients.shape[1]))

    @property
    def middle(self) -> float:
        """End of the sweeps [s]."""
        return (1.0 - STEP_SHARE) * self.length

    @property
    def rise(self) -> float:
        """Duration of a step [s]."""
        return 0.5 / max(self.first, self.last)

    @property
    def edges(self) -> Array:
        """Times at which the steps begin and at which they return [s], shape (K, 2)."""
        width = (self.length - self.middle) / (self.functions - SWEEPS)
        begin = self.middle + width * np.arange(self.functions - SWEEPS)
        return np.stack([begin, begin + 0.5 * width], axis=1)

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        factors = window(t, self.middle, self.blend)
        sweeps = [multiply(factors, function) for back in (False, True) for function in self._sweep(t, back)]  # type: ignore[arg-type]
        steps = [self._step(t, begin) - self._step(t, end) for begin, end in self.edges]
        return np.array([*sweeps, *steps]).transpose(1, 0, 2)

    def _sweep(self, t: Array, back: bool) -> list[Array]:
        """Sine and cosine of one sweep with three derivatives, shape (4, N) each; beyond its end not used."""
        t = np.clip(t, 0.0, self.middle)
        own, direction = (self.middle - t, -1.0) if back else (t, 1.0)
        rate, turn = (self.last - self.first) / self.middle, 2.0 * np.pi
        frequency, slope = self.first + rate * own, direction * rate
        phase = turn * (self.first * own + rate * own**2 / 2.0)
        clock = (phase, direction * turn * frequency, np.full_like(t, turn * rate), np.zeros_like(t))
        ratio = self.first / frequency
        amplitude = (
            ratio,
            -ratio * slope / frequency,
            2.0 * ratio * (slope / frequency) ** 2,
            -6.0 * ratio * (slope / frequency) ** 3,
        )
        functions = []
        for shift in (0.0, 0.5 * np.pi):
            sine, cosine = np.sin(phase + shift), np.cos(phase + shift)
            functions.append(np.array(multiply(amplitude, compose((sine, cosine, -sine, -cosine), clock))))
        return functions

    def _step(self, t: Array, begin: float) -> Array:
        """A step with three derivatives, shape (4, N); the jerk has no steps."""
        x = np.clip((t - begin) / self.rise, 0.0, 1.0)
        rest = 1.0 - x
        values = (
            x**4 * (35.0 - 84.0 * x + 70.0 * x**2 - 20.0 * x**3),
            140.0 * (x * rest) ** 3,
            420.0 * (x * rest) ** 2 * (1.0 - 2.0 * x),
            840.0 * x * rest * (1.0 - 5.0 * x * rest),
        )
        return np.array([value / self.rise**d for d, value in enumerate(values)])

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of sweeps between two frequencies and of steps.

        Raises:
            UsageError: not exactly two frequencies, or steps that are longer than their part of the motion.
            MotionError: the center configuration is outside the limits.
        """
        lowest, highest = FREQUENCIES_HZ
        first, last = read_frequencies(demand, (lowest, max(highest, STEPS / STEP_SHARE / demand.period)))
        blend = min(demand.blend, 0.5 * (1.0 - STEP_SHARE) * demand.period)
        family = cls(np.zeros(1), np.zeros((1, SWEEPS + STEPS)), demand.period, first, last, blend)
        width = family.edges[0, 1] - family.edges[0, 0]
        if family.rise > width * (1.0 + 1e-9):
            raise UsageError(
                f"{STEPS} steps of {family.rise:.3g} s, half a period of the higher frequency, do not fit into "
                f"{family.length - family.middle:.3g} s, a quarter of the period: choose a longer one"
            )
        corners = (0.0, blend, family.middle - blend, family.middle)
        none = np.zeros((0, SWEEPS + STEPS))
        return LinearParametrization(limits, demand, family, none, periodic=True, jerk_steps=corners)
