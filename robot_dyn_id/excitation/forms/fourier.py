# SPDX-License-Identifier: Apache-2.0
"""Finite Fourier series (Swevers et al. 1997): periodic, analytic in all derivatives, at rest at both ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.linear import LinearMotion, LinearParametrization, rest_conditions
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.model.robot import RobotModel

ORDERS = np.arange(4)[:, None, None]
"""Orders of the derivatives."""

QUARTERS = np.pi / 2 * ORDERS
"""Phases of the derivatives [rad]."""


def waves(frequencies: Array, t: Array) -> Array:
    """Sines, then cosines, of K frequencies [Hz] and their three derivatives at times `t` [s], shape (4, 2 K, N)."""
    w = 2.0 * np.pi * frequencies
    # each derivative shifts the phase by a quarter period
    phase = np.outer(w, t) + QUARTERS
    size = w[:, None] ** ORDERS
    return np.concatenate([size * np.sin(phase), size * np.cos(phase)], axis=1)


@dataclass(frozen=True)
class Harmonics(LinearMotion):
    """Base class of motions composed of sines and cosines of all harmonics of a frequency.

    Attributes:
        coefficients: a_j1 ... a_jH, b_j1 ... b_jH, shape (n, 2 H) [rad or m].
        period: period of the first harmonic [s].
    """

    period: float

    @property
    def harmonics(self) -> int:
        """Number of harmonics H."""
        return len(self.coefficients.T) // 2

    @property
    def functions(self) -> int:
        """Number of sines and cosines of all harmonics."""
        return 2 * self.harmonics

    def series(self, t: Array) -> Array:
        """See `waves`."""
        return waves(np.arange(1, self.harmonics + 1) / self.period, t)

    def draw(self, rng: np.random.Generator, joints: int) -> Array:
        """Draw random coefficients that decrease with the order of the harmonic, shape (joints, 2 H)."""
        drawn = rng.normal(size=(2, joints, self.harmonics)) / np.arange(1, self.harmonics + 1)
        return np.concatenate(list(drawn), axis=1)


@dataclass(frozen=True)
class FourierSeries(Harmonics):
    """q_j(t) = center_j + sum_k a_jk sin(k w t) + b_jk cos(k w t), w = 2 pi / period.

    The series can be evaluated at any time.

    Attributes:
        coefficients: a_j1 ... a_jH, b_j1 ... b_jH, shape (n, 2 H) [rad or m].
        period: period of the first harmonic [s].
    """

    name: ClassVar[str] = "fourier"
    TIMES: ClassVar[tuple[str, ...]] = ("period",)
    FORMULA: ClassVar[str] = (
        "center_j + sum_k a_jk sin(k w t) + b_jk cos(k w t), w = 2 pi / period; a row of the coefficients is "
        "a_j1 ... a_jH b_j1 ... b_jH"
    )

    @property
    def duration(self) -> float:
        """One period [s]."""
        return self.period

    @property
    def fastest(self) -> float:
        """Period of the highest harmonic [s]."""
        return self.period / self.harmonics

    def basis(self, t: Array) -> Array:
        """See `LinearMotion`."""
        return self.series(t)

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """Make the parametrization of series with zero velocity and acceleration at both ends of the period.

        Raises:
            UsageError: fewer than 3 harmonics, which leave too few free coefficients.
            MotionError: the center configuration is outside the limits.
        """
        if demand.harmonics < 3:
            raise UsageError(f"a Fourier series needs at least 3 harmonics, not {demand.harmonics}")
        family = cls(np.zeros(1), np.zeros((1, 2 * demand.harmonics)), demand.period)
        return LinearParametrization(limits, demand, family, rest_conditions(family), periodic=True)


def draw_random_fourier(
    model: RobotModel, seed: int, period: float = 10.0, harmonics: int = 5, share: float = 0.9
) -> FourierSeries:
    """Draw a random Fourier series within a robot's limits of position and velocity.

    Args:
        model: robot model.
        seed: seed of the random coefficients.
        period: duration of one period [s].
        harmonics: number of harmonics, at least 3.
        share: fraction of the limits that is used.

    Raises:
        UsageError: period, harmonics or share are out of range.
        ModelError: the limits do not allow a joint to move.
    """
    limits = MotionLimits.from_model(model, (math.inf,))
    family = FourierSeries.make(limits, Demand(period=period, harmonics=harmonics, share=share))
    motion = family.trajectory(family.random(np.random.default_rng(seed), share))
    assert isinstance(motion, FourierSeries)
    return motion
