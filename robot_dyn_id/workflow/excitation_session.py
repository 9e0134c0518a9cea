# SPDX-License-Identifier: Apache-2.0
"""Session of an excitation publisher: which motions may begin, which follow, and when the robot counts as at rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from logging import Logger
from typing import Any, Protocol

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError
from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.held_joints import HeldJoints
from robot_dyn_id.excitation.execution.recording_watch import RecordingWatch
from robot_dyn_id.excitation.execution.rehearsal import ExcitationRun, hash_motion
from robot_dyn_id.excitation.execution.supervision import (
    MOVING,
    NOT_REHEARSED,
    UNDER_WAY,
    End,
    MotionPlan,
    Phase,
    Planning,
    Supervisor,
)
from robot_dyn_id.excitation.trajectory import Scaled
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet, urdf_hash
from robot_dyn_id.simulation.controllers import check_robot
from robot_dyn_id.workflow.excitation_efforts import EffortSource
from robot_dyn_id.workflow.excitation_plan import ExcitationPlan
from robot_dyn_id.workflow.steps import Compute, RunningSteps, Steps

READY_TIME_S = 1.0
"""Time for which everything must be ready before an automatic start [s]: many nodes that start load the computer."""

RELEASE_TIME_S = 5.0
"""Time after braking or a rehearsal in which joint states must have shown rest [s]."""

NO_REST = "joint states do not show the robot at rest"
"""Beginning of the reason why a stop has not succeeded."""

PLANNING = "another motion is being planned"

HOW_TO_REHEARSE = "call ~/rehearse, or send a goal of ~/execute_excitation with the task REHEARSE_AND_RUN"


class SessionSettings(Protocol):
    """Settings of a session, see the parameters of the excitation publisher."""

    speed_scale: float
    segments: bool
    allow_unchecked_collisions: bool
    require_effort: bool
    rehearsal: bool
    return_to_start: bool
    start: bool
    runs: int


class ExcitationSession:
    """Requests for motions of a robot, with the runs that follow each other and everything that may prevent them.

    A request is answered once: with the reason of a rejection, or with an empty text when the motion has begun. What is
    known at once is answered at once. Plans and collision checks are computed by `compute`, in steps that `tick` goes
    through, and what could be known before is checked again afterwards; one request is planned at a time.

    Attributes:
        supervisor: supervisor of the robot; None before the robot is known.
        digest: digest of the excitation; empty before the robot is known.
        start_pending: whether an automatic start is due.
        following: run that begins when the present one has succeeded; None without one.
    """

    def __init__(
        self,
        settings: SessionSettings,
        make_plan: Callable[[RobotModel], ExcitationPlan],
        recording: RecordingWatch,
        efforts: EffortSource,
        clocks: ClockAgreement,
        obstacle: Callable[[bool], str],
        log: Logger,
        unrehearsed: str,
        compute: Compute,
    ) -> None:
        """Begin without a robot.

        Args:
            settings: settings of the session.
            make_plan: plan of the excitation of a robot.
            recording: watch of the recorders.
            efforts: source of feed-forward efforts.
            clocks: comparison of the clocks of commands and joint states.
            obstacle: reason why the robot cannot be commanded, or cannot begin to move if its argument is true; empty
                if it can.
            log: log of the session.
            unrehearsed: warning before full speed that needs no rehearsal; empty: none.
            compute: begins a computation.
        """
        self._settings, self._make_plan, self._recording, self._efforts = settings, make_plan, recording, efforts
        self._clocks, self._external, self._log, self._unrehearsed = clocks, obstacle, log, unrehearsed
        self._compute = compute
        self._steps: RunningSteps | None = None
        self._answer: Callable[[str], None] = lambda refusal: None
        self._not_started = self._not_followed = ""  # reasons of the rejections of motions that follow
        self.supervisor: Supervisor | None = None
        self.digest, self._rehearsed = "", set[str]()
        self.start_pending = settings.start
        self._more = settings.runs - 1 if settings.start else 0
        self.following: ExcitationRun | None = None
        self._following_by = self._end_by = self._ready_since = math.inf
        self._excited = math.inf  # time of the motion at the latest look at which it was under way

    def take_robot(self, model: RobotModel, plan: ExcitationPlan) -> None:
        """Take a robot and its excitation, which may be looked at; `supervise` follows.

        Raises:
            RobotDynIdError: the model of the feed-forward efforts cannot be used.
        """
        self._model, self._plan = model, plan
        self._held = HeldJoints({} if self._settings.allow_unchecked_collisions else model.held)
        designed = Scaled(plan.excitation, 1.0 / self._settings.speed_scale, 1.0)
        self.digest = hash_motion(designed, model.joint_names, urdf_hash(model.urdf))
        self._efforts.take_robot(model, plan.limits, plan.excitation)

    def supervise(self, now: TimePoint) -> None:
        """Begin to supervise the robot."""
        plan = self._plan
        returns = self._settings.return_to_start
        self.supervisor = Supervisor(plan.excitation, plan.limits, plan.thresholds, returns, plan.obstruction)
        self.supervisor.rehearsed = not self._settings.rehearsal or self.digest in self._rehearsed
        self._ready_since = now.steady

    def drop_robot(self) -> None:
        """Drop a robot at rest; rehearsals stay."""
        self.cancel_planning("the robot is dropped")
        self.supervisor = None

    # --- what prevents a motion

    def _obstacle(self, now: TimePoint, excites: bool = True, begins: bool = False) -> str:
        """Reason why the robot cannot be commanded, or should not; empty if it can.

        Args:
            now: present time.
            excites: whether the motion serves an identification, and must be recorded as required.
            begins: whether the robot is to begin to move.
        """
        return (
            self._external(begins)
            or self._clocks.problem(now.steady)
            or (self._unrecorded(now.steady) if excites else "")
        )

    def _unrecorded(self, steady: float) -> str:
        """Reason why the excitation is not recorded as required; the return need not be recorded."""
        assert self.supervisor is not None
        if self.supervisor.exciting and not self.supervisor.rehearsing:
            return self._recording.fault(steady)
        return "" if self.supervisor.phase in MOVING else self._recording.obstacle(steady)

    def _refusal(self, now: TimePoint, excites: bool = True) -> str:
        """Reason why the robot cannot begin to move, as far as it is known at once; empty if it can.

        Args:
            now: present time.
            excites: whether the motion serves an identification, which needs a recording with efforts.
        """
        return self._obstacle(now, excites, begins=True) or (self._without_effort() if excites else "")

    def _check_held(self, supervisor: Supervisor, now: TimePoint) -> Steps[TimePoint]:
        """Check collisions again where the joints that the motion does not move are not as assumed.

        Raises:
            MotionError: the check does not hold for these joints.
        """
        elsewhere = self._held.elsewhere()
        if not elsewhere:
            return now
        advice = "move these joints, or let the motion command them (joints)"
        try:
            (model, plan), now = yield partial(self._plan_held, {**self._model.held, **self._held.measured})
        except RobotDynIdError as error:
            where = f"with the joints that it does not move where they are ({elsewhere})"
            raise MotionError(f"{where}: {error}; {advice}") from None
        supervisor.obstruction = plan.obstruction
        supervisor.rehearsed = not self._settings.rehearsal  # it was with the joints where they were
        self._rehearsed.discard(self.digest)
        self._held.assume(model.held)
        remaining = self._held.elsewhere()  # a mimic joint that does not follow
        if remaining:
            raise MotionError(
                f"joints that the motion does not move cannot be where they are measured: {remaining}; {advice}"
            )
        self._log.info(f"collisions are checked again: {elsewhere}")
        return now

    def _plan_held(self, held: dict[str, float]) -> tuple[RobotModel, ExcitationPlan]:
        model = RobotModel.from_urdf(self._model.urdf, self._model.joint_names, held=held)
        return model, self._make_plan(model)

    def _without_effort(self) -> str:
        """Reason why the motion would be of no use for an identification; empty if nothing is known against it."""
        joints = self.supervisor.feedback.without_effort() if self.supervisor is not None else []
        if not joints or not self._settings.require_effort:
            return ""
        return (
            f"joint states carry no effort for {', '.join(joints)}, which an identification needs: enable the effort "
            "state interface of the robot's driver, or set require_effort to false if efforts are recorded elsewhere"
        )

    def _plan_motion(
        self, planning: Planning, position: Array | None, since: float, home: Array | None = None
    ) -> MotionPlan:
        """Plan of a motion with feed-forward efforts, see `EffortSource.refusal`; may be computed in a thread.

        Raises:
            MotionError: there is none.
        """
        if refusal := self._efforts.refusal(position, since, home):
            raise MotionError(refusal)
        return planning()

    # --- joint states, time, models

    def receive(self, now: TimePoint, age: float | None, stamp: float, *channels: Any) -> None:
        """Process joint states.

        Args:
            now: present time.
            age: time since their stamp by the clock of the motion [s]; None without a stamp.
            stamp: their stamp [s].
            *channels: names, positions, velocities and efforts.
        """
        if self.supervisor is None:
            return
        feedback = self.supervisor.feedback
        if age is not None and self._settings.segments:  # else commands are not stamped, and the clocks may differ
            self._clocks.receive(now.steady, age)
            feedback.age, feedback.late = self._clocks.age, self._clocks.late
        else:
            feedback.age, feedback.late = 0.0, 0.0
        self.supervisor.receive(now, stamp, *channels)
        self._held.receive(*channels[:2])

    def tick(self, supervisor: Supervisor, now: TimePoint) -> str:
        """Check the robot, and begin automatic starts; to be called frequently.

        Returns:
            Reason why an automatic start is not possible yet; empty if none is due.
        """
        obstacle = self._obstacle(now)
        supervisor.tick(now, obstacle or ("" if supervisor.phase in MOVING else self._without_effort()))
        if supervisor.exciting:
            self._excited = now.motion
        else:
            self._recording.end()
        self._advance(now)
        if self.start_pending and self._steps is None:
            self._start_automatically(supervisor, now)
        refusal, self._not_started = self._not_started, ""
        return refusal

    def _start_automatically(self, supervisor: Supervisor, now: TimePoint) -> None:
        if supervisor.phase not in (Phase.READY, Phase.DONE):
            self._ready_since = now.steady
        if now.steady < self._ready_since + READY_TIME_S:
            return
        run = self.make_full_run(supervisor)
        slow_first = not (supervisor.rehearsed or run.slow)
        runs = (ExcitationRun.rehearse(run.motion, run.speed), run) if slow_first else (run,)
        self._ready_since = now.steady  # the check for collisions takes too long to be repeated at every tick
        self.begin(self.begin_runs(supervisor, now, runs), now, self._note_start)

    def _note_start(self, refusal: str) -> None:
        self.start_pending, self._not_started = self.start_pending and bool(refusal), refusal

    def take_model(self, read: Callable[[], ParameterSet], stamp: float, now: TimePoint) -> None:
        """Run again, with the model identified from the latest run; others are reported.

        Args:
            read: function that reads the model.
            stamp: its stamp by the clock of the motion [s].
            now: present time.
        """
        if not self._more or self.supervisor is None or self.supervisor.phase != Phase.DONE:
            return
        try:
            check_robot(read(), self._model.urdf)
            age = self._excited - stamp
            if age >= 0.0:
                raise InputError(f"their stamp is {age:.3g} s before the end of the last run: they are not from it")
        except RobotDynIdError as error:
            self._log.warning(f"identified_parameters do not start the next run: {error}")
            return
        self._more, self.start_pending = self._more - 1, True
        self._ready_since = now.steady  # a controller takes the new model over
        self._log.info(f"a new model: the excitation is run again, {self._more} more to come")

    # --- requests

    def begin(self, steps: Steps[None], now: TimePoint, answer: Callable[[str], None]) -> None:
        """Go through the steps of a request.

        Args:
            steps: steps of one of the requests below; a `MotionError` rejects it.
            now: present time.
            answer: takes the reason of the rejection, or an empty text when the motion has begun.
        """
        if self._steps is not None:
            steps.close()
            answer(PLANNING)
            return
        self._steps, self._answer = RunningSteps(steps, self._compute), answer
        self._advance(now)

    @property
    def planning(self) -> bool:
        """Whether a motion is being planned."""
        return self._steps is not None

    def _advance(self, now: TimePoint) -> None:
        """Go on with the request that is being planned."""
        if self._steps is None:
            return
        steps, refusal = self._steps, ""
        try:
            if not steps.advance(now):
                return
        except RobotDynIdError as error:
            refusal = str(error)
        except Exception as error:
            self.cancel_planning(f"internal error: {error!r}")
            raise
        self._steps = None
        self._answer(refusal)

    def cancel_planning(self, why: str) -> None:
        """Reject the request that is being planned."""
        if self._steps is not None:
            self._steps = None
            self._answer(why)

    def make_full_run(self, supervisor: Supervisor) -> ExcitationRun:
        """Run of the excitation at its full speed."""
        return ExcitationRun(supervisor.excitation_at_full_speed, speed=self._settings.speed_scale)

    def start(self, supervisor: Supervisor, now: TimePoint) -> Steps[None]:
        """Start the excitation."""
        return self.begin_runs(supervisor, now, (self.make_full_run(supervisor),))

    def rehearse(self, supervisor: Supervisor, now: TimePoint) -> Steps[None]:
        """Start the slow run of the excitation."""
        run = ExcitationRun.rehearse(supervisor.excitation_at_full_speed, self._settings.speed_scale)
        return self.begin_runs(supervisor, now, (run,))

    def begin_runs(self, supervisor: Supervisor, now: TimePoint, runs: tuple[ExcitationRun, ...]) -> Steps[None]:
        """Start the first of one or two runs."""
        yield from self._start_run(supervisor, now, runs[0], excites=any(not run.rehearsal for run in runs))
        self.following = runs[1] if len(runs) > 1 else None
        self._following_by = math.inf

    def go_back(self, supervisor: Supervisor, now: TimePoint) -> Steps[None]:
        """Return to the initial configuration."""

        def refuse(now: TimePoint) -> str:
            return supervisor.refuse_return(now, self._refusal(now, excites=False))

        yield from self._move(supervisor, now, refuse, supervisor.plan_return, returns=True)

    def resume(self, supervisor: Supervisor, now: TimePoint) -> Steps[None]:
        """Continue after a pause."""
        excites = not supervisor.rehearsing
        share = supervisor.run.speed / self._settings.speed_scale  # its own time passes slower in a slow run

        def refuse(now: TimePoint) -> str:
            return supervisor.refuse_resume(now, self._refusal(now, excites))

        planning = partial(supervisor.plan_run, supervisor.run)
        yield from self._move(supervisor, now, refuse, planning, share * supervisor.elapsed(now))
        if excites:
            self._recording.begin()

    def _move(
        self,
        supervisor: Supervisor,
        now: TimePoint,
        refuse: Callable[[TimePoint], str],
        planning: Callable[[], Planning],
        since: float = 0.0,
        returns: bool = False,
    ) -> Steps[None]:
        """Plan and command a motion.

        Args:
            supervisor: supervisor of the robot.
            now: present time.
            refuse: reason why it cannot begin, as far as it is known without planning.
            planning: makes the planning of the motion from where the robot is.
            since: time of the excitation at which it begins [s].
            returns: whether the robot only returns to its initial configuration.

        Raises:
            MotionError: it cannot begin.
        """
        _reject(supervisor.in_motion(now) or refuse(now))  # the first costs little, while a robot is supervised
        now = yield from self._check_held(supervisor, now)
        _reject(refuse(now))
        home = supervisor.home if returns else None
        plan, now = yield partial(self._plan_motion, planning(), supervisor.feedback.position, since, home)
        _reject(refuse(now) or self._held.elsewhere() or supervisor.execute(now, plan))

    def _start_run(self, supervisor: Supervisor, now: TimePoint, run: ExcitationRun, excites: bool) -> Steps[None]:
        """Start a run; quantities that are not monitored are logged.

        Raises:
            MotionError: it cannot begin.
        """

        def refuse(now: TimePoint) -> str:
            refusal = supervisor.refuse_start(now, self._refusal(now, excites), run)
            return f"{refusal}: {HOW_TO_REHEARSE}" if refusal.startswith(NOT_REHEARSED) else refusal

        yield from self._move(supervisor, now, refuse, partial(supervisor.plan_run, run))
        if not run.rehearsal:
            self._recording.begin()
        blind = "; ".join(filter(None, (supervisor.feedback.unmonitored(), self._recording.unmonitored())))
        if blind:
            self._log.warning(f"not monitored: {blind}")
        if unmeasured := self._held.unmeasured():
            self._log.warning(f"not in the joint states, and assumed in the collision check: {unmeasured}")
        self.warn_unrehearsed()

    def cancel_starts(self, runs_stay: bool = False) -> None:
        """Drop the automatic starts that were to follow, and the run after the present one unless it stays."""
        planned = self.start_pending or not (runs_stay or self.following is None)
        self.start_pending, self._more = False, 0
        if not runs_stay:
            self.following = None
        if planned:
            self.cancel_planning("replaced by a request")
            self._not_started = self._not_followed = ""

    def warn_unrehearsed(self) -> None:
        """Warn before full speed that needs no rehearsal."""
        if self._unrehearsed:
            self._log.warning(self._unrehearsed)

    def attend(self, supervisor: Supervisor, now: TimePoint) -> str | None:
        """Note a rehearsal that has succeeded, and begin the run after it.

        Returns:
            None while there are motions to come; else the reason why the run after the rehearsal was refused, empty if
            none was.
        """
        if supervisor.end is None or self._steps is not None:
            return None
        if supervisor.rehearsed and self._settings.rehearsal:
            self._rehearsed.add(self.digest)
        if self.following is not None and supervisor.end == End.COMPLETE:
            self._following_by = min(self._following_by, now.steady + RELEASE_TIME_S)
            steps = self._start_run(supervisor, now, self.following, excites=True)
            self.begin(steps, now, partial(self._note_following, supervisor, now))
            return None
        refusal, self._not_followed = self._not_followed, ""
        self.following = None
        return refusal

    def _note_following(self, supervisor: Supervisor, now: TimePoint, refusal: str) -> None:
        """Note whether the run after a rehearsal has begun."""
        if not refusal:
            self._log.info(supervisor.describe_motion())
        elif now.steady < self._following_by:
            return  # a robot that has just come to rest may still settle
        else:
            self._log.error(f"full speed is refused after the rehearsal: {refusal}")
        self.following, self._not_followed = None, refusal

    # --- rest

    def find_rest_due(self, now: TimePoint) -> float:
        """Time of the steady clock at which a robot that brakes now must have been measured at rest [s]."""
        braking = self.supervisor.braking_time if self.supervisor is not None else 0.0
        return now.steady + RELEASE_TIME_S + braking

    def check_rest(self, now: TimePoint, due: float) -> tuple[bool, str] | None:
        """Whether joint states show the robot at rest, else why not; None before the time at which they must."""
        supervisor = self.supervisor
        if supervisor is None or supervisor.phase in UNDER_WAY:  # both only after rest
            return True, ""
        unrest = supervisor.unrest(now)
        if not unrest and supervisor.at_rest:
            return True, ""
        return (False, f"{NO_REST}: {unrest}") if now.steady >= due else None

    def check_silence(self, now: TimePoint) -> str:
        """Reason why the rest of a robot that was stopped is not awaited any longer; empty if it is."""
        assert self.supervisor is not None
        self._end_by = min(self._end_by, self.find_rest_due(now))
        silence = self.supervisor.feedback.silence(now.steady)
        return f"{NO_REST}: {silence}" if silence and now.steady >= self._end_by else ""


def _reject(refusal: str) -> None:
    """Reject a request if there is a reason.

    Raises:
        MotionError: with the reason.
    """
    if refusal:
        raise MotionError(refusal)
