# SPDX-License-Identifier: Apache-2.0
"""An arm with flexible joints: its parameters, and what a joint's sensors make known of them.

Spong's model (1987): the motor's angle m turns, through a gear of ratio N, one end of a spring whose other end is the
link's joint angle q; rotors have kinetic energy only from their own spin. With the torque tau in the spring

    link     M(q) ddq + C(q, dq) dq + g(q) + fv dq + fc sign(dq) = tau
    spring   tau = K (m / N - q) + preload
    motor    Jm ddm + fvm dm + fcm sign(dm) + tau / N = tau_m

and a joint torque sensor reads tau + off. Where the motor's torque is compared with that reading, what is constant in
the difference, the offset of the motor's torque less off / N, is a parameter of its own, offm: off is not known the
better for it. Without a sensor the spring's torque stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Integers
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion, stack_regressor
from robot_dyn_id.dynamics.regressor import Motion, Regressor, make_joint_coordinates
from robot_dyn_id.dynamics.terms import Coordinate, Coulomb, Offset, RotorInertia, Term, Viscous
from robot_dyn_id.errors import ModelError, UsageError, suggest_known
from robot_dyn_id.estimators.stepwise import Group
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import BaseParameters

MOTOR = ("Jm", "fvm", "fcm")
"""Rotor inertia [kg m^2], viscous [N m s] and Coulomb friction [N m], all at the motor's shaft."""

MOTOR_OFFSET = "offm"
"""Constant part of a motor's torque that the torque sensor does not measure [N m]."""

SPRING = ("K", "preload")
"""Stiffness [N m/rad] and torque at zero deflection [N m], at the joint's side; for a sliding joint N/m and N."""


