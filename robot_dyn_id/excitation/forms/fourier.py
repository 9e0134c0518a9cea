# SPDX-License-Identifier: Apache-2.0
"""Finite Fourier series (Swevers et al. 1997): periodic, analytic in all derivatives, at rest at both ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.linear import Combination, LinearParametrization, at_ends
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.model.robot import RobotModel


def waves(frequencies: Array, t: Array) -> Array:
    """Sines, then cosines, of K frequencies [Hz] and their derivatives at times `t` [s], shape (4, 2 K, N)."""
    w = 2.0 * np.pi * frequencies
    # the d-th derivative turns every wave by a quarter d times
    phase = np.outer(w, t) + np.pi / 2 * np.arange(4)[:, None, None]
    size = w[:, None] ** np.arange(4)[:, None, None]
    return np.concatenate([size * np.sin(phase), size * np.cos(phase)], axis=1)


@dataclass(frozen=True)
class Harmonics(Combination):
    """What motions of sines and cosines of all multiples of a frequency share.

    Attributes:
        coefficients: a_j1 ... a_jH, b_j1 ... b_jH, shape (n, 2 H) [rad or m].
        period: of the first harmonic [s].
    """

    period: float

    @property
    def harmonics(self) -> int:
        """H."""
        return len(self.coefficients.T) // 2

    @property
    def functions(self) -> int:
        """Sines and cosines of all harmonics."""
        return 2 * self.harmonics

    def series(self, t: Array) -> Array:
        """See `waves`."""
        return waves(np.arange(1, self.harmonics + 1) / self.period, t)

    def draw(self, rng: np.random.Generator, joints: int) -> Array:
        """Random coefficients that fall with their order, shape (joints, 2 H)."""
        drawn = rng.normal(size=(2, joints, self.harmonics)) / np.arange(1, self.harmonics + 1)
        return np.concatenate(list(drawn), axis=1)


@dataclass(frozen=True)
class FourierSeries(Harmonics):
    """q_j(t) = center_j + sum_k a_jk sin(k w t) + b_jk cos(k w t), w = 2 pi / period.

    It can be evaluated at any time.

    Attributes:
        coefficients: a_j1 ... a_jH, b_j1 ... b_jH, shape (n, 2 H) [rad or m].
        period: [s].
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
        """See `Combination`."""
        return self.series(t)

    @classmethod
    def make(cls, limits: MotionLimits, demand: Demand) -> LinearParametrization:
        """The series of some harmonics that are at rest without acceleration at t = 0 and the period.

        Raises:
            UsageError: fewer than 3 harmonics: too little is left to choose.
            MotionError: a posture outside the limits.
        """
        if demand.harmonics < 3:
            raise UsageError(f"a Fourier series needs at least 3 harmonics, not {demand.harmonics}")
        family = cls(np.zeros(1), np.zeros((1, 2 * demand.harmonics)), demand.period)
        return LinearParametrization(limits, demand, family, at_ends(family), True)


def random_fourier(
    model: RobotModel, seed: int, period: float = 10.0, harmonics: int = 5, share: float = 0.9
) -> FourierSeries:
    """A random series within a robot's limits of position and velocity, without limits of acceleration.

    Raises:
        UsageError: period, harmonics or share that leave no motion.
        ModelError: limits that leave a joint no motion.
    """
    limits = MotionLimits.from_model(model, (math.inf,))
    family = FourierSeries.make(limits, Demand(period=period, harmonics=harmonics, share=share))
    motion = family.trajectory(family.random(np.random.default_rng(seed), share))
    assert isinstance(motion, FourierSeries)
    return motion
