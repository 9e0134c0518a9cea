# SPDX-License-Identifier: Apache-2.0
"""What a motion may use of a robot: limits of position and its derivatives, narrowed by what the user asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import ModelError, MotionError, UsageError
from robot_dyn_id.model.robot import RobotModel

ROUNDING = 1e-9
"""How far a motion that touches its limits may be beyond them, as a share [-] and in positions [rad or m]."""

POSITION_MARGIN = 0.05
"""Default distance to the position limits [rad or m], of designs and of the node that executes them."""

ACCELERATION = 5.0
"""Default limit of the acceleration in the node; a design assumes no more where none is given [rad/s^2 or m/s^2]."""

VELOCITY_SHARE = 0.95
"""Default share of the velocity limits that a design uses [-]; the node allows all of it."""

FREE_TURN, FREE_SLIDE = np.pi / 2, 0.25
"""How far a joint without position limits moves to either side [rad, m]."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of n joints, shape (n,) each; infinite where there are none.

    Attributes:
        joint_names: of the joints.
        prismatic: whether a joint slides.
        hard_lower, hard_upper: positions that the robot must not leave [rad or m].
        lower, upper: positions that motions are planned within.
        velocity: [rad/s or m/s].
        acceleration: [rad/s^2 or m/s^2]; what braking uses too.
        jerk: [rad/s^3 or m/s^3]; braking, whose acceleration has steps, is exempt.
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
        """The limits of a robot.

        Args:
            model: its limits of position and velocity.
            acceleration: of each joint, in the model's order, or one for all [rad/s^2 or m/s^2]: a URDF has none.
            velocity_scale: share of the URDF's velocity limits that may be used.
            margin: kept to the URDF's position limits [rad or m].
            jerk: of each joint, or one for all [rad/s^3 or m/s^3]; none by default.

        Raises:
            UsageError: not one acceleration or jerk per joint, or one that is not positive; a scale outside (0, 1].
            ModelError: limits that leave a joint no motion.
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
            np.array([unit == "N" for unit in model.effort_units]),
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
                    f"joint {name}: its limits of position or velocity in the URDF leave it no motion"
                    + (f" with a margin of {margin:g} {limits.unit(j)}" if margin else "")
                    + "; if it is to stand still, name the joints that move as `joints`"
                )
        return limits

    def unit(self, joint: int | np.signedinteger[Any]) -> str:
        """Unit of a joint's position."""
        return "m" if self.prismatic[joint] else "rad"

    def around(self, posture: Sequence[float] = ()) -> tuple[Array, Array]:
        """Where a motion has its center, and how far it may go to either side, shape (n,) each.

        Args:
            posture: the center; empty for the middle of the position limits, 0 for a joint that has none.

        Raises:
            UsageError: a posture of another number of joints.
            MotionError: a posture outside the limits, or at them, where no way is left to one side.
        """
        free = np.where(self.prismatic, FREE_SLIDE, FREE_TURN)
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
        self.check_positions(center[:, None], "the posture asked for")
        reach = np.minimum(self.upper - center, center - self.lower)
        for j in np.flatnonzero(reach <= ROUNDING):
            raise MotionError(
                f"joint {self.joint_names[j]}: the posture asked for is at its limit {center[j]:.4g} {self.unit(j)}, "
                "and leaves it no way to one side: move the posture away from it"
            )
        return center, np.where(np.isfinite(reach), reach, free)

    def check_positions(self, q: Array, what: str = "the motion", hard: bool = False) -> None:
        """Compare positions, shape (n, N), with the limits.

        Args:
            q: [rad or m].
            what: is named in the error.
            hard: with the robot's own limits, without margin.

        Raises:
            MotionError: names the first joint outside.
        """
        lower, upper = (self.hard_lower, self.hard_upper) if hard else (self.lower, self.upper)
        low, high = q.min(axis=1), q.max(axis=1)
        for j in np.flatnonzero((low < lower - ROUNDING) | (high > upper + ROUNDING)):
            worst = low[j] if low[j] < lower[j] - ROUNDING else high[j]
            raise MotionError(
                f"joint {self.joint_names[j]}: {what} is at {worst:.4g} {self.unit(j)}, outside its limits "
                f"{lower[j]:.4g} to {upper[j]:.4g}"
            )

    def check_rates(self, dq: Array, ddq: Array, dddq: Array) -> None:
        """Compare velocities, accelerations and jerks, shape (n, N) each, with the limits.

        Raises:
            MotionError: names the first joint that is too fast.
        """
        for values, limit, word, per in (
            (dq, self.velocity, "velocity", "/s"),
            (ddq, self.acceleration, "acceleration", "/s^2"),
            (dddq, self.jerk, "jerk", "/s^3"),
        ):
            peak = np.abs(values).max(axis=1)
            for j in np.flatnonzero(peak > limit * (1.0 + ROUNDING)):
                raise MotionError(
                    f"joint {self.joint_names[j]}: the {word} of the motion reaches {peak[j]:.4g} "
                    f"{self.unit(j)}{per}, more than its limit {limit[j]:.4g}"
                )

    def largest_amplitude(self, reach: Array, peaks: tuple[Array, Array, Array, Array]) -> Array:
        """Factor per joint that brings a motion to its first limit, shape (n,); infinite for one that stands.

        Args:
            reach: how far it may go from its center [rad or m], shape (n,).
            peaks: largest distance from the center, velocity, acceleration and jerk of the motion, shape (n,) each.
        """
        room = (reach, self.velocity, self.acceleration, self.jerk)
        with np.errstate(divide="ignore"):
            return np.asarray(np.min([limit / peak for limit, peak in zip(room, peaks, strict=True)], axis=0))