@dataclass(frozen=True)
class FlexibleJoint:
    """A joint with a spring between gear and link.

    Attributes:
        name: the joint in the URDF.
        ratio: turns of the motor for one of the joint, N; negative if they turn against one another.
        torque_sensor: whether its torque is measured behind the spring.
    """

    name: str
    ratio: float
    torque_sensor: bool = True

    def __post_init__(self) -> None:
        """Check the ratio.

        Raises:
            UsageError: zero or not finite.
        """
        if not (math.isfinite(self.ratio) and self.ratio != 0.0):
            raise UsageError(f"joint {self.name}: the gear ratio must be a number other than 0, not {self.ratio}")

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of the parameters of motor and spring."""
        return (*MOTOR, *([MOTOR_OFFSET] if self.torque_sensor else []), *SPRING)


@dataclass(frozen=True)
class FlexibleModel:
    """An arm, some or all of whose joints are flexible; the others have their effort measured, and are rigid.

    Attributes:
        model: the robot.
        joints: its flexible joints, in the order of the motors' arrays.
        smoothing_width: smoothing width of the joints' Coulomb friction [rad/s or m/s], see `terms.Coulomb`; that of a
            motor is |N| times as wide.
    """

    model: RobotModel
    joints: tuple[FlexibleJoint, ...]
    smoothing_width: float = 0.02

    def __post_init__(self) -> None:
        """Check the joints.

        Raises:
            UsageError: no flexible joint, or one twice.
            ModelError: a joint that the robot does not have, or whose sensor's offset is not identifiable.
        """
        names = [joint.name for joint in self.joints]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"flexible joints must be there and differ: {', '.join(names) or 'none'}")
        for joint in self.joints:
            if joint.name not in self.model.joint_names:
                known = self.model.joint_names
                raise ModelError(
                    f"{joint.name} is not a joint of {self.model.name}: {suggest_known(joint.name, known)}"
                )
            if joint.torque_sensor and f"off{self.label(joint.name)}" not in self.base.names:
                raise ModelError(
                    f"joint {joint.name}: its sensor's offset is not distinguishable from a constant weight; "
                    "set torque_sensor to false"
                )

    def label(self, joint: str) -> str:
        """Number of a joint in the names of its parameters."""
        return str(self.model.body_names.index(joint) + 1)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Indices of the flexible joints among all joints."""
        return tuple(self.model.joint_names.index(joint.name) for joint in self.joints)

    @cached_property
    def sensed(self) -> tuple[str, ...]:
        """Joints whose torque at the link is measured: those with a sensor, and the rigid ones."""
        without = {joint.name for joint in self.joints if not joint.torque_sensor}
        return tuple(name for name in self.model.joint_names if name not in without)

    @cached_property
    def regressor(self) -> Regressor:
        """Columns of the link side: bodies, friction, offsets where a torque is measured, rotors of rigid joints."""
        flexible = {joint.name for joint in self.joints}
        own = [one for one in make_joint_coordinates(self.model) if one.name in self.model.joint_names]
        terms: list[tuple[Coordinate, Term]] = [
            (one, term) for term in (Viscous(), Coulomb(self.smoothing_width)) for one in own
        ]
        terms += [(one, Offset()) for one in own if one.name in self.sensed]
        terms += [(one, RotorInertia()) for one in own if one.name not in flexible]
        return Regressor(self.model, tuple(terms))

    @cached_property
    def base(self) -> BaseParameters:
        """The base parameters of the link side; the first of all parameters."""
        return compute_base_parameters(self.regressor)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All p parameters: those of the link side, then per flexible joint those of motor and spring."""
        labels = [self.label(joint.name) for joint in self.joints]
        own = [(label, symbol) for label, joint in zip(labels, self.joints, strict=True) for symbol in joint.symbols]
        return (*self.base.names, *(f"{symbol}{label}" for label, symbol in own))

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Combination of standard parameters that each parameter is, such as `Izz1 + 0.1406 m2`."""
        return (*self.base.expressions, *self.names[len(self.base.names) :])

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        efforts = dict(zip(self.model.joint_names, self.model.effort_units, strict=True))
        positions = dict(zip(self.model.joint_names, self.model.position_units, strict=True))
        motor = dict(zip((*MOTOR, MOTOR_OFFSET), ("kg m^2", "N m s", "N m", "N m"), strict=True))
        units = list(self.base.units)
        for joint in self.joints:
            effort = efforts[joint.name]
            spring = {"K": f"{effort}/{positions[joint.name]}", "preload": effort}
            units += [(motor | spring)[symbol] for symbol in joint.symbols]
        return tuple(units)

    def columns(self, symbols: Sequence[str], joint: str) -> Integers:
        """Places of parameters of a joint by their symbols; those that it has not are left out."""
        wanted = [f"{symbol}{self.label(joint)}" for symbol in symbols]
        return np.array([self.names.index(name) for name in wanted if name in self.names], dtype=np.int64)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Parameters that stay together: per link gravity and inertia, per joint friction, offset, motor and spring."""
        poses = draw_random_motion(self.model, 30).q
        resting = Motion(poses, np.zeros_like(poses), np.zeros_like(poses))
        heavy = np.linalg.norm(stack_regressor(self.regressor, resting), axis=0) > 0.0
        found = []
        for number, body in enumerate(self.model.body_names):
            own = [i for i, column in enumerate(self.base.independent) if column // 10 == number]
            own = [i for i in own if self.base.independent[i] < 10 * len(self.model.body_names)]
            for what, flag in (("gravity", True), ("inertia", False)):
                columns = [i for i in own if heavy[self.base.independent[i]] == flag]
                found.append(Group(f"{what} of {body}", np.array(columns, dtype=np.int64)))
        kinds = {"friction": ("fv", "fc"), "offset": ("off",), "rotor": ("Ir",), "motor": (*MOTOR, MOTOR_OFFSET)}
        kinds["spring"] = SPRING
        for joint in self.model.joint_names:
            found += [Group(f"{what} of {joint}", self.columns(symbols, joint)) for what, symbols in kinds.items()]
        return tuple(group for group in found if len(group.columns))
