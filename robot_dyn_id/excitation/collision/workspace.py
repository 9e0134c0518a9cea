# SPDX-License-Identifier: Apache-2.0
"""Workspace: box in which the origin of a link must stay."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation.collision.clearance import BLOCK_CONFIGURATIONS
from robot_dyn_id.model.kinematics import Kinematics, Placement, Poses, find_placement_of
from robot_dyn_id.model.robot import RobotModel

SIDES = ("-x", "-y", "-z", "+x", "+y", "+z")
"""Names of the sides of the box, in the order of the margins."""


@dataclass(frozen=True)
class Workspace:
    """Axis-aligned box in the base frame in which the origin of a link must stay.

    Attributes:
        model: robot model.
        link: name of the link.
        lower, upper: corners of the box in the base frame [m], shape (3,); infinite for open sides.
    """

    model: RobotModel
    link: str
    lower: Array
    upper: Array
    _at: Placement = field(init=False, repr=False)
    _kinematics: Kinematics = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the box and find the link.

        Raises:
            ModelError: the link does not exist.
            UsageError: the box is empty, or the link does not move.
        """
        lower, upper = (np.asarray(corner, dtype=np.float64) for corner in (self.lower, self.upper))
        if lower.shape != (3,) or upper.shape != (3,) or not (lower < upper).all():
            raise UsageError(
                f"workspace of {self.link}: its corners {lower.tolist()} and {upper.tolist()} must be 3 numbers [m] "
                "each, with lower < upper"
            )
        for name, value in (
            ("lower", lower),
            ("upper", upper),
            ("_at", find_placement_of(self.model, self.link)),
            ("_kinematics", Kinematics(self.model)),
        ):
            object.__setattr__(self, name, value)
        if self._at.body < 0:
            raise UsageError(f"workspace of {self.link}: this link does not move; name a moving link")

    def margins(self, q: Array) -> Array:
        """Distances from the `SIDES` [m], negative outside, at configurations `q` of shape (n, N); shape (6, N)."""
        return self._margins(self._kinematics.poses(q))

    def pull_back(self, q: Array, weights: Array) -> Array:
        """Gradient of sum(weights * margins) with respect to `q`, shape (n, N); weights have shape (6, N)."""
        poses = self._kinematics.poses(q)
        force = (weights[:3] - weights[3:]).T
        line = np.concatenate([force, np.cross(self._points(poses), force)], axis=1)
        samples = np.arange(q.shape[1])
        return poses.along(samples, np.full(len(samples), self._at.body), line).T

    def check(self, t: Array, q: Array) -> None:
        """Check that a motion stays in the box.

        Args:
            t: times [s], shape (N,).
            q: configurations [rad or m], shape (n, N).

        Raises:
            MotionError: the motion leaves the box; names the side, the time and the largest distance.
        """
        worst = (0.0, 0, 0)
        for start in range(0, len(t), BLOCK_CONFIGURATIONS):
            margins = self.margins(q[:, start : start + BLOCK_CONFIGURATIONS])
            side, sample = np.unravel_index(int(np.argmin(margins)), margins.shape)
            worst = min(worst, (float(margins[side, sample]), int(side), start + int(sample)))
        if worst[0] < 0.0:
            raise MotionError(
                f"{self.link} is {-worst[0]:.4f} m outside the {SIDES[worst[1]]} side of its workspace at "
                f"{t[worst[2]]:.3f} s"
            )

    def _points(self, poses: Poses) -> Array:
        return poses.points(np.array([self._at.body]), self._at.position[None])[:, 0]

    def _margins(self, poses: Poses) -> Array:
        points = self._points(poses)
        return np.concatenate([points - self.lower, self.upper - points], axis=1).T
