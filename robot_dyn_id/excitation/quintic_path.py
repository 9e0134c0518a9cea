# SPDX-License-Identifier: Apache-2.0
"""Motion through the points of a joint trajectory, as a joint trajectory controller interpolates them: by quintics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.data.trajectory_rows import TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.trajectory import Sample


@dataclass(frozen=True)
class QuinticPath:
    """Motion through k points with velocities and accelerations."""

    points: TrajectoryPoints

    @classmethod
    def from_rows(cls, rows: TrajectoryRows, joint_names: Sequence[str]) -> QuinticPath:
        """Motion of a joint trajectory, with the joints in the order of the robot.

        Args:
            rows: content of the trajectory.
            joint_names: names of the n joints of the robot.

        Raises:
            InputError: other joints, fewer than two points, rows of other lengths, values that are not finite, times
                that do not ascend from 0, or points without velocities and accelerations, whose motion is not smooth.
        """
        if sorted(rows.joint_names) != sorted(joint_names):
            raise InputError(
                f"the trajectory moves the joints {', '.join(rows.joint_names)}, and the robot has "
                f"{', '.join(joint_names)}: plan it for this robot, or choose its joints (parameter joints)"
            )
        points = TrajectoryPoints.from_rows(joint_names, rows)
        if len(points.t) < 2 or points.t[0] != 0.0:
            raise InputError("the trajectory must have two points or more, the first at time 0")
        for what, channel in (("velocities", points.dq), ("accelerations", points.ddq)):
            if not np.isfinite(channel).all():
                raise InputError(f"every point must have {what}: without them the motion is not smooth")
        return cls(points)

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.points.t[-1])

    @property
    def center(self) -> Array:
        """Middle of the positions of each joint [rad or m], shape (n,)."""
        return np.asarray((self.points.q.min(axis=0) + self.points.q.max(axis=0)) / 2.0)

    @property
    def fastest(self) -> float:
        """Duration of the shortest segment [s]: it begins and ends as one half of a wave."""
        return float(np.diff(self.points.t).min())

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        number = np.clip(np.searchsorted(self.points.t, t, side="right") - 1, 0, len(self.points.t) - 2)
        length = self.points.t[number + 1] - self.points.t[number]
        s = (t - self.points.t[number]) / length
        x, v, a = (np.ascontiguousarray(values.T) for values in (self.points.q, self.points.dq, self.points.ddq))
        start, end = ((x[:, k], length * v[:, k], length**2 * a[:, k]) for k in (number, number + 1))
        rest = end[0] - start[0] - start[1] - 0.5 * start[2]  # left to the powers 3, 4 and 5, and its derivatives
        slope, bend = end[1] - start[1] - start[2], end[2] - start[2]
        c3 = 10.0 * rest - 4.0 * slope + 0.5 * bend
        c4 = -15.0 * rest + 7.0 * slope - bend
        c5 = 6.0 * rest - 3.0 * slope + 0.5 * bend
        q = start[0] + s * (start[1] + s * (0.5 * start[2] + s * (c3 + s * (c4 + s * c5))))
        dq = start[1] + s * (start[2] + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
        ddq = start[2] + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
        dddq = 6.0 * c3 + s * (24.0 * c4 + s * 60.0 * c5)
        return q, dq / length, ddq / length**2, dddq / length**3
