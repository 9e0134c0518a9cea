"""Finite Fourier series (Swevers et al. 1997): periodic, analytic in all derivatives, at rest at both ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import ModelError, UsageError
from robot_dyn_id.robot import RobotModel


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
    """A random series, every joint scaled to its first limit of position or velocity, at rest at t = 0 and the period.

    Args:
        model: its limits; a joint without position limits moves within a half turn or half a metre.
        seed: of the random coefficients.
        period: [s].
        harmonics: at least 3, so that something is left to choose.
        share: of the limits that is used.

    Raises:
        UsageError: period, harmonics or share that leave no motion.
        ModelError: limits that leave a joint no motion.
    """
    if not (period > 0 and harmonics >= 3 and 0 < share <= 1):
        raise UsageError("a Fourier motion needs a positive period, at least 3 harmonics and a share in (0, 1]")
    rng = np.random.default_rng(seed)
    limits, n = model.limits, len(model.joint_names)
    order = np.arange(1, harmonics + 1)
    sine, cosine = rng.normal(size=(2, n, harmonics)) / order
    # rest at t = 0: sum k sine = 0 (velocity) and sum k^2 cosine = 0 (acceleration), by projection
    sine -= np.outer(sine @ order, order) / (order @ order)
    cosine -= np.outer(cosine @ order**2, order**2) / (order**2 @ order**2)
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    free = np.array([0.25 if unit == "N" else np.pi / 2 for unit in model.effort_units])
    lower, upper = np.where(bounded, limits.lower, -free), np.where(bounded, limits.upper, free)
    middle, reach = (lower + upper) / 2, (upper - lower) / 2
    for name, distance, speed in zip(model.joint_names, reach, limits.velocity, strict=True):
        if not (distance > 0.0 and speed > 0.0):
            raise ModelError(f"joint {name}: its limits of position or velocity in the URDF leave it no motion")
    shape = FourierSeries(period, np.zeros(n), sine, cosine)
    q, dq, _, _ = shape.evaluate(np.linspace(0, period, 40 * harmonics + 1))
    scale = share * np.minimum(reach / np.abs(q).max(axis=1), limits.velocity / np.abs(dq).max(axis=1))
    return FourierSeries(period, middle, sine * scale[:, None], cosine * scale[:, None])
