# SPDX-License-Identifier: Apache-2.0
"""Setpoints along a joint trajectory, as computed by the joint trajectory controller of ros2_control."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import FASTEST, Setpoint, TrajectoryPoints, evaluate, fit_polynomial
from robot_dyn_id.errors import InputError

STOPPING = 0.1
"""Time in which a moving setpoint comes to rest on hold [s]."""

JUMP = 0.1
"""Largest distance between the start of a trajectory and the present setpoint [rad or m]."""

SOON = 0.1
"""Time before the first point above which the setpoint moves to it; otherwise the trajectory starts there [s]."""

BLENDING = 0.5
"""Time in which the distance to the start of a trajectory is blended out [s]."""


class TrajectoryTracker:
    """Setpoint of n joints: at rest, or along the latest trajectory."""

    def __init__(self, q: Array) -> None:
        """Hold the positions `q`, shape (n,)."""
        self._times: list[float] = []
        self._knots: list[list[Array]] = []
        self._segment = -1
        self._coefficients = np.zeros((6, len(q)))
        self._end = np.array(q, dtype=np.float64)
        self._efforts = np.zeros((1, len(q)))
        self._begun = -math.inf
        self._gap = np.zeros((6, len(q)))

    @property
    def span(self) -> tuple[float, float]:
        """Times of the first and the last point of the trajectory [s]; minus infinity if it holds a position."""
        return (self._times[0], self._times[-1]) if self._times else (-math.inf, -math.inf)

    def setpoint(self, now: float) -> Setpoint:
        """Setpoint at a time [s]."""
        along, since = self.along(now), now - self._begun
        if since >= BLENDING:
            return along
        return Setpoint(*(a + b for a, b in zip(along, evaluate(self._gap, since), strict=True)))

    def along(self, now: float) -> Setpoint:
        """Point of the trajectory at a time [s], which differs from the setpoint while a distance is blended out."""
        segment = self._find_segment(now)
        if segment is None:
            return Setpoint(self._end, np.zeros_like(self._end), np.zeros_like(self._end))
        if segment != self._segment:
            duration = self._times[segment + 1] - self._times[segment]
            start, end = self._knots[segment : segment + 2]
            order = min(len(start), len(end))  # derivatives given at both ends
            self._coefficients = fit_polynomial(duration, start[:order], end[:order])
            self._segment = segment
        return evaluate(self._coefficients, now - self._times[segment])

    def _find_segment(self, now: float) -> int | None:
        """Number of the segment at a time, which may be rounded to before the first point; None after the last one."""
        segment = max(bisect_right(self._times, now) - 1, 0)
        return segment if segment < len(self._times) - 1 else None

    def effort(self, now: float) -> Array:
        """Feed-forward effort of the trajectory at a time [N m or N], shape (n,); that of the last point after it."""
        segment = self._find_segment(now)
        if segment is None:
            return np.array(self._efforts[-1])
        share = (now - self._times[segment]) / (self._times[segment + 1] - self._times[segment])
        return np.array((1.0 - share) * self._efforts[segment] + share * self._efforts[segment + 1])

    def resting(self, now: float) -> bool:
        """Whether the trajectory has ended."""
        return not self._times or now >= max(self._times[-1], self._begun + BLENDING)

    def hold(self, now: float) -> None:
        """Come to rest within `STOPPING` at the end point of a constant deceleration, with the present effort."""
        (q, dq, ddq), effort = self.setpoint(now), self.effort(now)
        rest, end = np.zeros_like(q), q + 0.5 * STOPPING * dq
        self._replace([now, now + STOPPING], [[q, dq, ddq], [end, rest, rest]], np.array([effort, effort]))

    def hold_at(self, q: Array) -> None:
        """Hold the positions `q` [rad or m], shape (n,), immediately and without feed-forward effort."""
        self._replace([], [[np.array(q)]], np.zeros((1, len(q))))

    def follow(self, points: TrajectoryPoints, start: float, now: float) -> None:
        """Replace the trajectory from the time `now` on; the new one ends at rest.

        If the first point is more than `SOON` in the future, the setpoint moves to it. Otherwise the trajectory starts
        immediately, and the distance from the present setpoint is blended out, as a step would be a shock.

        Args:
            points: new trajectory.
            start: start time of the trajectory [s].
            now: present time [s].

        Raises:
            InputError: it has already ended, starts more than `JUMP` from the setpoint, or cannot be reached in time.
        """
        times = (start + points.t).tolist()
        knots = [points.point(number) for number in range(len(times))]
        here = self.setpoint(now)
        efforts = np.zeros_like(points.q) if points.effort is None else points.effort
        lead = times[0] - now
        if lead > 0.0:
            if lead > SOON and np.abs(knots[0][0] - here.q).max() > FASTEST * lead:
                raise InputError(f"its first point is too far away to be reached within {lead:.3g} s")
            times.insert(0, now)
            knots.insert(0, list(here) if lead > SOON else _before(knots[0], lead))
            efforts = np.vstack([self.effort(now), efforts])
        elif times[-1] < now:
            raise InputError(f"its last point is {now - times[-1]:.3g} s in the past")
        new = TrajectoryTracker(knots[-1][0])
        new._replace(times, knots, efforts)
        gap = here.q - new.setpoint(now).q
        since = now - self._begun
        # blending continues with its present velocity, so that successive trajectories do not stop it
        moving = evaluate(self._gap, since) if since < BLENDING else None
        distance = np.abs(gap)
        if distance.max() > JUMP:
            joint = int(np.argmax(distance))
            raise InputError(
                f"it begins {distance[joint]:.3g} (rad or m) away from where joint number {joint + 1} is: "
                "start it at the present position, or allow time to reach its first point"
            )
        self._replace(times, knots, efforts)
        if distance.any():
            still = np.zeros_like(gap)
            begin = [gap, still, still] if moving is None else [gap, moving.dq, moving.ddq]
            self._begun, self._gap = now, fit_polynomial(BLENDING, begin, [still] * 3)

    def _replace(self, times: list[float], knots: list[list[Array]], efforts: Array) -> None:
        self._times = times
        self._knots = knots
        self._efforts = efforts
        self._segment = -1
        self._end = np.array(knots[-1][0])  # a row of an array has other strides
        self._begun = -math.inf


def _before(point: Sequence[Array], lead: float) -> list[Array]:
    """Extrapolate a point of a trajectory by `lead` [s] into the past with constant acceleration."""
    powers = (-lead) ** np.arange(len(point)) / (1.0, 1.0, 2.0)[: len(point)]
    return [np.tensordot(powers[: len(point) - k], np.array(point[k:]), 1) for k in range(len(point))]
