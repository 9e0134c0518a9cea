# SPDX-License-Identifier: Apache-2.0
"""Goals of the action `~/execute_excitation`: what they ask for, their feedback and their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from robot_dyn_id.action import ExecuteExcitation
from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.rehearsal import ExcitationRun
from robot_dyn_id.excitation.execution.supervision import End, Phase, Supervisor
from robot_dyn_id.excitation.trajectory import Excitation, Scaled
from robot_dyn_id.nodes.runtime.goals import GoalServer

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

    def __init__(self, server: Callable[[Callable[[Any], None], Callable[[], None]], GoalServer]) -> None:
        """Initialize without a goal; `offer` follows.

        Args:
            server: function that makes the server of the action from what begins and what cancels a goal.
        """
        self._make = server
        self._begun = self._published = -math.inf
        self._later = 0.0

    def offer(self, begin: Callable[[Any], None], cancel: Callable[[], None]) -> None:
        """Offer the action; see `GoalServer`."""
        self.server = self._make(begin, cancel)

    def begin(self, steady: float, later: float) -> None:
        """Begin to report a goal.

        Args:
            steady: present time [s].
            later: planned time of the runs after the first [s].
        """
        self._begun, self._published, self._later = steady, -math.inf, later

    def advance(self) -> None:
        """The last of the runs begins."""
        self._later = 0.0

    def publish(self, now: TimePoint, supervisor: Supervisor) -> None:
        """Publish feedback, if it is due.

        Args:
            now: present time.
            supervisor: supervisor of the motion.
        """
        if not self.server.active or now.steady < self._published + FEEDBACK_PERIOD_S:
            return
        self._published = now.steady
        elapsed, remaining = now.steady - self._begun, supervisor.remaining(now) + self._later
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
