# SPDX-License-Identifier: Apache-2.0
"""Commands of a `Supervisor` as messages for a trajectory controller: in pieces that end at rest, or whole."""

from __future__ import annotations

import math
from typing import Protocol

from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.excitation.execution.command import Command
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.sampling import look_ahead, sample
from robot_dyn_id.excitation.execution.supervision import UNDER_WAY, Supervisor
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.excitation.command_action import CommandAction
from robot_dyn_id.nodes.excitation.command_topic import CommandTopic
from robot_dyn_id.nodes.excitation.motion_clock import MotionClock
from robot_dyn_id.nodes.excitation.settings import ACTION
from robot_dyn_id.nodes.messages.trajectory_messages import TrajectoryMessage
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RobotNode
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.workflow.excitation_efforts import EffortSource

TOPIC = "identified_parameters"
"""Value of the parameter `feed_forward` for the models of an identifier; others are files, or empty."""


def make_effort_source(node: RobotNode) -> EffortSource:
    """Source of the efforts that the parameter `feed_forward` of a node selects.

    Raises:
        RobotDynIdError: a file that cannot be read.
    """
    settings = node.settings
    warn = node.get_logger().warning
    source = EffortSource(1.0 / settings.rate, settings.return_to_start, settings.robot_compensates, warn)
    if settings.feed_forward == TOPIC:
        source.await_models(TOPIC)
        node.create_subscription(
            ParameterSetMsg, TOPIC, lambda message: source.offer(ParameterSet.from_message(message)), LATCHED
        )
    elif settings.feed_forward:
        source.use_file(settings.feed_forward)
    return source


class CommandInterface(Protocol):
    """Command interface of a trajectory controller."""

    def obstacle(self) -> str:
        """Reason why not exactly one controller follows the commands of this node; empty if one does."""
        ...

    def send(self, message: JointTrajectory) -> None:
        """Send a trajectory, which replaces the one before."""
        ...

    def failure(self) -> str:
        """Reason why the controller does not follow the latest command, returned once; empty if none was reported."""
        ...

    def close(self) -> None:
        """Leave the graph; nothing is commanded any more."""
        ...


class Commands:
    """Sends the motion that a supervisor commands.

    With segments, a message holds the motion of `Latency.horizon` and the braking behind it, at absolute times:
    whatever happens to this node, the robot comes to rest. Every message replaces the one before, and repeats what it
    had still to do, so that a controller follows one motion. Without segments, one message holds the whole motion.
    Braking on request or on a fault is one message without a stamp, which begins on arrival whatever a clock shows.
    """

    def __init__(self, node: RobotNode, clock: MotionClock, efforts: EffortSource) -> None:
        """Begin without an interface.

        Args:
            node: node that commands.
            clock: its clocks.
            efforts: source of the feed-forward efforts.
        """
        self._node, self._clock, self._efforts = node, clock, efforts
        self._step = 1.0 / node.settings.rate
        self._segments: bool = node.settings.segments
        self._latency = Latency(node.settings.latency)
        self._interface: CommandInterface | None = None
        self._sent: Command | None = None
        self._renewal = math.inf  # time of the motion at which the next piece is sent [s]

    def open(self) -> None:
        """Create the interface that the parameter `mode` of the node selects, unless the one before is still used.

        Raises:
            UsageError: see `CommandAction`.
        """
        if self._interface is None:
            self._interface = (CommandAction if self._node.settings.mode == ACTION else CommandTopic)(self._node)

    def describe(self, message: TrajectoryMessage, limits: MotionLimits) -> None:
        """Set what stays the same: the message of the joints, and how they brake."""
        self._message, self._limits = message, limits

    @property
    def opened(self) -> bool:
        """Whether there is an interface."""
        return self._interface is not None

    def obstacle(self) -> str:
        """Reason why no controller follows the commands; empty if one does, or without an interface."""
        return "" if self._interface is None else self._interface.obstacle()

    @property
    def abandoned(self) -> bool:
        """Whether the controller has ended before the node, which is to end as well: that is not a fault."""
        return self._node.ending and bool(self.obstacle())

    def close(self) -> None:
        """Leave the graph, for a robot at rest."""
        if self._interface is not None:
            self._interface.close()
            self._interface, self._renewal = None, math.inf

    def follow(self, supervisor: Supervisor, now: TimePoint) -> None:
        """Send the supervisor's command if it is new or to be continued, and report what the controller gave up.

        Args:
            supervisor: supervisor of the motion.
            now: present time.
        """
        if self._interface is None:
            return
        failure = self._interface.failure()
        if failure:
            supervisor.abandon(now, failure)
        command = supervisor.command
        if command is None or command.under_way:
            return
        new = command is not self._sent
        if not new and now.motion < self._renewal:
            return
        starts = new and supervisor.phase in UNDER_WAY
        if self._segments and not isinstance(command.trajectory, Braking):
            self._send_piece(self._interface, supervisor, command, starts)
        else:
            self._send_whole(self._interface, supervisor, command, starts)

    def _send_whole(self, interface: CommandInterface, supervisor: Supervisor, command: Command, starts: bool) -> None:
        """Send all of the motion, which begins when the controller receives it."""
        points = sample(command, self._step)
        message = self._message.fill(points, efforts=self._efforts.efforts(points))
        # planning and filling took their time
        self._sent = supervisor.mark_sent(self._clock.now()) if starts else command
        self._renewal = math.inf
        interface.send(message)

    def _send_piece(self, interface: CommandInterface, supervisor: Supervisor, command: Command, starts: bool) -> None:
        """Send what follows from now on, unless this took so long that the robot has braked on its own meanwhile."""
        if starts:
            self._clock.synchronize()
        else:
            self._clock.follow_slew()
        now = self._clock.now()
        if starts:
            command = supervisor.mark_sent(now)
        message = self._piece(command, now.motion)
        then = self._clock.now()
        if starts and then.motion - now.motion > self._latency.renewal:  # the robot, at rest, would have to catch up
            now, command = then, supervisor.mark_sent(then)
            message = self._piece(command, now.motion)
        elif not starts:
            supervisor.check_reach(then)
            if supervisor.command is not command:
                self.follow(supervisor, then)
                return
        new, self._sent = command is not self._sent, command
        left = command.remaining(now.motion)
        ends = left <= self._latency.horizon
        self._renewal = math.inf if ends else now.motion + self._latency.renewal
        supervisor.extend(math.inf if ends else now.motion + self._latency.horizon)
        if left > 0.0 or new:  # else the piece before this one ends at the same rest
            interface.send(message)

    def _piece(self, command: Command, begin: float) -> JointTrajectory:
        """Message of the motion from a time of the motion's clock on [s]."""
        points = look_ahead(command, begin, self._step, self._latency.horizon, self._limits)
        return self._message.fill(points, self._clock.stamp(begin), self._efforts.efforts(points))
