# SPDX-License-Identifier: Apache-2.0
"""Commanded motion with its start time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.execution.approach import Entered, PointToPoint
from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.excitation.execution.feedback import TimePoint


@dataclass(frozen=True)
class Command:
    """A commanded motion.

    Attributes:
        trajectory: the motion.
        begin: start time by both clocks.
        under_way: whether the robot follows it without being commanded, as the end of the segments that it has.
        before: command that this one continues; its states are those before `begin`. None: the robot was at rest.
    """

    trajectory: Entered | PointToPoint | Braking
    begin: TimePoint
    under_way: bool = False
    before: Command | None = None

    def time(self, motion: float) -> float:
        """Time within the trajectory at a time of the motion clock [s]."""
        return min(max(motion - self.begin.motion, 0.0), self.trajectory.duration)

    def state(self, motion: float) -> tuple[Array, Array]:
        """Commanded position and velocity at a time of the motion clock [s], shape (n,) each."""
        if self.before is not None and motion < self.begin.motion:
            return self.before.state(motion)
        q, dq, _, _ = self.trajectory.evaluate(np.array([self.time(motion)]))
        return q[:, 0], dq[:, 0]

    def remaining(self, motion: float) -> float:
        """Remaining time of the trajectory at a time of the motion clock [s]; 0 after its end."""
        return self.trajectory.duration - self.time(motion)

    def finished(self, motion: float) -> bool:
        """Whether the trajectory has ended at a time of the motion clock [s]."""
        return self.remaining(motion) <= 0.0
