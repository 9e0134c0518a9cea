# SPDX-License-Identifier: Apache-2.0
"""Identified actuators with all that simulations need; files and messages have the same content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.uncertainty import ActuatorUncertainty
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.link_body import SYMBOLS
from robot_dyn_id.errors import InputError, UsageError, make_storable
from robot_dyn_id.kernels.actuators import KINDS
from robot_dyn_id.model.description import hash_description
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import LARGEST, LONGEST_LINE, MOST_BODIES
from robot_dyn_id.parameters.message import check_version, read_part
from robot_dyn_id.parameters.rules import check_fields, rule
from robot_dyn_id.uses import ANSWERS, NO

if TYPE_CHECKING:
    from robot_dyn_id.actuators.identification import ActuatorEstimate

FORMAT_VERSION = 3
"""Version of the content of an actuator set, in files and messages; others are refused."""

FORMAT_REMEDY = "identify the actuators again with this version of robot_dyn_id"
"""Advice on an actuator set of another format version."""

ACTUATOR_SET = "actuator set"
"""Beginning of messages about an actuator set."""


@dataclass(frozen=True)
class ActuatedRobot:
    """Robot that the actuators belong to, with b moving bodies.

    Attributes:
        name: name of the robot in its URDF.
        urdf_sha256: hash of its URDF, see `hash_description`.
        held_joint_names: names of the joints that did not move.
        held_joint_positions: their positions [rad or m].
        gravity: gravity vector in the base frame [m/s^2], shape (3,).
        body_names: names of the bodies of `standard_parameters`; empty: the links are those of the URDF.
        standard_parameters: standard parameters of the links, see `RobotModel`, shape (10 b,).
    """

    name: str = field(metadata=rule())
    urdf_sha256: str = field(metadata=rule())
    held_joint_names: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))
    held_joint_positions: Array = field(metadata=rule("held", finite=True))
    gravity: Array = field(metadata=rule("axes", finite=True))
    body_names: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))
    standard_parameters: Array = field(repr=False, metadata=rule("standard", finite=True))


@dataclass(frozen=True)
class ActuatorJudgment:
    """Validity of identified actuators.

    Attributes:
        verdict: good, suspect or bad.
        reasons: reasons why the verdict is not good.
        fit_for_simulation: whether simulations under position commands can use the actuators, one of `ANSWERS`.
    """

    verdict: str = field(metadata=rule(words=("good", "suspect", "bad")))
    reasons: tuple[str, ...] = field(metadata=rule(most=1000))
    fit_for_simulation: str = field(metadata=rule(words=ANSWERS))


@dataclass(frozen=True)
class ActuatorSet:
    """Identified actuators of a robot with all that simulations need in addition to its URDF.

    The message `robot_dyn_id/ActuatorSet` and the file `actuators.yaml` have the same content.

    Attributes:
        robot: the robot.
        actuators: the actuators.
        uncertainty: their uncertainty.
        judgment: verdict and use.
    """

    robot: ActuatedRobot
    actuators: ActuatorModel
    uncertainty: ActuatorUncertainty
    judgment: ActuatorJudgment

    def __post_init__(self) -> None:
        """Check every field: a set may come from a file or from any node of the network.

        Raises:
            InputError: a field that is too long, has the wrong length or holds a value that no identification writes.
        """
        if not self.actuators.joint_names:
            raise InputError(f"{ACTUATOR_SET}: it has no actuators")
        robot, layout = self.robot, self.uncertainty.layout
        sizes = {
            "axes": 3,
            "kinds": len(KINDS),
            "joints": len(self.actuators.joint_names),
            "held": len(robot.held_joint_names),
            "standard": SYMBOLS * len(robot.body_names),
            "parameters": layout.count,
        }
        check_fields(ACTUATOR_SET, self.parts, sizes)
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Refuse parameters that are not numbered from 0 on, or that are not values of one kind.

        Raises:
            InputError: such a parameter, or a value or interval that is too large to be drawn from.
        """
        index, values = self.uncertainty.index, self.actuators.values
        kind, joint = np.nonzero(index != -1)
        numbers = index[kind, joint]
        if not np.array_equal(np.unique(numbers), np.arange(self.uncertainty.layout.count)):
            raise InputError(f"{ACTUATOR_SET}: uncertainty.index does not number the parameters from 0 on")
        if not np.array_equal(self.uncertainty.layout.kinds[numbers], kind):
            raise InputError(f"{ACTUATOR_SET}: uncertainty.index has one number for values of two kinds")
        if not np.isfinite(values[kind, joint]).all():
            raise InputError(f"{ACTUATOR_SET}: uncertainty.index numbers a value that is not known")
        for matrix in (values, self.uncertainty.low, self.uncertainty.high):
            large = matrix[np.isfinite(matrix) & (np.abs(matrix) > LARGEST)]
            if len(large):
                raise InputError(f"{ACTUATOR_SET}: {large[0]:g} is above {LARGEST:g}")

    @classmethod
    def from_estimate(cls, estimate: ActuatorEstimate, judgment: ActuatorJudgment) -> ActuatorSet:
        """Actuators of an identification."""
        model, changed = estimate.links.robot, estimate.links.gain > 0.0
        robot = ActuatedRobot(
            model.name,
            hash_description(model.urdf),
            tuple(model.held),
            np.array(list(model.held.values()), dtype=np.float64),
            model.gravity,
            model.body_names if changed else (),
            model.inertial_parameters if changed else np.zeros(0),
        )
        return cls(robot, estimate.actuators, estimate.uncertainty, judgment)

    @classmethod
    def from_message(cls, message: Any) -> ActuatorSet:
        """Read a message `robot_dyn_id/msg/ActuatorSet`.

        Raises:
            InputError: another format version, or fields that do not fit together.
        """
        check_version(ACTUATOR_SET, message.format_version, FORMAT_VERSION, FORMAT_REMEDY)
        count = max(message.uncertainty.index, default=-1) + 1
        rows = {**dict.fromkeys(("index", "low", "high", "between"), len(KINDS)), "correlation": count}
        try:
            parts = {
                name: read_part(ACTUATOR_SET, kind, getattr(message, name), rows)
                for name, kind in get_type_hints(cls).items()
            }
        except UsageError as error:  # of the actuators
            raise InputError(f"{ACTUATOR_SET}: {make_storable(error.message, LONGEST_LINE)}") from None
        return cls(**parts)

    @property
    def parts(self) -> Mapping[str, Any]:
        """The parts by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def model(self, urdf: str) -> RobotModel:
        """Model of the robot with the links of the actuators.

        Args:
            urdf: text of its URDF.

        Raises:
            InputError: another robot.
        """
        robot = self.robot
        if hash_description(urdf) != robot.urdf_sha256:
            raise InputError(
                "the actuators were identified with another robot description: give that one, or identify again"
            )
        held = dict(zip(robot.held_joint_names, robot.held_joint_positions.tolist(), strict=True))
        model = RobotModel.from_urdf(urdf, self.actuators.joint_names, held, robot.gravity.tolist())
        if not robot.body_names:
            return model
        if set(robot.body_names) != set(model.body_names):
            raise InputError("the links of the actuators are not the moving ones of the robot description")
        places = [robot.body_names.index(name) for name in model.body_names]
        bodies = robot.standard_parameters.reshape(-1, SYMBOLS)[places]
        return replace(model, inertial_parameters=bodies.ravel())

    def refuse_unfit(self) -> None:
        """Refuse actuators whose simulations say nothing about the robot.

        Raises:
            InputError: they are not fit for simulation, and why.
        """
        if self.judgment.fit_for_simulation == NO:
            raise InputError(f"the actuators are not fit for simulation: {'; '.join(self.judgment.reasons)}")
