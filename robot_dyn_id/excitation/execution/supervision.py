# SPDX-License-Identifier: Apache-2.0
"""Supervision of an execution: its phases, faults and the resulting commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import partial

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.execution.approach import Entered, PointToPoint, approach, enter, return_motion
from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.excitation.execution.command import Command
from robot_dyn_id.excitation.execution.feedback import REST_DISTANCE, REST_TIME_S, Feedback, TimePoint
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.rehearsal import REHEARSAL_SPEED, ExcitationRun, slow_limits
from robot_dyn_id.excitation.limits import REST_SPEED, MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation, Trajectory

SETTLING_TIME_S = 1.0
"""Time after the end of a command within which a robot must be measured at rest [s]; then it is braked again."""

STALL_THRESHOLD_S = 0.05
"""Time between two ticks above which the process counts as stalled [s]."""

STALL_GRACE_S = 0.03
"""Grace period after a stall before timeouts are checked [s]."""

MIN_CLOCK_JUMP_S = 0.05
"""Smallest jump of the motion clock against the steady one [s]; a backward jump of this size is a fault."""

STALL_MEMORY_S = 1.0
"""Time for which a stall is reported as a likely cause of later faults [s]."""

CLOSED_TOLERANCE = 1e-3
"""Distance between the ends of an excitation below which the return follows the path of the approach [rad or m]."""


def report_unobstructed(motion: Trajectory) -> str:
    """Result of a disabled collision check: the motion is free."""
    return ""


class Phase(IntEnum):
    """Phases of an execution, with the values of ExcitationStatus.msg."""

    WAITING = 0
    READY = 1
    APPROACHING = 2
    RUNNING = 3
    PAUSED = 4
    STOPPING = 5
    DONE = 6
    FAULT = 7
    RETURNING = 8


UNDER_WAY = (Phase.APPROACHING, Phase.RUNNING, Phase.RETURNING)

MOVING = (*UNDER_WAY, Phase.STOPPING)

STOPPED, RETURNING = "stopped as requested", "returning to the initial configuration"
RETURNED, REHEARSED = "returned to the initial configuration", "the rehearsal has succeeded: full speed is released"
"""Reasons that are not faults."""

AGAIN = " after braking: braked again"
"""End of the reason that is added where braking did not lead to rest."""

NOT_REHEARSED = "not rehearsed"
"""Beginning of the reason why full speed is refused."""

NO_MARGIN = 1.0, ""
"""Smallest margin of a motion before its first joint states."""


class End(Enum):
    """Reason why a motion has ended; the robot may still brake."""

    COMPLETE = "executed completely"
    STOPPED = "stopped on request"
    FAULT = "stopped by a fault"


@dataclass(frozen=True)
class MotionPlan:
    """Motion from rest that is free of collisions.

    Attributes:
        run: run that it belongs to.
        start: measured configuration from which it was planned [rad or m], shape (n,).
        home: configuration to which the robot returns [rad or m], shape (n,).
        motion: commanded motion.
        phase: phase of the execution.
        reason: reason of the status.
        since: own time of the excitation at which it is entered [s].
        speed: fraction of the full speed that the guards may observe.
    """

    run: ExcitationRun
    start: Array
    home: Array
    motion: Entered | PointToPoint
    phase: Phase
    reason: str
    since: float
    speed: float


Planning = Callable[[], MotionPlan]
"""Computation of a motion, which may be done in a thread; raises a `MotionError` where there is none."""


class Supervisor:
    """Execution of an excitation on request, with braking on request or on a fault.

    The caller provides joint states and the time, and sends `command` whenever it changes.

    If the motion is sent in segments, `extend` sets the time that they reach. A robot that has reached the end of the
    last segment brakes along it; the supervisor then commands exactly this braking, and its phase is FAULT.

    A motion and its braking end when joint states show rest, not when a clock does: a robot that moves on after braking
    is braked again, from its measured state, until it is at rest; not from one that is outdated by its stamp.

    Joint states are judged by the command at the time at which they were measured (`Feedback.measured`), not at that of
    their receipt: on a busy computer the motion goes on between the two, without an error of the robot. No deviation
    is found later for that, as nothing is known of it before the receipt, and none is hidden: the difference that the
    delay itself makes no longer adds to it. A delay stays a fault: joint states that are older than the latency (in
    simulated time ten times that) are judged at their receipt, and are a fault of the clocks if they stay so; joint
    states that cease are one after the latency.

    Attributes:
        phase: phase of the execution.
        reason: reason for waiting, stopping, failing or returning; empty otherwise.
        command: latest commanded motion; None before the first.
        feedback: feedback of the robot.
        obstruction: function that returns the reason why a motion would collide; may be replaced at rest.
        run: present or latest run of the excitation.
        rehearsed: whether full speed is released: a slow run has succeeded, or none is required.
        end: reason why the latest motion has ended; None while it lasts or is paused, and before the first one.
        home: configuration in which the latest run was started [rad or m], shape (n,); None before the first.
        worst: smallest margin to the threshold of a guard since the start of the motion, and what had it.
    """

    def __init__(
        self,
        excitation: Excitation,
        limits: MotionLimits,
        thresholds: GuardThresholds,
        returns: bool = True,
        obstruction: Callable[[Trajectory], str] = report_unobstructed,
    ) -> None:
        """Initialize in the phase WAITING.

        Args:
            excitation: an excitation within the limits, at rest at both ends.
            limits: motion limits of the joints.
            thresholds: thresholds of faults.
            returns: whether the robot returns to its initial configuration after the excitation.
            obstruction: function that returns the reason why a motion would collide; empty if it would not.
        """
        self.phase = Phase.WAITING
        self.reason = ""
        self.command: Command | None = None
        self.feedback = Feedback(limits, thresholds)
        self.run = self._full = ExcitationRun(excitation)
        self.rehearsed, self.worst = True, NO_MARGIN
        self.end: End | None = None
        self._limits = limits
        self._tracking = thresholds.tracking
        self._burst = Latency(thresholds.timeout).burst
        self._returns = returns
        self.obstruction = obstruction
        self.home: Array | None = None
        self._since = 0.0  # own time of the excitation at which it was left or entered
        self._after = Phase.READY  # phase after braking
        self._ticked = self._woke = self._stalled_at = -math.inf
        self._stall = 0.0  # duration of the latest stall
        self._look = TimePoint(-math.inf, -math.inf)  # time of the latest call at which the motion clock had gone on
        self._unbroken: TimePoint | None = None  # latest time before the motion clock jumped ahead
        self._settled = True  # whether the robot was measured at rest after its latest command
        self._quiet = math.inf  # steady time from which joint states may show that rest
        self._rest_by = math.inf  # steady time at which they must
        self._reach = math.inf  # time of the motion clock up to which segments were sent

    # --- events --------------------------------------------------------------------------------------------------

    def receive(
        self,
        now: TimePoint,
        stamp: float,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float] = (),
        efforts: Sequence[float] = (),
    ) -> None:
        """Process joint states, see `Feedback.receive`; their faults take effect immediately."""
        self.feedback.receive(now, stamp, names, positions, velocities, efforts)
        self.check_reach(now)
        if self.phase in MOVING:
            guard = self.feedback.closest_guard
            self._note_margin(guard.margin, guard.describe_margin)
            self._watch(now, self.feedback.broken or self.feedback.exceeded())
        if self.feedback.at is now and not self.feedback.broken:
            self._settle(now)

    def tick(self, now: TimePoint, obstacle: str) -> None:
        """Check the clock and the robot; to be called frequently.

        Args:
            now: present time.
            obstacle: reason why the robot cannot be commanded, such as no controller; empty if it can.
        """
        self.check_reach(now)
        if math.isfinite(self._ticked) and now.steady - self._ticked > STALL_THRESHOLD_S:
            self._stalled_at, self._stall = now.steady, now.steady - self._ticked
            if self.feedback.at.steady > self._woke:
                self._woke = now.steady
        self._ticked = now.steady
        # after a stall, queued joint states are processed before timeouts are checked
        problem = "" if now.steady - self._woke < STALL_GRACE_S else self.feedback.silence(now.steady)
        problem = problem or obstacle
        if self.phase in (Phase.WAITING, Phase.READY):
            if problem:
                self.phase, self.reason = Phase.WAITING, problem
            elif self.phase == Phase.WAITING:
                self.phase, self.reason = Phase.READY, ""
        elif self.phase in MOVING:
            self._watch(now, problem or self.feedback.outside() or self._check_tracking(now.steady))
            self._progress(now)
        if self._undecided and self.feedback.silence(now.steady):
            self._brake(now)

    def _note_margin(self, margin: float, describe: Callable[[], str]) -> None:
        """Note a margin if it is the smallest of the motion."""
        if margin < self.worst[0]:
            self.worst = margin, describe()

    def extend(self, reach: float) -> None:
        """Set the time up to which the command was sent; the robot brakes on its own afterwards.

        Args:
            reach: time of the motion clock [s]; infinite if the entire command was sent.
        """
        self._reach = reach

    def check_reach(self, now: TimePoint) -> None:
        """Command the braking that has begun at the end of the sent segments; handle a motion clock that jumps.

        Args:
            now: present time.
        """
        look = self._look
        if now.motion != look.motion:  # a clock that stood may catch up
            self._look = now
        back = look.motion - now.motion
        ahead = -back - (now.steady - look.steady) if math.isfinite(look.motion) else 0.0
        if ahead > MIN_CLOCK_JUMP_S and self._unbroken is None:
            self._unbroken = look
        if self.phase not in UNDER_WAY:
            if back > MIN_CLOCK_JUMP_S:
                self._follow_set_back(now, look.motion)
            return
        late = now.motion - self._reach
        if (late > 0.0 and self._unbroken is not None) or ahead > self._burst:
            self._watch(now, f"the clock of the motion went ahead by {ahead:.3g} s")
        elif late > 0.0:
            self._watch(
                TimePoint(now.steady - late, self._reach),
                f"this node or its clock was held up: the next piece of the motion was due {late:.2g} s ago, and the "
                "robot has braked on its own",
            )
            if self.command is not None:
                self.command = replace(self.command, under_way=True)
        elif back > MIN_CLOCK_JUMP_S:
            self._set_back(now, look.motion)
            self._watch(now, f"the clock of the motion went back by {back:.3g} s")

    def _follow_set_back(self, now: TimePoint, latest: float) -> None:
        """Keep the time of braking when the motion clock jumps back; at rest nothing is commanded any more."""
        if self._settled:
            self.command = None
        elif self.command is not None:
            self._set_back(now, latest)

    def _set_back(self, now: TimePoint, latest: float) -> None:
        """Shift the command by a backward jump of the clock, so that the robot continues from its present state."""
        assert self.command is not None
        begin = replace(now, motion=now.motion - self.command.time(latest))
        self.command = replace(self.command, begin=begin, before=None)

    def _settle(self, now: TimePoint) -> None:
        """Note that joint states show rest after braking; brake again from the measured state where they do not."""
        if self._settled or self.phase in UNDER_WAY:
            return
        unrest = self.feedback.unrest(now.steady, self._quiet)
        if not unrest:
            self._settled = True
            if self.phase == Phase.STOPPING:
                self.phase = self._after
        elif now.steady >= self._rest_by and self._shows_motion:
            position = self.feedback.position
            assert position is not None
            if not self._undecided and AGAIN not in self.reason:
                self.reason = f"{self.reason}; {unrest}{AGAIN}"
            self._command_braking(now, Braking(position, self.feedback.speed(), self._limits.acceleration))

    @property
    def _shows_motion(self) -> bool:
        """Whether the measured state is one in motion that the robot can be braked from."""
        late = bool(self.feedback.late) and self._unbroken is None  # else the stamps are right, and the clock is not
        return self.feedback.moved and self.feedback.consistent and not late

    def fail(self, now: TimePoint, why: str) -> None:
        """Raise a fault that is not caused by the robot: brake if it moves; it can be started again.

        Args:
            now: present time.
            why: reported reason.
        """
        self.check_reach(now)
        self._watch(now, why)

    @property
    def exciting(self) -> bool:
        """Whether the robot approaches or follows the excitation."""
        return self.phase in UNDER_WAY and self.command is not None and isinstance(self.command.trajectory, Entered)

    def _progress(self, now: TimePoint) -> None:
        """Advance to the phase that corresponds to the time and to the joint states."""
        if self.command is None or self.phase not in UNDER_WAY:
            return
        motion, measured = self.command.trajectory, self.feedback.measured
        if isinstance(motion, Entered) and self.phase == Phase.APPROACHING:
            if self.command.time(measured) >= motion.lead.duration:
                self.phase = Phase.RUNNING
        elif self.command.finished(measured):
            self._rest_by = min(self._rest_by, now.steady + SETTLING_TIME_S)
            goes_on = isinstance(motion, Entered) and self._returns
            unrest = self.feedback.moving() if goes_on else self.feedback.unrest(now.steady)
            if not unrest:
                self._end(now, goes_on)
            elif now.steady >= self._rest_by and (moves := self.feedback.moved_since(self._rest_by)):
                self._watch(now, f"{moves} {SETTLING_TIME_S:g} s after the end of its motion")
            elif now.steady >= self._rest_by + REST_TIME_S:  # a controller with low gains creeps to its setpoint
                self._end(now, goes_on)

    def _end(self, now: TimePoint, goes_on: bool) -> None:
        """End a motion after which the robot is at rest, or continue with the return."""
        assert self.command is not None
        if isinstance(self.command.trajectory, Entered):
            self._since = self.excitation.duration
        if goes_on:
            self._return(now, self.command.state(self.feedback.measured)[0])
            return
        self._settled = True
        if self.phase == Phase.RUNNING:
            self._end_run()
        else:
            self.phase, self.reason, self.end = Phase.READY, RETURNED, End.COMPLETE

    def _end_run(self) -> None:
        """End a run that was executed completely; a slow one releases full speed."""
        self.rehearsed, self.end = self.rehearsed or self.run.slow, End.COMPLETE
        if self.rehearsing:
            self.phase, self.reason = Phase.READY, REHEARSED
        else:
            self.phase, self.reason = Phase.DONE, ""

    @property
    def excitation(self) -> Excitation:
        """Excitation of the present or latest run."""
        return self.run.motion

    @property
    def excitation_at_full_speed(self) -> Excitation:
        """The excitation that this was made for."""
        return self._full.motion

    @property
    def rehearsing(self) -> bool:
        """Whether the present or latest run is a rehearsal."""
        return self.run.rehearsal

    def _return(self, now: TimePoint, start: Array) -> None:
        """Command the motion back to the initial configuration."""
        assert self.home is not None
        limits = slow_limits(self._limits) if self.run.slow else self._limits
        self.command, self._rest_by = Command(return_motion(start, self.home, limits), now), math.inf
        self._settled = False
        self.phase, self.reason = Phase.RUNNING, RETURNING

    def _check_tracking(self, steady: float) -> str:
        """Note the margin of the tracking error; its description if it is too large, otherwise empty."""
        error = np.abs(self.tracking_error())
        j = int(np.argmax(error / self._tracking))
        name, threshold = self._limits.joint_names[j], float(self._tracking[j])
        self._note_margin(1.0 - float(error[j]) / threshold, lambda: f"tracking error of {name}")
        if error[j] <= threshold:
            return ""
        unit = self._limits.unit(j)
        return (
            f"tracking error: joint {name} is {error[j]:.3g} {unit} away from its command, more than {threshold:g} "
            f"{unit}{self._likely_cause(steady, j)}"
        )

    def _likely_cause(self, steady: float, j: int) -> str:
        """Likely cause of the tracking error of joint j other than its load; empty if unknown."""
        if self.feedback.late:
            return f"; the joint states are {self.feedback.late:.2f} s old by their stamps: they came late"
        if steady - self._stalled_at < STALL_MEMORY_S:
            return f"; this node was held up for {self._stall:.2f} s just before: its commands came late"
        assert self.command is not None
        commanded = self.command.state(self.feedback.measured)[1]
        if abs(self.feedback.velocity[j]) <= REST_SPEED < abs(commanded[j]):
            return "; it is at rest: the controller does not follow the command, or got it late"
        return ""

    def _watch(self, now: TimePoint, fault: str) -> None:
        """Brake and enter the phase FAULT if there is a fault."""
        if not fault:
            return
        if self.phase in UNDER_WAY:
            self._brake(now)
        self.phase, self.reason, self.end = Phase.FAULT, fault, End.FAULT

    def abandon(self, now: TimePoint, why: str) -> None:
        """Handle the controller rejecting or aborting the command.

        This is a fault without braking, which would start a new motion, even if the motion had ended. During another
        fault the reason is appended to the present one.

        Args:
            now: present time.
            why: reported reason.
        """
        self._since, self.command, self._reach, self.end = self.elapsed(now), None, math.inf, End.FAULT
        self._settled, self._quiet, self._rest_by = False, now.steady, math.inf
        self.phase, self.reason = Phase.FAULT, f"{self.reason}; {why}" if self.phase == Phase.FAULT else why

    def _brake(self, now: TimePoint) -> None:
        """Brake from the commanded state; after a jump of the clock from the measured one, at the next joint states."""
        assert self.command is not None
        jumped = self._unbroken is not None
        if self._unbroken is not None:
            now = replace(now, motion=self._unbroken.motion + now.steady - self._unbroken.steady)
        self._since, self._reach = self.elapsed(now), math.inf
        if jumped and not self.feedback.silence(now.steady):
            self.command = replace(self.command, under_way=True)
            self._quiet = self._rest_by = now.steady
            return
        command = replace(self.command, before=None)
        self._command_braking(now, Braking(*command.state(now.motion), self._limits.acceleration), command)

    @property
    def _undecided(self) -> bool:
        """Whether braking waits for the joint states from which it begins."""
        braking = self.command is not None and isinstance(self.command.trajectory, Braking)
        return not (self._settled or braking or self.command is None or self.phase in UNDER_WAY)

    def _command_braking(self, now: TimePoint, braking: Braking, before: Command | None = None) -> None:
        self.command, self._settled = Command(braking, now, before=before), False
        self._quiet = now.steady
        self._rest_by = now.steady + braking.duration + SETTLING_TIME_S

    # --- requests; each returns the reason of a rejection, empty if accepted -------------------------------------

    def start(self, now: TimePoint, obstacle: str, run: ExcitationRun | None = None) -> str:
        """Start a run; by default that of the excitation as it is."""
        run = run or self._full
        return self.refuse_start(now, obstacle, run) or self._plan_and_execute(now, self.plan_run(run))

    def return_home(self, now: TimePoint, obstacle: str) -> str:
        """Return slowly to the configuration in which the latest run was started."""
        return self.refuse_return(now, obstacle) or self._plan_and_execute(now, self.plan_return())

    def resume(self, now: TimePoint, obstacle: str) -> str:
        """Continue after a pause from the same time of the excitation, by a new approach."""
        return self.refuse_resume(now, obstacle) or self._plan_and_execute(now, self.plan_run(self.run))

    def _plan_and_execute(self, now: TimePoint, planning: Planning) -> str:
        try:
            return self.execute(now, planning())
        except MotionError as error:
            return str(error)

    # --- the same in three steps: what is known at once, what has to be computed, and the command

    def refuse_start(self, now: TimePoint, obstacle: str, run: ExcitationRun) -> str:
        """Reason why a run cannot be started, as far as it is known without planning its motion."""
        if self.phase == Phase.PAUSED:
            return "paused: end the pause to continue, or stop first"
        if not (self.rehearsed or run.slow):
            return f"{NOT_REHEARSED}: full speed is released by a run at {REHEARSAL_SPEED:.0%} of it that has succeeded"
        return self._immobile(now, obstacle)

    def refuse_return(self, now: TimePoint, obstacle: str) -> str:
        """Reason why the robot cannot return to its initial configuration; see `refuse_start`."""
        if self.phase == Phase.PAUSED:
            return "paused: stop first"
        if self.home is None:
            return "there is no configuration to return to: nothing has been started"
        return self._immobile(now, obstacle)

    def refuse_resume(self, now: TimePoint, obstacle: str) -> str:
        """Reason why a pause cannot be ended; see `refuse_start`."""
        return self._immobile(now, obstacle) if self.phase == Phase.PAUSED else "not paused"

    def plan_run(self, run: ExcitationRun) -> Planning:
        """Planning of the approach to a run from where the robot is; of the rest of it after a pause."""
        position, paused = self.feedback.position, self.phase == Phase.PAUSED
        assert position is not None
        home = self.home if paused and self.home is not None else position
        return partial(self._plan_run, run, self._since if paused else 0.0, position, home)

    def plan_return(self) -> Planning:
        """Planning of the return from where the robot is to its initial configuration."""
        assert self.feedback.position is not None and self.home is not None
        return partial(self._plan_return, self.feedback.position, self.home)

    def execute(self, now: TimePoint, plan: MotionPlan) -> str:
        """Command a motion that was planned for where the robot still is; returns the reason if it is not."""
        if np.any(np.abs(self.feedback.error(plan.start)) > REST_DISTANCE):
            return "the robot has moved while its motion was planned"
        self.run, self.home, self._since = plan.run, plan.home, plan.since
        self.command, self._look, self._unbroken = Command(plan.motion, now), now, None
        self._settled, self._rest_by = False, math.inf
        self.phase, self.reason, self.worst, self.end = plan.phase, plan.reason, NO_MARGIN, None
        self.feedback.set_speed(plan.speed)
        return ""

    def _plan_run(self, run: ExcitationRun, since: float, position: Array, home: Array) -> MotionPlan:
        """Motion of a run from a time of the excitation on.

        Raises:
            MotionError: it would leave the limits or collide.
        """
        limits, speed = (slow_limits(self._limits), REHEARSAL_SPEED) if run.slow else (self._limits, 1.0)
        if self._returns and since >= run.motion.duration:  # paused during the return
            self._check_return(position, home)
            back = return_motion(position, home, limits)
            return MotionPlan(run, position, home, back, Phase.RUNNING, RETURNING, since, speed)
        motion = enter(run.motion, since, position, self._limits)
        motion = replace(motion, lead=approach(motion.lead.start, motion.lead.goal, limits))
        if hit := self.obstruction(motion.lead):
            raise MotionError(f"the approach from the present configuration collides: {hit}; move the robot first")
        end = run.motion.evaluate(np.array([run.motion.duration]))[0][:, 0]
        there_and_back = home is motion.lead.start and np.allclose(end, motion.lead.goal, atol=CLOSED_TOLERANCE)
        if self._returns and not there_and_back:
            self._check_return(end, home)
        return MotionPlan(run, position, home, motion, Phase.APPROACHING, "", since, speed)

    def _plan_return(self, position: Array, home: Array) -> MotionPlan:
        """Slow motion to the initial configuration.

        Raises:
            MotionError: it would leave the limits or collide.
        """
        motion = return_motion(position, home, slow_limits(self._limits))
        if hit := self.obstruction(motion):
            raise MotionError(f"the return to the initial configuration collides: {hit}; move the robot by other means")
        return MotionPlan(self.run, position, home, motion, Phase.RETURNING, RETURNING, self._since, REHEARSAL_SPEED)

    def _check_return(self, start: Array, home: Array) -> None:
        """Check the return after the excitation.

        Raises:
            MotionError: it would collide.
        """
        if hit := self.obstruction(return_motion(start, home, self._limits)):
            raise MotionError(f"the return to the initial configuration collides: {hit}; set return_to_start to false")

    def pause(self, now: TimePoint) -> str:
        """Brake, to continue later."""
        self.check_reach(now)
        if self.phase == Phase.RETURNING:
            return f"{RETURNING}, which can only be stopped"
        if self.phase in UNDER_WAY:
            self._brake(now)
            self.phase, self._after, self.reason = Phase.STOPPING, Phase.PAUSED, "paused as requested"
        pausing = self.phase == Phase.STOPPING and self._after == Phase.PAUSED
        return "" if pausing or self.phase == Phase.PAUSED else "nothing is under way"

    def stop(self, now: TimePoint, why: str = STOPPED) -> str:
        """Brake if the robot moves, and end a pause; never rejected. `why` is the reported reason."""
        self.check_reach(now)
        if self.phase in UNDER_WAY:
            self._brake(now)
            self.phase = Phase.STOPPING
        elif self.phase == Phase.PAUSED:
            self.phase = Phase.READY
        elif self.phase != Phase.STOPPING:
            return ""
        self._after, self.reason, self.end = Phase.READY, why, End.STOPPED
        return ""

    def in_motion(self, now: TimePoint) -> str:
        """Reason why no motion can begin that a robot at rest would not have; empty if it is at rest."""
        if self.phase in UNDER_WAY:
            return "the robot is still moving"
        if not self._settled and not self.feedback.silence(now.steady):
            return f"the robot is still moving: {self.unrest(now)}"
        return ""

    def _immobile(self, now: TimePoint, obstacle: str) -> str:
        """Reason why no motion can begin; empty if one can."""
        feedback = self.feedback
        problem = self.in_motion(now) or obstacle or feedback.silence(now.steady)
        return problem or feedback.moving() or feedback.exceeded()

    def mark_sent(self, now: TimePoint) -> Command:
        """Set the start of the command to the time at which it was sent, and return it."""
        assert self.command is not None
        self.command = replace(self.command, begin=now)
        return self.command

    # --- status --------------------------------------------------------------------------------------------------

    def describe_motion(self) -> str:
        """Description of the present motion and its duration; empty at rest."""
        if self.phase not in UNDER_WAY or self.command is None:
            return ""
        motion = self.command.trajectory
        if not isinstance(motion, Entered):
            return f"{RETURNING}, {motion.duration:.1f} s"
        slow = f"rehearses one period at {REHEARSAL_SPEED:.0%} of the speed: " if self.rehearsing else ""
        steps = [f"approaches the excitation ({motion.lead.duration:.1f} s)"]
        steps.append(f"follows it ({motion.duration - motion.lead.duration:.1f} s)")
        total = motion.duration
        if self._returns and self.home is not None:
            end = motion.evaluate(np.array([motion.duration]))[0][:, 0]
            back = self._return_time(end)
            steps.append(f"returns ({back:.1f} s)")
            total += back
        return f"{slow}{', '.join(steps)}: {total:.1f} s in all"

    def _return_time(self, start: Array) -> float:
        """Duration of the return after the excitation [s]."""
        assert self.home is not None
        limits = slow_limits(self._limits) if self.run.slow else self._limits
        return return_motion(start, self.home, limits).duration

    def remaining(self, now: TimePoint) -> float:
        """Time until the end of the present motion, with its return [s]; 0 at rest."""
        if self.phase not in MOVING or self.command is None:
            return 0.0
        motion, left = self.command.trajectory, self.command.remaining(now.motion)
        if isinstance(motion, Entered) and self._returns and self.home is not None:
            left += self._return_time(motion.evaluate(np.array([motion.duration]))[0][:, 0])
        return left

    def elapsed(self, now: TimePoint) -> float:
        """Own time of the excitation at the present time [s]."""
        if self.phase == Phase.RUNNING and self.command is not None and isinstance(self.command.trajectory, Entered):
            return float(self.command.trajectory.own_time(np.array([self.command.time(now.motion)]))[0][0])
        return self._since

    @property
    def complete(self) -> bool:
        """Whether the excitation was executed to its end; a rehearsal does not count."""
        return not self.rehearsing and self._since >= self.excitation.duration

    def tracking_error(self) -> Array:
        """Tracking error at the latest joint states, when measured [rad or m], shape (n,); 0 before a command."""
        if self.command is None or self._undecided:
            return np.zeros(len(self._tracking))
        return self.feedback.error(self.command.state(self.feedback.measured)[0])

    @property
    def at_rest(self) -> bool:
        """Whether joint states have shown the robot at rest after its latest command; True before the first."""
        return self._settled

    @property
    def braking_time(self) -> float:
        """Duration of the braking that is commanded [s]; 0 without."""
        motion = self.command.trajectory if self.command is not None else None
        return motion.duration if isinstance(motion, Braking) else 0.0

    def unrest(self, now: TimePoint) -> str:
        """Reason why joint states do not show the robot at rest at present; empty if they do."""
        return self.feedback.unrest(now.steady, -math.inf if self._settled else self._quiet)
