# SPDX-License-Identifier: Apache-2.0
"""Residuals of a model over the speed of each joint.

Friction is the largest part of what models leave, and depends on the speed: residuals are largest where a joint
reverses, or where it is fast. Their RMS in ranges of the speed says more about a sample than that of all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.identification.validation.metrics import Fold, held_out_windows
from robot_dyn_id.identification.validation.thinning import Thinning
from robot_dyn_id.parameters import ParameterSet

SPEED_RANGES, FEWEST_OF_RANGE = 12, 30
"""Number of ranges of the speed, and least number of samples of one."""


@dataclass(frozen=True)
class ResidualProfile:
    """RMS of the residuals of n joints in k ranges of the speed.

    Attributes:
        speeds: lower ends of the ranges, ascending, from 0 on [rad/s or m/s], shape (n, k).
        deviations: RMS of the residuals in each of them [N m or N], shape (n, k).
    """

    speeds: Array
    deviations: Array

    @classmethod
    def from_samples(cls, residual: Array, velocity: Array, valid: Mask) -> ResidualProfile | None:
        """Profile of N samples; None if a joint has none that are valid. Ranges hold equal numbers of samples.

        Args:
            residual: measured minus predicted torque [N m or N], shape (n, N).
            velocity: velocities [rad/s or m/s], shape (n, N).
            valid: samples that count, shape (n, N).
        """
        fewest = int(valid.sum(axis=1).min())
        if not fewest:
            return None
        ranges = max(1, min(SPEED_RANGES, fewest // FEWEST_OF_RANGE))
        speeds, deviations = np.zeros((len(residual), ranges)), np.empty((len(residual), ranges))
        for joint, used in enumerate(valid):
            speed = np.abs(velocity[joint, used])
            parts = np.array_split(np.sort(speed), ranges)
            speeds[joint, 1:] = [part[0] for part in parts[1:]]
            # equal speeds, such as those of a joint at rest, belong to one range: others are empty, as the next one
            place = np.searchsorted(speeds[joint, 1:], speed, side="right")
            filled, of_filled = np.unique(place, return_inverse=True)
            squares = np.bincount(of_filled, residual[joint, used] ** 2) / np.bincount(of_filled)
            deviations[joint] = np.sqrt(squares)[np.searchsorted(filled, np.arange(ranges))]
        return cls(speeds, deviations)

    @classmethod
    def from_folds(cls, folds: Sequence[Fold], thinning: Thinning) -> ResidualProfile | None:
        """Profile of the residuals of some data, each part predicted by the model of its fold; None as above.

        Args:
            folds: parts of the data with their models.
            thinning: the samples that are used.
        """
        parts: list[tuple[Array, Array, Mask]] = []
        for number, fold, window, tau in held_out_windows(folds):
            used = np.flatnonzero(window.used)
            rows = used[thinning.pick(number, window, len(used))]
            if len(rows):
                motion, plan = window.motion.take(rows), fold.trials.plan
                measured = plan.low_pass.apply(tau, plan.rate)[:, rows]
                predicted = fold.regressor.torque(motion, fold.values, fold.columns)
                parts.append((measured - predicted, motion.dq, window.valid[:, rows]))
        if not parts:
            return None
        residual, velocity, valid = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
        return cls.from_samples(residual, velocity, valid)

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> ResidualProfile | None:
        """Profile that a parameter set holds; None without one."""
        if not parameters.residual_speeds.size:
            return None
        return cls(parameters.residual_speeds, parameters.residual_deviations)

    def along(self, joint: int, velocity: Array) -> Array:
        """RMS residual of a joint at each of M velocities [N m or N], shape (M,)."""
        place = np.searchsorted(self.speeds[joint, 1:], np.abs(velocity), side="right")
        return np.asarray(self.deviations[joint, place])
