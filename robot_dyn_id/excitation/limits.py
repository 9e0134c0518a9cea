# SPDX-License-Identifier: Apache-2.0
"""Motion limits: position, velocity, acceleration and jerk of each joint, from the URDF and the user's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.errors import ModelError, MotionError, UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import least_travel

LIMIT_TOLERANCE = 1e-9
"""Tolerance for rounding errors at the limits: relative [-]; absolute for positions [rad or m]."""

DEFAULT_POSITION_MARGIN = 0.05
"""Default distance kept to the position limits [rad or m], in designs and in the node that executes them."""

DEFAULT_ACCELERATION = 5.0
"""Default acceleration limit of the node; a design assumes at most this if none is given [rad/s^2 or m/s^2]."""

DEFAULT_VELOCITY_SCALE = 0.5
"""Default fraction of the velocity limits used by a design [-]; the node allows the full limit."""

DEFAULT_EFFORT_SCALE = 0.7
"""Default fraction of the effort limits used by a design [-], friction included; the node stops a robot at 0.9."""

REST_SPEED = 0.05
"""Measured speed below which a joint counts as at rest [rad/s or m/s]."""

FREE_REACH_RAD = np.pi / 2
"""Range to either side of the center for a revolute joint without position limits [rad]."""

FREE_REACH_M = 0.25
"""Range to either side of the center for a prismatic joint without position limits [m]."""


@dataclass(frozen=True)
class MotionLimits:
    """Motion limits of n joints, shape (n,) each; infinite if a joint has no such limit.

    Attributes:
        joint_names: joint names, in the model's order.
        prismatic: True for prismatic joints.
        hard_lower, hard_upper: position limits of the robot, which no motion may exceed [rad or m].
        lower, upper: position limits for planned motions, within the hard limits [rad or m].
        velocity: velocity limits [rad/s or m/s].
        acceleration: acceleration limits, also used for braking [rad/s^2 or m/s^2].
        jerk: jerk limits [rad/s^3 or m/s^3]; they do not apply to braking, whose acceleration has steps.
    """

    joint_names: tuple[str, ...]
    prismatic: Mask
    hard_lower: Array
    hard_upper: Array
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array

    @classmethod
    def from_model(
        cls,
        model: RobotModel,
        acceleration: Sequence[float],
        velocity_scale: float = 1.0,
        margin: float = 0.0,
        jerk: Sequence[float] = (np.inf,),
    ) -> MotionLimits:
        """Combine the URDF's limits of position and velocity with limits of acceleration and jerk.

        Args:
            model: robot whose position and velocity limits are used.
            acceleration: acceleration limits [rad/s^2 or m/s^2], which a URDF does not contain: one per joint in the
                model's order, or one for all joints.
            velocity_scale: usable fraction of the URDF's velocity limits, in (0, 1].
            margin: distance kept to the URDF's position limits [rad or m].
            jerk: jerk limits [rad/s^3 or m/s^3]: one per joint, or one for all joints; unlimited by default.

        Raises:
            UsageError: wrong number of accelerations or jerks, values that are not positive, or a scale out of range.
            ModelError: the limits do not allow a joint to move.
        """
        given = model.limits
        for word, values in (("acceleration", acceleration), ("jerk", jerk)):
            if len(values) not in (1, len(model.joint_names)) or not all(value > 0.0 for value in values):
                raise UsageError(
                    f"{word} limits {list(values)} must be positive, one for all joints or one for each of "
                    f"{', '.join(model.joint_names)}"
                )
        if not (0.0 < velocity_scale <= 1.0 and margin >= 0.0):
            raise UsageError(f"velocity scale {velocity_scale:g} must be within 0 and 1, margin {margin:g} at least 0")
        limits = cls(
            model.joint_names,
            model.slides,
            given.lower,
            given.upper,
            given.lower + margin,
            given.upper - margin,
            velocity_scale * given.velocity,
            np.broadcast_to(np.asarray(acceleration, dtype=np.float64), given.lower.shape),
            np.broadcast_to(np.asarray(jerk, dtype=np.float64), given.lower.shape),
        )
        for j, name in enumerate(model.joint_names):
            if not (limits.lower[j] < limits.upper[j] and limits.velocity[j] > 0.0):
                raise ModelError(
                    f"joint {name}: the position or velocity limits in the URDF do not allow it to move"
                    + (f" with a margin of {margin:g} {limits.unit(j)}" if margin else "")
                    + "; if it is locked, list the moving joints as `joints`"
                )
        return limits

    def unit(self, joint: int | np.signedinteger[Any]) -> str:
        """Unit of a joint's position, `rad` or `m`."""
        return "m" if self.prismatic[joint] else "rad"

    def center_and_reach(self, posture: Sequence[float] = ()) -> tuple[Array, Array]:
        """Center of a motion and the range available on both sides of it.

        Args:
            posture: center configuration [rad or m], one position per joint; empty: the middle of the position limits,
                0 for joints without limits.

        Returns:
            Center and range to either side [rad or m], shape (n,) each.

        Raises:
            UsageError: wrong number of positions.
            MotionError: the configuration is outside the limits, or at a limit, where the range is zero.
        """
        free = np.where(self.prismatic, FREE_REACH_M, FREE_REACH_RAD)
        if not len(posture):
            low, high = np.isfinite(self.lower), np.isfinite(self.upper)
            lower = np.where(low, self.lower, np.where(high, self.upper - 2.0 * free, -free))
            upper = np.where(high, self.upper, lower + 2.0 * free)
            return (lower + upper) / 2, (upper - lower) / 2
        if len(posture) != len(self.joint_names):
            raise UsageError(
                f"posture has {len(posture)} positions, expected one for each of {', '.join(self.joint_names)}"
            )
        center = np.asarray(posture, dtype=np.float64)
        self.check_positions(center[:, None], "the requested configuration")
        reach = np.minimum(self.upper - center, center - self.lower)
        for j in np.flatnonzero(reach <= LIMIT_TOLERANCE):
            raise MotionError(
                f"joint {self.joint_names[j]}: the requested configuration is at the position limit {center[j]:.4g} "
                f"{self.unit(j)}, so that the joint cannot move to both sides: choose a configuration inside the limits"
            )
        return center, np.where(np.isfinite(reach), reach, free)

    def check_positions(self, q: Array, what: str = "the motion", hard: bool = False) -> None:
        """Check positions against the limits.

        Args:
            q: positions [rad or m], shape (n, N).
            what: subject of the error message.
            hard: check against the robot's own limits, without margin.

        Raises:
            MotionError: a position is outside the limits; names the first such joint.
        """
        lower, upper = (self.hard_lower, self.hard_upper) if hard else (self.lower, self.upper)
        low, high = q.min(axis=1), q.max(axis=1)
        for j in np.flatnonzero((low < lower - LIMIT_TOLERANCE) | (high > upper + LIMIT_TOLERANCE)):
            worst = low[j] if low[j] < lower[j] - LIMIT_TOLERANCE else high[j]
            raise MotionError(
                f"joint {self.joint_names[j]}: {what} is at {worst:.4g} {self.unit(j)}, outside its limits "
                f"{lower[j]:.4g} to {upper[j]:.4g}"
            )

    def check_rates(self, dq: Array, ddq: Array, dddq: Array) -> None:
        """Check derivatives of a motion against the limits.

        Args:
            dq: velocities [rad/s or m/s], shape (n, N).
            ddq: accelerations [rad/s^2 or m/s^2], shape (n, N).
            dddq: jerks [rad/s^3 or m/s^3], shape (n, N).

        Raises:
            MotionError: a limit is exceeded; names the first such joint.
        """
        for values, limit, word, per in (
            (dq, self.velocity, "velocity", "/s"),
            (ddq, self.acceleration, "acceleration", "/s^2"),
            (dddq, self.jerk, "jerk", "/s^3"),
        ):
            peak = np.abs(values).max(axis=1)
            for j in np.flatnonzero(peak > limit * (1.0 + LIMIT_TOLERANCE)):
                raise MotionError(
                    f"joint {self.joint_names[j]}: the {word} of the motion reaches {peak[j]:.4g} "
                    f"{self.unit(j)}{per}, more than its limit {limit[j]:.4g}"
                )

    def list_barely_moving(self, travel: Array, joints: Integers) -> tuple[str, ...]:
        """Joints whose motion in a recording counts as none, each with its range of positions in words.

        Args:
            travel: range of the positions of each joint [rad or m], shape (n,).
            joints: indices of the joints that have to move.
        """
        least = least_travel(self.prismatic)
        return tuple(
            f"{self.joint_names[j]} {travel[j]:.2g} of {least[j]:g} {self.unit(j)}"
            for j in joints[travel[joints] < least[joints]]
        )

    def largest_amplitude(self, reach: Array, peaks: tuple[Array, Array, Array, Array]) -> Array:
        """Largest factor per joint by which a motion can be scaled about its center within the limits.

        Args:
            reach: allowed distance from the center [rad or m], shape (n,).
            peaks: peak distance from the center, velocity, acceleration and jerk of the motion, shape (n,) each.

        Returns:
            Scale factors, shape (n,); infinite for joints that do not move.
        """
        bounds = (reach, self.velocity, self.acceleration, self.jerk)
        with np.errstate(divide="ignore"):
            return np.asarray(np.min([limit / peak for limit, peak in zip(bounds, peaks, strict=True)], axis=0))


def scale_effort_limits(effort: Array, scale: float) -> Array:
    """Effort limits times a usable fraction, shape (n,) [N m or N]; infinite if the fraction is 0 (not limited)."""
    return np.asarray(scale * effort if scale > 0.0 else np.full(len(effort), np.inf))
