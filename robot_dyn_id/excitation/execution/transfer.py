# SPDX-License-Identifier: Apache-2.0
"""Motions around an excitation: from where the robot stands to its start, into it at any place, and to rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Sample, Trajectory, check_limits, compose, smooth_ramp, smooth_step

SHORTEST_APPROACH = 0.5
"""Even no way at all takes this long [s]: a controller that lags catches up before the excitation begins."""

SHORTEST_RUN_UP, LONGEST_RUN_UP = 1.0, 60.0
"""Time in which an excitation that is entered midway reaches its full speed [s]."""


@dataclass(frozen=True)
class PointToPoint:
    """From rest to rest on a straight line with the least jerk (Flash and Hogan 1985), all joints together.

    Attributes:
        start, goal: shape (n,) [rad or m].
        duration: [s].
    """

    start: Array
    goal: Array
    duration: float

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        way = (self.goal - self.start)[:, None]
        w, dw, ddw, dddw = smooth_step(t / self.duration)
        T = self.duration
        return self.start[:, None] + way * w, way * dw / T, way * ddw / T**2, way * dddw / T**3


def approach(start: Array, goal: Array, limits: MotionLimits) -> PointToPoint:
    """The quickest `PointToPoint` motion within the limits of velocity, acceleration and jerk.

    Positions lie between the ends. The start may be in the margin that excitations keep to the robot's own limits.

    Raises:
        MotionError: start or goal outside the limits.
    """
    limits.check_positions(start[:, None], "the robot", hard=True)
    limits.check_positions(goal[:, None], "the start of the excitation")
    return _quickest(start, goal, limits)


def way_back(start: Array, goal: Array, limits: MotionLimits) -> PointToPoint:
    """As `approach`, but to where the robot once stood, which may be in the margin too.

    Raises:
        MotionError: start or goal outside the robot's own limits.
    """
    limits.check_positions(start[:, None], "the robot", hard=True)
    limits.check_positions(goal[:, None], "where the robot stood at first", hard=True)
    return _quickest(start, goal, limits)


def _quickest(start: Array, goal: Array, limits: MotionLimits) -> PointToPoint:
    way = np.abs(goal - start)
    speed, acceleration, jerk = 15.0 / 8.0, 10.0 / np.sqrt(3.0), 60.0  # peaks of the quintic of way and duration 1
    needed = np.array(
        [
            speed * way / limits.velocity,
            np.sqrt(acceleration * way / limits.acceleration),
            np.cbrt(jerk * way / limits.jerk),
        ]
    )
    return PointToPoint(start, goal, max(SHORTEST_APPROACH, float(needed.max())))


@dataclass(frozen=True)
class Braking:
    """From any state to rest with the largest deceleration, every joint by itself: the shortest way and time.

    The acceleration has steps at the beginning and where a joint comes to rest: only this is at rest after v / a, and
    a limit of the jerk does not hold for it.

    Attributes:
        position: at the beginning, shape (n,) [rad or m].
        velocity: at the beginning, shape (n,).
        deceleration: positive, shape (n,).
    """

    position: Array
    velocity: Array
    deceleration: Array

    @property
    def times(self) -> Array:
        """When each joint rests [s], shape (n,)."""
        return np.asarray(np.abs(self.velocity) / self.deceleration)

    @property
    def duration(self) -> float:
        """When all joints rest [s]."""
        return float(self.times.max())

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`; the last state stays."""
        signed = (-np.sign(self.velocity) * self.deceleration)[:, None]
        moving = t < self.times[:, None]
        t = np.minimum(t, self.times[:, None])
        velocity = np.where(moving, self.velocity[:, None] + signed * t, 0.0)
        position = self.position[:, None] + (self.velocity[:, None] + signed * t / 2) * t
        return position, velocity, np.where(moving, signed, 0.0), np.zeros_like(position)


@dataclass(frozen=True)
class Entered:
    """An approach, then an excitation from some time on, run up to its speed along its own path.

    With s the excitation's own time, ds/dt grows smoothly from 0 to 1 over the run-up: positions are those of the
    excitation, velocities at most its own, both ends at rest.

    Attributes:
        lead: the approach to the excitation's position at `since`.
        excitation: the whole one.
        since: own time of the excitation where it is entered [s].
        run_up: [s]; 0 enters at full speed, which an excitation's beginning, being at rest, allows.
    """

    lead: PointToPoint
    excitation: Trajectory
    since: float = 0.0
    run_up: float = 0.0

    @property
    def duration(self) -> float:
        """How long it takes, the approach included [s]."""
        return self.lead.duration + self._time_for(self.excitation.duration - self.since)

    def _time_for(self, way: float) -> float:
        """How long an own time `way` takes [s]."""
        if way >= self.run_up / 2:
            return way + self.run_up / 2
        low, high = 0.0, 1.0  # the root lies between, found by bisection
        for _ in range(60):
            x = (low + high) / 2
            low, high = (x, high) if self.run_up * float(smooth_ramp(np.array(x))) < way else (low, x)
        return high * self.run_up

    def own_time(self, t: Array) -> Sample:
        """The excitation's own time at times `t` and its three derivatives, shape (N,) each."""
        t = np.maximum(t - self.lead.duration, 0.0)
        if self.run_up == 0.0:
            return self.since + t, np.ones_like(t), np.zeros_like(t), np.zeros_like(t)
        speed, rise, curve, _ = smooth_step(t / self.run_up)
        own = np.minimum(self.since + self.run_up * smooth_ramp(t / self.run_up), self.excitation.duration)
        return own, speed, rise / self.run_up, curve / self.run_up**2

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        clock = self.own_time(t)
        along = compose(self.excitation.evaluate(clock[0]), clock)
        early = t < self.lead.duration
        before = self.lead.evaluate(t)
        q, dq, ddq, dddq = (np.where(early, a, b) for a, b in zip(before, along, strict=True))
        return q, dq, ddq, dddq


def enter(excitation: Trajectory, since: float, start: Array, limits: MotionLimits) -> Entered:
    """The motion from where a robot stands into an excitation, at its beginning or at a later time of it.

    Args:
        excitation: within the limits.
        since: own time of the excitation [s]; its state there need not be at rest.
        start: where the robot stands [rad or m], shape (n,).
        limits: of the joints.

    Raises:
        MotionError: the robot stands outside its limits, or no run-up keeps the limits of acceleration and jerk.
    """
    goal = excitation.evaluate(np.array([since]))[0][:, 0]
    motion = Entered(approach(start, goal, limits), excitation, since)
    if since == 0.0:
        return motion
    run_up = SHORTEST_RUN_UP
    while True:
        motion = replace(motion, run_up=run_up)
        begin = motion.lead.duration
        try:
            check_limits(motion, limits, (begin, min(begin + run_up, motion.duration)))
            return motion
        except MotionError:
            run_up *= 2.0
            if run_up > LONGEST_RUN_UP:
                raise
