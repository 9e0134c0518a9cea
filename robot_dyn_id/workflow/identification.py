# SPDX-License-Identifier: Apache-2.0
"""From recordings to a folder with the identified model: what the command line and the identifier node both do."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_dyn_id import __version__
from robot_dyn_id.data.cache import Remembered
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.findings import Finding, make_finding
from robot_dyn_id.identification.holdout import split
from robot_dyn_id.identification.pipeline import Identification, identify
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.recordings import FileRecording, open_recording
from robot_dyn_id.report.folder import PARAMETERS, output_folder, write_results
from robot_dyn_id.report.summary import identification_summary


def identify_recordings(
    recordings: Sequence[FileRecording],
    held_out: Sequence[FileRecording],
    robot: RobotDescription,
    configuration: Configuration,
    folder: Path,
    train_range: tuple[float, float] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[Identification, dict[str, Any]]:
    """Identify a robot, and write `parameters.yaml`, `report.json` and `report.html`.

    Args:
        recordings: trials to train on; what is held out unless told: see `split`.
        held_out: trials to validate on.
        robot: plain URDF and its origin.
        configuration: the choices.
        folder: where the results go; made if needed.
        train_range: seconds of the only recording to train on.
        progress: told what is being done.

    Returns:
        The identification and its summary, the content of `report.json`.

    Raises:
        RobotDynIdError: see `pipeline.identify`, `split`, `robot_for`, `output_folder`; nothing is written then.
    """
    both = {recording.source for recording in recordings} & {recording.source for recording in held_out}
    if both:
        raise UsageError(f"{', '.join(sorted(both))}: cannot be trained on and validated on at the same time")
    model = robot_for(robot, configuration, [*recordings, *held_out])
    kept, kept_out = ([Remembered(recording) for recording in group] for group in (recordings, held_out))
    training, validation = split(kept, model.joint_names, kept_out, train_range)
    folder = output_folder(folder)
    result = identify(training, validation, model, configuration.settings, __version__, progress)
    opened = [*recordings, *held_out]
    findings = (
        *report_unrecorded(model, configuration),
        *report_unknown_joints(opened, model),
        *report_recordings(opened, model.joint_names),
    )
    result = replace(result, evaluation=result.evaluation.with_findings(findings))
    summary = identification_summary(result, str(folder / PARAMETERS))
    progress(f"writing {folder}")
    write_results(folder, summary, result.evaluation, result.parameters)
    write_parameters(folder / PARAMETERS, result.parameters)
    return result, summary


def open_all(paths: Sequence[str], configuration: Configuration) -> list[FileRecording]:
    """Open recordings with the topics of a configuration; each is a trial of its own."""
    return [open_recording(path, configuration.topic, configuration.reference_topic) for path in paths]


def robot_for(robot: RobotDescription, configuration: Configuration, recordings: Sequence[Recording]) -> RobotModel:
    """The robot with the joints that the recordings hold, all others standing still.

    Raises:
        ModelError: the robot description cannot be used.
        InputError: recordings that hold none of its joints, or not those that were asked for.
    """
    gravity = configuration.gravity or STANDARD_GRAVITY
    whole = RobotModel.from_description(robot, gravity=gravity)
    _known(configuration, whole)
    recorded = [name for name in whole.joint_names if all(name in r.joint_names for r in recordings)]
    if not recorded:
        names = ", ".join(dict.fromkeys(n for r in recordings for n in r.joint_names)) or "no joints at all"
        sources = ", ".join(r.source for r in recordings)
        raise InputError(
            f"{sources}: none of the robot's joints ({', '.join(whole.joint_names)}) is in it; it holds {names}"
        )
    wanted = configuration.identify or tuple(n for n in recorded if n not in configuration.held)
    missing = [name for name in wanted if name not in recorded]
    if missing:
        raise InputError(f"{', '.join(r.source for r in recordings)}: joint {', '.join(missing)} is not in it")
    if not wanted:
        raise UsageError("every joint of the recording is held: there is nothing to identify")
    return RobotModel.from_description(robot, joints=wanted, held=configuration.held, gravity=gravity)


def _known(configuration: Configuration, model: RobotModel) -> None:
    movable = {*model.joint_names, *model.body_names}
    for name in (*configuration.joints, *(configuration.identify or ())):
        if name not in movable:
            near = difflib.get_close_matches(name, movable, 1)
            hint = f"did you mean {near[0]}?" if near else f"its joints are {', '.join(model.joint_names)}"
            raise UsageError(f"{name} of the configuration is not a moving joint of {model.name}; {hint}")


def report_unrecorded(model: RobotModel, configuration: Configuration) -> tuple[Finding, ...]:
    """Finding about joints whose position is neither recorded nor configured."""
    assumed = [name for name in model.held if name not in configuration.held]
    message = f"assumed fixed at 0: {', '.join(assumed)}"
    return (make_finding("joints_assumed_fixed", message, assumed),) if assumed else ()


def report_recordings(recordings: Sequence[FileRecording], joints: Sequence[str]) -> tuple[Finding, ...]:
    """Findings of the files about the samples of `joints`, each once."""
    return tuple(dict.fromkeys(one for recording in recordings for one in recording.findings(joints)))


def report_unknown_joints(
    recordings: Sequence[Recording], model: RobotModel, others: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Finding about recorded joints that the URDF does not have, which may be misspelled.

    Args:
        recordings: the recordings.
        model: the robot.
        others: names that are known for another reason.
    """
    known = {*model.body_names, *model.held, *others}
    names = dict.fromkeys(name for recording in recordings for name in recording.joint_names if name not in known)
    message = f"recorded joints that are not in the URDF: {', '.join(names)}"
    return (make_finding("joints_unknown", message, names),) if names else ()
