# SPDX-License-Identifier: Apache-2.0
"""`flexible.yaml`: an identified arm with flexible joints as text, equal to the last bit when read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.stepwise import StepwisePlan
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.values import file_errors, read_dataclass
from robot_dyn_id.findings import Finding
from robot_dyn_id.flexible import Agreement, FlexibleIdentification, FlexibleJoint, FlexibleModel
from robot_dyn_id.identification.validation.verdict import Verdict
from robot_dyn_id.model.description import hash_description
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.text.yaml import Row

FORMAT = FileFormat("flexible", 2, "identify the flexible joints again with this version of robot_dyn_id")


@dataclass(frozen=True)
class StoredFlexible:
    """Content of the file: an arm with flexible joints, its parameters, and where they come from.

    Attributes:
        robot_name: name of the robot in its URDF.
        urdf_sha256: hash of the content of the URDF, see `hash_description`.
        joint_names: names of the n joints.
        held: positions of the locked joints, by name [rad or m].
        gravity: gravity vector in the base frame [m/s^2], shape (3,).
        joints: the flexible joints.
        smoothing_width: smoothing width of the joints' Coulomb friction [rad/s or m/s].
        low_pass: low-pass filter of the equations.
        names: names of the p parameters, link side first.
        expressions: combinations of standard parameters that they are.
        units: units of the parameters.
        values: values, shape (p,); NaN where not identified.
        standard_deviations: standard deviations (1 sigma), shape (p,); inf where not identified.
        covariance: covariance, shape (p, p); zero in rows and columns of parameters that are not identified.
        unidentified: groups of parameters that are not identified, with the reason.
        plan: identification steps, with the reason for their order.
        fit: errors of the equations that the parameters were identified from.
        held_out: errors of the equations of other recordings.
        findings: findings about data and model.
        data_sources: the recordings.
        data_sha256: hash of their content.
        software_version: version of this package.
    """

    robot_name: str
    urdf_sha256: str
    joint_names: tuple[str, ...]
    held: Mapping[str, float]
    gravity: Array
    joints: tuple[FlexibleJoint, ...]
    smoothing_width: float
    low_pass: LowPass
    names: tuple[str, ...]
    expressions: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    standard_deviations: Array
    covariance: Array = field(repr=False)
    unidentified: Mapping[str, str]
    plan: StepwisePlan
    fit: tuple[Agreement, ...]
    held_out: tuple[Agreement, ...]
    findings: tuple[Finding, ...]
    data_sources: tuple[str, ...]
    data_sha256: str
    software_version: str

    def __post_init__(self) -> None:
        """Check the sizes.

        Raises:
            InputError: lists of different lengths.
        """
        count = len(self.names)
        lists = {
            "expressions": self.expressions,
            "units": self.units,
            "values": self.values,
            "standard_deviations": self.standard_deviations,
            "covariance": self.covariance,
        }
        for name, entries in lists.items():
            if len(entries) != count:
                raise InputError(f"{name} has {len(entries)} entries for {count} names")
        if self.covariance.shape != (count, count):
            raise InputError(f"covariance has shape {self.covariance.shape}, expected {(count, count)}")

    @property
    def verdict(self) -> Verdict:
        """The verdict that the findings lead to."""
        return Verdict.from_findings(self.findings)

    @classmethod
    def from_identification(
        cls,
        model: FlexibleModel,
        found: FlexibleIdentification,
        held_out: tuple[Agreement, ...],
        low_pass: LowPass,
        **provenance: Any,
    ) -> StoredFlexible:
        """Content of the file of an identification.

        Args:
            model: the arm.
            found: the identification.
            held_out: errors of the equations of other recordings.
            low_pass: low-pass filter of the equations.
            provenance: the last four attributes.
        """
        robot = model.model
        return cls(
            robot_name=robot.name,
            urdf_sha256=hash_description(robot.urdf),
            joint_names=robot.joint_names,
            held=dict(robot.held),
            gravity=np.asarray(robot.gravity),
            joints=model.joints,
            smoothing_width=model.smoothing_width,
            low_pass=low_pass,
            names=found.names,
            expressions=found.expressions,
            units=found.units,
            values=found.solution.values,
            standard_deviations=found.solution.standard_deviations,
            covariance=found.solution.covariance,
            unidentified=dict(found.unidentified),
            plan=found.solution.plan,
            fit=found.fit,
            held_out=held_out,
            **provenance,
        )

    def model(self, robot: RobotDescription) -> FlexibleModel:
        """Dynamic model of the arm, for simulation and further equations.

        Args:
            robot: URDF text and its origin.

        Raises:
            InputError: another robot.
            ModelError: the robot description cannot be used.
        """
        gravity = tuple(self.gravity.tolist())
        whole = RobotModel.from_description(robot, joints=self.joint_names, held=self.held, gravity=gravity)
        if hash_description(whole.urdf) != self.urdf_sha256:
            raise InputError(
                f"the parameters are of {self.robot_name} with another URDF: names, inertias, joints or limits differ "
                "from those of the one given"
            )
        found = FlexibleModel(whole, self.joints, self.smoothing_width)
        if found.names != self.names:
            raise InputError(f"{self.robot_name} has other parameters now: identify it again with this version")
        return found


def plan_summary(plan: StepwisePlan) -> dict[str, Any]:
    """A plan as keys and values."""
    steps = []
    for step in plan.steps:
        of_step = step.observability
        observability = {
            "columns": of_step.columns,
            "rank": of_step.rank,
            "condition_numbers": of_step.condition_numbers,
        }
        steps.append({**asdict(step), "observability": observability})
    return {
        "limit": plan.limit,
        "scaling": plan.scaling,
        "prescribed": plan.prescribed,
        "unidentifiable": list(plan.unidentifiable),
        "steps": _listed(steps),
    }


def write_flexible(path: str | Path, stored: StoredFlexible) -> None:
    """Write a file.

    Raises:
        InputError: it cannot be written.
    """
    content = {name: getattr(stored, name) for name in StoredFlexible.__dataclass_fields__}
    content |= {
        "joints": [asdict(joint) for joint in stored.joints],
        "low_pass": asdict(stored.low_pass),
        "covariance": [Row(row) for row in stored.covariance.tolist()],
        "plan": plan_summary(stored.plan),
        "fit": [asdict(one) for one in stored.fit],
        "held_out": [asdict(one) for one in stored.held_out],
        "findings": [finding.summary() for finding in stored.findings],
        "verdict": stored.verdict.word,
    }
    FORMAT.write(path, {name: _rows(_listed(value)) for name, value in content.items()})


def read_flexible(path: str | Path) -> StoredFlexible:
    """Read a file.

    Raises:
        InputError: not readable, not such a file, of another format version, or an entry that is missing or of the
            wrong type.
    """
    content = {key: value for key, value in FORMAT.read(path).items() if key != "verdict"}  # follows from the findings
    with file_errors(path, InputError):
        return read_dataclass(StoredFlexible, content, readers={"findings": _read_findings}, complete=True)


def _read_findings(value: Any, key: str) -> tuple[Finding, ...]:
    try:
        return tuple(Finding.from_summary(entry) for entry in value)
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{key}: must list findings with code, severity, joints, message and action") from None


def _listed(value: Any) -> Any:
    """Plain numbers, texts, lists and mappings."""
    if isinstance(value, Mapping):
        return {key: _listed(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return Row(value.tolist())
    if isinstance(value, Row):
        return value
    return [_listed(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _rows(value: Any) -> Any:
    """Lists of texts in one line each, where they are short."""
    if isinstance(value, list) and value and all(isinstance(entry, str) and len(entry) < 40 for entry in value):
        return Row(value)
    return value
