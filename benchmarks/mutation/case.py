# SPDX-License-Identifier: Apache-2.0
"""A case of the suite: what a user gives to the plain command, and the codes that the command answers with."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dyn_id import ParameterSet, Settings, identify, open_recording, validate
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.dynamics.terms import Coulomb, Dahl, Offset, RotorInertia, Viscous
from robot_dyn_id.errors import RobotDynIdError, UnsafeDataError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.stages.examined import Examined
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.workflow.joints import match_joints

NAMES = ("morning", "noon", "evening", "night")
"""Names of the files; a copy has another name than the original."""


@dataclass(frozen=True)
class Case:
    """Input of the tool.

    Attributes:
        robot: the robot as the user describes it.
        training: recordings to identify from.
        held_out: recordings to validate on.
        validated: recordings that the identified model is validated on afterwards.
        size: size of the fault, for the table.
        joints: names of the joints with the fault, one of which a finding must name; empty: it concerns all.
    """

    robot: RobotModel
    training: tuple[ArrayRecording, ...]
    held_out: tuple[ArrayRecording, ...] = ()
    validated: tuple[ArrayRecording, ...] = ()
    size: str = ""
    joints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """Answer of the tool.

    Attributes:
        findings: code and severity of each finding; errors of other kinds have their own code, such as `input`.
        joints: joints that the findings of each code name.
        message: message of the error that ended the command, empty if none did.
        nrmse: held-out error of all joints, NaN if there is no model.
    """

    findings: tuple[tuple[str, str], ...]
    joints: tuple[tuple[str, ...], ...] = ()
    message: str = ""
    nrmse: float = float("nan")

    @property
    def codes(self) -> frozenset[str]:
        """Codes of all findings."""
        return frozenset(code for code, _ in self.findings)

    def names(self, codes: Collection[str], joints: Collection[str]) -> bool:
        """Whether a finding has one of these codes, and names one of these joints if there are any."""
        return any(
            code in codes and (not joints or bool(set(joints) & set(named)))
            for (code, _), named in zip(self.findings, self.joints, strict=True)
        )

    def at_least(self, severity: str) -> frozenset[str]:
        """Codes of the findings of this severity or a higher one."""
        wanted = {"info": ("info", "warning", "error"), "warning": ("warning", "error"), "error": ("error",)}[severity]
        return frozenset(code for code, found in self.findings if found in wanted)


def pinned_settings() -> Settings:
    """Least squares with presliding friction: a model that is not chosen, ten times faster to identify."""
    terms = (Viscous(), Coulomb(), Offset(), RotorInertia(), Dahl())
    return Settings(terms=terms, estimator=WeightedLeastSquares())


def answer(case: Case, settings: Settings | None = None, until: Collection[str] = ()) -> Answer:
    """Run the command on files of the case.

    Args:
        case: the case.
        settings: settings of the command; default: those of the plain command.
        until: codes after which the answer may end: no model is identified if the examination of the recordings, the
            first stage of the command, already names the fault by one of them.
    """
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        files = iter(NAMES)
        training, held_out, validated = (
            [_write(Path(folder), next(files), recording) for recording in group]
            for group in (case.training, case.held_out, case.validated)
        )
        try:
            if until and not (held_out or validated):
                early = _examine(case.robot, training, settings or Settings())
                if early.names(until, case.joints):
                    return early
            result = identify(case.robot, training, settings, held_out)
            findings, nrmse = result.evaluation.findings, result.evaluation.held_out.all_joints_nrmse
            if validated:
                findings, nrmse = _validate(result.parameters, validated)
        except UnsafeDataError as error:
            return _answer(error.findings, message=str(error))
        except RobotDynIdError as error:
            return Answer(((error.code, "error"),), ((),), str(error))
    return _answer(findings, nrmse)


def _examine(robot: RobotModel, recordings: Sequence[Recording], settings: Settings) -> Answer:
    """Answer of the stages before a model is identified."""
    model = match_joints(robot, recordings, robot.held)
    examined = Examined.from_read(Read.from_recordings(recordings, [], model, settings))
    return _answer((*examined.read.findings, *examined.findings))


def _answer(findings: Sequence[Finding], nrmse: float = float("nan"), message: str = "") -> Answer:
    return Answer(
        tuple((one.code, one.severity) for one in findings), tuple(one.joints for one in findings), message, nrmse
    )


def _validate(parameters: ParameterSet, recordings: Sequence[Recording]) -> tuple[tuple[Finding, ...], float]:
    result = validate(parameters, recordings)
    return result.evaluation.findings, result.evaluation.held_out.all_joints_nrmse


def _write(folder: Path, name: str, recording: ArrayRecording) -> Recording:
    """Write a recording as `.npz` and open it."""
    samples, path = recording.samples, folder / f"{name}.npz"
    channels = {key: getattr(samples, key) for key in ("t", "q", "dq", "tau", "current")}
    given = {key: values for key, values in channels.items() if values is not None}
    np.savez(path, joint_names=np.array(recording.joint_names), **given)
    return open_recording(str(path))


def cut(recording: ArrayRecording, start: float, stop: float) -> ArrayRecording:
    """Part of a recording between two shares of its samples."""
    count = len(recording.samples)
    return replace(recording, samples=recording.samples.take(slice(round(start * count), round(stop * count))))
