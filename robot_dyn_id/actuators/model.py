# SPDX-License-Identifier: Apache-2.0
"""Model of the actuators of a robot that is commanded by positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.actuators import KINDS, OFFSET, Actuators

SIGNED = "offset"
"""The only parameter of an actuator that may be negative."""

NEVER_REACHED = np.inf
"""Effort limit that the data do not determine, as no command reaches it [N m or N]."""


@dataclass(frozen=True)
class ActuatorModel:
    """Actuators of n joints: effort = saturation(kp (reference(t - delay) - q) - kd dq), and what it has to overcome.

    The effort accelerates links and armature against viscous and Coulomb friction and the offset, a constant torque.
    An error `bias` of the commanded zero position is an offset of kp bias: the data cannot separate the two.

    Attributes:
        joint_names: names of the n joints.
        armature: inertia of the motor reflected to the joint [kg m^2 or kg], shape (n,).
        viscous: viscous friction [N m s/rad or N s/m], shape (n,).
        coulomb: Coulomb friction [N m or N], shape (n,).
        offset: constant torque that the drive has to overcome [N m or N], shape (n,).
        delay: age of the reference that the drive follows [s], shape (n,).
        kp: gains of positions [N m/rad or N/m], shape (n,).
        kd: gains of velocities [N m s/rad or N s/m], shape (n,).
        limit: limits of the effort [N m or N], shape (n,); infinite where no limit is known.
    """

    joint_names: tuple[str, ...]
    armature: Array
    viscous: Array
    coulomb: Array
    offset: Array
    delay: Array
    kp: Array
    kd: Array
    limit: Array

    def __post_init__(self) -> None:
        """Check and freeze the values.

        Raises:
            UsageError: not one value per joint, not a number, or a negative value of anything but the offset.
        """
        for kind in KINDS:
            values = np.array(getattr(self, kind), dtype=np.float64)
            if values.shape != (len(self.joint_names),):
                raise UsageError(f"{kind} has shape {values.shape}, expected one value for each of {self.joint_names}")
            for name, value in zip(self.joint_names, values.tolist(), strict=True):
                if np.isnan(value) or (value < 0.0 and kind != SIGNED) or (np.isinf(value) and kind != "limit"):
                    raise UsageError(f"{kind} of {name} must be a number of 0 or more, not {value:g}")
            values.flags.writeable = False
            object.__setattr__(self, kind, values)

    @classmethod
    def from_values(cls, joint_names: Sequence[str], values: Array) -> ActuatorModel:
        """Model of a matrix of values, shape (8, n), rows in the order of `KINDS`."""
        return cls(tuple(joint_names), **dict(zip(KINDS, values, strict=True)))

    @property
    def values(self) -> Array:
        """All values, shape (8, n), rows in the order of `KINDS`."""
        return np.stack([getattr(self, kind) for kind in KINDS])

    @property
    def kernel(self) -> Actuators:
        """The values as the kernels take them."""
        return Actuators(self.values)

    @property
    def bias(self) -> Array:
        """Error of the commanded zero position with the effect of the offset [rad or m], shape (n,); NaN without kp."""
        offset = self.values[OFFSET]
        return np.asarray(np.divide(offset, self.kp, out=np.full(len(offset), np.nan), where=self.kp > 0.0))

    def select(self, joints: Sequence[str]) -> ActuatorModel:
        """The actuators of some joints, in the order given."""
        return self.from_values(joints, self.values[:, [self.joint_names.index(name) for name in joints]])
