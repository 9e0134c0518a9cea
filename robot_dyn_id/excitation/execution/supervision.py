# SPDX-License-Identifier: Apache-2.0
"""Who may move the robot when: the states of an execution, its faults, and the command that follows from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.execution.command import Command
from robot_dyn_id.excitation.execution.feedback import REST_SPEED, Feedback, TimePoint
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.transfer import Braking, Entered, enter, way_back
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Trajectory

GRACE = 1.0
"""How much longer than commanded a robot may take to be measured at rest [s]."""

OVERSLEPT = 0.05
"""A tick that is this late [s] tells that the process was held up."""

LISTENING = 0.03
"""After that it listens so long before it judges [s]."""

SET_BACK = 0.05
"""Least step backwards of the motion's clock that is a fault [s]."""

MEMORY = 1.0
"""For so long it is named as a likely cause of what happens then [s]."""


NEAR = 1e-3
"""An excitation that ends so close to its beginning is left along the approach [rad or m]."""


def unobstructed(motion: Trajectory) -> str:
    """Nothing is in the way of a motion: the answer where nothing is checked."""
    return ""


class Phase(IntEnum):
    """As in ExcitationStatus.msg."""

    WAITING = 0
    READY = 1
    APPROACHING = 2
    RUNNING = 3
    PAUSED = 4
    STOPPING = 5
    DONE = 6
    FAULT = 7


UNDER_WAY = (Phase.APPROACHING, Phase.RUNNING)

MOVING = (*UNDER_WAY, Phase.STOPPING)

STOPPED, RETURNING = "stopped as asked", "returning to where the robot stood"
"""Reasons that are no faults."""


