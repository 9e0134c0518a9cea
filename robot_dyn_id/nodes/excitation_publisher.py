# SPDX-License-Identifier: Apache-2.0
"""Node `excitation_publisher`: moves the robot so that its dynamics can be identified, and brakes when in doubt."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.held_joints import HeldJoints
from robot_dyn_id.excitation.execution.recording_watch import RecordingWatch
from robot_dyn_id.excitation.execution.sampling import preview
from robot_dyn_id.excitation.execution.supervision import MOVING, Phase, Supervisor
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.excitation.commands import Commands
from robot_dyn_id.nodes.excitation.effort_source import EffortSource
from robot_dyn_id.nodes.excitation.motion_clock import MotionClock
from robot_dyn_id.nodes.excitation.recording_reports import REPORTS, RecordingReports
from robot_dyn_id.nodes.excitation.settings import (
    ACTION_TYPE,
    COMMANDS,
    GOALS,
    ExcitationSettings,
    make_plan,
    preview_step,
)
from robot_dyn_id.nodes.excitation.status import StatusTopic
from robot_dyn_id.nodes.messages.conversions import parameter_set, read_bounded
from robot_dyn_id.nodes.messages.joint_state import seconds
from robot_dyn_id.nodes.messages.trajectory_messages import TrajectoryMessage
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.robot_node import (
    LATCHED,
    PUBLISHES,
    RELIABLE,
    SENDS,
    SENSOR,
    SERVES,
    SUBSCRIBES,
    Diagnosis,
    Interface,
    RobotNode,
)
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.running import run
from robot_dyn_id.simulation.controllers import check_robot

TICK_S = 0.01
"""Period of the supervision [s]."""

READY_TIME_S = 1.0
"""Time for which everything must be ready before an automatic start [s]: many nodes that start load the computer."""

ENDING = "the node is ending"

CLOCKS_AGREE, SIMULATED_CLOCKS_AGREE = 0.1, 1.0
"""Largest age of joint states by their stamps [s]; simulated time can run many times faster than messages travel."""


class ExcitationPublisher(RobotNode):
    """Connection of a `Supervisor` with topics, services and clock."""

    NAME = "excitation_publisher"
    PURPOSE = "moves the robot along an excitation on request, and brakes on any fault"
    SETTINGS = ExcitationSettings
    ENDS_ON_FAULT = True
    INTERFACES = (
        DESCRIPTION,
        Interface(SUBSCRIBES, "joint_states", JointState, "Measured joint states; any reliability", SENSOR),
        Interface(
            PUBLISHES,
            COMMANDS,
            JointTrajectory,
            "Commanded motion; the topic is set by the parameter command_topic",
            RELIABLE,
        ),
        Interface(SENDS, GOALS, ACTION_TYPE, "Commanded motion if the parameter mode is action"),
        Interface(
            SUBSCRIBES,
            "identified_parameters",
            ParameterSetMsg,
            "Identified model; starts the next of several runs",
            LATCHED,
        ),
        Interface(SUBSCRIBES, "recording_status", RecordingStatus, "State of the recorders", REPORTS),
        Interface(
            SUBSCRIBES,
            "identifier_recording_status",
            RecordingStatus,
            "State of the recordings of identifiers",
            REPORTS,
        ),
        Interface(
            PUBLISHES, "excitation_status", ExcitationStatus, "State of the excitation and the reason for it", LATCHED
        ),
        Interface(PUBLISHES, "~/preview", JointTrajectory, "Complete excitation in a dry run", LATCHED),
        Interface(
            SERVES,
            "~/start",
            Trigger,
            "Approach and run the excitation, and return; answers the duration or the reason for a refusal",
        ),
        Interface(SERVES, "~/stop", Trigger, "Brake to rest"),
        Interface(SERVES, "~/pause", SetBool, "Brake to rest (true) or continue (false); answers like ~/start"),
    )

    def begin(self) -> None:
        """Set the node up.

        Raises:
            RobotDynIdError: wrong parameters, a broken URDF, a motion that does not fit the robot.
        """
        settings: ExcitationSettings = self.settings
        self._supervisor: Supervisor | None = None
        self._ending, self._start_pending = False, settings.start
        self._more = settings.runs - 1 if settings.start else 0
        self._excited = math.inf  # time of the motion at the latest look at which it was under way
        self._motion_clock = MotionClock(self)
        self._clocks = ClockAgreement(SIMULATED_CLOCKS_AGREE if self._motion_clock.simulated else CLOCKS_AGREE)
        self._refusals = Changes()
        self._status = StatusTopic(self, self.publisher("excitation_status"), settings.dry_run)
        if settings.dry_run:  # then there is neither a topic to command by nor a supervisor that would
            self._preview = self.publisher("~/preview")
        else:
            self._commands = Commands(self, self._motion_clock)
        self.service("~/start", self._start)
        self.service("~/stop", self._stop)
        self.service("~/pause", self._pause)
        self._efforts = EffortSource(self)
        self._source = RobotSource(self, settings.urdf, settings.joints, self._take_robot)
        states = self.subscription("joint_states", self._receive)
        self._recording = RecordingWatch(settings.recording, states.topic_name)
        self._reports = RecordingReports(self, self._recording)
        if self._more:
            self.subscription("identified_parameters", self._repeat, raw=True)
        self.create_timer(TICK_S, self._tick, clock=self.steady)

    def _take_robot(self, model: RobotModel) -> None:
        plan = make_plan(model, self.settings)
        self._model = model
        self._held = HeldJoints({} if self.settings.allow_unchecked_collisions else model.held)
        excitation, message = plan.excitation, TrajectoryMessage(model.joint_names)
        self._status.describe(model.joint_names, excitation.duration)
        self._efforts.take_robot(model, plan.limits, excitation)
        if self.settings.dry_run:
            points = preview(excitation, preview_step(self.settings, excitation, model.joint_names))
            self._preview.publish(message.fill(points, efforts=self._efforts.efforts(points)))
            when = "never, see ~/preview"
        else:
            self._commands.describe(message, plan.limits, self._efforts)
            returns = self.settings.return_to_start
            self._supervisor = Supervisor(excitation, plan.limits, plan.thresholds, returns, plan.obstruction)
            self._ready_since = self._motion_clock.now().steady
            when = "when all is ready" if self._start_pending else "when ~/start is called"
        if plan.remark:
            self.get_logger().warning(plan.remark)
        self.get_logger().info(
            f"{plan.label} of {excitation.duration:g} s for {model.name}: {', '.join(model.joint_names)}; moves {when}"
        )

    # --- topics and time -----------------------------------------------------------------------------------------

    def _absent(self) -> str:
        """Reason why the robot is not commanded before the supervisor exists."""
        return self._source.problem or "dry run: the motion fits the robot; set dry_run to false to move"

    def _obstacle(self) -> str:
        """Why the robot cannot be commanded, or should not; empty if it can."""
        if self._ending:
            return ENDING
        return (
            self.namesakes.obstacle()
            or self._motion_clock.missing()
            or self._commands.obstacle()
            or self._clock_problem()
            or self._unrecorded()
        )

    def _clock_problem(self) -> str:
        """Why stamped commands would be followed at another time than they say; empty if they are not stamped."""
        return self._clocks.problem(self._motion_clock.now().steady) if self.settings.horizon else ""

    def _unrecorded(self) -> str:
        """Reason why the excitation is not recorded as required; the return need not be recorded."""
        assert self._supervisor is not None
        steady = self._motion_clock.now().steady
        if self._supervisor.exciting:
            return self._recording.fault(steady)
        return "" if self._supervisor.phase in MOVING else self._recording.obstacle(steady)

    def _refusal(self) -> str:
        """Why the robot cannot begin to move; empty if it can."""
        return self.namesakes.refusal() or self._obstacle() or self._without_effort() or self._held_elsewhere()

    def _held_elsewhere(self) -> str:
        """Reason why the collision check does not hold for the joints that the motion does not move; empty if it does.

        Where they are not as assumed, it is made again for the robot as it is measured.
        """
        assert self._supervisor is not None
        elsewhere = self._held.elsewhere()
        if not elsewhere or self._supervisor.phase in MOVING:
            return ""
        advice = "move these joints, or let the motion command them (joints)"
        try:
            model = RobotModel.from_urdf(
                self._model.urdf, self._model.joint_names, held={**self._model.held, **self._held.measured}
            )
            plan = make_plan(model, self.settings)
        except RobotDynIdError as error:
            return f"with the joints that it does not move where they are ({elsewhere}): {error}; {advice}"
        self._supervisor.obstruction = plan.obstruction
        self._held.assume(model.held)
        remaining = self._held.elsewhere()  # a mimic joint that does not follow
        if remaining:
            return f"joints that the motion does not move cannot be where they are measured: {remaining}; {advice}"
        self.get_logger().info(f"collisions are checked again: {elsewhere}")
        return ""

    def _without_effort(self) -> str:
        """Why the motion would be of no use for an identification; empty if nothing is known against it."""
        joints = self._supervisor.feedback.without_effort() if self._supervisor is not None else []
        if not joints or not self.settings.require_effort:
            return ""
        return (
            f"joint states carry no effort for {', '.join(joints)}, which an identification needs: enable the effort "
            "state interface of the robot's driver, or set require_effort to false if efforts are recorded elsewhere"
        )

    def _receive(self, message: JointState) -> None:
        if self._supervisor is not None:
            now, stamp = self._motion_clock.now(), message.header.stamp
            if stamp.sec or stamp.nanosec:
                self._clocks.receive(now.steady, now.motion - self._motion_clock.motion(stamp))
            channels = message.name, message.position, message.velocity, message.effort
            self._supervisor.receive(now, seconds(stamp), *channels)
            self._held.receive(message.name, message.position)
            self._follow(now)

    def _tick(self) -> None:
        now = self._motion_clock.now()
        self._reports.tick(now.steady)
        if self._supervisor is not None:
            under_way = self._supervisor.phase in MOVING
            self._supervisor.tick(now, self._obstacle() or ("" if under_way else self._without_effort()))
            if self._supervisor.exciting:
                self._excited = now.motion
            else:
                self._recording.end()
            if self._start_pending:
                self._start_by_itself(self._supervisor, now)
        self._follow(now)

    def _start_by_itself(self, supervisor: Supervisor, now: TimePoint) -> None:
        if supervisor.phase not in (Phase.READY, Phase.DONE):
            self._ready_since = now.steady
        if now.steady < self._ready_since + READY_TIME_S:
            return
        refusal = self._begin(supervisor, now)
        self._start_pending = bool(refusal)
        self._ready_since = now.steady  # the check for collisions takes too long to be repeated at every tick
        if refusal and self._refusals.due(now.steady, refusal):  # a robot that was just switched on may still settle
            self.get_logger().warning(f"cannot start yet: {refusal}")

    def _repeat(self, message: bytes) -> None:
        """Run again, with the model identified from the last run."""
        if not self._more or self._supervisor is None or self._supervisor.phase != Phase.DONE:
            return
        try:
            self._check_new_model(read_bounded(message, ParameterSetMsg))
        except RobotDynIdError as error:
            self.get_logger().warning(f"identified_parameters do not start the next run: {error}")
            return
        self._more, self._start_pending = self._more - 1, True
        self._ready_since = self._motion_clock.now().steady  # a controller takes the new model over
        self.get_logger().info(f"a new model: the excitation is run again, {self._more} more to come")

    def _check_new_model(self, message: Any) -> None:
        """Check that a model was identified from the last run of this robot.

        Raises:
            InputError: a broken or bad set, that of another robot, or one that is older than the end of the run.
        """
        check_robot(parameter_set(message), self._model.urdf)
        age = self._excited - self._motion_clock.motion(message.header.stamp)
        if age >= 0.0:
            raise InputError(f"their stamp is {age:.3g} s before the end of the last run: they are not from it")

    def _begin(self, supervisor: Supervisor, now: TimePoint) -> str:
        """Start the excitation; returns the reason for a refusal. Quantities that are not monitored are logged."""
        efforts = self._efforts.refusal(supervisor.feedback.position, 0.0)
        refusal = supervisor.start(now, self._refusal() or efforts)
        if refusal:
            return refusal
        self._recording.begin()
        blind = "; ".join(filter(None, (supervisor.feedback.unmonitored(), self._recording.unmonitored())))
        if blind:
            self.get_logger().warning(f"not monitored: {blind}")
        if unmeasured := self._held.unmeasured():
            self.get_logger().warning(f"not in the joint states, and assumed in the collision check: {unmeasured}")
        return ""

    def _follow(self, now: TimePoint) -> None:
        """Send the command and publish the state if they are new."""
        if self._supervisor is not None:
            self._commands.follow(self._supervisor, stamped=not self._clock_problem())
        self._status.publish(now, self._supervisor, self._absent())

    # --- services ---------------------------------------------------------------------------------------------

    def _request(self, answer: Any, ask: Callable[[Supervisor, TimePoint], str]) -> Any:
        now = self._motion_clock.now()
        refusal = self._absent() if self._supervisor is None else ask(self._supervisor, now)
        will = self._supervisor.describe_motion() if self._supervisor is not None and not refusal else ""
        answer.success, answer.message = not refusal, refusal or will
        if refusal:
            self.get_logger().warning(f"refused: {refusal}")
        elif will:
            self.get_logger().info(will)
        self._follow(now)
        return answer

    def _start(self, request: Any, answer: Any) -> Any:
        self._start_pending, self._more = False, 0  # manual operation: no further automatic start
        return self._request(answer, self._begin)

    def _stop(self, request: Any, answer: Any) -> Any:
        self._start_pending, self._more = False, 0
        return self._request(answer, lambda supervisor, now: supervisor.stop(now))

    def _pause(self, request: Any, answer: Any) -> Any:
        if request.data:
            return self._request(answer, lambda supervisor, now: supervisor.pause(now))
        return self._request(answer, self._resume)

    def _resume(self, supervisor: Supervisor, now: TimePoint) -> str:
        efforts = self._efforts.refusal(supervisor.feedback.position, supervisor.elapsed(now))
        refusal = supervisor.resume(now, self._refusal() or efforts)
        if not refusal:
            self._recording.begin()
        return refusal

    def fault(self, error: Exception) -> None:
        """Brake, report, and end; see `RobotNode.fault`."""
        super().fault(error)
        if self._supervisor is not None and self._supervisor.phase in MOVING:
            now = self._motion_clock.now()
            self._supervisor.fail(now, f"internal error: {error!r}; the log has the details")
            self._follow(now)

    def diagnosis(self) -> Diagnosis:
        """The phase, and how far it is."""
        return self._status.diagnosis()

    def stop(self) -> bool:
        """Brake; True once the robot is at rest."""
        if self._supervisor is None:
            return True
        self._ending = True
        now = self._motion_clock.now()
        self._supervisor.stop(now, f"stopped: {ENDING}")
        self._follow(now)
        return self._supervisor.at_rest(now)


def main() -> int:
    """Run the node."""
    return run(ExcitationPublisher)
