# SPDX-License-Identifier: Apache-2.0
"""Requirements on joints: limits of position and its derivatives, of efforts, and frequencies to be left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.information import regressor_gradient
from robot_dyn_id.excitation.design.requirement import Margin, Requirement, both_sides, nearer, no_slope
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Sample


class JointLimits(Requirement):
    """Position, velocity, acceleration and jerk of every joint; both sides of a limit are one row."""

    def __init__(self, limits: MotionLimits) -> None:
        """Take what is limited at all."""
        self._limits, (_, reach) = limits, limits.center_and_reach()
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

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        for weight, (order, j, _, _, scale, *_) in zip(weights, self._rows, strict=True):
            slope = no_slope(motion)
            slope[order][j] = both_sides(weight) / scale
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        return tuple(
            nearer(f"{word} of {self._limits.joint_names[j]}", unit, t, motion[order][j], lower, upper)
            for order, j, lower, upper, _, word, unit in self._rows
        )


@dataclass(frozen=True)
class Torques:
    """What a motion needs, by a model: of the URDF, or identified.

    Attributes:
        regressor: robot and terms.
        parameters: of all columns, shape (c,).
    """

    regressor: Regressor
    parameters: Array

    def of(self, motion: Sample) -> Array:
        """Torque or force of every joint [N m or N], shape (n, N)."""
        return self.regressor.torque(Motion(*motion[:3]), self.parameters)


class EffortLimits(Requirement):
    """The torque or force of every joint."""

    def __init__(self, torques: Torques, effort: Array) -> None:
        """Take the model.

        Args:
            torques: of a motion.
            effort: limits [N m or N], shape (n,); infinite where there is none.

        Raises:
            UsageError: no joint has a limit.
        """
        self._torques, self._effort = torques, effort
        self._joints = np.flatnonzero(np.isfinite(effort))
        if not len(self._joints):
            raise UsageError("no joint has an effort limit: leave the torque out of the constraints")

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        share = self._torques.of(motion)[self._joints] / self._effort[self._joints][:, None]
        return np.concatenate([share, -share], axis=1) - 1.0

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        regressor, parameters = self._torques.regressor, self._torques.parameters
        used = np.flatnonzero(parameters)
        for weight, joint in zip(weights, self._joints, strict=True):
            slots = np.full((len(parameters), len(self._effort)), -1)
            slots[used, joint] = np.arange(len(used))
            cotangent = np.outer(parameters[used], both_sides(weight) / self._effort[joint])
            by_motion = regressor_gradient(regressor, Motion(*motion[:3]), slots, cotangent)
            yield (*by_motion, np.zeros_like(motion[3]))

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        torque, model, limit = self._torques.of(motion), self._torques.regressor.model, self._effort
        return tuple(
            nearer(f"effort of {model.joint_names[j]}", model.effort_units[j], t, torque[j], -limit[j], limit[j])
            for j in self._joints
        )


class ExcludedBand(Requirement):
    """A band of frequencies, a resonance say, in which no joint is accelerated."""

    SHARE = 0.02
    """What may be left in the band: root mean square acceleration as a share of the limit of acceleration."""

    def __init__(self, limits: MotionLimits, duration: float, low: float, high: float) -> None:
        """Choose the frequencies.

        Args:
            limits: of the joints; their accelerations must be limited.
            duration: of the motion that is looked at [s].
            low: beginning of the band [Hz].
            high: its end [Hz].

        Raises:
            UsageError: no band, one that holds no frequency of a motion of this duration, or no acceleration limit.
        """
        orders = np.arange(np.ceil(low * duration - 1e-9), np.floor(high * duration + 1e-9) + 1)
        if not 0.0 < low <= high or not len(orders):
            raise UsageError(
                f"band {low:g} to {high:g} Hz holds no multiple of 1 / {duration:g} s: there is nothing to be avoided"
            )
        if not np.all(np.isfinite(limits.acceleration)):
            raise UsageError("a band of frequencies is kept quiet compared with acceleration limits: give them")
        self._limits, self._orders, self._band = limits, orders, (low, high)

    def _amplitudes(self, motion: Sample) -> tuple[Array, Array]:
        """Fourier coefficients of the accelerations, shape (n, frequencies), and what they are made with."""
        count = motion[2].shape[1]
        waves = np.exp(-2j * np.pi * np.outer(np.arange(count), self._orders) / count) / count
        return motion[2] @ waves, waves

    def _rms(self, motion: Sample) -> tuple[Array, Array, Array]:
        coefficients, waves = self._amplitudes(motion)
        return np.sqrt(2.0 * np.sum(np.abs(coefficients) ** 2, axis=1)), coefficients, waves

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        return np.asarray(self._rms(motion)[0] / (self.SHARE * self._limits.acceleration) - 1.0)[:, None]

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        rms, coefficients, waves = self._rms(motion)
        for j, limit in enumerate(self.SHARE * self._limits.acceleration):
            slope = no_slope(motion)
            if rms[j] > 0.0:
                by_acceleration = 2.0 * np.real(waves @ coefficients[j].conj()) / rms[j]
                slope[2][j] = weights[j, 0] / limit * by_acceleration
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`; the times are equally spaced over the whole motion."""
        open_end: Sample = tuple(values[:, :-1] for values in motion)  # type: ignore[assignment]
        rms, allowed = self._rms(open_end)[0], self.SHARE * self._limits.acceleration
        worst = int(np.argmax(rms / allowed))
        name = f"acceleration of {self._limits.joint_names[worst]} from {self._band[0]:g} to {self._band[1]:g} Hz"
        reached, limit = float(rms[worst]), float(allowed[worst])
        return (Margin(name, reached, limit, limit - reached, f"{self._limits.unit(worst)}/s^2", 0.0),)
