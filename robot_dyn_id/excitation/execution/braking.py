# SPDX-License-Identifier: Apache-2.0
"""Braking of a robot to rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.trajectory import Sample


@dataclass(frozen=True)
class Braking:
    """Braking of every joint with its largest deceleration, which takes the shortest distance and time.

    The acceleration has steps at the beginning and where a joint comes to rest, so that jerk limits do not apply.

    Attributes:
        position: initial positions [rad or m], shape (n,).
        velocity: initial velocities [rad/s or m/s], shape (n,).
        deceleration: decelerations, positive [rad/s^2 or m/s^2], shape (n,).
    """

    position: Array
    velocity: Array
    deceleration: Array

    @property
    def times(self) -> Array:
        """Time at which each joint comes to rest [s], shape (n,)."""
        return np.asarray(np.abs(self.velocity) / self.deceleration)

    @property
    def duration(self) -> float:
        """Time at which all joints are at rest [s]."""
        return float(self.times.max())

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`; the final state is held."""
        signed = (-np.sign(self.velocity) * self.deceleration)[:, None]
        moving = t < self.times[:, None]
        t = np.minimum(t, self.times[:, None])
        velocity = np.where(moving, self.velocity[:, None] + signed * t, 0.0)
        position = self.position[:, None] + (self.velocity[:, None] + signed * t / 2) * t
        return position, velocity, np.where(moving, signed, 0.0), np.zeros_like(position)
