"""Node `excitation_publisher`: moves the robot so that its dynamics can be identified, and brakes when in doubt."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.excitation.feedback import Moment
from robot_dyn_id.excitation.sampling import look_ahead, sample
from robot_dyn_id.excitation.supervision import Phase, Supervisor
from robot_dyn_id.msg import ExcitationStatus
from robot_dyn_id.nodes.contract import LATCHED, PUBLISHES, RELIABLE, SENSOR, SERVES, SUBSCRIBES, Interface, RobotNode
from robot_dyn_id.nodes.excitation_settings import COMMANDS, STREAMING, ExcitationSettings, supervisor_of
from robot_dyn_id.nodes.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.running import run
from robot_dyn_id.nodes.trajectory_messages import TrajectoryMessage
from robot_dyn_id.robot import RobotModel

TICK = 0.01
"""Time between two looks at the robot [s]."""

STATUS_PERIOD = 0.2
"""Time between two messages of an unchanged status [s]."""

AHEAD = 0.1
"""How much of the motion a message of streaming holds before it brakes [s]."""


class ExcitationPublisher(RobotNode):
    """Turns joint states, requests and the clock into values for a `Supervisor`, and its command into messages."""

    NAME = "excitation_publisher"
    PURPOSE = "moves the robot along an excitation when asked to, and brakes on any fault"
    SETTINGS = ExcitationSettings
    INTERFACES = (
        DESCRIPTION,
        Interface(SUBSCRIBES, "joint_states", JointState, "What the robot does; any reliability", SENSOR),
        Interface(PUBLISHES, COMMANDS, JointTrajectory, "The motion; the parameter command_topic names it", RELIABLE),
        Interface(PUBLISHES, "excitation_status", ExcitationStatus, "What it does, and why it does not", LATCHED),
        Interface(SERVES, "~/start", Trigger, "Approach the excitation and run it; answers why not"),
        Interface(SERVES, "~/stop", Trigger, "Brake to rest"),
        Interface(SERVES, "~/pause", SetBool, "Brake to rest; with false go on from there"),
    )

    def __init__(self, **options: Any) -> None:
        """Make the node.

        Raises:
            RobotDynIdError: wrong parameters, a broken URDF, a motion that does not fit the robot.
        """
        super().__init__(**options)
        settings: ExcitationSettings = self.settings
        self._supervisor: Supervisor | None = None
        self._ending = False
        self._sent: Any = None
        self._told: tuple[Phase, str] | None = None
        self._told_at = 0.0
        self._begun = self.get_clock().now().nanoseconds
        self._status = ExcitationStatus()
        self._status_topic = self.publisher("excitation_status")
        self._commands = self.create_publisher(JointTrajectory, settings.command_topic, RELIABLE)
        self.service("~/start", self._start)
        self.service("~/stop", self._stop)
        self.service("~/pause", self._pause)
        self._source = RobotSource(self, settings.urdf, settings.joints, self._take_robot)
        self.subscription("joint_states", self._receive)
        self.create_timer(TICK, self._tick, clock=self.steady)
        if settings.mode == STREAMING:
            self.create_timer(1.0 / settings.rate, self._stream, clock=self.steady)

    def _take_robot(self, model: RobotModel) -> None:
        self._limits, supervisor = supervisor_of(model, self.settings)
        self._message = TrajectoryMessage(model.joint_names)
        self._status.joint_names = list(model.joint_names)
        self._status.duration = supervisor.excitation.duration
        self._supervisor = supervisor
        self.get_logger().info(
            f"{self.settings.form} of {supervisor.excitation.duration:g} s for {model.name}: "
            f"{', '.join(model.joint_names)}; moves when ~/start is called"
        )

    # --- time and topics -----------------------------------------------------------------------------------------

    def _now(self) -> Moment:
        return Moment(self.steady.now().nanoseconds * 1e-9, self._motion_time(self.get_clock().now()))

    def _motion_time(self, clock: Time) -> float:
        # from the node's beginning: seconds since 1970 would round to a quarter of a microsecond
        return float((clock.nanoseconds - self._begun) * 1e-9)

    def _obstacle(self) -> str:
        """Why the robot cannot be commanded; empty if it can."""
        topic = self._commands.topic_name
        if self._ending:
            return "the node is ending"
        if self.get_clock().ros_time_is_active and self.get_clock().now().nanoseconds == 0:
            return "use_sim_time is set, but nobody publishes /clock"
        if self._commands.get_subscription_count() == 0:
            return f"no controller: nobody subscribes to {topic}"
        if self.count_publishers(topic) > 1:
            return f"another node publishes to {topic} as well: only one may command the robot"
        return ""

    def _receive(self, message: JointState) -> None:
        if self._supervisor is not None:
            stamp = message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
            now = self._now()
            self._supervisor.receive(now, stamp, message.name, message.position, message.velocity)
            self._follow(now)

    def _tick(self) -> None:
        now = self._now()
        if self._supervisor is not None:
            self._supervisor.tick(now, self._obstacle())
        self._follow(now)

    def _follow(self, now: Moment) -> None:
        """Send the command if it is new, tell the state if it is."""
        supervisor = self._supervisor
        if supervisor is not None and supervisor.command is not None and supervisor.command is not self._sent:
            streaming = self.settings.mode == STREAMING
            whole = None if streaming else self._message.fill(sample(supervisor.command, 1.0 / self.settings.rate))
            if supervisor.phase == Phase.APPROACHING:
                supervisor.sent(self._now())  # planning and filling took their time
            self._sent = supervisor.command
            if streaming:
                self._stream()
            else:
                self._commands.publish(whole)
        self._tell(now)

    def _stream(self) -> None:
        """Send what follows from now on, until the motion is over."""
        clock, command = self.get_clock().now(), self._sent
        if command is not None and not command.over(self._motion_time(clock)):
            points = look_ahead(command, self._motion_time(clock), 1.0 / self.settings.rate, AHEAD, self._limits)
            self._commands.publish(self._message.fill(points, clock))

    def _tell(self, now: Moment) -> None:
        supervisor, status = self._supervisor, self._status
        state = (Phase.WAITING, self._source.problem) if supervisor is None else (supervisor.phase, supervisor.reason)
        if state == self._told and now.steady - self._told_at < STATUS_PERIOD:
            return
        if state != self._told:
            log = self.get_logger()
            text = state[0].name + (f": {state[1]}" if state[1] else "")
            if state[0] == Phase.FAULT:
                log.error(text)
            else:
                log.info(text)
        self._told, self._told_at = state, now.steady
        status.state, status.reason = int(state[0]), state[1]
        status.header.stamp = self.get_clock().now().to_msg()
        if supervisor is not None:
            status.elapsed = supervisor.elapsed(now)
            status.tracking_error = array.array("d", supervisor.tracking_error().tobytes())
        self._status_topic.publish(status)

    # --- what is asked -------------------------------------------------------------------------------------------

    def _request(self, answer: Any, ask: Callable[[Supervisor, Moment], str]) -> Any:
        now = self._now()
        refusal = self._source.problem if self._supervisor is None else ask(self._supervisor, now)
        answer.success, answer.message = not refusal, refusal
        if refusal:
            self.get_logger().warning(f"refused: {refusal}")
        self._follow(now)
        return answer

    def _start(self, request: Any, answer: Any) -> Any:
        return self._request(answer, lambda supervisor, now: supervisor.start(now, self._obstacle()))

    def _stop(self, request: Any, answer: Any) -> Any:
        return self._request(answer, lambda supervisor, now: supervisor.stop(now))

    def _pause(self, request: Any, answer: Any) -> Any:
        if request.data:
            return self._request(answer, lambda supervisor, now: supervisor.pause(now))
        return self._request(answer, lambda supervisor, now: supervisor.resume(now, self._obstacle()))

    def stop(self) -> bool:
        """Brake; True once the robot is at rest."""
        if self._supervisor is None:
            return True
        self._ending = True
        now = self._now()
        self._supervisor.stop(now)
        self._follow(now)
        return self._supervisor.at_rest(now)


def main() -> int:
    """Run the node."""
    return run(ExcitationPublisher)
