# SPDX-License-Identifier: Apache-2.0
"""Identification of actuators from recordings under position commands, as the front door and the command do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.actuators.actuator_set import ActuatorJudgment, ActuatorSet
from robot_dyn_id.actuators.identification import ActuatorEstimate, KnownDrives, identify
from robot_dyn_id.actuators.judgment import USE as SIMULATION
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.model import ABSENT, SIGNED, ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion, read_motions
from robot_dyn_id.actuators.validation import RolloutErrors, validate
from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError, make_storable, suggest_known
from robot_dyn_id.export.actuators import (
    make_friction_urdf,
    make_isaac_lab,
    make_position_mjcf,
    make_position_sdf,
    report_left_out,
)
from robot_dyn_id.files.actuators import USE, summarize_actuators, summarize_links, write_actuators
from robot_dyn_id.findings import Finding, summarize_findings
from robot_dyn_id.identification.diagnosis.health import find_position_units
from robot_dyn_id.identification.validation.verdict import Verdict
from robot_dyn_id.kernels.actuators import KINDS
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import LONGEST_LINE
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.uses import ANSWERS
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.joints import match_joints, report_fixed, report_recordings, report_unrecorded

FILE = "actuators.yaml"

MJCF_FILE = "actuators.xml"

ISAAC_LAB_FILE = "isaac_lab.txt"

URDF_FILE = "actuators.urdf"

SDF_FILE = "actuators.sdf"

FILES = (FILE, MJCF_FILE, ISAAC_LAB_FILE, URDF_FILE, SDF_FILE)
"""Files of a result."""

UNITS = {
    "armature": ("kg m^2", "kg"),
    "viscous": ("N m s/rad", "N s/m"),
    "coulomb": ("N m", "N"),
    "load_coulomb": ("1", "1"),
    "breakaway_displacement": ("rad", "m"),
    "offset": ("N m", "N"),
    "delay": ("s", "s"),
    "kp": ("N m/rad", "N/m"),
    "kd": ("N m s/rad", "N s/m"),
    "limit": ("N m", "N"),
    **dict.fromkeys(("lower_stop", "upper_stop", "lower_reference", "upper_reference"), ("rad", "m")),
}
"""Units of the values of revolute and of prismatic joints."""

Gains = Mapping[str, float] | float | None
"""Values by joint name; see `DriveSettings`."""


@dataclass(frozen=True)
class DriveSettings:
    """Known values of drives that follow position commands.

    Example:
        ```python
        drives = rdi.DriveSettings(kp={"shoulder": 60.0, "elbow": 50.0, "wrist": 20.0}, kd=2.0)
        ```

    Values are given by joint name, or by a part of the names of several joints; one number is that of all joints.

    Attributes:
        kp: gains of positions [N m/rad or N/m]; None: those of the recordings, or estimated.
        kd: gains of velocities [N m s/rad or N s/m]; None: those of the recordings, or estimated.
        limit: effort limits [N m or N]; None: estimated where the recordings determine them.
        types: parts of joint names; the joints whose names contain one have motors of one type, and share their values
            where the data agree.
    """

    kp: Gains = None
    kd: Gains = None
    limit: Gains = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class ActuatorResult:
    """Identified actuators of a robot.

    Attributes:
        model: the robot, with other links than those described where these predict better.
        estimate: actuators with their intervals.
        held_out: errors of simulations of other recordings; None without any.
        bandwidth: frequency at which each joint follows its reference with -3 dB [Hz], shape (n,).
        load: mean weight of the links on each joint in the recordings, which is the load of friction in models of
            simulators whose friction has none [N m or N], shape (n,).
        findings: findings about recordings and actuators.
        sources: recordings that the actuators were identified from.
        validated: recordings that were simulated.
    """

    model: RobotModel
    estimate: ActuatorEstimate
    held_out: RolloutErrors | None
    bandwidth: Array
    load: Array
    findings: tuple[Finding, ...]
    sources: tuple[str, ...]
    validated: tuple[str, ...]

    @property
    def actuators(self) -> ActuatorModel:
        """The actuators."""
        return self.estimate.actuators

    @property
    def verdict(self) -> Verdict:
        """The verdict that the findings lead to."""
        return Verdict.from_findings(self.findings)

    @property
    def fit_for_simulation(self) -> str:
        """Whether simulations under position commands can use the actuators: `yes`, `limited` or `no`."""
        answers = [one.definition.lowered(SIMULATION, one.severity) for one in self.findings]
        return max(answers, key=ANSWERS.index, default=ANSWERS[0])

    @cached_property
    def actuator_set(self) -> ActuatorSet:
        """The actuators with all that simulations need, as files and messages have them."""
        reasons = tuple(make_storable(reason, LONGEST_LINE) for reason in self.verdict.reasons)
        judgment = ActuatorJudgment(self.verdict.word, reasons, self.fit_for_simulation)
        return ActuatorSet.from_estimate(self.estimate, judgment)

    def save(self, folder: str | Path) -> dict[str, Any]:
        """Write `actuators.yaml`, and what MuJoCo, Isaac Lab, Gazebo and readers of URDF take of it.

        Args:
            folder: folder that is made if it is not there.

        Returns:
            The summary, with `file`, `mjcf_file`, `isaac_lab_file`, `urdf_file` and `sdf_file`.

        Raises:
            InputError: a file cannot be written, or simulators refuse the inertias of the robot.
        """
        folder = make_output_folder(folder)
        summary = self.summarize()
        write_actuators(folder / FILE, self.actuator_set, **self._summarize_origin())
        actuators = self.actuators.at_load(self.load)
        write_atomically(folder / MJCF_FILE, make_position_mjcf(self.model, actuators))
        write_atomically(folder / ISAAC_LAB_FILE, make_isaac_lab(actuators))
        urdf = make_friction_urdf(self.model, actuators, links=self.estimate.links.gain > 0.0)
        write_atomically(folder / URDF_FILE, urdf)
        write_atomically(folder / SDF_FILE, make_position_sdf(self.model, actuators))
        files = dict(zip(("file", "mjcf_file", "isaac_lab_file", "urdf_file", "sdf_file"), FILES, strict=True))
        return {**summary, **{key: str(folder / name) for key, name in files.items()}}

    def summarize(self) -> dict[str, Any]:
        """Result as keys and values, in SI units."""
        verdict, links = self.verdict, summarize_links(self.actuator_set.robot)
        joints = summarize_actuators(self.actuators, self.estimate.uncertainty)
        for number, joint in enumerate(joints):
            joint["bias"] = _finite(self.actuators.bias[number])
            joint["bandwidth_hz"] = _finite(self.bandwidth[number])
            joint["rms_error"] = float(self.estimate.errors[number])
            joint["share_at_limit"] = float(self.estimate.limited[number])
            joint["share_at_end"] = float(self.estimate.ended[number])
        return {
            "robot_name": self.model.name,
            "verdict": verdict.word,
            "reasons": list(verdict.reasons),
            "fit_for": {USE: self.fit_for_simulation},
            "joints": joints,
            **({"links": links} if links else {}),
            **self._summarize_origin(),
        }

    def _summarize_origin(self) -> dict[str, Any]:
        """Origin and tests of the actuators as keys and values."""
        content: dict[str, Any] = {
            "shared": [
                {"parameter": test.kind, "joints": list(test.joints), "shared": test.agreed}
                for test in self.estimate.shared
            ],
            "friction": [
                {"parameter": test.kind, "joints": list(test.joints), "gain": test.gain}
                for test in self.estimate.friction
            ],
            "recordings": list(self.sources),
            "software_version": __version__,
            **summarize_findings(self.findings),
        }
        if self.held_out is not None:
            content["held_out"] = _summarize_errors(self.held_out, self.model.joint_names, self.validated)
        return content

    def __str__(self) -> str:
        """Tables of values and of held-out errors, and the verdict."""
        return "\n".join([*_format_values(self), *_format_errors(self), *_format_verdict(self)])


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _summarize_errors(errors: RolloutErrors, joints: Sequence[str], sources: Sequence[str]) -> dict[str, Any]:
    return {
        "recordings": list(sources),
        "rms_error": {_name_horizon(horizon): errors.rms(horizon) for horizon in errors.horizons},
        "share_of_tracking_error": errors.share,
        "effort_nrmse": errors.all_efforts,
        "joints": [
            {
                "name": name,
                "rms_error": {_name_horizon(key): float(value[number]) for key, value in errors.horizons.items()},
                "tracking_error": float(errors.tracking[number]),
                "links_and_drives_alone": float(errors.rigid[number]),
                "effort_nrmse": float(errors.efforts[number]),
            }
            for number, name in enumerate(joints)
        ],
    }


def _name_horizon(horizon: float) -> str:
    return "whole" if np.isinf(horizon) else f"{horizon:g} s"


def _format_values(result: ActuatorResult) -> list[str]:
    """A line per joint: each value with half the width of its 95 % interval."""
    estimate = result.estimate
    values, estimated = estimate.actuators.values, estimate.uncertainty.estimated
    kinds = [kind for kind, key in enumerate(KINDS) if np.any(estimated[kind] | (values[kind] != ABSENT.get(key)))]
    width = max(len(name) for name in (*result.model.joint_names, "joint"))
    lines = ["  ".join([f"{'joint':<{width}}", *(f"{KINDS[kind]:>17}" for kind in kinds)])]
    slides = sorted(set(result.model.slides.tolist()))
    units = [" or ".join(dict.fromkeys(UNITS[KINDS[kind]][slide] for slide in slides)) for kind in kinds]
    lines.append("  ".join([" " * width, *(f"{unit:>17}" for unit in units)]))
    for number, name in enumerate(result.model.joint_names):
        cells = []
        for kind in kinds:
            value, high = estimate.actuators.values[kind, number], estimate.uncertainty.high[kind, number]
            half = 0.5 * (high - estimate.uncertainty.low[kind, number])
            text = "unknown" if not np.isfinite(value) else f"{value:.4g}"
            if estimate.uncertainty.estimated[kind, number]:
                text = f"{text} +- {half:.2g}" if value or KINDS[kind] in SIGNED else f"< {high:.2g}"
            cells.append(text)
        lines.append("  ".join([f"{name:<{width}}", *(f"{cell:>17}" for cell in cells)]))
    lines.append("+-: half of the 95 % interval; <: end of an interval in which 0 fits best; other values were given")
    return lines


def _format_errors(result: ActuatorResult) -> list[str]:
    if result.held_out is None:
        return []
    errors, horizons = result.held_out, list(result.held_out.horizons)
    scale = 1e3
    width = max(len(name) for name in (*result.model.joint_names, "all joints"))
    head = [f"{'held out [mrad or mm]':<{max(width, 21)}}", *(f"{_name_horizon(one):>9}" for one in horizons)]
    lines = ["", "  ".join([*head, f"{'tracking':>9}", f"{'effort':>7}"])]
    for number, name in enumerate(result.model.joint_names):
        cells = [f"{scale * errors.horizons[one][number]:>9.2f}" for one in horizons]
        cells += [f"{scale * errors.tracking[number]:>9.1f}", f"{errors.efforts[number]:>7.1%}"]
        lines.append("  ".join([f"{name:<{max(width, 21)}}", *cells]))
    cells = [f"{scale * errors.rms(one):>9.2f}" for one in horizons]
    tracking = scale * float(np.sqrt(np.mean(errors.tracking**2)))
    lines.append(
        "  ".join([f"{'all joints':<{max(width, 21)}}", *cells, f"{tracking:>9.1f}", f"{errors.all_efforts:>7.1%}"])
    )
    return lines


def _format_verdict(result: ActuatorResult) -> list[str]:
    verdict = result.verdict
    return [
        "",
        f"fit for simulation under position commands: {result.fit_for_simulation}",
        f"verdict: {verdict.word}",
        *(f"  {reason}" for reason in verdict.reasons),
    ]


def identify_actuators(
    robot: RobotModel,
    recordings: Recording | Sequence[Recording],
    held_out: Recording | Sequence[Recording] = (),
    drives: DriveSettings | None = None,
    progress: Progress = ignore_progress,
) -> ActuatorResult:
    """Identify armature, friction, delay, offset and unknown gains of drives that follow position commands.

    No torque has to be measured: the recordings hold commanded positions (`reference`) and measured ones. The links are
    those of the robot description, or others near them where these predict better. Gains that are neither given nor in
    the recordings are estimated.

    Example:
        ```python
        result = rdi.identify_actuators(
            robot, rdi.open_recording("commanded.npz"), held_out=rdi.open_recording("commanded_other.npz")
        )
        print(result)
        result.save("run")
        ```

    Args:
        robot: the robot; its joints that the recordings contain are identified, the others are fixed.
        recordings: recordings to identify from; from three on, intervals contain the differences between them.
        held_out: recordings to validate on.
        drives: what is known about the drives; None: what the recordings contain.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: recordings without commanded positions, positions that are not in radians, a joint that does not
            move, or gains that make the simulation diverge.
        UsageError: contradictory gains, or names that the robot does not have.
    """
    training, others = _as_list(recordings), _as_list(held_out)
    both = {one.source for one in training} & {one.source for one in others}
    if both:
        raise UsageError(f"{min(both)}: cannot be identified from and validated on at the same time")
    model = match_joints(robot, [*training, *others], robot.held)
    joints = model.joint_names
    settings = drives or DriveSettings()
    known = KnownDrives.from_gains(
        joints,
        find_gains("kp", settings.kp, [*training, *others], joints),
        find_gains("kd", settings.kd, [*training, *others], joints),
        expand_names("limit", settings.limit, joints),
    )
    groups = [_expand_part("types", part, joints) for part in settings.types]
    motions = [motion for one in training for motion in read_motions(one, joints)]
    validation = [motion for one in others for motion in read_motions(one, joints)]
    _refuse_other_units(model, [*motions, *validation])
    estimate = identify(model, motions, known, groups, lambda text: progress(Stage(text)))
    errors = None
    if validation:
        progress(Stage("simulating held-out recordings"))
        errors = validate(estimate.links.robot, estimate.actuators, validation)
    return ActuatorResult(
        estimate.links.robot,
        estimate,
        errors,
        compute_bandwidth(estimate.links.robot, estimate.actuators, motions),
        compute_load(estimate.links.robot, motions),
        (
            *report_recordings([*training, *others], joints),
            *report_fixed(model, [*training, *others]),
            *report_unrecorded(model, robot.held),
            *judge(estimate, known, errors, model.limits),
            *report_left_out(estimate.actuators),
        ),
        tuple(one.source for one in training),
        tuple(one.source for one in others),
    )


def _refuse_other_units(model: RobotModel, motions: Sequence[CommandedMotion]) -> None:
    """Refuse positions that are not in radians or meters.

    Raises:
        InputError: positions that are far beyond the limits of the robot description; see `find_position_units`.
    """
    for motion in motions:
        for finding in find_position_units(model, motion.q.min(axis=0), motion.q.max(axis=0)):
            raise InputError(
                f"{motion.source}: {finding.message}; {finding.action}, commanded ones too, or correct the limits"
            )


def _as_list(recordings: Recording | Sequence[Recording]) -> list[Recording]:
    return list(recordings) if isinstance(recordings, Sequence) else [recordings]


def _expand_part(option: str, part: str, joints: Sequence[str]) -> list[str]:
    """Joints whose name is, or contains, a text.

    Raises:
        UsageError: there is none.
    """
    names = [name for name in joints if name == part] or [name for name in joints if part in name]
    if not names:
        raise UsageError(f"{option}: no joint is called {part} or contains it; {suggest_known(part, joints)}")
    return names


def expand_names(option: str, values: Gains, joints: Sequence[str]) -> dict[str, float]:
    """Values by joint name.

    Args:
        option: name of the values, for messages.
        values: see `Gains`.
        joints: names of the joints.

    Raises:
        UsageError: a name that fits no joint, or two that fit the same.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        return dict.fromkeys(joints, float(values))
    found: dict[str, float] = {}
    for part, value in values.items():
        for name in _expand_part(option, part, joints):
            if name in found and part != name:
                raise UsageError(f"{option}: {part} and another name fit {name}; give longer names")
            found[name] = float(value)
    return found


