# SPDX-License-Identifier: Apache-2.0
"""Ranges of a motion, and residuals of a model over the speed.

Friction is the largest part of what models leave, and depends on the speed: residuals are largest where a joint
reverses, or where it is fast. Their RMS in ranges of the speed says more about a sample than that of all samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.parameters.rules import MOST_PER_ENTRY, refused, rule

if TYPE_CHECKING:
    from typing_extensions import Self

SPEED_RANGES, FEWEST_OF_RANGE = 12, 30
"""Number of ranges of the speed, and least number of samples of one."""

LEAST_TURN_RAD, LEAST_TRAVEL_M = 0.02, 0.005
"""Range of a joint's positions below which it does not count as moving."""


def least_travel(slides: Mask | bool) -> Array:
    """Range of positions below which a joint does not count as moving [rad or m], of the shape of `slides`.

    Args:
        slides: whether a joint is prismatic.
    """
    return np.asarray(np.where(slides, LEAST_TRAVEL_M, LEAST_TURN_RAD))


@dataclass(frozen=True)
class Ranges:
    """Ranges of a motion of n joints; all arrays have shape (n,).

    Attributes:
        q_min: minimum position [rad or m].
        q_max: maximum position [rad or m].
        dq_max: maximum speed [rad/s or m/s].
        ddq_max: maximum magnitude of the acceleration [rad/s^2 or m/s^2].
    """

    q_min: Array = field(metadata=rule("joints", finite=True))
    q_max: Array = field(metadata=rule("joints", finite=True))
    dq_max: Array = field(metadata=rule("joints", finite=True, least=0.0))
    ddq_max: Array = field(metadata=rule("joints", finite=True, least=0.0))

    def union(self, other: Ranges) -> Ranges:
        """Ranges of both motions."""
        return Ranges(
            np.minimum(self.q_min, other.q_min),
            np.maximum(self.q_max, other.q_max),
            np.maximum(self.dq_max, other.dq_max),
            np.maximum(self.ddq_max, other.ddq_max),
        )


@dataclass(frozen=True)
class ResidualProfile:
    """RMS of the residuals of n joints in k ranges of the speed.

    Attributes:
        speeds: lower ends of the ranges, ascending, from 0 on [rad/s or m/s], shape (n, k); empty: not known.
        deviations: RMS of the residuals in each of them [N m or N], shape (n, k).
    """

    speeds: Array = field(repr=False, metadata=rule("joints", "ranges", optional=True, finite=True))
    deviations: Array = field(repr=False, metadata=rule("joints", "ranges", optional=True, finite=True, least=0.0))

    @classmethod
    def from_samples(cls, residual: Array, velocity: Array, valid: Mask) -> Self | None:
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

    @property
    def is_known(self) -> bool:
        """Whether there are residuals."""
        return bool(self.speeds.size)

    def along(self, joint: int, velocity: Array) -> Array:
        """RMS residual of a joint at each of M velocities [N m or N], shape (M,)."""
        place = np.searchsorted(self.speeds[joint, 1:], np.abs(velocity), side="right")
        return np.asarray(self.deviations[joint, place])

    def check(self) -> None:
        """Refuse ranges of the speed that no identification writes."""
        if self.speeds.shape != self.deviations.shape:
            raise refused(f"residuals.deviations has shape {self.deviations.shape}, expected {self.speeds.shape}")
        if self.speeds.ndim == 2 and self.speeds.shape[1] > MOST_PER_ENTRY:
            raise refused(f"residuals.speeds has {self.speeds.shape[1]} ranges, at most {MOST_PER_ENTRY} are read")
        if self.is_known and (self.speeds[:, 0].any() or np.any(np.diff(self.speeds) < 0.0)):
            raise refused("residuals.speeds does not ascend from 0")
