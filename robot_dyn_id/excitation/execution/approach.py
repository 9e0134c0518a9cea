# SPDX-License-Identifier: Apache-2.0
"""Motions around an excitation: approach, entry at any time of it, and return."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import (
    Sample,
    Trajectory,
    check_limits,
    compose,
    smooth_ramp,
    smooth_step,
    step_time,
)

MIN_APPROACH_S = 0.5
"""Minimum duration of an approach, in which the lag of a controller decays [s]."""

MIN_RUN_UP_S = 1.0
"""Shortest time to reach the full speed of an excitation that is entered midway [s]."""

MAX_RUN_UP_S = 60.0
"""Longest time to reach the full speed of an excitation that is entered midway [s]."""


@dataclass(frozen=True)
class PointToPoint:
    """Synchronized minimum-jerk motion from rest to rest on a straight line in joint space (Flash and Hogan 1985).

    Attributes:
        start, goal: configurations [rad or m], shape (n,).
        duration: duration [s].
    """

    start: Array
    goal: Array
    duration: float

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        distance = (self.goal - self.start)[:, None]
        w, dw, ddw, dddw = smooth_step(t / self.duration)
        T = self.duration
        return self.start[:, None] + distance * w, distance * dw / T, distance * ddw / T**2, distance * dddw / T**3


def approach(start: Array, goal: Array, limits: MotionLimits) -> PointToPoint:
    """Plan the fastest motion to the start of an excitation within the limits.

    The start may be in the margin that excitations keep to the robot's own position limits.

    Args:
        start: present configuration [rad or m], shape (n,).
        goal: start of the excitation [rad or m], shape (n,).
        limits: motion limits of the joints.

    Raises:
        MotionError: start or goal is outside the limits.
    """
    limits.check_positions(start[:, None], "the robot", hard=True)
    limits.check_positions(goal[:, None], "the start of the excitation")
    return _plan_fastest(start, goal, limits)


def return_motion(start: Array, goal: Array, limits: MotionLimits) -> PointToPoint:
    """Plan the motion back to the initial configuration, which may be in the margin too; see `approach`.

    Raises:
        MotionError: start or goal is outside the robot's own limits.
    """
    limits.check_positions(start[:, None], "the robot", hard=True)
    limits.check_positions(goal[:, None], "the initial configuration", hard=True)
    return _plan_fastest(start, goal, limits)


def _plan_fastest(start: Array, goal: Array, limits: MotionLimits) -> PointToPoint:
    return PointToPoint(start, goal, max(MIN_APPROACH_S, step_time(limits, np.abs(goal - start))))


@dataclass(frozen=True)
class Entered:
    """An approach followed by an excitation from a given time on, accelerated along its own path.

    With s the excitation's own time, ds/dt rises smoothly from 0 to 1 during the run-up: the path is that of the
    excitation, velocities are at most its own, and both ends are at rest.

    Attributes:
        lead: approach to the excitation's position at `since`.
        excitation: the entire excitation.
        since: own time of the excitation at which it is entered [s].
        run_up: duration of the run-up [s]; 0 at the beginning of an excitation, which is at rest.
    """

    lead: PointToPoint
    excitation: Trajectory
    since: float = 0.0
    run_up: float = 0.0

    @property
    def duration(self) -> float:
        """Duration including the approach [s]."""
        return self.lead.duration + self._time_for(self.excitation.duration - self.since)

    def _time_for(self, span: float) -> float:
        """Duration in which the own time advances by `span` [s]."""
        if span >= self.run_up / 2:
            return span + self.run_up / 2
        low, high = 0.0, 1.0  # bisection
        for _ in range(60):
            x = (low + high) / 2
            low, high = (x, high) if self.run_up * float(smooth_ramp(np.array(x))) < span else (low, x)
        return high * self.run_up

    def own_time(self, t: Array) -> Sample:
        """Own time of the excitation at times `t` with its three derivatives, shape (N,) each."""
        t = np.maximum(t - self.lead.duration, 0.0)
        if self.run_up == 0.0:
            return self.since + t, np.ones_like(t), np.zeros_like(t), np.zeros_like(t)
        speed, rise, curve, _ = smooth_step(t / self.run_up)
        own = np.minimum(self.since + self.run_up * smooth_ramp(t / self.run_up), self.excitation.duration)
        return own, speed, rise / self.run_up, curve / self.run_up**2

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        early = t < self.lead.duration
        if early.all():  # at every joint state one time is evaluated, in one of the two
            return self.lead.evaluate(t)
        if self.run_up:
            clock = self.own_time(t)
            along = compose(self.excitation.evaluate(clock[0]), clock)
        else:
            along = self.excitation.evaluate(self.since + np.maximum(t - self.lead.duration, 0.0))
        if not early.any():
            return along
        before = self.lead.evaluate(t)
        q, dq, ddq, dddq = (np.where(early, a, b) for a, b in zip(before, along, strict=True))
        return q, dq, ddq, dddq


def enter(excitation: Trajectory, since: float, start: Array, limits: MotionLimits) -> Entered:
    """Plan the motion from the present configuration into an excitation at a time of it.

    Args:
        excitation: an excitation within the limits.
        since: own time of the excitation [s]; its state need not be at rest.
        start: present configuration [rad or m], shape (n,).
        limits: motion limits of the joints.

    Raises:
        MotionError: the robot is outside its limits, or every run-up exceeds the limits of acceleration or jerk.
    """
    goal = excitation.evaluate(np.array([since]))[0][:, 0]
    motion = Entered(approach(start, goal, limits), excitation, since)
    if since == 0.0:
        return motion
    run_up = MIN_RUN_UP_S
    while True:
        motion = replace(motion, run_up=run_up)
        begin = motion.lead.duration
        try:
            check_limits(motion, limits, (begin, min(begin + run_up, motion.duration)))
            return motion
        except MotionError:
            run_up *= 2.0
            if run_up > MAX_RUN_UP_S:
                raise
