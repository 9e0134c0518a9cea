"""The topic of a trajectory controller: what a `Supervisor` commands, whole or streamed."""

from __future__ import annotations

from typing import Any

from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.sampling import look_ahead, sample
from robot_dyn_id.excitation.supervision import UNDER_WAY, Command, Supervisor
from robot_dyn_id.nodes.contract import RELIABLE, RobotNode
from robot_dyn_id.nodes.excitation_settings import STREAMING
from robot_dyn_id.nodes.motion_clock import MotionClock
from robot_dyn_id.nodes.trajectory_messages import TrajectoryMessage

AHEAD = 0.1
"""How much of the motion a message of streaming holds before it brakes [s]."""


class CommandTopic:
    """Publishes every new command once, or what follows of it at every sample."""

    def __init__(self, node: RobotNode, clock: MotionClock) -> None:
        """Publish on the node's parameter `command_topic`."""
        self._node, self._clock = node, clock
        self._step = 1.0 / node.settings.rate
        self._streaming = node.settings.mode == STREAMING
        self._topic: Any = node.create_publisher(JointTrajectory, node.settings.command_topic, RELIABLE)
        self._sent: Command | None = None
        if self._streaming:
            node.create_timer(self._step, self._stream_on, clock=node.steady)

    def describe(self, message: TrajectoryMessage, limits: MotionLimits) -> None:
        """Set what stays the same: the message of the joints, and how they brake."""
        self._message, self._limits = message, limits

    def obstacle(self) -> str:
        """Why nobody follows what is published, or not only that; empty if one controller does."""
        topic = self._topic.topic_name
        if self._topic.get_subscription_count() == 0:
            return f"no controller: nobody subscribes to {topic}"
        if self._node.count_publishers(topic) > 1:
            return f"another node publishes to {topic} as well: only one may command the robot"
        return ""

    def follow(self, supervisor: Supervisor) -> None:
        """Send the supervisor's command if it is new."""
        command = supervisor.command
        if command is None or command is self._sent:
            return
        whole = None if self._streaming else self._message.fill(sample(command, self._step))
        if supervisor.phase in UNDER_WAY:
            command = supervisor.sent(self._clock.now())  # planning and filling took their time
        self._sent = command
        if whole is None:
            self._stream(command)
        else:
            self._topic.publish(whole)

    def _stream_on(self) -> None:
        """Send what follows, until the end is near: the messages before hold it, and a late one would be refused."""
        if self._sent is not None and self._sent.left(self._clock.now().motion) > AHEAD / 2:
            self._stream(self._sent)

    def _stream(self, command: Command) -> None:
        """Send what follows from now on."""
        time = self._clock.time()
        points = look_ahead(command, self._clock.motion(time), self._step, AHEAD, self._limits)
        self._topic.publish(self._message.fill(points, time))
