# SPDX-License-Identifier: Apache-2.0
"""Feed-forward efforts of the points of a commanded motion, and the check of the motion against effort limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.errors import InputError, MotionError
from robot_dyn_id.excitation.execution.sampling import preview
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.prediction.feed_forward import EXCITE, FeedForward, format_violation
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.controllers import find_effort_limits


@dataclass(frozen=True)
class MotionEfforts:
    """Feed-forward of the joints of a motion.

    Attributes:
        feed_forward: feed-forward of the identified model, with the effort limits of the robot that moves.
        step: time between two points of a motion [s].
    """

    feed_forward: FeedForward
    step: float

    @classmethod
    def from_model(cls, feed_forward: FeedForward, model: RobotModel, step: float) -> MotionEfforts:
        """Make the efforts of a robot's motions.

        Args:
            feed_forward: feed-forward of the identified model.
            model: robot model with the joints of the motion and their limits.
            step: time between two points of a motion [s].

        Raises:
            InputError: the parameters are those of other joints.
        """
        names = feed_forward.parameters.robot.joint_names
        if names != model.joint_names:
            raise InputError(
                f"the parameters are those of the joints {', '.join(names)}, but the motion is that of "
                f"{', '.join(model.joint_names)}: identify these joints"
            )
        return cls(replace(feed_forward, limit=find_effort_limits(model)), step)

    def efforts(self, points: TrajectoryPoints) -> Array:
        """Efforts of the points of a motion with which the motors keep the effort limits [N m or N], shape (N, n).

        A checked motion does not reach the limits. Braking from it, which cannot be checked before, can.
        """
        return self.feed_forward.effort(points.q, points.dq, points.ddq)

    def check(self, name: str, motion: Trajectory) -> tuple[Finding, ...]:
        """Check the torques of a motion that ends at rest.

        Args:
            name: name of the motion, for messages.
            motion: commanded motion.

        Returns:
            What the check does not cover, and where the model extrapolates.

        Raises:
            MotionError: the 95 % upper bound of a torque exceeds the limit of its joint.
        """
        found = self.feed_forward.along(preview(motion, self.step))
        if found.violations:
            violation = found.violations[0]
            raise MotionError(
                f"{name} may exceed the effort limits by this model: {format_violation(violation)}; "
                f"{'make the motion slower' if np.isfinite(violation.bound) else EXCITE}"
            )
        return found.findings
