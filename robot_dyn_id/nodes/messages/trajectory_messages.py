# SPDX-License-Identifier: Apache-2.0
"""Points of a motion as one JointTrajectory message that is used again and again."""

from __future__ import annotations

import array
from collections.abc import Sequence

from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints

EMPTY = array.array("d")


class TrajectoryMessage:
    """The message of some joints."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        """Make the message."""
        self._message = JointTrajectory(joint_names=list(joint_names))
        self._pool: list[JointTrajectoryPoint] = []

    def fill(
        self, points: TrajectoryPoints, begin: Time | None = None, efforts: Array | None = None
    ) -> JointTrajectory:
        """The message of these points; it holds until the next call.

        Args:
            points: the motion.
            begin: when time 0 of the points is; None for when the controller receives them.
            efforts: feed-forward efforts [N m or N], shape (N, n); None for points without efforts.
        """
        smooth = len(points.t) if points.smooth is None else points.smooth
        while len(self._pool) < len(points.t):
            self._pool.append(JointTrajectoryPoint())
        for k, (point, time) in enumerate(zip(self._pool, points.t, strict=False)):
            seconds, nanoseconds = divmod(round(time * 1e9), 1_000_000_000)
            point.time_from_start.sec, point.time_from_start.nanosec = seconds, nanoseconds
            point.positions, point.velocities = make_numbers(points.q[k]), make_numbers(points.dq[k])
            point.accelerations = make_numbers(points.ddq[k]) if k < smooth else EMPTY
            point.effort = EMPTY if efforts is None else make_numbers(efforts[k])
        self._message.points = self._pool[: len(points.t)]
        stamp = self._message.header.stamp
        stamp.sec, stamp.nanosec = begin.seconds_nanoseconds() if begin else (0, 0)
        return self._message


def make_numbers(values: Array) -> array.array[float]:
    """Numbers for a field of a message, which takes them as they are."""
    return array.array("d", values.tobytes())
