# SPDX-License-Identifier: Apache-2.0
"""The section `flexible` of the configuration file: which joints are flexible, what the files are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.stepwise import MAX_CONDITION_NUMBER, SCALINGS
from robot_dyn_id.files.values import flag, mapping, number, one_of, text, texts
from robot_dyn_id.flexible import FlexibleJoint, FlexibleModel
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.cleaning import Drive


@dataclass(frozen=True)
class ExperimentSettings:
    """What a person says about a file of an experiment; None: what the file says itself.

    Attributes:
        static: whether every sample is a pose at rest, and the stamps mean nothing.
        periodic: whether the first sample follows the last one.
        moving: the joints that move.
    """

    static: bool | None = None
    periodic: bool | None = None
    moving: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check that they do not contradict one another.

        Raises:
            UsageError: poses that move.
        """
        if self.static and (self.periodic or self.moving):
            raise UsageError("an experiment is static, poses at rest, or it moves: leave one out")


@dataclass(frozen=True)
class FlexibleSettings:
    """Every key of the section; only `joints` must be there.

    Attributes:
        joints: the flexible ones.
        motors: what recordings call the motors, by joint name; the joint's own name by default.
        torque_constants: of motors whose torque is recorded as a current, by joint name [N m/A].
        smoothing_width: of the joints' Coulomb friction [rad/s or m/s].
        limit: greatest condition number of groups of parameters that are not split.
        scaling: of that condition number.
        motor_topic: the JointState topic of bags with the motors; None: they are in the joints' topic, or nowhere.
        experiments: by file name.
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
            UsageError: no joint, motors of one name, a width below zero, a limit below 1, a torque constant of 0.
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
        """What recordings call the motors of the flexible joints."""
        return tuple(self.motors.get(joint.name, joint.name) for joint in self.joints)

    @property
    def drives(self) -> dict[str, Drive]:
        """Of the motors whose torque is recorded as a current, by the joint's name."""
        return {name: Drive(constant) for name, constant in self.torque_constants.items()}

    def model(self, robot: RobotModel) -> FlexibleModel:
        """The arm.

        Raises:
            RobotDynIdError: see `FlexibleModel`.
        """
        return FlexibleModel(robot, self.joints, self.smoothing_width)


def flexible_settings(value: Any, key: str) -> FlexibleSettings:
    """Turn the content of the section into values.

    Raises:
        UsageError: an unknown key (the nearest known one is named), a wrong type or value.
    """
    known = [item.name for item in fields(FlexibleSettings) if item.name not in ("motors", "torque_constants")]
    given = mapping(value, key, known)
    if not given.get("joints"):
        raise UsageError(f"{key}: joints must be given, each flexible joint with its ratio")
    readers: dict[str, Any] = {
        "smoothing_width": number,
        "limit": number,
        "scaling": lambda entry, part: one_of(entry, part, SCALINGS),
        "motor_topic": text,
        "experiments": _experiments,
    }
    joints, motors, constants = _joints(given["joints"], f"{key}.joints")
    rest = {name: readers[name](entry, f"{key}.{name}") for name, entry in given.items() if name != "joints"}
    try:
        return FlexibleSettings(joints, motors, constants, **rest)
    except UsageError as error:
        raise UsageError(f"{key}.{error}") from None


def _joints(value: Any, key: str) -> tuple[tuple[FlexibleJoint, ...], dict[str, str], dict[str, float]]:
    joints, motors, constants = [], {}, {}
    for name, entry in mapping(value, key).items():
        given = mapping(entry, f"{key}.{name}", ("ratio", "torque_sensor", "motor", "torque_constant"))
        if "ratio" not in given:
            raise UsageError(f"{key}.{name}: ratio must be given: turns of the motor for one of the joint")
        ratio = number(given["ratio"], f"{key}.{name}.ratio")
        sensor = flag(given.get("torque_sensor", True), f"{key}.{name}.torque_sensor")
        try:
            joints.append(FlexibleJoint(str(name), ratio, sensor))
        except UsageError as error:
            raise UsageError(f"{key}: {error}") from None
        if "motor" in given:
            motors[str(name)] = text(given["motor"], f"{key}.{name}.motor")
        if "torque_constant" in given:
            constants[str(name)] = number(given["torque_constant"], f"{key}.{name}.torque_constant")
    return tuple(joints), motors, constants


def _experiments(value: Any, key: str) -> dict[str, ExperimentSettings]:
    readers: dict[str, Any] = {"static": flag, "periodic": flag, "moving": texts}
    found = {}
    for name, entry in mapping(value, key).items():
        given = mapping(entry, f"{key}.{name}", list(readers))
        try:
            found[str(name)] = ExperimentSettings(**{k: readers[k](v, f"{key}.{name}.{k}") for k, v in given.items()})
        except UsageError as error:
            text_of = str(error)
            raise UsageError(text_of if text_of.startswith(key) else f"{key}.{name}: {text_of}") from None
    return found
