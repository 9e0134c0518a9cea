# SPDX-License-Identifier: Apache-2.0
"""The identified parameter set: parts that check themselves, and what binds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, get_type_hints

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters.base import BaseEstimate, BaseParameters
from robot_dyn_id.parameters.bodies import BodyParameters, TermParameters
from robot_dyn_id.parameters.effort import GAIN_REMEDY, Effort, SignalProcessing, describe_unknown_gains
from robot_dyn_id.parameters.judgment import Judgment
from robot_dyn_id.parameters.message import check_version, read_part
from robot_dyn_id.parameters.provenance import Provenance
from robot_dyn_id.parameters.ranges import Ranges, ResidualProfile
from robot_dyn_id.parameters.robot import IdentifiedRobot
from robot_dyn_id.parameters.rules import AGREEMENT, PARAMETER_SET, check_fields, refused
from robot_dyn_id.parameters.units import DRIVE_UNITS, name_drive_unit

PARAMETERS_FILE = "parameters.yaml"
"""Name of the file of a parameter set in a folder of results."""

FORMAT_VERSION = 3
"""Version of the parts of a parameter set, in files and messages; others are refused. 0.1.0, which had no such field,
counts as 1."""

FORMAT_REMEDY = "identify the robot again with this version, or use the version that is named in software_version"
"""Advice on a parameter set of another format version."""


@dataclass(frozen=True)
class ParameterSet:
    """Identified model, self-contained: everything needed for inverse and forward dynamics.

    Example:
        ```python
        parameters = rdi.load_parameters("run/parameters.yaml")
        base, estimate = parameters.base, parameters.estimate
        for name, value, sigma in zip(base.names, estimate.values, estimate.standard_deviations):
            print(f"{name}: {value:.4g} +- {sigma:.2g}")
        ```

    The message `robot_dyn_id/ParameterSet` and the file `parameters.yaml` have the same parts with the same fields.

    Attributes:
        robot: the robot, with n joints and b moving bodies.
        base: the p base parameters, combinations of c columns: 10 per moving body, then the linear terms.
        estimate: their values and covariance.
        bodies: standard parameters of the bodies in a realization of the base parameters.
        terms: values of the terms in that realization, and their constants and states.
        effort: meaning of the measured effort.
        processing: sampling and filters.
        ranges: ranges of the training motion.
        residuals: residuals of the training data over the speed.
        provenance: origin of the set.
        judgment: held-out errors, verdict, and uses.
        term_classes: classes of the user's own terms in this set. Neither files nor messages store them: they are given
            again when a file is read.
    """

    robot: IdentifiedRobot
    base: BaseParameters
    estimate: BaseEstimate
    bodies: BodyParameters
    terms: TermParameters
    effort: Effort
    processing: SignalProcessing
    ranges: Ranges
    residuals: ResidualProfile
    provenance: Provenance
    judgment: Judgment
    term_classes: tuple[type, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Freeze the arrays and check every field: a set may come from a file or from any node of the network.

        Order and names of joints, bodies and columns are compared with the URDF in `Regressor.from_parameters`.

        Raises:
            InputError: a field that is too long, has the wrong length or holds a value that no identification writes.
        """
        for name, part in self.parts.items():
            object.__setattr__(self, name, _frozen(part))
        if not (self.robot.joint_names and self.base.names):
            raise refused(f"{'base.names' if self.robot.joint_names else 'robot.joint_names'} is empty")
        check_fields(PARAMETER_SET, self.parts, self.sizes)
        for part in _list_parts(self):
            if hasattr(part, "check"):
                part.check()
        full = np.concatenate([self.bodies.standard_parameters, self.terms.values])
        values, mapping = self.estimate.values, self.base.mapping
        allowed = AGREEMENT * (np.abs(mapping) @ np.abs(full) + np.abs(values))
        apart = np.flatnonzero(np.abs(values - mapping @ full) > allowed)
        if len(apart):
            name = self.base.names[apart[0]]
            raise refused(f"estimate.values of {name} is not mapping * (standard_parameters, terms.values)")
        reversed_range = np.flatnonzero(self.ranges.q_min > self.ranges.q_max)
        if len(reversed_range):
            joint = self.robot.joint_names[reversed_range[0]]
            raise refused(f"ranges.q_min of joint {joint} is greater than q_max")

    @classmethod
    def from_message(cls, message: Any) -> ParameterSet:
        """Read a message `robot_dyn_id/msg/ParameterSet`.

        Raises:
            InputError: another format version, or fields that do not fit together.
        """
        check_format_version(message.format_version)
        base, joints = len(message.base.names), len(message.robot.joint_names)
        rows = {"covariance": base, "mapping": base, "speeds": joints, "deviations": joints}
        hints = get_type_hints(cls)
        names = [item.name for item in fields(cls) if item.name != "term_classes"]
        return cls(**{name: read_part(PARAMETER_SET, hints[name], getattr(message, name), rows) for name in names})

    @property
    def parts(self) -> Mapping[str, Any]:
        """The parts by name, which files and messages hold."""
        return {item.name: getattr(self, item.name) for item in fields(ParameterSet) if item.name != "term_classes"}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes that the rules of the fields name."""
        standard = 10 * len(self.robot.body_names)
        speeds = np.shape(self.residuals.speeds)
        return {
            "axes": 3,
            "joints": len(self.robot.joint_names),
            "held": len(self.robot.held_joint_names),
            "base": len(self.base.names),
            "columns": len(self.base.column_names),
            "standard": standard,
            "terms": len(self.base.column_names) - standard,
            "constants": len(self.terms.constant_names),
            "recordings": len(self.provenance.sources),
            "ranges": speeds[1] if len(speeds) == 2 else 0,
        }

    @property
    def unknown_gains(self) -> tuple[str, ...]:
        """Joints whose effort is a current, or a motor torque, of unknown drive gain.

        The model predicts that quantity there, not the torque of the joint, and must not command, simulate or estimate
        torques.
        """
        if self.effort.kind not in DRIVE_UNITS:
            return ()
        joints, gains = self.robot.joint_names, self.effort.drive_gains.tolist()
        return tuple(name for name, gain in zip(joints, gains or [0.0] * len(joints), strict=True) if not gain > 0.0)

    @property
    def drive_units(self) -> dict[str, str]:
        """Units of the efforts of the joints of `unknown_gains`, by joint name."""
        ratios = dict(zip(self.robot.joint_names, self.effort.relative_gains.tolist(), strict=False))
        return {name: name_drive_unit(self.effort.kind, ratios.get(name, 1.0) != 1.0) for name in self.unknown_gains}

    @property
    def effort_factors(self) -> Array:
        """Effort per effort or current that the drive of each joint reports, gain times sign, shape (n,)."""
        effort, factors = self.effort, np.ones(len(self.robot.joint_names))
        if len(effort.relative_gains):
            factors = factors * effort.relative_gains
        if len(effort.drive_gains):
            factors = np.where(effort.drive_gains > 0.0, effort.drive_gains, factors) * effort.drive_signs
        return factors

    def predicts_as(self, other: ParameterSet) -> bool:
        """Whether two sets predict the same torques with the same uncertainty, as one that is published again does."""
        return (
            self.robot.urdf_sha256 == other.robot.urdf_sha256
            and self.robot.joint_names == other.robot.joint_names
            and self.base.column_names == other.base.column_names
            and np.array_equal(self.estimate.values, other.estimate.values)
            and np.array_equal(self.estimate.covariance, other.estimate.covariance)
            and np.array_equal(self.effort_factors, other.effort_factors)
            and self.effort.kind == other.effort.kind
        )

    def refuse_unknown_gains(self) -> None:
        """Refuse a model that predicts currents, where torques are needed.

        Raises:
            InputError: gains are not known, see `unknown_gains`.
        """
        if self.unknown_gains:
            raise InputError(f"parameter set: {describe_unknown_gains(self.drive_units)}: {GAIN_REMEDY}", GAIN_REMEDY)

    def refuse_bad_verdict(self, action: str = "identify again") -> None:
        """Refuse a model that must not command torques.

        Args:
            action: advice to the user about a bad verdict.

        Raises:
            InputError: the verdict is bad, or gains are not known, see `unknown_gains`.
        """
        self.refuse_unknown_gains()
        if self.judgment.verdict == "bad":
            reasons = "; ".join(self.judgment.reasons)
            raise InputError(f"the verdict on the parameters is bad ({reasons}): {action}", action)


def _frozen(part: Any) -> Any:
    """Copy of a part whose arrays cannot be written."""
    frozen = copy(part)
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        elif is_dataclass(value):
            value = _frozen(value)
        object.__setattr__(frozen, item.name, value)
    return frozen


def _list_parts(part: Any) -> Iterator[Any]:
    """List the parts within a part, at every depth."""
    for item in fields(part):
        value = getattr(part, item.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if is_dataclass(inner) and not isinstance(inner, type):
                yield inner
                yield from _list_parts(inner)


def check_format_version(version: int) -> None:
    """Refuse a parameter set of another format version.

    Raises:
        InputError: the version, and what to do.
    """
    check_version(PARAMETER_SET, version, FORMAT_VERSION, FORMAT_REMEDY)
