# SPDX-License-Identifier: Apache-2.0
"""Services and goals of the excitation publisher: requests to its session, and their answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from robot_dyn_id.action import ExecuteExcitation
from robot_dyn_id.errors import InputError, MotionError, UsageError
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.rehearsal import ExcitationRun
from robot_dyn_id.excitation.execution.supervision import STOPPED, End, Phase, Supervisor
from robot_dyn_id.excitation.trajectory import Excitation, Scaled
from robot_dyn_id.nodes.excitation.motion_clock import MotionClock
from robot_dyn_id.nodes.excitation.recording_reports import RecordingReports
from robot_dyn_id.nodes.runtime.deferred_answers import DeferredAnswers
from robot_dyn_id.nodes.runtime.goals import GoalServer
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.workflow.excitation_session import ExcitationSession
from robot_dyn_id.workflow.steps import Steps

FEEDBACK_PERIOD_S = 0.1
"""Time between two feedback messages [s]."""

Goal, Result = ExecuteExcitation.Goal, ExecuteExcitation.Result

CODES = {End.COMPLETE: Result.SUCCEEDED, End.STOPPED: Result.STOPPED, End.FAULT: Result.FAULT}
"""Result codes of motions that their client has not canceled."""


@dataclass(frozen=True)
class Task:
    """Motions of a goal.

    Attributes:
        runs: runs of the excitation, one after the other.
        returns: whether the robot only returns to its initial configuration.
    """

    runs: tuple[ExcitationRun, ...]
    returns: bool = False


def read_goal(goal: Any, excitation: Excitation, speed: float, digest: str, rehearsed: bool) -> Task:
    """The task of a goal.

    Args:
        goal: message of the goal.
        excitation: excitation of the node.
        speed: fraction of its designed speed that it has.
        digest: its digest.
        rehearsed: whether full speed is released.

    Raises:
        MotionError: another digest.
        UsageError: an unknown task, or a speed scale that is out of range or not used.
    """
    if goal.task not in (Goal.RUN, Goal.REHEARSE, Goal.REHEARSE_AND_RUN, Goal.RETURN):
        raise UsageError(f"task {goal.task} is unknown")
    if goal.digest not in ("", digest):
        raise MotionError(f"the excitation of this node has the digest {digest}, not {goal.digest}")
    scale = goal.speed_scale or 1.0
    if not (math.isfinite(scale) and 0.0 < scale <= 1.0):
        raise UsageError(f"speed_scale {scale:g} must be above 0 and at most 1")
    if goal.task in (Goal.REHEARSE, Goal.RETURN):
        if scale != 1.0:
            raise UsageError(f"speed_scale {scale:g} is for runs: the speed of a rehearsal and of a return is fixed")
        return Task(
            (ExcitationRun.rehearse(excitation, speed),) if goal.task == Goal.REHEARSE else (), goal.task == Goal.RETURN
        )
    run = ExcitationRun(excitation if scale == 1.0 else Scaled(excitation, scale, 1.0), speed=scale * speed)
    if goal.task == Goal.REHEARSE_AND_RUN and not rehearsed and not run.slow:
        return Task((ExcitationRun.rehearse(excitation, speed), run))
    return Task((run,))


class ExecutionGoals:
    """Feedback and results of the goals of a node.

    Attributes:
        server: server of the action.
    """

    def __init__(self, server: GoalServer) -> None:
        """Initialize without a goal."""
        self.server = server
        self._begun = self._published = -math.inf

    def begin(self, steady: float) -> None:
        """Begin to report a goal at a time [s]."""
        self._begun, self._published = steady, -math.inf

    def publish(self, now: TimePoint, supervisor: Supervisor, following: ExcitationRun | None) -> None:
        """Publish feedback, if it is due.

        Args:
            now: present time.
            supervisor: supervisor of the motion.
            following: run after the present one; None without one.
        """
        if not self.server.active or now.steady < self._published + FEEDBACK_PERIOD_S:
            return
        self._published = now.steady
        elapsed, remaining = now.steady - self._begun, supervisor.remaining(now)
        remaining += 0.0 if following is None else following.motion.duration
        margin, cause = supervisor.worst
        self.server.publish(
            state=int(supervisor.phase),
            phase=_word(supervisor),
            elapsed=elapsed,
            remaining=remaining,
            fraction=elapsed / (elapsed + remaining) if remaining > 0.0 else 1.0,
            worst_margin=margin,
            worst_margin_cause=cause,
        )

    def finish(
        self, supervisor: Supervisor, digest: str, recordings: Iterable[str], refusal: str = "", unrest: str = ""
    ) -> None:
        """End the goal with the result of its motion.

        Args:
            supervisor: supervisor of the motion, which has ended.
            digest: digest of the excitation.
            recordings: folders of the bags of the motion.
            refusal: reason why the next run of the goal cannot begin; empty if all have ended.
            unrest: reason why the robot does not count as at rest, which is a fault; empty if it does.
        """
        code = CODES[supervisor.end] if supervisor.end is not None else Result.STOPPED
        if refusal:
            code = Result.REFUSED
        if unrest:
            code = Result.FAULT
        if self.server.canceled and code != Result.FAULT:
            code = Result.CANCELED
        margin, cause = supervisor.worst
        self.server.finish(
            code,
            "" if code == Result.SUCCEEDED else "; ".join(filter(None, (refusal or supervisor.reason, unrest))),
            digest=digest,
            recordings=sorted(recordings),
            worst_margin=margin,
            worst_margin_cause=cause,
        )


def _word(supervisor: Supervisor) -> str:
    """Phase of a motion as a word."""
    if supervisor.phase == Phase.RUNNING:
        return "rehearsal" if supervisor.rehearsing else "excitation"
    return supervisor.phase.name.lower()


Begin = Callable[[Supervisor, TimePoint], Steps[None]]
"""Request of a session."""


class ExcitationRequests:
    """Requests by services and goals.

    A request by hand takes over from automatic starts; while a goal is being executed, only stop and pause are
    accepted.
    """

    def __init__(
        self,
        node: RobotNode,
        session: ExcitationSession,
        clock: MotionClock,
        reports: RecordingReports,
        absent: Callable[[], str],
        follow: Callable[[TimePoint], None],
    ) -> None:
        """Offer the services and the action.

        Args:
            node: node that offers them.
            session: session of the robot.
            clock: clocks of the node.
            reports: reports of the recordings.
            absent: reason why there is no supervisor yet.
            follow: sends the command of the session, and publishes its state.
        """
        self._session, self._clock, self._reports = session, clock, reports
        self._absent, self._follow = absent, follow
        self._log, self._speed = node.get_logger(), node.settings.speed_scale
        self._result_by = math.inf
        self._refused = ""  # reason why the motion of a goal was refused when it had been planned
        self._stopping: list[tuple[Any, float]] = []  # answers, and when they are due
        begun = {"~/start": session.start, "~/rehearse": session.rehearse, "~/return_to_start": session.go_back}
        handlers: dict[str, Callable[..., Any]] = {
            **{name: partial(self._by_hand, name, begin) for name, begin in begun.items()},
            **{"~/stop": self._stop, "~/pause": self._pause},
        }
        self._answers = {name: DeferredAnswers(node.service(name, handle)) for name, handle in handlers.items()}
        self._goals = ExecutionGoals(node.goal_server("~/execute_excitation", self._begin_goal, self._cancel_goal))

    @property
    def answered(self) -> bool:
        """Whether every client has its answer or result."""
        return self._goals.server.settled and all(answers.empty for answers in self._answers.values())

    def attend(self, now: TimePoint) -> None:
        """Continue with the run that follows, and report to the clients."""
        session, supervisor = self._session, self._session.supervisor
        if supervisor is not None:
            if supervisor.end != End.COMPLETE and not session.planning:
                self._goals.publish(now, supervisor, session.following)
            refusal = session.attend(supervisor, now)
            if self._refused:
                refusal, self._refused = self._refused, ""
                self._goals.finish(supervisor, session.digest, (), refusal)
            elif refusal is None:
                self._result_by = math.inf
            elif self._goals.server.active:
                self._result_by = min(self._result_by, session.find_rest_due(now))
                rest = (True, "") if supervisor.at_rest else session.check_rest(now, self._result_by)
                if rest is not None:
                    self._goals.finish(supervisor, session.digest, self._reports.folders.values(), refusal, rest[1])

    def answer_stops(self, now: TimePoint) -> None:
        """Answer the requests to stop for which the robot is known to be at rest, or not to be."""
        for answer, due in list(self._stopping):
            verdict = self._session.check_rest(now, due)
            if verdict is not None:
                self._stopping.remove((answer, due))
                self._answers["~/stop"].give(answer, *verdict)

    def halt(self, why: str) -> None:
        """Brake, and drop the run that was to follow."""
        self._session.following = None
        self._session.cancel_planning(why)
        if self._session.supervisor is not None:
            now = self._clock.now()
            self._session.supervisor.stop(now, why)
            self._follow(now)

    # --- services

    def _conclude(self, name: str, answer: Any, refusal: str) -> None:
        """Answer a request."""
        supervisor = self._session.supervisor
        will = supervisor.describe_motion() if supervisor is not None and not refusal else ""
        if refusal:
            self._log.warning(f"refused: {refusal}")
        elif will:
            self._log.info(will)
        self._answers[name].give(answer, not refusal, refusal or will)

    def _request(self, name: str, begin: Begin, answer: Any) -> Any:
        """Begin a motion; its plan may take a while, and joint states come meanwhile."""
        now, supervisor, conclude = self._clock.now(), self._session.supervisor, partial(self._conclude, name, answer)
        self._answers[name].defer(answer)
        if supervisor is None:
            conclude(self._absent())
        elif self._goals.server.active and name != "~/pause":
            conclude("a goal of ~/execute_excitation is being executed")
        else:
            self._session.begin(begin(supervisor, now), now, conclude)
        self._follow(now)
        return answer

    def _by_hand(self, name: str, begin: Begin, request: Any, answer: Any) -> Any:
        self._session.cancel_starts(runs_stay=self._goals.server.active)
        return self._request(name, begin, answer)

    def _pause(self, request: Any, answer: Any) -> Any:
        if not request.data:
            return self._request("~/pause", self._session.resume, answer)
        self._session.cancel_planning("paused as requested")
        return self._brake("~/pause", answer, lambda supervisor, now: supervisor.pause(now))

    def _stop(self, request: Any, answer: Any) -> Any:
        self._session.cancel_starts()
        self._session.cancel_planning(STOPPED)
        answer = self._brake("~/stop", answer, lambda supervisor, now: supervisor.stop(now))
        if answer.success:
            self._answers["~/stop"].defer(answer)
            self._stopping.append((answer, self._session.find_rest_due(self._clock.now())))
        return answer

    def _brake(self, name: str, answer: Any, brake: Callable[[Supervisor, TimePoint], str]) -> Any:
        now, supervisor = self._clock.now(), self._session.supervisor
        self._conclude(name, answer, self._absent() if supervisor is None else brake(supervisor, now))
        self._follow(now)
        return answer

    # --- goals

    def _begin_goal(self, goal: Any) -> None:
        """Begin to execute a goal.

        Raises:
            RobotDynIdError: the reason for a refusal.
        """
        session, supervisor, now = self._session, self._session.supervisor, self._clock.now()
        if supervisor is None:
            raise InputError(self._absent())
        excitation = supervisor.excitation_at_full_speed
        task = read_goal(goal, excitation, self._speed, session.digest, supervisor.rehearsed)
        session.cancel_starts()
        steps = session.go_back(supervisor, now) if task.returns else session.begin_runs(supervisor, now, task.runs)
        known: list[str] = []
        self._reports.folders.clear()
        self._goals.begin(now.steady)
        session.begin(steps, now, partial(self._begun, supervisor, known))
        if any(known):
            raise MotionError(known[0])
        self._follow(now)

    def _begun(self, supervisor: Supervisor, known: list[str], refusal: str) -> None:
        """Note that the motion of a goal has begun, or why not: at once, before the goal is accepted, or later."""
        known.append(refusal)
        if not refusal:
            self._log.info(supervisor.describe_motion())
        elif self._goals.server.active:
            self._refused = refusal

    def _cancel_goal(self) -> None:
        self.halt("canceled by the client of the goal")
