"""The two clocks of a node that moves a robot."""

from __future__ import annotations

from rclpy.time import Time

from robot_dyn_id.excitation.feedback import Moment
from robot_dyn_id.nodes.contract import RobotNode


class MotionClock:
    """The node's own clock, which may be simulated time, and the steady one."""

    def __init__(self, node: RobotNode) -> None:
        """The motion's time is 0 now: seconds since 1970 would round to a quarter of a microsecond."""
        self._node = node
        self._begun = node.get_clock().now().nanoseconds

    def now(self) -> Moment:
        """The present by both."""
        return Moment(self._node.steady.now().nanoseconds * 1e-9, self.motion(self.time()))

    def time(self) -> Time:
        """The present as messages tell it."""
        return self._node.get_clock().now()

    def motion(self, time: Time) -> float:
        """A time of messages by the motion's clock [s]."""
        return float((time.nanoseconds - self._begun) * 1e-9)

    def missing(self) -> str:
        """Why there is no time yet; empty if there is."""
        unset = self._node.get_clock().ros_time_is_active and self.time().nanoseconds == 0
        return "use_sim_time is set, but nobody publishes /clock" if unset else ""
