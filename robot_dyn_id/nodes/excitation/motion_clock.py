# SPDX-License-Identifier: Apache-2.0
"""The two clocks of a node that moves a robot."""

from __future__ import annotations

from typing import Any

from rclpy.time import Time

from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.nodes.runtime.robot_node import RobotNode

SLEW = 1_000_000
"""Largest change of the system clock against the steady one, between two looks, that is followed [ns]."""


class MotionClock:
    """The clock that the motion follows, and the steady one.

    Simulated time is followed as it is. The computer's own clock can be set while the robot moves, by which a commanded
    position would jump: the motion follows the steady clock, and only its stamps are those of the system clock.
    """

    def __init__(self, node: RobotNode) -> None:
        """Begin the motion's time at 0 now: seconds since 1970 would round to a quarter of a microsecond."""
        self._node = node
        self._clock = node.get_clock()
        self._offset = 0  # of the system clock to the steady one [ns]
        self._begun = self._time()
        self.synchronize()

    @property
    def simulated(self) -> bool:
        """Whether time comes from /clock."""
        return bool(self._clock.ros_time_is_active)

    def synchronize(self) -> None:
        """Take over whatever the system clock shows; for a robot at rest."""
        self._offset = self._difference()

    def follow_slew(self) -> None:
        """Take over a slow adjustment of the system clock, and not a step; for a robot in motion."""
        difference = self._difference()
        if abs(difference - self._offset) < SLEW:
            self._offset = difference

    def _difference(self) -> int:
        return 0 if self.simulated else int(self._clock.now().nanoseconds) - self._time()

    def _time(self) -> int:
        """Time that the motion follows [ns]."""
        return int(self._clock.now().nanoseconds) if self.simulated else self._node.steady_ns()

    def now(self) -> TimePoint:
        """The present by both."""
        steady = self._node.steady_ns()
        time = int(self._clock.now().nanoseconds) if self.simulated else steady
        return TimePoint(steady * 1e-9, (time - self._begun) * 1e-9)

    def stamp(self, motion: float) -> Time:
        """The time of messages at a time of the motion's clock [s]."""
        return Time(nanoseconds=self._begun + self._offset + round(motion * 1e9))

    def motion(self, stamp: Any) -> float:
        """The time of the motion's clock [s] at a stamp of a message."""
        return float((stamp.sec * 1_000_000_000 + stamp.nanosec - self._offset - self._begun) * 1e-9)

    def missing(self) -> str:
        """Why there is no time yet; empty if there is."""
        unset = self.simulated and self._time() == 0
        return "use_sim_time is set, but /clock has no publisher" if unset else ""
