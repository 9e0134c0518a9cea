# SPDX-License-Identifier: Apache-2.0
"""The section `flexible` of the configuration file: flexible joints, motors, and the kinds of recordings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.stepwise import MAX_CONDITION_NUMBER, SCALINGS
from robot_dyn_id.files.values import choice, list_field_hints, read_mapping
from robot_dyn_id.flexible.model import FlexibleJoint, FlexibleModel
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.cleaning import Drive


@dataclass(frozen=True)
class ExperimentSettings:
    """User settings of one recorded experiment; None leaves a property as the file states it.

    Attributes:
        static: whether every sample is a pose at rest, with time stamps that have no meaning.
        periodic: whether the first sample follows the last one.
        moving: the joints that move.
    """

    static: bool | None = None
    periodic: bool | None = None
    moving: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check that they do not contradict one another.

        Raises:
            UsageError: a static experiment that is also periodic or has moving joints.
        """
        if self.static and (self.periodic or self.moving):
            raise UsageError("an experiment is static, poses at rest, or it moves: leave one out")


@dataclass(frozen=True)
class FlexibleSettings:
    """Every key of the section; only `joints` is required.

    Attributes:
        joints: the flexible joints.
        motors: names of the motors in recordings, by joint name; the joint's own name by default.
        torque_constants: torque constants of motors whose current is recorded, by joint name [N m/A].
        smoothing_width: smoothing width of the joints' Coulomb friction [rad/s or m/s].
        limit: largest condition number of a group of parameters that is not split.
        scaling: scaling of that condition number, one of `SCALINGS`.
        motor_topic: JointState topic of the motors in bags; None: they are in the joints' topic, or not recorded.
        experiments: settings of single experiments, by file name.
    """

    joints: tuple[FlexibleJoint, ...]
    motors: Mapping[str, str] = field(default_factory=dict)
    torque_constants: Mapping[str, float] = field(default_factory=dict)
    smoothing_width: float = 0.02
    limit: float = MAX_CONDITION_NUMBER
    scaling: str = "columns"
    motor_topic: str | None = None
    experiments: Mapping[str, ExperimentSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: no joint, two motors of one name, a negative width, a limit below 1, or a torque constant of 0.
        """
        if not self.joints:
            raise UsageError("joints: none is named; give each flexible joint with its ratio")
        if len(set(self.motor_names)) < len(self.motor_names):
            raise UsageError(f"joints: two motors are called {max(self.motor_names, key=self.motor_names.count)}")
        if not 0.0 <= self.smoothing_width < math.inf:
            raise UsageError(f"smoothing_width must be 0 or positive [rad/s or m/s], not {self.smoothing_width:g}")
        if not self.limit >= 1.0:
            raise UsageError(f"limit must be 1 or more, not {self.limit:g}")
        for name, constant in self.torque_constants.items():
            if not 0.0 < abs(constant) < math.inf:
                raise UsageError(f"joints.{name}: torque_constant must be a number other than 0, not {constant:g}")

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the motors in recordings, in the order of the flexible joints."""
        return tuple(self.motors.get(joint.name, joint.name) for joint in self.joints)

    @property
    def drives(self) -> dict[str, Drive]:
        """Drives of the motors whose current is recorded, by joint name."""
        return {name: Drive(constant) for name, constant in self.torque_constants.items()}

    def model(self, robot: RobotModel) -> FlexibleModel:
        """Dynamic model of the arm with these flexible joints.

        Raises:
            RobotDynIdError: see `FlexibleModel`.
        """
        return FlexibleModel(robot, self.joints, self.smoothing_width)


@dataclass(frozen=True)
class _Joint:
    """Keys of a flexible joint in the file."""

    ratio: float
    torque_sensor: bool = True
    motor: str | None = None
    torque_constant: float | None = None


def read_flexible_section(value: Any, key: str) -> FlexibleSettings:
    """Turn the content of the section into checked values.

    Args:
        value: content of the section.
        key: its key in the file.

    Raises:
        UsageError: an unknown key (the nearest known one is named), a wrong type or value.
    """
    of_joints = ("joints", "motors", "torque_constants")
    hints = {name: hint for name, hint in list_field_hints(FlexibleSettings).items() if name not in of_joints}
    given = read_mapping({"joints": dict[str, _Joint], **hints}, value, key, {"scaling": choice(SCALINGS)})
    joints: dict[str, _Joint] = given.pop("joints", {})
    if not joints:
        raise UsageError(f"{key}: joints must be given, each flexible joint with its ratio")
    motors = {name: joint.motor for name, joint in joints.items() if joint.motor is not None}
    constants = {name: joint.torque_constant for name, joint in joints.items() if joint.torque_constant is not None}
    try:
        flexible = tuple(FlexibleJoint(name, joint.ratio, joint.torque_sensor) for name, joint in joints.items())
        return FlexibleSettings(flexible, motors, constants, **given)
    except UsageError as error:
        raise UsageError(f"{key}: {error.message}") from None
