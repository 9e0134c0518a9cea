"""Node `excitation_publisher`: moves the robot so that its dynamics can be identified, and brakes when in doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.excitation.feedback import Moment
from robot_dyn_id.excitation.sampling import look_ahead, preview, sample
from robot_dyn_id.excitation.supervision import Phase, Supervisor
from robot_dyn_id.msg import ExcitationStatus
from robot_dyn_id.nodes.contract import (
    LATCHED,
    PUBLISHES,
    RELIABLE,
    SENSOR,
    SERVES,
    SUBSCRIBES,
    Diagnosis,
    Interface,
    RobotNode,
)
from robot_dyn_id.nodes.excitation_settings import COMMANDS, STREAMING, ExcitationSettings, plan_of, preview_step
from robot_dyn_id.nodes.excitation_status import StatusTopic
from robot_dyn_id.nodes.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.running import run
from robot_dyn_id.nodes.trajectory_messages import TrajectoryMessage
from robot_dyn_id.robot import RobotModel

TICK = 0.01
"""Time between two looks at the robot [s]."""

AHEAD = 0.1
"""How much of the motion a message of streaming holds before it brakes [s]."""


SETTLED = 1.0
"""All must have been ready for so long before a motion starts by itself [s]: the start of many nodes is busy."""


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
        Interface(PUBLISHES, "~/preview", JointTrajectory, "The whole excitation, in a dry run", LATCHED),
        Interface(SERVES, "~/start", Trigger, "Approach the excitation and run it; answers why not"),
        Interface(SERVES, "~/stop", Trigger, "Brake to rest"),
        Interface(SERVES, "~/pause", SetBool, "Brake to rest; with false go on from there"),
    )

    def begin(self) -> None:
        """Set the node up.

        Raises:
            RobotDynIdError: wrong parameters, a broken URDF, a motion that does not fit the robot.
        """
        settings: ExcitationSettings = self.settings
        self._supervisor: Supervisor | None = None
        self._ending, self._start_pending = False, settings.start
        self._sent: Any = None
        self._begun = self.get_clock().now().nanoseconds
        self._status = StatusTopic(self, self.publisher("excitation_status"))
        if settings.dry_run:  # then there is neither a topic to command by nor a supervisor that would
            self._preview = self.publisher("~/preview")
        else:
            self._commands = self.create_publisher(JointTrajectory, settings.command_topic, RELIABLE)
        self.service("~/start", self._start)
        self.service("~/stop", self._stop)
        self.service("~/pause", self._pause)
        self._source = RobotSource(self, settings.urdf, settings.joints, self._take_robot)
        self.subscription("joint_states", self._receive)
        self.create_timer(TICK, self._tick, clock=self.steady)
        if settings.mode == STREAMING:
            self.create_timer(1.0 / settings.rate, self._stream_on, clock=self.steady)

    def _take_robot(self, model: RobotModel) -> None:
        plan = plan_of(model, self.settings)
        self._limits, excitation = plan.limits, plan.excitation
        self._message = TrajectoryMessage(model.joint_names)
        self._status.describe(model.joint_names, excitation.duration)
        if self.settings.dry_run:
            self._preview.publish(self._message.fill(preview(excitation, preview_step(self.settings, excitation))))
            when = "never, see ~/preview"
        else:
            self._supervisor = Supervisor(excitation, plan.limits, plan.tracking, self.settings.timeout)
            self._ready_since = self._now().steady
            when = "when all is ready" if self._start_pending else "when ~/start is called"
        if plan.remark:
            self.get_logger().warning(plan.remark)
        self.get_logger().info(
            f"{plan.label} of {excitation.duration:g} s for {model.name}: {', '.join(model.joint_names)}; moves {when}"
        )

    # --- time and topics -----------------------------------------------------------------------------------------

    def _now(self) -> Moment:
        return Moment(self.steady.now().nanoseconds * 1e-9, self._motion_time(self.get_clock().now()))

    def _motion_time(self, clock: Time) -> float:
        # from the node's beginning: seconds since 1970 would round to a quarter of a microsecond
        return float((clock.nanoseconds - self._begun) * 1e-9)

    def _absent(self) -> str:
        """Why there is no supervisor, while there is none."""
        return self._source.problem or "dry run: the motion fits the robot; set dry_run to false to move"

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
            if self._start_pending:
                self._start_by_itself(self._supervisor, now)
        self._follow(now)

    def _start_by_itself(self, supervisor: Supervisor, now: Moment) -> None:
        if supervisor.phase != Phase.READY:
            self._ready_since = now.steady
        if now.steady < self._ready_since + SETTLED:
            return
        refusal = supervisor.start(now, self._obstacle())
        self._start_pending = bool(refusal)
        if refusal:  # a robot that has just been switched on may still settle
            self.get_logger().warning(f"cannot start yet: {refusal}", throttle_duration_sec=1.0)

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
        self._status.tell(now, supervisor, self._absent())

    def _stream_on(self) -> None:
        """Send what follows, until the end is near: the messages before hold it, and a late one would be refused."""
        if self._sent is not None and self._sent.left(self._now().motion) > AHEAD / 2:
            self._stream()

    def _stream(self) -> None:
        """Send what follows from now on."""
        clock = self.get_clock().now()
        points = look_ahead(self._sent, self._motion_time(clock), 1.0 / self.settings.rate, AHEAD, self._limits)
        self._commands.publish(self._message.fill(points, clock))

    # --- what is asked -------------------------------------------------------------------------------------------

    def _request(self, answer: Any, ask: Callable[[Supervisor, Moment], str]) -> Any:
        now = self._now()
        refusal = self._absent() if self._supervisor is None else ask(self._supervisor, now)
        answer.success, answer.message = not refusal, refusal
        if refusal:
            self.get_logger().warning(f"refused: {refusal}")
        self._follow(now)
        return answer

    def _start(self, request: Any, answer: Any) -> Any:
        return self._request(answer, lambda supervisor, now: supervisor.start(now, self._obstacle()))

    def _stop(self, request: Any, answer: Any) -> Any:
        self._start_pending = False
        return self._request(answer, lambda supervisor, now: supervisor.stop(now))

    def _pause(self, request: Any, answer: Any) -> Any:
        if request.data:
            return self._request(answer, lambda supervisor, now: supervisor.pause(now))
        return self._request(answer, lambda supervisor, now: supervisor.resume(now, self._obstacle()))

    def diagnosis(self) -> Diagnosis:
        """The phase, and how far it is."""
        return self._status.diagnosis()

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
