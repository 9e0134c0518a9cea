"""Finite Fourier series (Swevers et al. 1997): periodic, analytic in all derivatives, at rest at both ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.robot import RobotModel

OVERSAMPLING = 200
"""Samples per period of the highest harmonic where peaks are looked for."""


@dataclass(frozen=True)
class FourierSeries:
    """q_j(t) = offset_j + sum_k sine_jk sin(k w t) + cosine_jk cos(k w t), w = 2 pi / period.

    Attributes:
        period: [s].
        offset: shape (n,) [rad or m].
        sine, cosine: shape (n, harmonics) [rad or m].
    """

    period: float
    offset: Array
    sine: Array
    cosine: Array

    @property
    def duration(self) -> float:
        """One period [s]."""
        return self.period

    def evaluate(self, t: Array) -> tuple[Array, Array, Array, Array]:
        """Position, velocity, acceleration and jerk at times `t` [s], shape (n, N) each."""
        w = 2 * np.pi / self.period * np.arange(1, self.sine.shape[1] + 1)
        phase = np.outer(w, t)
        # the d-th derivative turns every harmonic by a quarter d times
        derivatives = [
            (self.sine * w**d) @ np.sin(phase + d * np.pi / 2) + (self.cosine * w**d) @ np.cos(phase + d * np.pi / 2)
            for d in range(4)
        ]
        derivatives[0] += self.offset[:, None]
        return derivatives[0], derivatives[1], derivatives[2], derivatives[3]


def random_fourier(
    model: RobotModel, seed: int, period: float = 10.0, harmonics: int = 5, share: float = 0.9
) -> FourierSeries:
    """A random series within a robot's limits of position and velocity: `fourier_within` without acceleration limits.

    Raises:
        UsageError: period, harmonics or share that leave no motion.
        ModelError: limits that leave a joint no motion.
    """
    return fourier_within(MotionLimits.of(model, (math.inf,)), seed, period, harmonics, share)


def fourier_within(
    limits: MotionLimits,
    seed: int,
    period: float = 10.0,
    harmonics: int = 5,
    share: float = 0.9,
    posture: Sequence[float] = (),
) -> FourierSeries:
    """A random series, every joint scaled to its first limit, at rest without acceleration at t = 0 and the period.

    Args:
        limits: of the joints.
        seed: of the random coefficients.
        period: [s].
        harmonics: at least 3, so that something is left to choose.
        share: of the limits that is used.
        posture: see `MotionLimits.around`.

    Raises:
        UsageError: period, harmonics, share or posture that leave no motion.
        MotionError: a posture outside the limits.
    """
    if not (period > 0 and harmonics >= 3 and 0 < share <= 1):
        raise UsageError("a Fourier motion needs a positive period, at least 3 harmonics and a share in (0, 1]")
    rng = np.random.default_rng(seed)
    centre, reach = limits.around(posture)
    order = np.arange(1, harmonics + 1)
    sine, cosine = rng.normal(size=(2, len(centre), harmonics)) / order
    # rest at t = 0: sum k sine = 0 (velocity) and sum k^2 cosine = 0 (acceleration), by projection
    sine -= np.outer(sine @ order, order) / (order @ order)
    cosine -= np.outer(cosine @ order**2, order**2) / (order**2 @ order**2)
    shape = FourierSeries(period, np.zeros(len(centre)), sine, cosine)
    values = shape.evaluate(np.arange(OVERSAMPLING * harmonics) * period / (OVERSAMPLING * harmonics))
    # between the samples a trigonometric polynomial of degree k exceeds them by at most this (Ehlich and Zeller 1964)
    excess = 1.0 / np.cos(np.pi / OVERSAMPLING)
    q, dq, ddq = (excess * np.abs(value).max(axis=1) for value in values[:3])
    scale = share * limits.largest_amplitude(reach, (q, dq, ddq))
    return FourierSeries(period, centre, sine * scale[:, None], cosine * scale[:, None])
