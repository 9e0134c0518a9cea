# SPDX-License-Identifier: Apache-2.0
"""Requirements on joints: motion limits, effort limits and an excluded frequency band."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.information import compute_regressor_gradient
from robot_dyn_id.excitation.design.requirement import (
    Margin,
    Requirement,
    combine_sides,
    find_nearest_margin,
    zero_gradient,
)
from robot_dyn_id.excitation.design.torques import TorqueModel
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Sample


class JointLimits(Requirement):
    """Limits of position, velocity, acceleration and jerk of every joint; both sides of a limit form one row."""

    def __init__(self, limits: MotionLimits) -> None:
        """Select the finite limits of `limits`."""
        self._limits = limits
        _, reach = limits.center_and_reach()
        lower_and_upper = [(limits.lower, limits.upper, reach, "position", "")]
        for bound, word, per in (
            (limits.velocity, "velocity", "/s"),
            (limits.acceleration, "acceleration", "/s^2"),
            (limits.jerk, "jerk", "/s^3"),
        ):
            lower_and_upper.append((-bound, bound, bound, word, per))
        self._rows = [
            (order, j, float(lower[j]), float(upper[j]), float(scale[j]), word, limits.unit(j) + per)
            for j in range(len(limits.joint_names))
            for order, (lower, upper, scale, word, per) in enumerate(lower_and_upper)
            if np.isfinite(lower[j]) or np.isfinite(upper[j])
        ]

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        return np.array(
            [
                np.concatenate([motion[order][j] - upper, lower - motion[order][j]]) / scale
                for order, j, lower, upper, scale, *_ in self._rows
            ]
        )

    def gradients(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        for weight, (order, j, _, _, scale, *_) in zip(weights, self._rows, strict=True):
            slope = zero_gradient(motion)
            slope[order][j] = combine_sides(weight) / scale
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        return tuple(
            find_nearest_margin(f"{word} of {self._limits.joint_names[j]}", unit, t, motion[order][j], lower, upper)
            for order, j, lower, upper, _, word, unit in self._rows
        )


class EffortLimits(Requirement):
    """Limits of the torque or force of every joint."""

    def __init__(self, torques: TorqueModel, effort: Array) -> None:
        """Select the joints with an effort limit.

        Args:
            torques: model of the torques needed by a motion.
            effort: effort limits [N m or N], shape (n,); infinite for joints without a limit.

        Raises:
            UsageError: all joints are unlimited.
        """
        self._torques = torques
        self._effort = effort
        self._joints = np.flatnonzero(np.isfinite(effort))
        if not len(self._joints):
            raise UsageError("no joint has an effort limit: leave the torque out of the constraints")

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        share = self._torques.torque(motion)[self._joints] / self._effort[self._joints][:, None]
        return np.concatenate([share, -share], axis=1) - 1.0

    def gradients(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        regressor, parameters = self._torques.regressor, self._torques.parameters
        used = np.flatnonzero(parameters)
        for weight, joint in zip(weights, self._joints, strict=True):
            slots = np.full((len(parameters), len(self._effort)), -1)
            slots[used, joint] = np.arange(len(used))
            cotangent = np.outer(parameters[used], combine_sides(weight) / self._effort[joint])
            by_motion = compute_regressor_gradient(regressor, Motion(*motion[:3]), slots, cotangent)
            yield (*by_motion, np.zeros_like(motion[3]))

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        torque = self._torques.torque(motion)
        model = self._torques.regressor.model
        limit = self._effort
        return tuple(
            find_nearest_margin(
                f"effort of {model.joint_names[j]}", model.effort_units[j], t, torque[j], -limit[j], limit[j]
            )
            for j in self._joints
        )


class ExcludedBand(Requirement):
    """Excluded frequency band, such as a resonance, in which joints must not be accelerated."""

    MAX_RMS_RATIO = 0.02
    """Largest root mean square acceleration in the band relative to the acceleration limit [-]."""

    def __init__(self, limits: MotionLimits, duration: float, low: float, high: float) -> None:
        """Select the harmonics of the motion within the band.

        Args:
            limits: motion limits of the joints, with finite acceleration limits.
            duration: duration of the motion [s].
            low: lower end of the band [Hz].
            high: upper end of the band [Hz].

        Raises:
            UsageError: invalid band, no harmonic of the motion within it, or an infinite acceleration limit.
        """
        orders = np.arange(np.ceil(low * duration - 1e-9), np.floor(high * duration + 1e-9) + 1)
        if not 0.0 < low <= high or not len(orders):
            raise UsageError(
                f"quiet_band: {low:g} to {high:g} Hz contains no multiple of 1 / {duration:g} s: remove it or widen it"
            )
        if not np.all(np.isfinite(limits.acceleration)):
            raise UsageError("quiet_band needs acceleration limits of all joints")
        self._limits = limits
        self._orders = orders
        self._band = (low, high)

    def _amplitudes(self, motion: Sample) -> tuple[Array, Array]:
        """Fourier coefficients of the accelerations, shape (n, frequencies), and the matrix of complex exponentials."""
        count = motion[2].shape[1]
        waves = np.exp(-2j * np.pi * np.outer(np.arange(count), self._orders) / count) / count
        return motion[2] @ waves, waves

    def _rms(self, motion: Sample) -> tuple[Array, Array, Array]:
        coefficients, waves = self._amplitudes(motion)
        return np.sqrt(2.0 * np.sum(np.abs(coefficients) ** 2, axis=1)), coefficients, waves

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        return np.asarray(self._rms(motion)[0] / (self.MAX_RMS_RATIO * self._limits.acceleration) - 1.0)[:, None]

    def gradients(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        rms, coefficients, waves = self._rms(motion)
        for j, limit in enumerate(self.MAX_RMS_RATIO * self._limits.acceleration):
            slope = zero_gradient(motion)
            if rms[j] > 0.0:
                by_acceleration = 2.0 * np.real(waves @ coefficients[j].conj()) / rms[j]
                slope[2][j] = weights[j, 0] / limit * by_acceleration
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`; the times are equally spaced over the whole motion."""
        open_end: Sample = tuple(values[:, :-1] for values in motion)  # type: ignore[assignment]
        rms = self._rms(open_end)[0]
        allowed = self.MAX_RMS_RATIO * self._limits.acceleration
        worst = int(np.argmax(rms / allowed))
        name = f"acceleration of {self._limits.joint_names[worst]} from {self._band[0]:g} to {self._band[1]:g} Hz"
        reached = float(rms[worst])
        limit = float(allowed[worst])
        return (Margin(name, reached, limit, limit - reached, f"{self._limits.unit(worst)}/s^2", 0.0),)
