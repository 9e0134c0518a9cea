# SPDX-License-Identifier: Apache-2.0
"""Motions as points that a trajectory controller interpolates between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.execution.command import Command
from robot_dyn_id.excitation.execution.transfer import Braking
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Trajectory

SAME = 2e-5
"""Points closer than this are one [s]: controllers want times that grow."""

HOLD = 0.2
"""Least time for which the rest at the end of a piece is commanded [s]: controllers refuse a trajectory whose end is
past when it arrives, and braking from a small speed ends within microseconds."""


@dataclass(frozen=True)
class Points:
    """Points of a motion that ends at rest, N in number.

    Attributes:
        times: from the beginning [s], shape (N,), growing.
        q, dq, ddq: shape (N, n) each.
        smooth: how many of them, from the first one on, carry accelerations. Those of braking do not: between
            positions and velocities controllers interpolate with cubics, which a constant deceleration is, while its
            steps have no acceleration of their own.
    """

    times: Array
    q: Array
    dq: Array
    ddq: Array
    smooth: int

    def __post_init__(self) -> None:
        """Make the rest at the end exact: controllers refuse a last velocity that is not 0."""
        self.dq[-1] = self.ddq[-1] = 0.0


def sample(command: Command, step: float) -> Points:
    """The whole motion, without its first instant: the controller begins at its own present state.

    Args:
        command: the motion.
        step: largest time between two points [s].
    """
    motion = command.trajectory
    braking = isinstance(motion, Braking)
    times = _braking_times(motion, step) if isinstance(motion, Braking) else _times(motion.duration, step)
    times = times[1:] if len(times) > 1 else times
    q, dq, ddq, _ = motion.evaluate(times)
    return Points(times, q.T, dq.T, ddq.T, 0 if braking else len(times))


def preview(motion: Trajectory, step: float) -> Points:
    """A whole motion, its first instant included, for people to look at.

    Args:
        motion: at rest at its end.
        step: largest time between two points [s].
    """
    times = _times(motion.duration, step)
    q, dq, ddq, _ = motion.evaluate(times)
    return Points(times, q.T, dq.T, ddq.T, len(times))


def look_ahead(command: Command, now: float, step: float, ahead: float, limits: MotionLimits) -> Points:
    """What follows from now on, then braking and rest: a controller that gets no more comes to rest by itself.

    The last point repeats the rest for at least `HOLD`, so that the piece is not outdated when it arrives.

    Args:
        command: the motion.
        now: by the motion's clock [s]; time 0 of the points.
        step: largest time between two points [s].
        ahead: how much of the motion [s]; the rest is held for as long, or `HOLD` if that is longer.
        limits: of braking.
    """
    return _held(_until_rest(command, now, step, ahead, limits), max(ahead, HOLD))


def _until_rest(command: Command, now: float, step: float, ahead: float, limits: MotionLimits) -> Points:
    motion = command.trajectory
    begin = command.time(now)
    if isinstance(motion, Braking):
        times = _braking_times(motion, np.inf)
        times = np.concatenate([[begin], times[times > begin + SAME]])
        q, dq, ddq, _ = motion.evaluate(times)
        return Points(times - begin, q.T, dq.T, ddq.T, 0)
    times = begin + _times(min(ahead, motion.duration - begin), step)
    q, dq, ddq, _ = motion.evaluate(times)
    stop = Braking(q[:, -1], dq[:, -1], limits.acceleration)
    after = _braking_times(stop, np.inf)[1:]  # cubics need no more points
    more_q, more_dq, more_ddq, _ = stop.evaluate(after)
    return Points(
        np.concatenate([times - begin, times[-1] - begin + after]),
        np.hstack([q, more_q]).T,
        np.hstack([dq, more_dq]).T,
        np.hstack([ddq, more_ddq]).T,
        len(times),
    )


def _held(points: Points, duration: float) -> Points:
    """The points with their rest at the end held for `duration` [s]."""
    still = np.zeros_like(points.dq[-1:])
    return Points(
        np.append(points.times, points.times[-1] + duration),
        np.vstack([points.q, points.q[-1:]]),
        np.vstack([points.dq, still]),
        np.vstack([points.ddq, still]),
        points.smooth,
    )


def _times(duration: float, step: float) -> Array:
    """From 0 to `duration`, both included; only 0 if that is all."""
    return np.linspace(0.0, duration, 1 + int(np.ceil(duration / step))) if duration > SAME else np.zeros(1)


def _braking_times(motion: Braking, step: float) -> Array:
    """A grid with every instant at which a joint comes to rest; there accelerations have steps."""
    rests = np.sort(motion.times[motion.times > SAME])
    rests = rests[np.diff(rests, append=np.inf) > SAME]
    times = _times(motion.duration, step)
    apart = np.all(np.abs(times[:, None] - rests[None, :]) > SAME, axis=1)
    return np.sort(np.concatenate([times[apart], rests]))
