# SPDX-License-Identifier: Apache-2.0
"""Node `excitation_publisher`: moves the robot so that its dynamics can be identified, and brakes when in doubt."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.action import ExecuteExcitation
from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError
from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.held_joints import HeldJoints
from robot_dyn_id.excitation.execution.recording_watch import RecordingWatch
from robot_dyn_id.excitation.execution.rehearsal import ExcitationRun, motion_digest
from robot_dyn_id.excitation.execution.sampling import preview
from robot_dyn_id.excitation.execution.supervision import (
    MOVING,
    NOT_REHEARSED,
    UNDER_WAY,
    End,
    Phase,
    Supervisor,
)
from robot_dyn_id.excitation.trajectory import Scaled
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.excitation.commands import Commands
from robot_dyn_id.nodes.excitation.deferred_answers import DeferredAnswers, Verdict
from robot_dyn_id.nodes.excitation.effort_source import EffortSource
from robot_dyn_id.nodes.excitation.execution_goals import ExecutionGoals, read_goal
from robot_dyn_id.nodes.excitation.motion_clock import MotionClock
from robot_dyn_id.nodes.excitation.recording_reports import REPORTS, RecordingReports
from robot_dyn_id.nodes.excitation.settings import (
    ACTION_TYPE,
    COMMANDS,
    GOALS,
    ExcitationPlan,
    ExcitationSettings,
    make_plan,
    preview_step,
)
from robot_dyn_id.nodes.excitation.status import StatusTopic
from robot_dyn_id.nodes.messages.conversions import parameter_set
from robot_dyn_id.nodes.messages.joint_state import seconds
from robot_dyn_id.nodes.messages.trajectory_messages import TrajectoryMessage
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode
from robot_dyn_id.nodes.runtime.robot_node import (
    EXECUTES,
    LATCHED,
    PUBLISHES,
    RELIABLE,
    SENDS,
    SENSOR,
    SERVES,
    SUBSCRIBES,
    Diagnosis,
    Interface,
)
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.running import run
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.simulation.controllers import check_robot

TICK_S = 0.01
"""Period of the supervision [s]."""

READY_TIME_S = 1.0
"""Time for which everything must be ready before an automatic start [s]: many nodes that start load the computer."""

RELEASE_TIME_S = 5.0
"""Time after braking or a rehearsal in which joint states must have shown rest [s]."""

ENDING = "the node is ending"

NO_REST = "joint states do not show the robot at rest"
"""Beginning of the reason why a stop has not succeeded."""

HOW_TO_REHEARSE = "call ~/rehearse, or send a goal of ~/execute_excitation with the task REHEARSE_AND_RUN"

UNREHEARSED = (
    "REHEARSAL IS OFF (parameter rehearsal): the robot moves at full speed along a motion that has not been run slowly"
)

CLOCKS_AGREE, SIMULATED_CLOCKS_AGREE = 0.1, 1.0
"""Largest age of joint states by their stamps [s]; simulated time can run many times faster than messages travel."""


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
    INTERFACES: ClassVar[tuple[Interface, ...]] = (
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
        Interface(
            SERVES,
            "~/stop",
            Trigger,
            "Brake to rest; answers when joint states show rest, or what does not rest",
        ),
        Interface(
            SERVES,
            "~/rehearse",
            Trigger,
            "Run one period of the excitation at 10 % of its speed, which releases full speed; answers like ~/start",
        ),
        Interface(
            SERVES,
            "~/return_to_start",
            Trigger,
            "Return slowly to the configuration in which the latest motion was started; answers like ~/start",
        ),
        Interface(
            EXECUTES,
            "~/execute_excitation",
            ExecuteExcitation,
            "Rehearsal, run or return, with progress, cancellation and a result",
        ),
        Interface(SERVES, "~/pause", SetBool, "Brake to rest (true) or continue (false); answers like ~/start"),
    )

    def set_up(self) -> None:
        """Make what does not depend on the robot."""
        settings: ExcitationSettings = self.settings
        self._supervisor: Supervisor | None = None
        self._source: RobotSource | None = None
        self._commands: Commands | None = None
        self._plan: ExcitationPlan | None = None
        self._active = self._ending = self._releasing = False
        self._start_pending = settings.start
        self._more = settings.runs - 1 if settings.start else 0
        self._next: ExcitationRun | None = None  # after the present one
        self._next_deadline = self._result_by = self._end_by = math.inf
        self._digest, self._rehearsed = "", set[str]()
        self._excited = math.inf  # time of the motion at the latest look at which it was under way
        self._motion_clock = MotionClock(self)
        self._clocks = ClockAgreement(SIMULATED_CLOCKS_AGREE if self._motion_clock.simulated else CLOCKS_AGREE)
        self._refusals = Changes()
        self._status = StatusTopic(self, self.publisher(self.STATUS), settings.dry_run, self.REHEARSAL_OFF)
        if settings.dry_run:
            self._preview = self.publisher("~/preview")
        self._stops = DeferredAnswers(self.service("~/stop", self._stop))
        for name, answer in (
            ("~/start", self._start),
            ("~/pause", self._pause),
            ("~/rehearse", self._rehearse),
            ("~/return_to_start", self._return),
        ):
            self.service(name, answer)
        self._goals = ExecutionGoals(partial(self.goal_server, "~/execute_excitation"))
        self._goals.offer(self._begin_goal, self._cancel_goal)
        self._efforts = EffortSource(self)
        states = self.subscription("joint_states", self._receive)
        self._recording = RecordingWatch(settings.recording, states.topic_name)
        self._reports = RecordingReports(self, self._recording)
        if self._more:
            self.subscription("identified_parameters", self._repeat)
        self.create_timer(TICK_S, self._tick, clock=self.steady)

    def destroy_node(self) -> None:
        """Leave the graph, with the client of an action, which would keep the node there."""
        commands: Commands | None = getattr(self, "_commands", None)  # none of a node that was refused
        if commands is not None:
            commands.close()
            self._commands = None
        super().destroy_node()

    # --- lifecycle -----------------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Plan the motion, now or as soon as the robot is known.

        Raises:
            RobotDynIdError: wrong parameters, a broken URDF, a motion that does not fit the robot.
        """
        if self._releasing and not self._release() and self._supervisor is not None:
            raise MotionError(f"{NO_REST}: {self._supervisor.unrest(self._motion_clock.now())}")
        self._source = RobotSource(self, self.settings.urdf, self.settings.joints, self._take_robot, announce=False)

    def activate(self) -> None:
        """Offer commands to the controller.

        Raises:
            UsageError: see `Commands`.
        """
        self._active = True
        if not self.settings.dry_run:  # a dry run has no topic to command by
            self._open_commands()

    def deactivate(self) -> None:
        """Brake. The robot is supervised until it is at rest, and then the topic of the commands is given up."""
        self._active = self._start_pending = False
        self._more = 0
        self._halt("stopped: the node was deactivated")

    def clean_up(self) -> None:
        """Drop the robot and its motion as soon as it is at rest; rehearsals stay."""
        self._releasing = True
        self._release()

    def _open_commands(self) -> None:
        """Create the interface of the commands, unless the robot still brakes by the one before."""
        if self._commands is None:
            self._commands = Commands(self, self._motion_clock)
        if self._plan is not None:
            self._commands.describe(TrajectoryMessage(self._model.joint_names), self._plan.limits, self._efforts)

    def _close_commands(self, now: TimePoint) -> None:
        """Give the controller up while the node is not active and the robot is at rest."""
        resting = self._supervisor is None or self._supervisor.at_rest
        if not self._active and self._commands is not None and resting:
            self._commands.close()
            self._commands = None

    def _release(self) -> bool:
        """Drop the robot if it is at rest; returns whether it was."""
        if self._supervisor is not None and not self._supervisor.at_rest:
            return False
        if self._supervisor is not None:  # the client of a goal that was paused has no result yet
            self._attend(self._supervisor, self._motion_clock.now())
        if self._source is not None:
            self._source.close()
        self._supervisor, self._source, self._plan, self._releasing = None, None, None, False
        return True

    def _take_robot(self, model: RobotModel) -> None:
        plan = make_plan(model, self.settings)
        self._model, self._plan = model, plan
        self._held = HeldJoints({} if self.settings.allow_unchecked_collisions else model.held)
        excitation, message = plan.excitation, TrajectoryMessage(model.joint_names)
        designed = Scaled(excitation, 1.0 / self.settings.speed_scale, 1.0)
        self._digest = motion_digest(designed, model.joint_names, urdf_hash(model.urdf))
        self._status.describe(model.joint_names, self._digest)
        self._efforts.take_robot(model, plan.limits, excitation)
        if self.settings.dry_run:
            points = preview(excitation, preview_step(self.settings, excitation, model.joint_names))
            self._preview.publish(message.fill(points, efforts=self._efforts.efforts(points)))
            when = "never, see ~/preview"
        else:
            if self._commands is not None:
                self._open_commands()
            returns = self.settings.return_to_start
            self._supervisor = Supervisor(excitation, plan.limits, plan.thresholds, returns, plan.obstruction)
            self._supervisor.rehearsed = not self.settings.rehearsal or self._digest in self._rehearsed
            self._ready_since = self._motion_clock.now().steady
            when = "when all is ready" if self._start_pending else "when ~/start is called"
            self._warn_unrehearsed()
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

    def _obstacle(self, excites: bool = True) -> str:
        """Why the robot cannot be commanded, or should not; empty if it can.

        Args:
            excites: whether the motion serves an identification, and must be recorded as required.
        """
        return (
            self._inactive()
            or self.namesakes.obstacle()
            or self._motion_clock.missing()
            or (self._commands.obstacle() if self._commands is not None else "")
            or self._clock_problem()
            or (self._unrecorded() if excites else "")
        )

    def _inactive(self) -> str:
        """Reason why nothing may begin to move in the present state of the node; empty if it may."""
        assert self._supervisor is not None
        if self._supervisor.phase in MOVING:  # it brakes
            return ""
        if self._ending:
            return ENDING
        return "" if self._active else f"{self.lifecycle}: activate the node to move"

    def _clock_problem(self) -> str:
        """Why stamped commands would be followed at another time than they say; empty if they are not stamped."""
        return self._clocks.problem(self._motion_clock.now().steady) if self.settings.horizon else ""

    def _unrecorded(self) -> str:
        """Reason why the excitation is not recorded as required; the return need not be recorded."""
        assert self._supervisor is not None
        steady = self._motion_clock.now().steady
        if self._supervisor.exciting and not self._supervisor.rehearsing:
            return self._recording.fault(steady)
        return "" if self._supervisor.phase in MOVING else self._recording.obstacle(steady)

    def _refusal(self, excites: bool = True) -> str:
        """Why the robot cannot begin to move; empty if it can.

        Args:
            excites: whether the motion serves an identification, which needs a recording with efforts.
        """
        reason = self._inactive() or self.namesakes.refusal() or self._obstacle(excites)
        if excites:
            reason = reason or self._without_effort()
        return reason or self._held_elsewhere()

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
        self._supervisor.rehearsed = not self.settings.rehearsal  # it was with the joints where they were
        self._rehearsed.discard(self._digest)
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

    def _without_model(self, supervisor: Supervisor, since: float, home: Array | None = None) -> str:
        """Reason why the motion cannot begin for its feed-forward; empty if it can, or while the robot moves.

        See `EffortSource.refusal`; a robot that moves is refused by the supervisor, and keeps the model in use.
        """
        if not supervisor.at_rest:
            return ""
        return self._efforts.refusal(supervisor.feedback.position, since, home)

    def _go_back(self, supervisor: Supervisor, now: TimePoint) -> str:
        """Return to the initial configuration; returns the reason for a refusal."""
        refusal = self._refusal(excites=False)
        if supervisor.home is not None:
            refusal = refusal or self._without_model(supervisor, 0.0, supervisor.home)
        return supervisor.return_home(now, refusal)

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
            self._attend(self._supervisor, now)
        self._follow(now)
        self._stops.give(partial(self._rest, now))
        if self._releasing:
            self._release()
        self._close_commands(now)

    def _start_by_itself(self, supervisor: Supervisor, now: TimePoint) -> None:
        if supervisor.phase not in (Phase.READY, Phase.DONE):
            self._ready_since = now.steady
        if now.steady < self._ready_since + READY_TIME_S:
            return
        refusal = self._begin_runs(supervisor, now, self._all_runs(supervisor))
        self._start_pending = bool(refusal)
        self._ready_since = now.steady  # the check for collisions takes too long to be repeated at every tick
        if refusal and self._refusals.due(now.steady, refusal):  # a robot that was just switched on may still settle
            self.get_logger().warning(f"cannot start yet: {refusal}")

    def _repeat(self, message: ParameterSetMsg) -> None:
        """Run again, with the model identified from the last run."""
        if not self._more or self._supervisor is None or self._supervisor.phase != Phase.DONE:
            return
        try:
            self._check_new_model(message)
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

    def _all_runs(self, supervisor: Supervisor) -> tuple[ExcitationRun, ...]:
        """Runs of an automatic start: a rehearsal is the first of them where one is required."""
        run = ExcitationRun(supervisor.excitation_at_full_speed, speed=self.settings.speed_scale)
        if supervisor.rehearsed or run.slow:
            return (run,)
        return ExcitationRun.rehearse(run.motion, run.speed), run

    def _begin_runs(self, supervisor: Supervisor, now: TimePoint, runs: tuple[ExcitationRun, ...]) -> str:
        """Start the first of one or two runs; returns the reason for a refusal."""
        excites = any(not run.rehearsal for run in runs)
        refusal = self._begin(supervisor, now, runs[0], self._refusal(excites))
        if not refusal:
            self._next = runs[1] if len(runs) > 1 else None
            self._next_deadline = math.inf
        return refusal

    def _begin(self, supervisor: Supervisor, now: TimePoint, run: ExcitationRun, obstacle: str) -> str:
        """Start a run; returns the reason for a refusal. Quantities that are not monitored are logged."""
        refusal = supervisor.start(now, obstacle or self._without_model(supervisor, 0.0), run)
        if refusal:
            return f"{refusal}: {HOW_TO_REHEARSE}" if refusal.startswith(NOT_REHEARSED) else refusal
        if not run.rehearsal:
            self._recording.begin()
        blind = "; ".join(filter(None, (supervisor.feedback.unmonitored(), self._recording.unmonitored())))
        if blind:
            self.get_logger().warning(f"not monitored: {blind}")
        if unmeasured := self._held.unmeasured():
            self.get_logger().warning(f"not in the joint states, and assumed in the collision check: {unmeasured}")
        self._warn_unrehearsed()
        return ""

    def _warn_unrehearsed(self) -> None:
        """Warn before full speed, unless the robot is simulated, as its time is."""
        if self.UNREHEARSED and not self.settings.rehearsal and not self._motion_clock.simulated:
            self.get_logger().warning(self.UNREHEARSED)

    def _attend(self, supervisor: Supervisor, now: TimePoint) -> None:
        """Note a rehearsal that has succeeded, begin the run after it, and report to the client of a goal."""
        if supervisor.end != End.COMPLETE:
            self._goals.publish(now, supervisor)
        if supervisor.end is None:
            self._result_by = math.inf
            return
        if supervisor.rehearsed and self.settings.rehearsal:
            self._rehearsed.add(self._digest)
        refusal = ""
        if self._next is not None and supervisor.end == End.COMPLETE:
            refusal = self._begin(supervisor, now, self._next, self._refusal())
            if not refusal:
                self._next = None
                self._goals.advance()
                self.get_logger().info(supervisor.describe_motion())
                return
            self._next_deadline = min(self._next_deadline, now.steady + RELEASE_TIME_S)
            if now.steady < self._next_deadline:
                return  # a robot that has just come to rest may still settle
            self.get_logger().error(f"full speed is refused after the rehearsal: {refusal}")
        self._next = None
        if self._goals.server.active:
            self._result_by = min(self._result_by, self._rest_due(now))
            rest = (True, "") if supervisor.at_rest else self._rest(now, self._result_by)
            if rest is not None:
                self._goals.finish(supervisor, self._digest, self._reports.folders.values(), refusal, rest[1])

    def _follow(self, now: TimePoint) -> None:
        """Send the command and publish the state if they are new."""
        if self._supervisor is not None and self._commands is not None:
            self._commands.follow(self._supervisor)
        required = self.settings.rehearsal
        self._status.publish(now, self._supervisor, self._absent(), self.lifecycle, required)

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
        self._take_over()

        def start(supervisor: Supervisor, now: TimePoint) -> str:
            run = ExcitationRun(supervisor.excitation_at_full_speed, speed=self.settings.speed_scale)
            return self._engaged() or self._begin_runs(supervisor, now, (run,))

        return self._request(answer, start)

    def _rehearse(self, request: Any, answer: Any) -> Any:
        self._take_over()

        def rehearse(supervisor: Supervisor, now: TimePoint) -> str:
            run = ExcitationRun.rehearse(supervisor.excitation_at_full_speed, self.settings.speed_scale)
            return self._engaged() or self._begin_runs(supervisor, now, (run,))

        return self._request(answer, rehearse)

    def _return(self, request: Any, answer: Any) -> Any:
        self._take_over()

        def go_back(supervisor: Supervisor, now: TimePoint) -> str:
            return self._engaged() or self._go_back(supervisor, now)

        return self._request(answer, go_back)

    def _take_over(self) -> None:
        """Drop the automatic starts that were to follow: manual operation begins. Runs of a goal stay."""
        self._start_pending, self._more = False, 0
        if not self._goals.server.active:
            self._next = None

    def _engaged(self) -> str:
        """Reason why a goal of the action has to end first; empty if none is being executed."""
        return "a goal of ~/execute_excitation is being executed" if self._goals.server.active else ""

    def _stop(self, request: Any, answer: Any) -> Any:
        self._start_pending, self._more, self._next = False, 0, None
        answer = self._request(answer, lambda supervisor, now: supervisor.stop(now))
        return self._stops.defer(answer, self._rest_due(self._motion_clock.now())) if answer.success else answer

    def _rest_due(self, now: TimePoint) -> float:
        """Time of the steady clock at which a robot that brakes now must have been measured at rest [s]."""
        braking = self._supervisor.braking_time if self._supervisor is not None else 0.0
        return now.steady + RELEASE_TIME_S + braking

    def _rest(self, now: TimePoint, due: float) -> Verdict:
        """Whether joint states show the robot at rest, else why not; None before the time at which they must."""
        supervisor = self._supervisor
        if supervisor is None or supervisor.phase in UNDER_WAY:  # both only after rest
            return True, ""
        unrest = supervisor.unrest(now)
        if not unrest and supervisor.at_rest:
            return True, ""
        return (False, f"{NO_REST}: {unrest}") if now.steady >= due else None

    def _pause(self, request: Any, answer: Any) -> Any:
        if request.data:
            return self._request(answer, lambda supervisor, now: supervisor.pause(now))
        return self._request(answer, self._resume)

    def _resume(self, supervisor: Supervisor, now: TimePoint) -> str:
        share = supervisor.run.speed / self.settings.speed_scale  # its own time passes slower in a slow run
        efforts = self._without_model(supervisor, share * supervisor.elapsed(now))
        refusal = supervisor.resume(now, self._refusal(not supervisor.rehearsing) or efforts)
        if not refusal and not supervisor.rehearsing:
            self._recording.begin()
        return refusal

    # --- goals --------------------------------------------------------------------------------------------------

    def _begin_goal(self, goal: Any) -> None:
        """Begin to execute a goal.

        Raises:
            RobotDynIdError: the reason for a refusal.
        """
        supervisor, now = self._supervisor, self._motion_clock.now()
        if supervisor is None:
            raise InputError(self._absent())
        excitation, speed = supervisor.excitation_at_full_speed, self.settings.speed_scale
        task = read_goal(goal, excitation, speed, self._digest, supervisor.rehearsed)
        self._start_pending, self._more, self._next = False, 0, None
        refusal = self._go_back(supervisor, now) if task.returns else self._begin_runs(supervisor, now, task.runs)
        if refusal:
            raise MotionError(refusal)
        self._reports.folders.clear()
        self._goals.begin(now.steady, sum(run.motion.duration for run in task.runs[1:]))
        self.get_logger().info(supervisor.describe_motion())
        self._follow(now)

    def _cancel_goal(self) -> None:
        self._halt("canceled by the client of the goal")

    def _halt(self, why: str) -> None:
        """Brake, and drop what was to follow."""
        self._next = None
        if self._supervisor is not None:
            now = self._motion_clock.now()
            self._supervisor.stop(now, why)
            self._follow(now)

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
        """Brake; True once the robot is at rest, or silent for too long, and the client of a goal has its result."""
        self._ending, self._next = True, None
        if self._supervisor is None:
            return True
        now = self._motion_clock.now()
        self._supervisor.stop(now, f"stopped: {ENDING}")
        self._follow(now)
        self._attend(self._supervisor, now)
        self._stops.give(partial(self._rest, now))
        if not (self._goals.server.settled and self._stops.empty):
            return False
        if self._supervisor.at_rest:
            return True
        self._end_by = min(self._end_by, self._rest_due(now))
        silence = self._supervisor.feedback.silence(now.steady)
        if not silence or now.steady < self._end_by:
            return False
        self.get_logger().error(f"{NO_REST}: {silence}", once=True)
        return True


def main() -> int:
    """Run the node."""
    return run(ExcitationPublisher)
