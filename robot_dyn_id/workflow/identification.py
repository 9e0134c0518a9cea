# SPDX-License-Identifier: Apache-2.0
"""Identification and validation from recordings, as the front door, the commands and the identifier node do it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.data.corrected import Corrected, Stored
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.data.stream_store import StreamStore
from robot_dyn_id.errors import UnsafeDataError, UsageError
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.identification import pipeline
from robot_dyn_id.identification.diagnosis.observation import observe_recordings
from robot_dyn_id.identification.settings import CURRENT_KINDS, Exclusions, Settings
from robot_dyn_id.identification.validation.holdout import exclude_spans, split
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.progress import Progress, ignore_progress
from robot_dyn_id.recordings import FileRecording, open_recording
from robot_dyn_id.signals.stillness import report_rest_left_out
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.joints import (
    make_robot_for,
    match_joints,
    report_fixed,
    report_recordings,
    report_unknown_joints,
    report_unrecorded,
)
from robot_dyn_id.workflow.results import IdentificationResult, ValidationResult


@dataclass(frozen=True)
class DataSelection:
    """Recordings of one identification.

    Attributes:
        recordings: trials to train on. Without `held_out` and `train_range` the model is cross-validated on them.
        held_out: trials to validate on.
        train_range: seconds of the only recording to train on; the rest is held out.
    """

    recordings: Sequence[Recording]
    held_out: Sequence[Recording] = ()
    train_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Check that no recording is given twice, or trained on and validated on.

        Raises:
            UsageError: one is.
        """
        for group in (self.recordings, self.held_out):
            for number, one in enumerate(group):
                if any(_is_same_file(one, other) for other in group[:number]):
                    raise UsageError(f"{one.source}: is given twice; give each recording once")
        both = {recording.source for recording in self.recordings} & {recording.source for recording in self.held_out}
        if both:
            raise UsageError(
                f"{', '.join(sorted(both))}: cannot be trained on and validated on at the same time: hold "
                "another recording out, or none, for cross-validation"
            )

    @property
    def all(self) -> list[Recording]:
        """Training recordings, then held-out ones."""
        return [*self.recordings, *self.held_out]


def identify(
    robot: RobotModel,
    recordings: Recording | Sequence[Recording],
    settings: Settings | None = None,
    held_out: Recording | Sequence[Recording] = (),
    train_range: tuple[float, float] | None = None,
    progress: Progress = ignore_progress,
) -> IdentificationResult:
    """Identify a robot's dynamics and validate them on held-out data, as `robot-dyn-id identify` does.

    Joints of the robot that are not in the recordings are assumed to be fixed at 0, and a warning names them.

    Example:
        ```python
        result = rdi.identify(robot, recording)
        print(result)
        ```

    Args:
        robot: the robot; its joints that the recordings contain are identified.
        recordings: one recording, or several trials.
        settings: terms, estimator, filter, thresholds; by default those of the command without options.
        held_out: trials to validate on; by default the model is cross-validated on the training data.
        train_range: seconds of the only recording to train on; the rest is held out.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: recordings that cannot be used, or that contain none of the robot's joints.
        UnsafeDataError: a health check refuses the data.
        UsageError: contradictory arguments or settings.
    """
    if isinstance(robot, str | Path):
        raise UsageError(f"{robot}: is a path: give load_robot(path)")
    trials = DataSelection(_as_list(recordings), _as_list(held_out), train_range)
    model = match_joints(robot, trials.recordings, robot.held)
    result = _identify(model, trials, settings or Settings(), robot.held, progress)
    result.close()  # it may be kept for long, together with many others
    return result


def identify_recordings(
    robot: RobotDescription, configuration: Configuration, trials: DataSelection, progress: Progress = ignore_progress
) -> IdentificationResult:
    """Identify a robot as a configuration file states.

    Args:
        robot: plain URDF and its origin.
        configuration: content of the configuration file.
        trials: the recordings.
        progress: callback that receives every stage of the work.

    Returns:
        The result, whose pages read the data again: the caller closes it when it has been saved.

    Raises:
        RobotDynIdError: see `identify`, and `make_robot_for`.
    """
    model = make_robot_for(robot, configuration, trials.recordings)
    return _identify(model, trials, configuration.settings, configuration.held, progress)


def _identify(
    model: RobotModel,
    trials: DataSelection,
    settings: Settings,
    fixed: Collection[str],
    progress: Progress,
) -> IdentificationResult:
    """Identify the joints of a model; `fixed` are the joints whose positions are known."""
    store = StreamStore(streams=2 * len([*trials.recordings, *trials.held_out]))
    with ExitStack() as opened:
        opened.callback(store.close)
        result = _identify_stored(model, trials, settings, fixed, store, progress)
        opened.pop_all()  # the caller closes it
    return result


