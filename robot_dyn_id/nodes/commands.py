"""What a `Supervisor` commands, as messages for a trajectory controller: whole, or streamed."""

from __future__ import annotations

from typing import Protocol

from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.excitation.command import Command
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.sampling import look_ahead, sample
from robot_dyn_id.excitation.supervision import UNDER_WAY, Supervisor
from robot_dyn_id.nodes.command_action import CommandAction
from robot_dyn_id.nodes.command_topic import CommandTopic
from robot_dyn_id.nodes.contract import RobotNode
from robot_dyn_id.nodes.excitation_settings import ACTION, STREAMING
from robot_dyn_id.nodes.motion_clock import MotionClock
from robot_dyn_id.nodes.trajectory_messages import TrajectoryMessage

AHEAD = 0.1
"""How much of the motion a message of streaming holds before it brakes [s]."""


class Outlet(Protocol):
    """One way to a trajectory controller."""

    def obstacle(self) -> str:
        """Why nobody follows what is sent, or not only that; empty if one controller does."""
        ...

    def send(self, message: JointTrajectory) -> None:
        """Let the controller follow this instead of what it was sent before."""
        ...

    def failure(self) -> str:
        """Why the controller does not follow what was sent last, told once; empty while nobody says so."""
        ...


class Commands:
    """Sends every new command once, or what follows of it at every sample."""

    def __init__(self, node: RobotNode, clock: MotionClock) -> None:
        """Open the way that the node's parameter `mode` names.

        Raises:
            UsageError: see `CommandAction`.
        """
        self._clock = clock
        self._step = 1.0 / node.settings.rate
        self._streaming = node.settings.mode == STREAMING
        self._outlet: Outlet = (CommandAction if node.settings.mode == ACTION else CommandTopic)(node)
        self._sent: Command | None = None
        if self._streaming:
            node.create_timer(self._step, self._stream_on, clock=node.steady)

    def describe(self, message: TrajectoryMessage, limits: MotionLimits) -> None:
        """Set what stays the same: the message of the joints, and how they brake."""
        self._message, self._limits = message, limits

    def obstacle(self) -> str:
        """Why nobody follows what is sent; empty if a controller does."""
        return self._outlet.obstacle()

    def follow(self, supervisor: Supervisor) -> None:
        """Send the supervisor's command if it is new, and tell it what the controller gave up."""
        failure = self._outlet.failure()
        if failure:
            supervisor.abandon(self._clock.now(), failure)
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
            self._outlet.send(whole)

    def _stream_on(self) -> None:
        """Send what follows, until the end is near: the messages before hold it, and a late one would be refused."""
        if self._sent is not None and self._sent.left(self._clock.now().motion) > AHEAD / 2:
            self._stream(self._sent)

    def _stream(self, command: Command) -> None:
        """Send what follows from now on."""
        time = self._clock.time()
        points = look_ahead(command, self._clock.motion(time), self._step, AHEAD, self._limits)
        self._outlet.send(self._message.fill(points, time))
