# SPDX-License-Identifier: Apache-2.0
"""Sampling of motions as trajectory points for a trajectory controller."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.excitation.execution.command import Command
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Trajectory

MIN_SPACING_S = 2e-5
"""Minimum time between two points, as controllers require increasing times [s]."""

MIN_HOLD_S = 0.2
"""Minimum time for which rest is commanded at the end of a segment [s].

Controllers reject a trajectory whose end is in the past when it arrives, and braking from a small speed takes only
microseconds.
"""


def sample(command: Command, step: float) -> TrajectoryPoints:
    """Sample the entire motion without its first point, as a controller starts from its present state.

    Braking has no point within the first step, in which a controller that gets it late would have to catch up.

    Args:
        command: the commanded motion.
        step: largest time between two points [s]; of braking, smallest time of the first one.
    """
    motion = command.trajectory
    braking = isinstance(motion, Braking)
    if isinstance(motion, Braking):
        times = _braking_times(motion, np.inf)  # cubics need no points in between
        times = times[times >= step] if motion.duration >= step else np.array([step])
    else:
        times = _times(motion.duration, step)
        times = times[1:] if len(times) > 1 else times
    q, dq, ddq, _ = motion.evaluate(times)
    return _ending_at_rest(times, q, dq, ddq, 0 if braking else len(times))


def preview(motion: Trajectory, step: float) -> TrajectoryPoints:
    """Sample an entire motion including its first point, for visualization.

    Args:
        motion: a motion that ends at rest.
        step: largest time between two points [s].
    """
    times = _times(motion.duration, step)
    q, dq, ddq, _ = motion.evaluate(times)
    return _ending_at_rest(times, q, dq, ddq, len(times))


def look_ahead(command: Command, now: float, step: float, ahead: float, limits: MotionLimits) -> TrajectoryPoints:
    """Sample the next segment of the motion followed by braking, so that the robot stops if no more segments arrive.

    The last point holds the rest for at least `MIN_HOLD_S`, so that the segment is not outdated when it arrives.

    Args:
        command: the commanded motion.
        now: time of the motion clock [s], time 0 of the points.
        step: largest time between two points [s].
        ahead: length of the segment [s]; the rest is held for the same time, or `MIN_HOLD_S` if that is longer.
        limits: motion limits, for braking.
    """
    return _held(_until_rest(command, now, step, ahead, limits), max(ahead, MIN_HOLD_S))


def _until_rest(command: Command, now: float, step: float, ahead: float, limits: MotionLimits) -> TrajectoryPoints:
    motion = command.trajectory
    begin = command.time(now)
    times = begin + _times(min(ahead, motion.duration - begin), step)
    q, dq, ddq, _ = motion.evaluate(times)
    stop = Braking(q[:, -1], dq[:, -1], limits.acceleration)
    after = _braking_times(stop, np.inf)[1:]  # cubics need no points in between
    more_q, more_dq, more_ddq, _ = stop.evaluate(after)
    all_times = np.concatenate([times - begin, times[-1] - begin + after])
    q, dq, ddq = (np.hstack(pair) for pair in ((q, more_q), (dq, more_dq), (ddq, more_ddq)))
    return _ending_at_rest(all_times, q, dq, ddq, len(times))


def _held(points: TrajectoryPoints, duration: float) -> TrajectoryPoints:
    """The points with the final rest held for `duration` [s]."""
    still = np.zeros_like(points.dq[-1:])
    return TrajectoryPoints(
        np.append(points.t, points.t[-1] + duration),
        np.vstack([points.q, points.q[-1:]]),
        np.vstack([points.dq, still]),
        np.vstack([points.ddq, still]),
        smooth=points.smooth,
    )


def _ending_at_rest(t: Array, q: Array, dq: Array, ddq: Array, smooth: int) -> TrajectoryPoints:
    """Points of N samples, shape (n, N), with final velocity and acceleration exactly 0, as controllers require."""
    dq[:, -1] = ddq[:, -1] = 0.0
    return TrajectoryPoints(t, q.T, dq.T, ddq.T, smooth=smooth)


def _times(duration: float, step: float) -> Array:
    """Times from 0 to `duration`, both included; only 0 for a negligible duration."""
    return np.linspace(0.0, duration, 1 + int(np.ceil(duration / step))) if duration > MIN_SPACING_S else np.zeros(1)


def _braking_times(motion: Braking, step: float) -> Array:
    """Time grid that includes the times at which joints come to rest, where accelerations have steps."""
    rests = np.sort(motion.times[motion.times > MIN_SPACING_S])
    rests = rests[np.diff(rests, append=np.inf) > MIN_SPACING_S]
    times = _times(motion.duration, step)
    apart = np.all(np.abs(times[:, None] - rests[None, :]) > MIN_SPACING_S, axis=1)
    return np.sort(np.concatenate([times[apart], rests]))