def _identify_stored(
    model: RobotModel,
    trials: DataSelection,
    settings: Settings,
    fixed: Collection[str],
    store: StreamStore,
    progress: Progress,
) -> IdentificationResult:
    """Identify the joints of a model, see `_identify`; decoded recordings are kept in a store."""
    decoded = ([_decoded_once(one, store) for one in group] for group in (trials.recordings, trials.held_out))
    currents = settings.effort_kind in CURRENT_KINDS
    observed = [observe_recordings(group, model, settings.drives, currents) for group in decoded]
    kept, kept_out = exclude_times(observed[0], observed[1], model.joint_names, settings.exclude)
    training, validation = split(kept, model.joint_names, kept_out, trials.train_range)
    assumed = (
        *report_fixed(model, trials.all),
        *report_unrecorded(model, fixed),
        *report_unknown_joints(trials.all, model),
    )
    try:
        result = pipeline.identify(training, validation, model, settings, __version__, progress)
    except UnsafeDataError as error:
        raise error.with_causes(assumed) from error
    findings = (*assumed, *report_recordings(trials.all, model.joint_names))
    return IdentificationResult(result.with_findings(findings), store)


def exclude_times(
    training: Sequence[Recording], held_out: Sequence[Recording], joints: Sequence[str], exclude: Exclusions
) -> tuple[list[Recording], list[Recording]]:
    """Leave times of recordings out.

    Args:
        training: recordings to train on, or to validate a model on.
        held_out: recordings that are held out.
        joints: names of the joints.
        exclude: starts and stops [s], counted from the first stamp of a recording: of the only one to train on, or by
            the name of its file or folder, or its path.

    Returns:
        Both without these times.

    Raises:
        UsageError: several recordings and no name, an unknown or ambiguous name, or spans that do not fit.
    """
    recordings = [*training, *held_out]
    if not isinstance(exclude, Mapping):
        if exclude and len(training) > 1:
            name = Path(training[0].source).name
            raise UsageError(
                f"exclude: there are {len(training)} recordings; name one: `exclude: {{{name}: [[A, B]]}}`"
            )
        return [exclude_spans(one, joints, exclude) if exclude else one for one in training], list(held_out)
    for name in exclude:
        count = sum(_is_named(one, name) for one in recordings)
        if count != 1:
            sources = ", ".join(one.source for one in recordings)
            what = "is the name of several: give the path" if count else "is not one of the recordings"
            raise UsageError(f"exclude: {name} {what} ({sources})")

    def left(recording: Recording) -> Recording:
        own = [span for name, spans in exclude.items() if _is_named(recording, name) for span in spans]
        return exclude_spans(recording, joints, own) if own else recording

    return [left(one) for one in training], [left(one) for one in held_out]


def _is_named(recording: Recording, name: str) -> bool:
    """Whether a name is that of a recording, or its path."""
    return name in (recording.source, Path(recording.source).name)


def _decoded_once(recording: Recording, store: StreamStore) -> Corrected:
    """The recording, whose chunks are kept unless they are in memory already."""
    return Corrected(recording, () if isinstance(recording, ArrayRecording) else (Stored(store),))


def validate(
    parameters: ParameterSet,
    recordings: Recording | Sequence[Recording],
    settings: Settings | None = None,
    progress: Progress = ignore_progress,
) -> ValidationResult:
    """Evaluate an identified model on other recordings, as `robot-dyn-id validate` does.

    Example:
        ```python
        result = rdi.validate(rdi.load_parameters("run/parameters.yaml"), rdi.open_recording("other.npz"))
        print(result)
        ```

    Args:
        parameters: the identified model; joints, terms and filter are its own.
        recordings: one recording, or several trials.
        settings: gains, velocity source and thresholds; by default those of the command without options.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: recordings that cannot be used.
        UnsafeDataError: a health check refuses the data.
    """
    trials = _as_list(recordings)
    settings = settings or Settings()
    model, currents = RobotModel.from_parameters(parameters), parameters.effort.kind in CURRENT_KINDS
    observed = observe_recordings(trials, model, settings.drives_of(parameters), currents)
    kept, _ = exclude_times(observed, (), parameters.robot.joint_names, settings.exclude)
    evaluation = pipeline.validate(kept, parameters, settings, progress)
    differing = report_fixed(model, trials)
    excluded = report_rest_left_out(kept)
    evaluation = evaluation.with_findings(
        (*differing, *excluded, *report_recordings(trials, parameters.robot.joint_names))
    )
    return ValidationResult(evaluation, parameters)


def open_all(paths: Sequence[str], configuration: Configuration) -> list[FileRecording]:
    """Open recordings with the topics of a configuration; each is a trial of its own."""
    return [
        open_recording(
            path,
            configuration.topic,
            configuration.reference_topic,
            channel_topics=configuration.channel_topics,
            columns=configuration.column_meaning,
            definitions=configuration.definitions,
        )
        for path in paths
    ]


def _is_same_file(one: Recording, other: Recording) -> bool:
    """Whether two recordings are of the same file and topic, by whatever path."""
    if getattr(one, "topic", None) != getattr(other, "topic", None):
        return False
    try:
        return Path(one.source).samefile(other.source)
    except (OSError, ValueError):  # not files
        return False


def _as_list(recordings: Recording | Sequence[Recording] | str | Path) -> list[Recording]:
    """A list of recordings.

    Raises:
        UsageError: a path in place of a recording.
    """
    trials: list[Recording] = []
    for one in recordings if isinstance(recordings, Sequence) and not isinstance(recordings, str) else [recordings]:
        if isinstance(one, str | Path):
            raise UsageError(f"{one}: is a path: give open_recording(path)")
        trials.append(one)
    return trials
