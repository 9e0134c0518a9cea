# SPDX-License-Identifier: Apache-2.0
"""Points of a joint trajectory, and the interpolation between them by a joint trajectory controller of ros2_control."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.trajectory_rows import TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.servo import evaluate_polynomials, fit_polynomials

LARGEST = 1e6
"""Largest magnitude of positions, velocities and accelerations, for the accuracy of polynomials [SI]."""

FASTEST = 1e3
"""Largest speed between points for joints without a velocity limit [rad/s or m/s]."""

SHORTEST = 1e-5
"""Smallest time between two points [s]."""

OVERSHOOT = 0.05
"""Tolerated excess between points, relative to the position range and to the velocity limit [-]."""


def _not_given() -> Array:
    return np.array(np.nan)


class Setpoint(NamedTuple):
    """Desired position, velocity and acceleration, shape (n,) each."""

    q: Array
    dq: Array
    ddq: Array


@dataclass(frozen=True)
class TrajectoryPoints:
    """k points of a trajectory of n joints.

    Attributes:
        t: times from its start [s], ascending, shape (k,).
        q: positions [rad or m], shape (k, n).
        dq: velocities [rad/s or m/s], shape (k, n); NaN at points without velocities. Interpolation is linear if one of
            two points has no velocities.
        ddq: accelerations [rad/s^2 or m/s^2], shape (k, n); NaN at points without accelerations. Interpolation is
            quintic with them, cubic without.
        effort: feed-forward efforts [N m or N], shape (k, n), or None; linear in between.
        smooth: number of leading points whose accelerations are sent to a controller; None: all. Those of braking are
            not: cubics represent a constant deceleration exactly.
    """

    t: Array
    q: Array
    dq: Array = field(default_factory=_not_given)
    ddq: Array = field(default_factory=_not_given)
    effort: Array | None = None
    smooth: int | None = None

    def __post_init__(self) -> None:
        """Fill in what is not given."""
        for name in ("dq", "ddq"):
            object.__setattr__(self, name, np.broadcast_to(getattr(self, name), self.q.shape))

    @classmethod
    def from_rows(cls, joint_names: Sequence[str], rows: TrajectoryRows, rest: Array | None = None) -> TrajectoryPoints:
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
        columns = _columns(joint_names, rows.joint_names, rest is not None)
        count = len(rows.positions)
        if not count:
            raise InputError("it has no points")
        still = np.zeros(len(joint_names))
        held = {"positions": still if rest is None else rest}
        q, dq, ddq, effort = (
            _channel(what, getattr(rows, what), joint_names, columns, held.get(what, still))
            for what in ("positions", "velocities", "accelerations", "efforts")
        )
        times = np.array(rows.seconds, dtype=np.float64)
        late = np.flatnonzero(np.diff(times) < SHORTEST)
        if len(late):
            raise InputError(f"point {late[0] + 1} is not later than the one before it (by at least {SHORTEST:g} s)")
        if times[0] < 0.0:
            raise InputError("point 0 is before the start of the trajectory")
        return cls(times, q, dq, ddq, None if np.isnan(effort).all() else np.nan_to_num(effort))

    def point(self, number: int) -> list[Array]:
        """Position, and if given velocity and acceleration, shape (n,) each."""
        known = [self.q[number]]
        for channel in (self.dq, self.ddq):
            if np.isnan(channel[number, 0]):
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

    def sample(self, spacing: float) -> tuple[TrajectoryPoints, Integers]:
        """Sample the path between the points, at both ends of every segment and in between.

        Args:
            spacing: largest time between two samples [s].

        Returns:
            N samples, two where a segment ends and the next one begins, as accelerations may jump there; the last
            sample is the setpoint after the end: that of the last point, at rest unless it has velocities. Then the
            sample of each point, shape (k,): where its segment begins, for the last one the setpoint after the end.
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
        return TrajectoryPoints(t, q, dq, ddq), first

    def orders(self) -> Integers:
        """Number of quantities (position, velocity, acceleration) given at both ends of segments, shape (k - 1,)."""
        known = np.cumprod([np.isfinite(x).all(axis=1) for x in (self.q, self.dq, self.ddq)], axis=0).sum(axis=0)
        return np.asarray(np.minimum(known[:-1], known[1:]))

    def _at(self, segments: Integers, shares: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at a fraction of the time of some segments, shape (N, n) each."""
        duration, orders = np.diff(self.t)[:, None], self.orders()
        channels = (self.q, self.dq, self.ddq)
        q, dq, ddq = np.empty((3, len(segments), self.q.shape[1]))
        for order in np.unique(orders).tolist():
            rows = np.flatnonzero(orders[segments] == order)
            some = segments[rows]
            unit = np.eye(2 * order)
            powers = fit_polynomial(1.0, unit[:order], unit[order:])  # of the ends' derivatives
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
) -> Array:
    """Values of one quantity in the robot's order of joints, shape (k, n), NaN where a point has none.

    Raises:
        InputError: a row of another length, or a value that is not finite or too large.
    """
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


def fit_polynomial(duration: float, start: Sequence[Array] | Array, end: Sequence[Array] | Array) -> Array:
    """Coefficients of the polynomial with given derivatives at both ends, lowest power first, shape (6, n).

    Args:
        duration: duration [s].
        start: position and given derivatives at the start, shape (n,) each.
        end: position and given derivatives at the end, shape (n,) each.
    """
    return np.asarray(fit_polynomials(duration, np.array(start), np.array(end), _solve_unit_interval(len(start))))


@functools.cache
def _solve_unit_interval(order: int) -> Array:
    """Coefficients on a unit interval for unit values of the derivatives at its start, then at its end.

    Args:
        order: number of derivatives at each end, position included, 1 to 3.

    Returns:
        Matrix, shape (2 order, 2 order); its elements are multiples of a half.
    """
    powers = np.arange(2 * order)
    rows = [_falling(powers, k) * end ** np.maximum(powers - k, 0) for end in (0.0, 1.0) for k in range(order)]
    return np.asarray(np.rint(2.0 * np.linalg.inv(rows)) / 2.0)


def _falling(powers: np.ndarray, derivative: int) -> Array:
    """Factors p (p - 1) ... of the derivatives of powers."""
    factors = np.ones(len(powers))
    for k in range(derivative):
        factors *= powers - k
    return factors


def evaluate(coefficients: Array, s: float) -> Setpoint:
    """Value and two derivatives of a polynomial with coefficients from `fit_polynomial` at time `s` [s]."""
    return Setpoint(*evaluate_polynomials(coefficients, s))
