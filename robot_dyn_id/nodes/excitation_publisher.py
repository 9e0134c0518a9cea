# SPDX-License-Identifier: Apache-2.0
"""Node `excitation_publisher`: moves the robot so that its dynamics can be identified, and brakes when in doubt."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.action import ExecuteExcitation
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.recording_watch import RecordingWatch
from robot_dyn_id.excitation.execution.sampling import preview
from robot_dyn_id.excitation.execution.supervision import (
    MOVING,
)
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.excitation.commands import Commands, make_effort_source
from robot_dyn_id.nodes.excitation.motion_clock import MotionClock
from robot_dyn_id.nodes.excitation.recording_reports import REPORTS, RecordingReports
from robot_dyn_id.nodes.excitation.requests import ExcitationRequests
from robot_dyn_id.nodes.excitation.settings import (
    ACTION_TYPE,
    COMMANDS,
    GOALS,
    ExcitationSettings,
    make_plan,
    preview_step,
)
from robot_dyn_id.nodes.excitation.status import StatusTopic
from robot_dyn_id.nodes.messages.joint_state import convert_to_seconds
from robot_dyn_id.nodes.messages.trajectory_messages import TrajectoryMessage
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.computation import Computation
from robot_dyn_id.nodes.runtime.diagnostics import Diagnosis
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode
from robot_dyn_id.nodes.runtime.robot_node import (
    LATCHED,
    RELIABLE,
    SENSOR,
    Interface,
    executes,
    publishes,
    sends,
    serves,
    subscribes,
)
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.workflow.excitation_plan import ExcitationPlan
from robot_dyn_id.workflow.excitation_session import NO_REST, ExcitationSession

TICK_S = 0.01
"""Period of the supervision [s]."""

ENDING = "the node is ending"

UNREHEARSED = (
    "REHEARSAL IS OFF (parameter rehearsal): the robot moves at full speed along a motion that has not been run slowly"
)


INTERFACES = (
    DESCRIPTION,
    subscribes("joint_states", JointState, "Measured joint states; any reliability", SENSOR),
    publishes(COMMANDS, JointTrajectory, "Commanded motion; the topic is set by the parameter command_topic", RELIABLE),
    sends(GOALS, ACTION_TYPE, "Commanded motion if the parameter mode is action"),
    subscribes("identified_parameters", ParameterSetMsg, "Identified model; starts the next of several runs", LATCHED),
    subscribes("recording_status", RecordingStatus, "State of the recorders", REPORTS),
    subscribes("identifier_recording_status", RecordingStatus, "State of the recordings of identifiers", REPORTS),
    publishes("excitation_status", ExcitationStatus, "State of the excitation and the reason for it", LATCHED),
    publishes("~/preview", JointTrajectory, "Complete excitation in a dry run", LATCHED),
    serves(
        "~/start",
        Trigger,
        "Approach and run the excitation, and return; answers the duration or the reason for a refusal",
    ),
    serves("~/stop", Trigger, "Brake to rest; answers when joint states show rest, or what does not rest"),
    serves(
        "~/rehearse",
        Trigger,
        "Run one period of the excitation at 10 % of its speed, which releases full speed; answers like ~/start",
    ),
    serves(
        "~/return_to_start",
        Trigger,
        "Return slowly to the configuration in which the latest motion was started; answers like ~/start",
    ),
    executes(
        "~/execute_excitation", ExecuteExcitation, "Rehearsal, run or return, with progress, cancellation and a result"
    ),
    serves("~/pause", SetBool, "Brake to rest (true) or continue (false); answers like ~/start"),
)


class ExcitationPublisher(ManagedNode):
    """Connection of a `Supervisor` with topics, services, actions and clock."""

    NAME = "excitation_publisher"
    PURPOSE = "moves the robot along an excitation on request, and brakes on any fault"
    SETTINGS = ExcitationSettings
    ENDS_ON_FAULT = True
    STATUS = "excitation_status"
    UNREHEARSED = UNREHEARSED
    REHEARSAL_OFF = "OFF: full speed was never rehearsed"
    """Word of the diagnosis where the parameter `rehearsal` is false."""
    INTERFACES: ClassVar[tuple[Interface, ...]] = INTERFACES

    def set_up(self) -> None:
        """Make what does not depend on the robot."""
        settings: ExcitationSettings = self.settings
        self._source: RobotSource | None = None
        self._active = self._releasing = False
        self._motion_clock = clock = MotionClock(self)
        self._refusals = Changes()
        self._status = StatusTopic(self, self.publisher(self.STATUS), settings.dry_run, self.REHEARSAL_OFF)
        if settings.dry_run:
            self._preview = self.publisher("~/preview")
        states = self.subscription("joint_states", self._receive)
        recording = RecordingWatch(settings.recording, states.topic_name)
        self._reports = RecordingReports(self, recording)
        self._efforts = make_effort_source(self)
        self._commands = Commands(self, clock, self._efforts)
        clocks = ClockAgreement(Latency(settings.latency), clock.simulated)
        # the robot is simulated as its time is
        unrehearsed = "" if settings.rehearsal or clock.simulated else self.UNREHEARSED
        parts = recording, self._efforts, clocks, self._obstacle, self.get_logger(), unrehearsed, Computation
        self._session = ExcitationSession(self.settings, partial(make_plan, settings=settings), *parts)
        self._requests = ExcitationRequests(self, self._session, clock, self._reports, self._absent, self._follow)
        if settings.start and settings.runs > 1:
            self.subscription("identified_parameters", self._repeat)
        self.create_timer(TICK_S, self._tick, clock=self.steady)

    def destroy_node(self) -> None:
        """Leave the graph, with the client of an action, which would keep the node there."""
        if hasattr(self, "_commands"):  # else the node was refused
            self._commands.close()
        super().destroy_node()

    # --- lifecycle -----------------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Plan the motion, now or as soon as the robot is known.

        Raises:
            RobotDynIdError: wrong parameters, a broken URDF, a motion that does not fit the robot.
        """
        supervisor = self._session.supervisor
        if self._releasing and not self._release() and supervisor is not None:
            raise MotionError(f"{NO_REST}: {supervisor.unrest(self._motion_clock.now())}")
        prepare = partial(_plan_with, self.settings)
        self._source = RobotSource(self, self.settings.urdf, self.settings.joints, self._take_robot, False, prepare)

    def activate(self) -> None:
        """Offer commands to the controller.

        Raises:
            UsageError: see `Commands`.
        """
        self._active = True
        if not self.settings.dry_run:  # a dry run has no topic to command by
            self._commands.open()

    def deactivate(self) -> None:
        """Brake. The robot is supervised until it is at rest, and then the topic of the commands is given up."""
        self._active = False
        self._session.cancel_starts()
        self._requests.halt("stopped: the node was deactivated")

    def clean_up(self) -> None:
        """Drop the robot and its motion as soon as it is at rest; rehearsals stay."""
        self._releasing = True
        self._release()

    def _release(self) -> bool:
        """Drop the robot if it is at rest; returns whether it was."""
        if self._session.supervisor is not None and not self._session.supervisor.at_rest:
            return False
        self._requests.attend(self._motion_clock.now())  # the client of a goal that was paused has no result yet
        self._session.drop_robot()
        if self._source is not None:
            self._source.close()
        self._source, self._releasing = None, False
        return True

    def _take_robot(self, planned: tuple[RobotModel, ExcitationPlan]) -> None:
        (model, plan), session = planned, self._session
        session.take_robot(model, plan)
        excitation, message = plan.excitation, TrajectoryMessage(model.joint_names)
        self._commands.describe(message, plan.limits)
        self._status.describe(model.joint_names, session.digest)
        if self.settings.dry_run:
            points = preview(excitation, preview_step(self.settings, excitation, model.joint_names))
            self._preview.publish(message.fill(points, efforts=self._efforts.efforts(points)))
            when = "never, see ~/preview"
        else:
            session.supervise(self._motion_clock.now())
            when = "when all is ready" if session.start_pending else "when ~/start is called"
            session.warn_unrehearsed()
        if plan.remark:
            self.get_logger().warning(plan.remark)
        self.get_logger().info(
            f"{plan.label} of {excitation.duration:g} s for {model.name}: {', '.join(model.joint_names)}; moves {when}"
        )

    # --- topics and time -----------------------------------------------------------------------------------------

    def _absent(self) -> str:
        """Reason why the robot is not commanded before the supervisor exists."""
        if self._source is None:
            return f"{self.lifecycle}: configure and activate the node to move"
        return self._source.problem or "dry run: the motion fits the robot; set dry_run to false to move"

    def _obstacle(self, begins: bool) -> str:
        """Reason why this node cannot command the robot, or begin to; see `ExcitationSession`."""
        supervisor = self._session.supervisor
        if supervisor is None or supervisor.phase not in MOVING:  # else it brakes
            if self.ending:
                return ENDING
            if not self._active:
                return f"{self.lifecycle}: activate the node to move"
        return (
            (self.namesakes.refusal() if begins else "")
            or self.namesakes.obstacle()
            or self._motion_clock.missing()
            or self._commands.obstacle()
        )

    def _receive(self, message: JointState) -> None:
        if self._session.supervisor is not None:
            now, stamp = self._motion_clock.now(), message.header.stamp
            age = now.motion - self._motion_clock.motion(stamp) if stamp.sec or stamp.nanosec else None
            channels = message.name, message.position, message.velocity, message.effort
            self._session.receive(now, age, convert_to_seconds(stamp), *channels)
            self._follow(now)

    def _tick(self) -> None:
        now, supervisor = self._motion_clock.now(), self._session.supervisor
        self._reports.tick(now.steady)
        if supervisor is not None and not self._commands.abandoned:
            refusal = self._session.tick(supervisor, now)
            if refusal and self._refusals.due(now.steady, refusal):  # a robot that was just switched on may settle
                self.get_logger().warning(f"cannot start yet: {refusal}")
            self._requests.attend(now)
        self._follow(now)
        self._requests.answer_stops(now)
        if self._releasing:
            self._release()
        if not self._active and (supervisor is None or supervisor.at_rest):  # the controller is given up
            self._commands.close()

    def _repeat(self, message: ParameterSetMsg) -> None:
        """Run again, with the model identified from the last run."""
        stamp = self._motion_clock.motion(message.header.stamp)
        self._session.take_model(lambda: ParameterSet.from_message(message), stamp, self._motion_clock.now())

    def _follow(self, now: TimePoint) -> None:
        """Send the command and publish the state if they are new."""
        supervisor = self._session.supervisor
        if supervisor is not None:
            self._commands.follow(supervisor, now)
        self._status.publish(now, supervisor, self._absent, self.settings.rehearsal)

    def fault(self, error: Exception) -> None:
        """Brake, report, and end; see `RobotNode.fault`."""
        super().fault(error)
        supervisor = self._session.supervisor
        if supervisor is not None and supervisor.phase in MOVING:
            now = self._motion_clock.now()
            supervisor.fail(now, f"internal error: {error!r}; the log has the details")
            self._follow(now)

    def diagnosis(self) -> Diagnosis:
        """The phase, and how far it is."""
        return self._status.diagnosis()

    def stop(self) -> bool:
        """Brake; True once the robot is at rest, or silent for too long, and the client of a goal has its result."""
        self.ending = True
        self._requests.halt(f"stopped: {ENDING}")
        supervisor, now = self._session.supervisor, self._motion_clock.now()
        if supervisor is None:
            return True
        self._requests.attend(now)
        self._requests.answer_stops(now)
        if supervisor.at_rest or not self._requests.answered:
            return self._requests.answered
        if self._commands.abandoned and not self.count_publishers("joint_states"):  # nothing can be done any more
            self.get_logger().warning(f"{NO_REST}: robot and controller have left", once=True)
            return True
        silence = self._session.check_silence(now)
        if silence:
            self.get_logger().error(silence, once=True)
        return bool(silence)


def _plan_with(settings: ExcitationSettings, model: RobotModel) -> tuple[RobotModel, ExcitationPlan]:
    """A robot with its excitation; in a thread."""
    return model, make_plan(model, settings)
