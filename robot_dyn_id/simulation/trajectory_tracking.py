# SPDX-License-Identifier: Apache-2.0
"""Setpoints along a joint trajectory, as computed by the joint trajectory controller of ros2_control."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import InputError

MOST_POINTS = 100_000
"""Largest number of points of a trajectory."""

LARGEST = 1e6
"""Largest magnitude of positions, velocities and accelerations, for the accuracy of polynomials [SI]."""

FASTEST = 1e3
"""Largest speed between points for joints without a velocity limit [rad/s or m/s]."""

SHORTEST = 1e-5
"""Smallest time between two points [s]."""

OVERSHOOT = 0.05
"""Tolerated excess between points, relative to the position range and to the velocity limit [-]."""

STOPPING = 0.1
"""Time in which a moving setpoint comes to rest on hold [s]."""

JUMP = 0.1
"""Largest distance between the start of a trajectory and the present setpoint [rad or m]."""

SOON = 0.1
"""Time before the first point above which the setpoint moves to it; otherwise the trajectory starts there [s]."""

BLENDING = 0.5
"""Time in which the distance to the start of a trajectory is blended out [s]."""


class Setpoint(NamedTuple):
    """Desired position, velocity and acceleration, shape (n,) each."""

    q: Array
    dq: Array
    ddq: Array


class PointRows(NamedTuple):
    """Points of a trajectory as they are given, one row per point; rows other than positions may be empty.

    Attributes:
        names: joint names in the order of the columns.
        t: times from the start [s].
        q: positions [rad or m].
        dq: velocities [rad/s or m/s].
        ddq: accelerations [rad/s^2 or m/s^2].
        effort: feed-forward efforts [N m or N].
    """

    names: Sequence[str]
    t: Sequence[float]
    q: Sequence[Sequence[float]]
    dq: Sequence[Sequence[float]] = ()
    ddq: Sequence[Sequence[float]] = ()
    effort: Sequence[Sequence[float]] = ()


class WaypointSamples(NamedTuple):
    """N samples of the path between k waypoints.

    Both ends of every segment are samples, as accelerations may jump there. The last sample is the setpoint after the
    end: that of the last waypoint, at rest unless it has velocities.

    Attributes:
        t: times from the start of the trajectory [s], shape (N,).
        q: positions [rad or m], shape (N, n).
        dq: velocities, shape (N, n).
        ddq: accelerations, shape (N, n).
        points: sample of each waypoint, shape (k,): where its segment begins, for the last one the setpoint after the
            end.
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    points: Integers


