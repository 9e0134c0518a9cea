# SPDX-License-Identifier: Apache-2.0
"""Motion for the calibration of gravity: poses that are held after an approach from both sides by all joints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.data.trajectory_rows import TrajectoryRows
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.collision.clearance import PATH_STEP_RAD, Clearance
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.quintic_path import QuinticPath
from robot_dyn_id.excitation.trajectory import step_time
from robot_dyn_id.loads.gravity import compute_gravity_regressor
from robot_dyn_id.model.robot import RobotModel

LONGEST_S = 110.0
"""Longest motion [s]: approach, return and calibration end within two minutes."""

HOLD_S = 0.8
"""Time at rest at each pose [s]."""

APPROACH_S = 0.8
"""Shortest time of the last `APPROACH` to a pose [s]: the inertia must not carry the joint against its friction, or the
drive holds less than weight and friction afterwards."""

APPROACH = 0.12
"""Distance of the points before a pose from it [rad or m]; at most a tenth of the joint's range."""

FASTEST = 1.5
"""Largest velocity [rad/s or m/s]: quasi-static."""

CANDIDATES = 300
"""Number of random poses from which those of the motion are chosen."""

FEWEST_POSES = 8
"""Fewest poses of a motion."""

PARTS_S = (0.0, APPROACH_S, HOLD_S, 0.0, APPROACH_S, HOLD_S)
"""Shortest times of the parts of a pose: to its approach from below, approach, hold; the same from above [s]."""

NAMED_PAIRS = 3
"""Number of pairs that are named where poses collide."""

CHECK_STEPS = 2.0
"""Distance of the checked points of a way, in `PATH_STEP_RAD`: the margin covers what lies between."""


@dataclass(frozen=True)
class GravityPoses:
    """Motion through poses; between two points all joints move on a straight line, from rest to rest.

    Attributes:
        times: times of the points from the start [s], shape (k,).
        points: positions [rad or m], shape (n, k).
        poses: number of poses, each held twice.
    """

    times: Array
    points: Array
    poses: int

    @property
    def path(self) -> QuinticPath:
        """The motion as it is executed."""
        zero = np.zeros_like(self.points.T)
        return QuinticPath(TrajectoryPoints(self.times, self.points.T, zero, zero))

    def rows(self, joint_names: tuple[str, ...]) -> TrajectoryRows:
        """Joint trajectory with zero velocity and acceleration at every point."""
        zero = np.zeros_like(self.points.T)
        return TrajectoryRows.from_arrays(joint_names, self.times, self.points.T, zero, zero)


def plan_gravity_poses(model: RobotModel, limits: MotionLimits, clearance: Clearance, seed: int = 1) -> GravityPoses:
    """Choose poses and the way through them.

    The next pose is the one that increases the determinant of the information on masses and first moments most, per
    time that it takes, among random poses whose way is free (greedy D-optimality).

    Args:
        model: robot model with n joints.
        limits: motion limits.
        clearance: collision check, with the minimum distance that is kept.
        seed: seed of the random poses.

    Raises:
        MotionError: too few poses can be reached in the time; names the pairs that are too close most often.
    """
    rng = np.random.default_rng(seed)
    center, reach = limits.center_and_reach()
    limits = replace(limits, velocity=np.minimum(limits.velocity, FASTEST))
    approach = np.minimum(APPROACH, 0.1 * reach)
    poses = center[:, None] + (reach - approach)[:, None] * rng.uniform(-1.0, 1.0, (len(center), CANDIDATES))
    distances, pairs = clearance.smallest(poses)
    close = distances < clearance.margin
    obstruction = _obstruction(Counter(clearance.pairs[pair] for pair in pairs[close].tolist()), clearance.margin)
    poses = poses[:, ~close]
    if not poses.size:
        raise MotionError(f"none of {CANDIDATES} random poses can be held: {obstruction}")
    rows = _scaled_rows(compute_gravity_regressor(model, poses))
    covariance = np.eye(rows.shape[2])
    left, times, points, count = list(range(poses.shape[1])), [0.0], [_start(center, poses, clearance)], 0
    while left:
        ways = [_way(limits, points[-1], poses[:, number], approach) for number in left]
        gains = np.linalg.slogdet(np.eye(rows.shape[1]) + rows[left] @ covariance @ rows[left].transpose(0, 2, 1))[1]
        order = np.argsort(-gains / np.array([duration[-1] for duration, _ in ways]))
        chosen = next((k for k in order.tolist() if _fits(ways[k], points[-1], times[-1], clearance)), None)
        if chosen is None:
            break
        duration, way = ways[chosen]
        times += (times[-1] + duration).tolist()
        points += list(way)
        new = rows[left.pop(chosen)]
        covariance -= (
            covariance @ new.T @ np.linalg.solve(np.eye(len(new)) + new @ covariance @ new.T, new @ covariance)
        )
        count += 1
    if count < FEWEST_POSES:
        raise MotionError(
            f"only {count} poses can be reached in {LONGEST_S:g} s without collisions, and {FEWEST_POSES} are needed: "
            f"of {CANDIDATES} random poses {obstruction}"
        )
    return GravityPoses(np.array(times), np.array(points).T, count)


def _obstruction(counts: Counter[str], margin: float) -> str:
    """Pairs that are too close most often, and what to do about them."""
    named = ", ".join(f"{pair} in {count}" for pair, count in counts.most_common(NAMED_PAIRS))
    return (
        f"{sum(counts.values())} are closer than {margin:g} m to a collision ({named or 'no pair'}); correct the "
        "surroundings, or collision shapes and position limits of the URDF, or leave out the joints of other limbs"
    )


def _start(center: Array, poses: Array, clearance: Clearance) -> Array:
    """The middle of the limits, or the free pose that is closest to it."""
    if clearance.smallest(center[:, None])[0][0] >= clearance.margin:
        return np.asarray(center)
    return np.asarray(poses[:, np.linalg.norm(poses - center[:, None], axis=0).argmin()])


def _way(limits: MotionLimits, start: Array, pose: Array, approach: Array) -> tuple[Array, list[Array]]:
    """Times from the start [s] and points of a pose that is reached and held from both sides."""
    points = [pose - approach, pose, pose, pose + approach, pose, pose]
    durations = [
        least if after is before else max(step_time(limits, np.abs(after - before)), least)
        for before, after, least in zip([start, *points[:-1]], points, PARTS_S, strict=True)
    ]
    return np.cumsum(durations), points


def _fits(way: tuple[Array, list[Array]], start: Array, begin: float, clearance: Clearance) -> bool:
    """Whether a way ends in time and keeps the minimum distance."""
    durations, points = way
    if begin + durations[-1] > LONGEST_S:
        return False
    parts = []
    for before, after in zip([start, *points[:-1]], points, strict=True):
        steps = 2 + int(np.abs(after - before).max() / (CHECK_STEPS * PATH_STEP_RAD))
        parts.append(before[:, None] + (after - before)[:, None] * np.linspace(0.0, 1.0, steps))
    return bool(clearance.smallest(np.concatenate(parts, axis=1))[0].min() >= clearance.margin)


def _scaled_rows(regressor: Array) -> Array:
    """Rows of each pose, shape (N, n, 4 b), relative to the RMS of each joint and, after that, of each column."""
    rows = regressor.transpose(2, 1, 0)
    for axes in ((0, 2), (0, 1)):
        size = np.sqrt((rows**2).mean(axis=axes, keepdims=True))
        rows = rows / np.where(size > 1e-9 * size.max(), size, np.inf)
    return np.asarray(rows)
