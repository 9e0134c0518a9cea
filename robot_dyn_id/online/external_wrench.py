# SPDX-License-Identifier: Apache-2.0
"""Wrench at a frame from the external joint torque, with the directions that the joints do not measure.

The joint torque of a wrench w is J' w. With the covariance S of the torque and a prior N(0, P) of the wrench, the
estimate is that of least squares, whitened by S and damped by P:

    C = (J S^-1 J' + P^-1)^-1,    w = C J S^-1 torque.

In directions that the joints do not measure (fewer than six joints, singular poses) C stays near P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.kinematics import Kinematics, find_placement_of
from robot_dyn_id.model.robot import RobotModel

COMPONENTS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")

MEASURED = 0.5
"""Ratio of the standard deviation of a component to that of its prior below which it is measured."""


@dataclass(frozen=True)
class WrenchPrior:
    """Prior standard deviations of the wrench.

    Attributes:
        force: standard deviation of each component of the force [N].
        moment: standard deviation of each component of the moment [N m]; 0: contacts at the origin of the frame have
            none.
    """

    force: float = 100.0
    moment: float = 20.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: a force that is not positive, or a moment that is negative.
        """
        if not 0.0 < self.force < np.inf:
            raise UsageError(f"the prior force must be positive, not {self.force:g}")
        if not 0.0 <= self.moment < np.inf:
            raise UsageError(f"the prior moment must not be negative, not {self.moment:g}")

    @property
    def deviations(self) -> Array:
        """Standard deviations of the components, shape (6,)."""
        return np.repeat([self.force, self.moment], 3)


@dataclass(frozen=True)
class WrenchEstimate:
    """Wrench (force; moment) at the origin of a frame, along its axes.

    Attributes:
        values: estimate [N, N m], shape (6,).
        covariance: shape (6, 6).
        measured: components that the joints measure in this pose, or that are zero by assumption, shape (6,).
    """

    values: Array
    covariance: Array
    measured: Mask

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Names of the components that are not measured."""
        return tuple(name for name, flag in zip(COMPONENTS, self.measured, strict=True) if not flag)

    @property
    def published(self) -> tuple[Array, Array]:
        """Estimate and covariance for receivers that do not know the prior, shape (6,) and (6, 6).

        Components that are not measured are NaN, with infinite variances and NaN covariances.
        """
        unknown = ~self.measured
        covariance = np.where(unknown | unknown[:, None], np.nan, self.covariance)
        covariance[unknown, unknown] = np.inf
        return np.where(self.measured, self.values, np.nan), covariance


def estimate_wrench(jacobian: Array, torque: Array, covariance: Array, prior: WrenchPrior) -> WrenchEstimate:
    """Estimate the wrench at a frame.

    Args:
        jacobian: Jacobian of the frame along its own axes (linear; angular), shape (6, n).
        torque: external joint torque [N m or N], shape (n,).
        covariance: covariance of `torque`, shape (n, n); joints of infinite variance do not count.
        prior: prior of the wrench.
    """
    usable = np.isfinite(np.diag(covariance))
    deviations = prior.deviations
    rows = jacobian[:, usable].T * deviations  # (n, 6), of the wrench in units of its prior
    root = np.linalg.cholesky(covariance[np.ix_(usable, usable)])
    white, right = np.linalg.solve(root, rows), np.linalg.solve(root, torque[usable])
    unit = np.linalg.inv(white.T @ white + np.eye(6))
    values = deviations * (unit @ (white.T @ right))
    measured = (np.diag(unit) < MEASURED**2) | (deviations == 0.0)
    return WrenchEstimate(values, deviations[:, None] * unit * deviations, measured)


class FrameWrench:
    """Wrench at a link of a robot."""

    def __init__(self, model: RobotModel, link: str, prior: WrenchPrior) -> None:
        """Find the link.

        Raises:
            ModelError: the URDF has no link of that name.
        """
        self._kinematics, self._at, self._prior = Kinematics(model), find_placement_of(model, link), prior

    def estimate(self, q: Array, torque: Array, covariance: Array) -> WrenchEstimate:
        """Estimate the wrench at positions `q`, shape (n,); see `estimate_wrench`."""
        jacobian = self._kinematics.poses(q[:, None]).jacobian(self._at)
        return estimate_wrench(jacobian, torque, covariance, self._prior)