def find_gains(key: str, given: Gains, recordings: Sequence[Recording], joints: Sequence[str]) -> dict[str, float]:
    """Gains that are given, else those of the recordings, by joint.

    Args:
        key: `kp` or `kd`.
        given: gains that are given.
        recordings: the recordings; those of files may hold gains.
        joints: names of the joints.

    Raises:
        UsageError: recordings with different gains, or see `expand_names`.
    """
    if given is not None:
        return expand_names(key, given, joints)
    found: dict[str, float] = {}
    for recording in recordings:
        for name, value in getattr(recording, "gains", {}).get(key, {}).items():
            if name in joints and found.setdefault(name, value) != value:
                raise UsageError(
                    f"{recording.source}: {key} of {name} is {value:g}, and {found[name]:g} in another recording; "
                    "identify from recordings with the same gains"
                )
    return found


def compute_bandwidth(model: RobotModel, actuators: ActuatorModel, motions: Sequence[CommandedMotion]) -> Array:
    """Frequency at which each joint follows its reference with -3 dB [Hz], shape (n,).

    The other joints are at rest, in the mean configuration of the motions; friction is viscous only.
    """
    mean = np.mean(np.concatenate([motion.q for motion in motions]), axis=0)
    inertia = np.diag(np.asarray(Dynamics.from_model(model).mass_matrix(mean))) + actuators.armature
    damping, kp = actuators.kd + actuators.viscous, actuators.kp
    # (kp - I w^2)^2 + (d w)^2 = 2 kp^2
    half = kp / inertia - 0.5 * (damping / inertia) ** 2
    square = half + np.sqrt(half**2 + (kp / inertia) ** 2)
    return np.asarray(np.sqrt(square) / (2.0 * np.pi))


def compute_load(model: RobotModel, motions: Sequence[CommandedMotion]) -> Array:
    """Mean absolute weight of the links on each joint in motions [N m or N], shape (n,)."""
    q = np.concatenate([motion.q for motion in motions])
    weight = Dynamics.from_model(model).inverse_dynamics(q, np.zeros_like(q), np.zeros_like(q))
    return np.asarray(np.abs(weight).mean(axis=0))