@dataclass(frozen=True)
class Waypoints:
    """k points of a trajectory of n joints.

    Attributes:
        t: times from its start [s], ascending, shape (k,).
        q: positions [rad or m], shape (k, n).
        dq: velocities [rad/s or m/s], or None; NaN at points without velocities. Interpolation is linear if one of two
            points has no velocities.
        ddq: accelerations [rad/s^2 or m/s^2], or None; quintic interpolation with them, cubic without.
        effort: feed-forward efforts [N m or N], or None; 0 at points without efforts, linear in between.
    """

    t: Array
    q: Array
    dq: Array | None = None
    ddq: Array | None = None
    effort: Array | None = None

    @classmethod
    def from_rows(cls, joint_names: Sequence[str], rows: PointRows, rest: Array | None = None) -> Waypoints:
        """Check the rows of a trajectory and arrange them in the robot's order of joints.

        Velocities or accelerations may be empty in all points or in some: a motion that brakes at its end has no
        accelerations there. Accelerations without velocities are ignored.

        Args:
            joint_names: joint names of the robot, shape (n,).
            rows: points of the trajectory.
            rest: positions at which joints without a column are held [rad or m], shape (n,), with zero velocity,
                acceleration and effort, as joint_trajectory_controller does with `allow_partial_joints_goal`; by
                default every joint must have a column.

        Raises:
            InputError: joints that the robot does not have or that are missing, wrong lengths, NaN, or times that do
                not ascend.
        """
        columns = _columns(joint_names, rows.names, rest is not None)
        if not len(rows.q):
            raise InputError("it has no points")
        if len(rows.q) > MOST_POINTS:
            raise InputError(f"it has {len(rows.q)} points, at most {MOST_POINTS} are followed: send it in pieces")
        channels: dict[str, Array | None] = {}
        for what, given in (
            ("positions", rows.q),
            ("velocities", rows.dq),
            ("accelerations", rows.ddq),
            ("efforts", rows.effort),
        ):
            held = rest if what == "positions" and rest is not None else np.zeros(len(joint_names))
            channels[what] = _channel(what, given, joint_names, columns, held)
        times = np.array(rows.t, dtype=np.float64)
        late = np.flatnonzero(np.diff(times) < SHORTEST)
        if len(late):
            raise InputError(f"point {late[0] + 1} is not later than the one before it (by at least {SHORTEST:g} s)")
        if times[0] < 0.0:
            raise InputError("point 0 is before the start of the trajectory")
        q, dq, ddq, effort = channels.values()
        assert q is not None
        return cls(times, q, dq, ddq if dq is not None else None, None if effort is None else np.nan_to_num(effort))

    def point(self, number: int) -> list[Array]:
        """Position, and if given velocity and acceleration, shape (n,) each."""
        known = [self.q[number]]
        for channel in (self.dq, self.ddq):
            if channel is None or np.isnan(channel[number, 0]):
                break
            known.append(channel[number])
        return known

    def check_limits(
        self, joint_names: Sequence[str], lower: Array, upper: Array, velocity: Array | None = None
    ) -> None:
        """Check the points and the path between them against limits of position and velocity.

        Args:
            joint_names: joint names, for messages.
            lower: lower position limits [rad or m], shape (n,).
            upper: upper position limits [rad or m], shape (n,).
            velocity: velocity limits [rad/s or m/s], shape (n,); `FASTEST` by default and for joints without a limit.

        Raises:
            InputError: a point is outside the position limits, or the path leaves them or is too fast.
        """
        beyond = np.argwhere((self.q < lower) | (self.q > upper))
        if len(beyond):
            point, joint = beyond[0]
            raise InputError(
                f"point {point}: joint {joint_names[joint]} at {self.q[point, joint]:.4g} is beyond its limits "
                f"{lower[joint]:.4g} to {upper[joint]:.4g}"
            )
        fastest = np.full(len(lower), FASTEST)
        if velocity is not None:
            fastest = np.where(velocity > 0.0, np.minimum((1.0 + OVERSHOOT) * velocity, FASTEST), FASTEST)
        bounded = np.isfinite(lower) & np.isfinite(upper)
        margin = OVERSHOOT * np.where(bounded, np.where(bounded, upper, 0.0) - np.where(bounded, lower, 0.0), 0.0)
        for share in (0.25, 0.5, 0.75):
            q, dq, _ = self._at(np.arange(len(self.t) - 1), np.full(len(self.t) - 1, share))
            wrong = np.argwhere((q < lower - margin) | (q > upper + margin) | (np.abs(dq) > fastest))
            if len(wrong):
                point, joint = wrong[0]
                raise InputError(
                    f"between points {point} and {point + 1} joint {joint_names[joint]} passes {q[point, joint]:.4g} "
                    f"at the speed {dq[point, joint]:.4g}, beyond its limits: correct velocities and accelerations"
                )

    def sample(self, spacing: float) -> WaypointSamples:
        """Sample the path between the points, at both ends of every segment and in between.

        Args:
            spacing: largest time between two samples [s].
        """
        duration = np.diff(self.t)
        steps = np.maximum(1, np.ceil(duration / spacing - 1e-9)).astype(np.int64)
        segments = np.repeat(np.arange(len(steps)), steps + 1)
        first = np.concatenate([[0], np.cumsum(steps + 1)])
        shares = (np.arange(first[-1]) - first[segments]) / steps[segments]
        q, dq, ddq = self._at(segments, shares)
        known = self.point(len(self.t) - 1)
        end = [*known, *[np.zeros_like(known[0])] * (3 - len(known))]
        t = np.append(self.t[segments] + shares * duration[segments], self.t[-1])
        q, dq, ddq = (np.vstack([x, last]) for x, last in zip((q, dq, ddq), end, strict=True))
        return WaypointSamples(t, q, dq, ddq, first)

    def orders(self) -> Integers:
        """Number of quantities (position, velocity, acceleration) given at both ends of segments, shape (k - 1,)."""
        channels = [x for x in (self.q, self.dq, self.ddq) if x is not None]
        known = np.cumprod([np.isfinite(x).all(axis=1) for x in channels], axis=0).sum(axis=0)
        return np.asarray(np.minimum(known[:-1], known[1:]))

    def _at(self, segments: Integers, shares: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at a fraction of the time of some segments, shape (N, n) each."""
        duration, orders = np.diff(self.t)[:, None], self.orders()
        channels = [x for x in (self.q, self.dq, self.ddq) if x is not None]
        q, dq, ddq = np.empty((3, len(segments), self.q.shape[1]))
        for order in np.unique(orders).tolist():
            rows = np.flatnonzero(orders[segments] == order)
            some = segments[rows]
            unit = np.eye(2 * order)
            powers = polynomial(1.0, unit[:order], unit[order:])  # of the ends' derivatives
            ends = [x[some + end] * duration[some] ** k for end in (0, 1) for k, x in enumerate(channels[:order])]
            for derivative, channel in enumerate((q, dq, ddq)):
                lower = np.maximum(np.arange(6) - derivative, 0)
                of_ends = _falling(np.arange(6), derivative) * shares[rows, None] ** lower @ powers
                channel[rows] = np.einsum("re,ern->rn", of_ends, ends) / duration[some] ** derivative
        return q, dq, ddq


def _columns(joint_names: Sequence[str], given: Sequence[str], partial: bool) -> Integers:
    """Column of each joint, -1 for joints without one, shape (n,).

    Raises:
        InputError: a joint that the robot does not have, that is named twice, or that is missing.
    """
    for name in given:
        if name not in joint_names:
            raise InputError(f"joint {' '.join(name.split())} is not one of {', '.join(joint_names)}")
    if len(set(given)) != len(given):
        raise InputError("a joint is named twice")
    if not given:
        raise InputError("it names no joints")
    missing = [name for name in joint_names if name not in given]
    if missing and not partial:
        raise InputError(f"joint {missing[0]} is missing: all {len(joint_names)} joints must be given")
    places = {name: column for column, name in enumerate(given)}
    return np.array([places.get(name, -1) for name in joint_names])


def _channel(
    what: str, rows: Sequence[Sequence[float]], joint_names: Sequence[str], columns: Integers, held: Array
) -> Array | None:
    """Values of one quantity in the robot's order of joints, shape (k, n), NaN where a point has none; None if all are.

    Raises:
        InputError: a row of another length, or a value that is not finite or too large.
    """
    if what != "positions" and not any(len(row) for row in rows):
        return None
    width = int(columns.max()) + 1
    lengths = np.array([len(row) for row in rows])
    given = np.full(len(rows), True) if what == "positions" else lengths > 0
    for number in np.flatnonzero(given & (lengths != width)):
        raise InputError(f"point {number} has {lengths[number]} {what}, expected {width}")
    values = np.fromiter(chain.from_iterable(rows), np.float64).reshape(-1, width)
    channel = np.full((len(rows), len(joint_names)), np.nan)
    channel[given] = np.where(columns < 0, held, values[:, columns])
    for number, joint in np.argwhere(~(np.abs(channel) <= LARGEST) & given[:, None])[:1]:
        wrong = f"above {LARGEST:g}" if np.isfinite(channel[number, joint]) else "not finite"
        raise InputError(f"point {number}: {what} of joint {joint_names[joint]} is {wrong}")
    return channel


def polynomial(duration: float, start: Sequence[Array] | Array, end: Sequence[Array] | Array) -> Array:
    """Coefficients of the polynomial with given derivatives at both ends, lowest power first, shape (6, n).

    Args:
        duration: duration [s].
        start: position and given derivatives at the start, shape (n,) each.
        end: position and given derivatives at the end, shape (n,) each.
    """
    order, n = len(start), len(start[0])
    coefficients = np.zeros((6, n))
    for power, value in enumerate(start):
        coefficients[power] = value / (1, 1, 2)[power]
    powers = np.arange(order, 2 * order)
    rows, right = np.zeros((order, order)), np.zeros((order, n))
    for derivative, value in enumerate(end):
        rows[derivative] = _falling(powers, derivative)  # on a unit interval
        known = _falling(np.arange(order), derivative) * duration ** np.arange(order)
        right[derivative] = value * duration**derivative - known @ coefficients[:order]
    coefficients[powers] = np.linalg.solve(rows, right) / duration ** powers[:, None]
    return coefficients


def _falling(powers: np.ndarray, derivative: int) -> Array:
    """Factors p (p - 1) ... of the derivatives of powers."""
    factors = np.ones(len(powers))
    for k in range(derivative):
        factors *= powers - k
    return factors


def evaluate(coefficients: Array, s: float) -> Setpoint:
    """Value and two derivatives of a polynomial with coefficients from `polynomial` at time `s` [s]."""
    powers = (1.0, s, s * s, s**3, s**4, s**5)
    first = [k * powers[k - 1] if k else 0.0 for k in range(6)]
    second = [k * (k - 1) * powers[k - 2] if k > 1 else 0.0 for k in range(6)]
    return Setpoint(*(np.array((powers, first, second)) @ coefficients))


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
        segment = bisect_right(self._times, now) - 1
        if not 0 <= segment < len(self._times) - 1:
            return Setpoint(self._end, np.zeros_like(self._end), np.zeros_like(self._end))
        if segment != self._segment:
            duration = self._times[segment + 1] - self._times[segment]
            start, end = self._knots[segment : segment + 2]
            order = min(len(start), len(end))  # derivatives given at both ends
            self._coefficients = polynomial(duration, start[:order], end[:order])
            self._segment = segment
        return evaluate(self._coefficients, now - self._times[segment])

    def effort(self, now: float) -> Array:
        """Feed-forward effort of the trajectory at a time [N m or N], shape (n,); that of the last point after it."""
        segment = bisect_right(self._times, now) - 1
        if not 0 <= segment < len(self._times) - 1:
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

    def follow(self, waypoints: Waypoints, start: float, now: float) -> None:
        """Replace the trajectory from the time `now` on; the new one ends at rest.

        If the first point is more than `SOON` in the future, the setpoint moves to it. Otherwise the trajectory starts
        immediately, and the distance from the present setpoint is blended out, as a step would be a shock.

        Args:
            waypoints: new trajectory.
            start: start time of the trajectory [s].
            now: present time [s].

        Raises:
            InputError: it has already ended, starts more than `JUMP` from the setpoint, or cannot be reached in time.
        """
        times = (start + waypoints.t).tolist()
        knots = [waypoints.point(number) for number in range(len(times))]
        here = self.setpoint(now)
        efforts = np.zeros_like(waypoints.q) if waypoints.effort is None else waypoints.effort
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
            self._begun, self._gap = now, polynomial(BLENDING, begin, [still] * 3)

    def _replace(self, times: list[float], knots: list[list[Array]], efforts: Array) -> None:
        self._times = times
        self._knots = knots
        self._efforts = efforts
        self._segment = -1
        self._end = knots[-1][0]
        self._begun = -math.inf


def _before(point: Sequence[Array], lead: float) -> list[Array]:
    """Extrapolate a point of a trajectory by `lead` [s] into the past with constant acceleration."""
    powers = (-lead) ** np.arange(len(point)) / (1.0, 1.0, 2.0)[: len(point)]
    return [np.tensordot(powers[: len(point) - k], np.array(point[k:]), 1) for k in range(len(point))]
