# SPDX-License-Identifier: Apache-2.0
"""Model of the actuators of a robot that is commanded by positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.actuators import KINDS, OFFSET, Actuators
from robot_dyn_id.parameters.robot import MOST_BODIES
from robot_dyn_id.parameters.rules import rule

ABSENT = {
    "load_coulomb": 0.0,
    "breakaway_displacement": 0.0,
    "limit": np.inf,
    "lower_stop": -np.inf,
    "upper_stop": np.inf,
    "lower_reference": -np.inf,
    "upper_reference": np.inf,
}
"""Values of what the model of a joint does not have, by kind."""

SIGNED = ("offset", "lower_stop", "upper_stop", "lower_reference", "upper_reference")
"""The parameters of an actuator that may be negative."""


@dataclass(frozen=True)
class ActuatorModel:
    """Actuators of n joints: effort = saturation(kp (reference(t - delay) - q) - kd dq), and what it has to overcome.

    The effort accelerates links and armature against viscous and Coulomb friction and the offset, a constant torque.
    Coulomb friction is coulomb + load_coulomb |load|, with the torque of the links without acceleration as load (as the
    term `load_coulomb`). With a breakaway displacement it is that of a Dahl element (as those of the term `dahl`).
    An error `bias` of the commanded zero position is an offset of kp bias: the data cannot separate the two. Joints are
    stopped at their end stops, and drives follow the ends of the range of their references beyond it.

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
        lower_stop, upper_stop: end stops [rad or m], shape (n,); infinite where none is known.
        lower_reference, upper_reference: ends of the range of references that drives follow [rad or m], shape (n,);
            infinite where none is known.
        load_coulomb: Coulomb friction per load [-], shape (n,); 0: it does not depend on the load.
        breakaway_displacement: distance over which a joint deflects before it slides [rad or m], shape (n,); 0: none.
    """

    joint_names: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))
    armature: Array
    viscous: Array
    coulomb: Array
    offset: Array
    delay: Array
    kp: Array
    kd: Array
    limit: Array
    lower_stop: Array = field(default_factory=lambda: np.array(-np.inf))
    upper_stop: Array = field(default_factory=lambda: np.array(np.inf))
    lower_reference: Array = field(default_factory=lambda: np.array(-np.inf))
    upper_reference: Array = field(default_factory=lambda: np.array(np.inf))
    load_coulomb: Array = field(default_factory=lambda: np.array(0.0))
    breakaway_displacement: Array = field(default_factory=lambda: np.array(0.0))

    def __post_init__(self) -> None:
        """Check and freeze the values.

        Raises:
            UsageError: not one value per joint, not a number, or a negative value of anything but `SIGNED`.
        """
        for kind in KINDS:
            values = np.array(getattr(self, kind), dtype=np.float64)
            if kind in ABSENT and values.ndim == 0:
                values = np.full(len(self.joint_names), float(values))
            if values.shape != (len(self.joint_names),):
                raise UsageError(f"{kind} has shape {values.shape}, expected {(len(self.joint_names),)}")
            for name, value in zip(self.joint_names, values.tolist(), strict=True):
                known = np.isfinite(value) or ABSENT.get(kind) == value
                if not known or (value < 0.0 and kind not in SIGNED):
                    least = "" if kind in SIGNED else " of 0 or more"
                    raise UsageError(f"{kind} of {name} must be a number{least}, not {value:g}")
            values.flags.writeable = False
            object.__setattr__(self, kind, values)

    @classmethod
    def from_values(cls, joint_names: Sequence[str], values: Array) -> ActuatorModel:
        """Model of a matrix of values, shape (14, n), rows in the order of `KINDS`."""
        return cls(tuple(joint_names), **dict(zip(KINDS, values, strict=True)))

    @property
    def values(self) -> Array:
        """All values, shape (14, n), rows in the order of `KINDS`."""
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

    def at_load(self, load: Array) -> ActuatorModel:
        """Actuators without friction that depends on the load, with that of one load [N m or N], shape (n,)."""
        none = np.zeros(len(self.joint_names))
        return replace(self, coulomb=self.coulomb + self.load_coulomb * np.abs(load), load_coulomb=none)

    def select(self, joints: Sequence[str]) -> ActuatorModel:
        """The actuators of some joints, in the order given."""
        return self.from_values(joints, self.values[:, [self.joint_names.index(name) for name in joints]])
