# SPDX-License-Identifier: Apache-2.0
"""A motion that a robot is told to make, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.transfer import Braking, Entered, PointToPoint


@dataclass(frozen=True)
class Command:
    """A motion that the robot is told to make.

    Attributes:
        trajectory: the motion.
        begin: when it begins, by both clocks.
    """

    trajectory: Entered | PointToPoint | Braking
    begin: TimePoint

    def time(self, motion: float) -> float:
        """Time within the trajectory [s]."""
        return min(max(motion - self.begin.motion, 0.0), self.trajectory.duration)

    def state(self, motion: float) -> tuple[Array, Array]:
        """Position and velocity that are commanded, shape (n,) each."""
        q, dq, _, _ = self.trajectory.evaluate(np.array([self.time(motion)]))
        return q[:, 0], dq[:, 0]

    def left(self, motion: float) -> float:
        """Time to its end [s]; 0 at and after it."""
        return self.trajectory.duration - self.time(motion)

    def over(self, motion: float) -> bool:
        """Whether it is at its end."""
        return self.left(motion) <= 0.0