class Supervisor:
    """Runs an excitation on request, and brakes on request or on a fault.

    Feed it joint states and the clock; send `command` whenever it is another one than before.

    Where the motion is sent in pieces, `extend` takes how far they reach. A robot that has used them up brakes along
    the last one; the supervisor then commands exactly this braking, and its phase is FAULT.

    Attributes:
        phase: what it is doing.
        reason: why it waits, stopped or failed, or that it returns; empty otherwise.
        command: the latest motion; None before the first.
        feedback: what the robot tells.
        obstruction: reason why a motion to or from the excitation would collide; may be replaced at rest.
    """

    def __init__(
        self,
        excitation: Trajectory,
        limits: MotionLimits,
        thresholds: GuardThresholds,
        returns: bool = True,
        obstruction: Callable[[Trajectory], str] = unobstructed,
    ) -> None:
        """Wait for joint states.

        Args:
            excitation: within the limits, at rest at both ends.
            limits: of the joints.
            thresholds: what is a fault.
            returns: whether the robot goes back to where it stood, once the excitation is over.
            obstruction: reason why a motion to or from the excitation would collide; empty if it would not.
        """
        self.phase, self.reason = Phase.WAITING, ""
        self.command: Command | None = None
        self.feedback = Feedback(limits, thresholds)
        self.excitation, self._limits, self._tracking = excitation, limits, thresholds.tracking
        self._returns, self.obstruction = returns, obstruction
        self._home: Array | None = None  # where the robot stood when it was asked to start
        self._since = 0.0  # own time of the excitation at which it was left
        self._after = Phase.READY  # what follows braking
        self._ticked = self._woke = self._held_up_at = -math.inf
        self._held_up = 0.0  # how long, then
        self._latest = -math.inf  # time of the motion at the latest look
        self._reach = math.inf  # time of the motion up to which the robot has the command

    # --- what happens --------------------------------------------------------------------------------------------

    def receive(
        self,
        now: TimePoint,
        stamp: float,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float] = (),
        efforts: Sequence[float] = (),
    ) -> None:
        """Take joint states, see `Feedback.receive`; what is wrong with them is a fault at once."""
        self.feedback.receive(now, stamp, names, positions, velocities, efforts)
        self._check_reach(now)
        if self.phase in MOVING:
            self._watch(now, self.feedback.broken or self.feedback.exceeded())

    def tick(self, now: TimePoint, obstacle: str) -> None:
        """Look at the clock and the robot, often.

        Args:
            now: the time.
            obstacle: why the robot cannot be commanded, such as no controller; empty if it can.
        """
        self._check_reach(now)
        self._progress(now)
        if math.isfinite(self._ticked) and now.steady - self._ticked > OVERSLEPT:
            self._held_up_at, self._held_up = now.steady, now.steady - self._ticked
            if self.feedback.at.steady > self._woke:
                self._woke = now.steady
        self._ticked = now.steady
        # Who overslept has not listened: what was said meanwhile is read first, once, before silence is judged.
        problem = "" if now.steady - self._woke < LISTENING else self.feedback.silence(now.steady)
        problem = problem or obstacle
        if self.phase in (Phase.WAITING, Phase.READY):
            if problem:
                self.phase, self.reason = Phase.WAITING, problem
            elif self.phase == Phase.WAITING:
                self.phase, self.reason = Phase.READY, ""
        elif self.phase in MOVING:
            self._watch(now, problem or self.feedback.outside() or self._lost_track(now.steady))

    def extend(self, reach: float) -> None:
        """Take how far the robot has the command; afterwards it brakes on its own.

        Args:
            reach: time by the motion's clock [s]; infinite where it has all of it.
        """
        self._reach = reach

    def _check_reach(self, now: TimePoint) -> None:
        """Command the braking that has begun where the pieces sent so far ended, and follow a clock that goes back."""
        latest, self._latest = self._latest, now.motion
        if self.phase not in UNDER_WAY:
            if now.motion < latest - SET_BACK:
                self._follow_set_back(now, latest)
            return
        late = now.motion - self._reach
        if late > 0.0:
            self._watch(
                TimePoint(now.steady - late, self._reach),
                f"this node or its clock was held up: the next piece of the motion was due {late:.2g} s ago, and the "
                "robot has braked on its own",
            )
        elif now.motion < latest - SET_BACK:
            self._set_back(now, latest)
            self._watch(now, f"the clock of the motion went back by {latest - now.motion:.3g} s")

    def _follow_set_back(self, now: TimePoint, latest: float) -> None:
        """Let no command be unfinished again because the clock of the motion went back."""
        if self.command is None:
            return
        if not self.command.over(latest):
            self._set_back(now, latest)
            return
        self.command = None
        if self.phase == Phase.STOPPING:
            self.phase = self._after

    def _set_back(self, now: TimePoint, latest: float) -> None:
        """Shift the command to a clock that went back: the robot goes on from where it is."""
        assert self.command is not None
        begin = replace(now, motion=now.motion - self.command.time(latest))
        self.command = replace(self.command, begin=begin)

    def fail(self, now: TimePoint, why: str) -> None:
        """Brake, if anything moves, for a reason other than the robot; a new start may be tried.

        Args:
            now: the time.
            why: the reason that is reported.
        """
        self._check_reach(now)
        self._watch(now, why)

    @property
    def exciting(self) -> bool:
        """Whether the robot approaches or follows the excitation, which is what a recording is for."""
        return self.phase in UNDER_WAY and self.command is not None and isinstance(self.command.trajectory, Entered)

    def _progress(self, now: TimePoint) -> None:
        """Go on to what the clock demands."""
        if self.command is None:
            return
        motion = self.command.trajectory
        if isinstance(motion, Entered):
            if self.phase == Phase.APPROACHING and self.command.time(now.motion) >= motion.lead.duration:
                self.phase = Phase.RUNNING
            if self.phase == Phase.RUNNING and self.command.over(now.motion):
                self._since = self.excitation.duration
                if self._returns:
                    self._return(now, self.command.state(now.motion)[0])
                else:
                    self.phase = Phase.DONE
        elif self.command.over(now.motion):
            if self.phase == Phase.STOPPING:
                self.phase = self._after
            elif self.phase == Phase.RUNNING:
                self.phase, self.reason = Phase.DONE, ""

    def _return(self, now: TimePoint, start: Array) -> None:
        """Go back to where the robot stood: along the approach if the excitation ends where it begins."""
        assert self._home is not None
        self.command = Command(way_back(start, self._home, self._limits), now)
        self.phase, self.reason = Phase.RUNNING, RETURNING

    def _lost_track(self, steady: float) -> str:
        error = self.tracking_error()
        for j in np.flatnonzero(np.abs(error) > self._tracking):
            unit = self._limits.unit(j)
            return (
                f"tracking error: joint {self._limits.joint_names[j]} is {abs(error[j]):.3g} {unit} away from its "
                f"command, more than {self._tracking[j]:g} {unit}{self._likely_cause(steady, int(j))}"
            )
        return ""

    def _likely_cause(self, steady: float, j: int) -> str:
        """Why joint j was left behind, other than by its load, as far as it shows; empty if it does not."""
        if steady - self._held_up_at < MEMORY:
            return f"; this node was held up for {self._held_up:.2f} s just before: its commands came late"
        assert self.command is not None
        commanded = self.command.state(self.feedback.at.motion)[1]
        if abs(self.feedback.velocity[j]) <= REST_SPEED < abs(commanded[j]):
            return "; it stands still: the controller does not follow the command, or got it late"
        return ""

    def _watch(self, now: TimePoint, fault: str) -> None:
        if not fault:
            return
        if self.phase in UNDER_WAY:
            self._brake(now)
        self.phase, self.reason = Phase.FAULT, fault

    def abandon(self, now: TimePoint, why: str) -> None:
        """Take notice that the controller does not follow any more, and holds the robot or lets somebody else move it.

        It is a fault without braking, which would be a motion anew, also when the motion was over. One that the
        controller refuses in the middle of a fault is told beside that.
        """
        self._since, self.command, self._reach = self.elapsed(now), None, math.inf
        self.phase, self.reason = Phase.FAULT, f"{self.reason}; {why}" if self.phase == Phase.FAULT else why

    def _brake(self, now: TimePoint) -> None:
        assert self.command is not None
        self._since, self._reach = self.elapsed(now), math.inf
        self.command = Command(Braking(*self.command.state(now.motion), self._limits.acceleration), now)

    # --- what is asked; the answer is empty, or why not ----------------------------------------------------------

    def start(self, now: TimePoint, obstacle: str) -> str:
        """Begin the excitation."""
        if self.phase == Phase.PAUSED:
            return "paused: end the pause to go on, or stop first"
        return self._enter(now, obstacle, 0.0)

    def resume(self, now: TimePoint, obstacle: str) -> str:
        """Go on after a pause, from where it was, by a new approach."""
        return self._enter(now, obstacle, self._since) if self.phase == Phase.PAUSED else "not paused"

    def pause(self, now: TimePoint) -> str:
        """Brake, to go on later."""
        self._check_reach(now)
        if self.phase in UNDER_WAY:
            self._brake(now)
            self.phase, self._after, self.reason = Phase.STOPPING, Phase.PAUSED, "paused as asked"
        pausing = self.phase == Phase.STOPPING and self._after == Phase.PAUSED
        return "" if pausing or self.phase == Phase.PAUSED else "nothing is under way"

    def stop(self, now: TimePoint, why: str = STOPPED) -> str:
        """Brake, if anything moves; a pause ends too. It is never refused; `why` is the reason that is told."""
        self._check_reach(now)
        if self.phase in UNDER_WAY:
            self._brake(now)
            self.phase = Phase.STOPPING
        elif self.phase == Phase.PAUSED:
            self.phase = Phase.READY
        elif self.phase != Phase.STOPPING:
            return ""
        self._after, self.reason = Phase.READY, why
        return ""

    def _enter(self, now: TimePoint, obstacle: str, since: float) -> str:
        if self.phase in UNDER_WAY or (self.command is not None and not self.command.over(now.motion)):
            return "the robot is still moving"
        feedback = self.feedback
        problem = obstacle or feedback.silence(now.steady) or feedback.moving() or feedback.exceeded()
        if problem:
            return problem
        assert feedback.position is not None
        try:
            if self._returns and since >= self.excitation.duration:  # paused on the way back
                assert self._home is not None
                problem = self._blocked_back(feedback.position, self._home)
                if not problem:
                    self._return(now, feedback.position)
                return problem
            motion = enter(self.excitation, since, feedback.position, self._limits)
            home = self._home if self.phase == Phase.PAUSED else feedback.position
            problem = self._blocked(motion, feedback.position if home is None else home)
        except MotionError as error:
            return str(error)
        if problem:
            return problem
        if self.phase != Phase.PAUSED:
            self._home = feedback.position
        self.command, self._since, self._latest = Command(motion, now), since, now.motion
        self.phase, self.reason = Phase.APPROACHING, ""
        return ""

    def _blocked(self, motion: Entered, home: Array) -> str:
        """Reason why the approach, or the way back to where the robot stood, would collide; empty if none would."""
        hit = self.obstruction(motion.lead)
        if hit:
            return f"the approach from where the robot stands collides: {hit}; move the robot elsewhere first"
        end = self.excitation.evaluate(np.array([self.excitation.duration]))[0][:, 0]
        there_and_back = home is motion.lead.start and np.allclose(end, motion.lead.goal, atol=NEAR)
        return "" if not self._returns or there_and_back else self._blocked_back(end, home)

    def _blocked_back(self, start: Array, home: Array) -> str:
        hit = self.obstruction(way_back(start, home, self._limits))
        return f"the way back to where the robot stood collides: {hit}; set return_to_start to false" if hit else ""

    def sent(self, now: TimePoint) -> Command:
        """The command has gone out only now: it begins now; this one is returned."""
        assert self.command is not None
        self.command = replace(self.command, begin=now)
        return self.command

    # --- what can be told ----------------------------------------------------------------------------------------

    def outlook(self) -> str:
        """What has been begun, and how long it takes, for people; empty while nothing is under way."""
        if self.phase not in UNDER_WAY or self.command is None:
            return ""
        motion = self.command.trajectory
        if not isinstance(motion, Entered):
            return f"{RETURNING}, {motion.duration:.1f} s"
        steps = [f"approaches the excitation ({motion.lead.duration:.1f} s)"]
        steps.append(f"follows it ({motion.duration - motion.lead.duration:.1f} s)")
        total = motion.duration
        if self._returns and self._home is not None:
            end = motion.evaluate(np.array([motion.duration]))[0][:, 0]
            back = way_back(end, self._home, self._limits).duration
            steps.append(f"returns ({back:.1f} s)")
            total += back
        return f"{', '.join(steps)}: {total:.1f} s in all"

    def elapsed(self, now: TimePoint) -> float:
        """Own time of the excitation [s]."""
        if self.phase == Phase.RUNNING and self.command is not None and isinstance(self.command.trajectory, Entered):
            return float(self.command.trajectory.own_time(np.array([self.command.time(now.motion)]))[0][0])
        return self._since

    @property
    def complete(self) -> bool:
        """Whether the excitation was executed to its end, whatever follows."""
        return self._since >= self.excitation.duration

    def tracking_error(self) -> Array:
        """Measured minus commanded position at the latest joint states, shape (n,); 0 before the first command."""
        if self.command is None:
            return np.zeros(len(self._tracking))
        return self.feedback.error(self.command.state(self.feedback.at.motion)[0])

    def at_rest(self, now: TimePoint) -> bool:
        """Whether the robot has come to rest; if it cannot be told, whether it must have long ago."""
        if self.command is None:
            return True
        if now.steady - self.command.begin.steady > self.command.trajectory.duration + GRACE:
            return self.phase not in UNDER_WAY
        return self.phase not in UNDER_WAY and self.command.over(now.motion) and not self.feedback.moving()
