"""From recordings to a folder with the identified model: what the command line and the identifier node both do."""

from __future__ import annotations

import difflib
import errno
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_dyn_id import __version__
from robot_dyn_id.configuration import Configuration
from robot_dyn_id.dataset import Recording, Remembered
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.evaluation import Evaluation
from robot_dyn_id.parameter_io import part_of, write_atomically, write_parameters
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.pipeline import Identification, identify, split
from robot_dyn_id.recordings import FileRecording, open_recording
from robot_dyn_id.report.summary import identification_summary
from robot_dyn_id.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.urdf import RobotDescription

PARAMETERS, REPORT, PAGE = "parameters.yaml", "report.json", "report.html"
RESULTS = (PARAMETERS, REPORT, PAGE)
"""What a folder of results holds."""


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
    more = (*unrecorded(model, configuration), *strangers(opened, model), *notes(opened, model.joint_names))
    result = replace(result, evaluation=replace(result.evaluation, warnings=(*result.evaluation.warnings, *more)))
    summary = identification_summary(result, str(folder / PARAMETERS))
    progress(f"writing {folder}")
    write_results(folder, summary, result.evaluation, result.parameters)
    write_parameters(folder / PARAMETERS, result.parameters)
    return result, summary


def open_all(paths: Sequence[str], configuration: Configuration) -> list[FileRecording]:
    """Open recordings with the topics of a configuration; each is a trial of its own."""
    return [open_recording(path, configuration.topic, configuration.reference_topic) for path in paths]


def output_folder(path: str | Path) -> Path:
    """The folder that results go to, made if needed.

    Raises:
        InputError: it cannot be made or written to.
    """
    folder = Path(path)
    check_output_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None
    return folder


def check_output_folder(folder: Path, names: Sequence[str] = ()) -> None:
    """Check that a folder can be written to, or made, without making it.

    Args:
        folder: the folder.
        names: of files that will be written into it.

    Raises:
        InputError: it, or what exists of the path to it, is not a folder that can be written to.
    """
    try:
        existing = folder
        while not _exists(existing):
            existing = existing.parent
        if not existing.is_dir():
            raise InputError(f"{existing}: is {'a file' if existing.is_file() else 'not a folder'}; give a folder")
        parts = (*folder.relative_to(existing).parts, *(part_of(Path(name)).name for name in names))
        if any(len(os.fsencode(part)) > os.pathconf(existing, "PC_NAME_MAX") for part in parts):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise _not_writable(folder, error) from None


def _exists(path: Path) -> bool:
    """Whether a path exists, be it a link that leads nowhere.

    Raises:
        OSError: that cannot be found out, such as for a name that is too long.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _not_writable(folder: Path, error: OSError) -> InputError:
    return InputError(f"{folder}: cannot write there ({error.strerror or os.strerror(error.errno or 0)})")


def write_results(folder: Path, summary: dict[str, Any], evaluation: Evaluation, parameters: ParameterSet) -> None:
    """Write `report.json` and `report.html`."""
    from robot_dyn_id.report.html import write_html

    write_html(folder / PAGE, summary, evaluation, parameters)
    write_atomically(folder / REPORT, json.dumps(summary, indent=1, allow_nan=False) + "\n")


def write_report(folder: Path, **more: Any) -> dict[str, Any]:
    """Add entries to a folder's `report.json`; returns the whole."""
    summary = {**json.loads((folder / REPORT).read_text(encoding="utf-8")), **more}
    write_atomically(folder / REPORT, json.dumps(summary, indent=1, allow_nan=False) + "\n")
    return summary


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


def unrecorded(model: RobotModel, configuration: Configuration) -> tuple[str, ...]:
    """A warning for joints whose position nobody gave."""
    assumed = [name for name in model.held if name not in configuration.held]
    return (f"taken to stand still at 0: {', '.join(assumed)}",) if assumed else ()


def notes(recordings: Sequence[FileRecording], joints: Sequence[str]) -> tuple[str, ...]:
    """What the files had to say about the samples of `joints`: drops and repairs, each once."""
    return tuple(dict.fromkeys(note for recording in recordings for note in recording.notes(joints)))


def strangers(recordings: Sequence[Recording], model: RobotModel, others: Sequence[str] = ()) -> tuple[str, ...]:
    """A warning for recorded joints that the robot has not, which may be misspelt; `others` are known all the same."""
    known = {*model.body_names, *model.held, *others}
    names = dict.fromkeys(name for recording in recordings for name in recording.joint_names if name not in known)
    return (f"recorded, but not a moving joint of the URDF: {', '.join(names)}",) if names else ()
