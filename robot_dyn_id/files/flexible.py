# SPDX-License-Identifier: Apache-2.0
"""`flexible.yaml`: an identified arm with flexible joints as text, equal to the last bit when read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.estimators.stepwise import Observability, Step, StepwisePlan
from robot_dyn_id.findings import Finding
from robot_dyn_id.flexible import Agreement, FlexibleIdentification, FlexibleJoint, FlexibleModel
from robot_dyn_id.identification.verdict import Verdict
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import Row, read_yaml, yaml_text

FORMAT = "robot_dyn_id flexible 1"


@dataclass(frozen=True)
class StoredFlexible:
    """What a file holds: an arm with flexible joints, its parameters, and where they come from.

    Attributes:
        robot_name, urdf_sha256: the robot.
        joint_names: of the n joints.
        held: joints that stand still, and where [rad or m].
        gravity: in the base frame [m/s^2], shape (3,).
        joints: the flexible ones.
        smoothing_width: of the joints' Coulomb friction [rad/s or m/s].
        low_pass: that the equations passed.
        names, expressions, units: of the p parameters, link side first.
        values: shape (p,); NaN where not identified.
        standard_deviations: one sigma, shape (p,); infinite for those.
        covariance: shape (p, p), zero in rows and columns of those.
        unidentified: groups that are not identified, and why.
        plan: the steps, and why they are in this order.
        fit: errors of the equations that the parameters were found from.
        held_out: errors of the equations of other recordings.
        findings: findings about data and model.
        data_sources, data_sha256: the files, and a hash of what was read of them.
        software_version: of this package.
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
        lists = {"expressions": self.expressions, "units": self.units, "values": self.values,
                 "standard_deviations": self.standard_deviations, "covariance": self.covariance}  # fmt: skip
        for name, entries in lists.items():
            if len(entries) != count:
                raise InputError(f"{name} has {len(entries)} entries for {count} names")
        if self.covariance.shape != (count, count):
            raise InputError(f"covariance has shape {self.covariance.shape}, expected {(count, count)}")

    @property
    def verdict(self) -> Verdict:
        """The verdict that the findings lead to."""
        return Verdict.from_findings(self.findings)

    @staticmethod
    def of(
        model: FlexibleModel,
        found: FlexibleIdentification,
        held_out: tuple[Agreement, ...],
        low_pass: LowPass,
        **provenance: Any,
    ) -> StoredFlexible:
        """What is to be stored of an identification; `provenance` are the last four attributes."""
        robot = model.model
        return StoredFlexible(
            robot.name, urdf_hash(robot.urdf), robot.joint_names, dict(robot.held), np.asarray(robot.gravity),
            model.joints, model.smoothing_width, low_pass, found.names, found.expressions, found.units,
            found.solution.values, found.solution.standard_deviations, found.solution.covariance,
            dict(found.unidentified), found.solution.plan, found.fit, held_out, **provenance,
        )  # fmt: skip

    def model(self, robot: RobotDescription) -> FlexibleModel:
        """The arm, for simulation and further equations.

        Args:
            robot: plain URDF and its origin.

        Raises:
            InputError: another robot.
            ModelError: the robot description cannot be used.
        """
        gravity = tuple(self.gravity.tolist())
        whole = RobotModel.from_description(robot, joints=self.joint_names, held=self.held, gravity=gravity)
        if urdf_hash(whole.urdf) != self.urdf_sha256:
            raise InputError(f"the parameters are of {self.robot_name} with a URDF of hash {self.urdf_sha256[:12]}..., "
                             f"the one given has {urdf_hash(whole.urdf)[:12]}...")  # fmt: skip
        found = FlexibleModel(whole, self.joints, self.smoothing_width)
        if found.names != self.names:
            raise InputError(f"{self.robot_name} has other parameters now: identify it again with this version")
        return found


def plan_summary(plan: StepwisePlan) -> dict[str, Any]:
    """A plan as keys and values."""
    steps = []
    for step in plan.steps:
        seen = step.observability
        observability = {"columns": seen.columns, "rank": seen.rank, "condition_numbers": seen.condition_numbers}
        steps.append({**asdict(step), "observability": observability})
    return {"limit": plan.limit, "scaling": plan.scaling, "prescribed": plan.prescribed,
            "unidentifiable": list(plan.unidentifiable), "steps": _listed(steps)}  # fmt: skip


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
    write_atomically(Path(path), yaml_text({"format": FORMAT, **{k: _rows(_listed(v)) for k, v in content.items()}}))


def read_flexible(path: str | Path) -> StoredFlexible:
    """Read a file.

    Raises:
        InputError: not readable, not such a file, or an entry that is missing or of the wrong kind.
    """
    content = read_yaml(path, "parameters")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a file of `robot-dyn-id flexible` (its first line must read `format: {FORMAT}`)")
    missing = [name for name in StoredFlexible.__dataclass_fields__ if name not in content]
    if missing:
        raise InputError(f"{path}: {missing[0]} is missing")
    name = ""
    try:
        values = {}
        for name in StoredFlexible.__dataclass_fields__:
            values[name] = _READERS[name](content[name])
        return StoredFlexible(**values)
    except RobotDynIdError as error:
        raise InputError(f"{path}: {error}") from None
    except (TypeError, ValueError, KeyError, AttributeError):
        raise InputError(f"{path}: {name} is not as this tool writes it") from None


def _numbers(value: Any) -> Array:
    numbers = np.array(value, dtype=np.float64)
    numbers[np.isnan(numbers)] = np.nan  # YAML's NaN has a sign bit; ours has none
    return numbers


def _texts(value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and all(isinstance(entry, str) for entry in value)):
        raise TypeError(value)
    return tuple(value)


def _plan(value: Any) -> StepwisePlan:
    steps = []
    for step in value["steps"]:
        seen = step["observability"]
        observed = Observability(seen["columns"], seen["rank"], dict(seen["condition_numbers"]))
        groups, used, known = (_texts(step[name]) for name in ("groups", "equations", "known"))
        steps.append(Step(groups, used, known, observed, step["within"], step["instead"]))
    unidentifiable = _texts(value["unidentifiable"])
    return StepwisePlan(tuple(steps), unidentifiable, float(value["limit"]), value["scaling"], value["prescribed"])


def _agreements(value: Any) -> tuple[Agreement, ...]:
    return tuple(Agreement(one["equation"], float(one["rms"]), float(one["error"])) for one in value)


_READERS: dict[str, Any] = {
    **dict.fromkeys(("robot_name", "urdf_sha256", "data_sha256", "software_version"), str),
    **dict.fromkeys(("joint_names", "names", "expressions", "units", "data_sources"), _texts),
    **dict.fromkeys(("gravity", "values", "standard_deviations", "covariance"), _numbers),
    **dict.fromkeys(("held", "unidentified"), dict),
    "smoothing_width": float,
    "joints": lambda value: tuple(FlexibleJoint(**one) for one in value),
    "low_pass": lambda value: LowPass(**value),
    "plan": _plan,
    **dict.fromkeys(("fit", "held_out"), _agreements),
    "findings": lambda value: tuple(Finding.from_summary(entry) for entry in value),
}


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
