# SPDX-License-Identifier: Apache-2.0
"""Tasks of a fleet identification that run in any process: plain functions of plain values."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.files.factor import encode_factor, parse_factor
from robot_dyn_id.files.manifest import is_address
from robot_dyn_id.fleet.drift import Drift, RecordingAgreement, compare_recordings, fit_drift
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.identification.stages.examined import Examined
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import GAIN_REMEDY, BaseParameters, describe_unknown_gains
from robot_dyn_id.recordings import FileRecording, list_files_of, open_recording
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import plan_signals
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.joints import make_robot_for

READ_BYTES = 2**20
"""Portion in which recordings are read for their digest [bytes]."""

COPY_PREFIX, LOCK = f"robot_dyn_id_copy_{socket.gethostname()}_", "lock"
"""Beginning of the names of folders for copies of recordings on this computer, and the file in them that their process
locks: a folder that computers share does not show whether a process of another one holds its lock."""

LEFT_OVER_S = 600.0
"""Age of a folder, from which on it is removed if its lock is free [s]."""

BROKEN = (RobotDynIdError, OSError, ValueError, ArithmeticError, np.linalg.LinAlgError)
"""Exceptions with which a recording is left out; all others are faults of this package."""


class VersionError(RobotDynIdError):
    """A worker runs another version of this package."""

    code = "worker_version"
    advice = "install the same version of this package on every worker"


@dataclass(frozen=True)
class MapTask:
    """One recording to be reduced to its factor.

    Attributes:
        recording: file, folder or address.
        robot: robot description of the fleet.
        configuration: configuration of the identification, filters included.
        version: version of this package that the result must be of.
    """

    recording: str
    robot: RobotDescription = field(repr=False)
    configuration: Configuration = field(repr=False)
    version: str = __version__


@dataclass(frozen=True)
class Mapped:
    """Result of a map task.

    Attributes:
        factor: content of the factor's file; empty for a recording that is left out.
        reason: why it is left out; empty otherwise.
        seconds: processor time [s].
    """

    factor: bytes = field(repr=False)
    reason: str
    seconds: float


@dataclass(frozen=True)
class SignalChoices:
    """Suggestion of one recording for the signals of the fleet.

    Attributes:
        sample_rate: rate of the recording [Hz].
        cutoff: cut-off of the regression filter [Hz].
        motion_cutoff: cut-off of the motion filter [Hz].
        recorded_velocity: whether its recorded velocities agree with its positions.
    """

    sample_rate: float
    cutoff: float
    motion_cutoff: float
    recorded_velocity: bool


@dataclass(frozen=True)
class RobotSummary:
    """Results of the recordings of one robot without the others.

    Attributes:
        factor: content of the file of their merged factor.
        drift: linear drift of its parameters; None if all recordings have one date.
        agreement: agreement of its recordings with one set of parameters.
        seconds: processor time [s].
    """

    factor: bytes = field(repr=False)
    drift: Drift | None
    agreement: RecordingAgreement
    seconds: float


def digest_recording(recording: str) -> str:
    """SHA-256 of the content of a recording; empty if it cannot be read.

    Args:
        recording: file, folder or address.
    """
    digest = hashlib.sha256()
    try:
        with _local(recording) as path:
            files = sorted(list_files_of(path)) if path.is_dir() else [path]
            for file in files:
                digest.update(file.suffix.encode())
                with file.open("rb") as stream:
                    while portion := stream.read(READ_BYTES):
                        digest.update(portion)
    except BROKEN:
        return ""
    return digest.hexdigest()


def survey_recording(task: MapTask) -> SignalChoices | None:
    """Suggest the signals of the fleet from one recording; None if it cannot be used."""
    _check_version(task.version)
    settings = task.configuration.settings
    try:
        with _opened(task) as recording:
            model = make_robot_for(task.robot, task.configuration, [recording])
            surveyed = survey([recording], model.joint_names, settings.drives)
            plan = plan_signals(surveyed, settings.signals)
            return SignalChoices(plan.rate, plan.low_pass.cutoff, plan.motion_pass.cutoff, surveyed.recorded_velocity)
    except BROKEN:
        return None


def map_recording(task: MapTask) -> Mapped:
    """Reduce one recording to its factor.

    Raises:
        VersionError: this process runs another version.
    """
    _check_version(task.version)
    begin = time.process_time()
    try:
        with _opened(task) as recording:
            model = make_robot_for(task.robot, task.configuration, [recording])
            examined = Examined.from_read(Read.from_recordings([recording], [], model, task.configuration.settings))
            if examined.model.drive_units:
                raise InputError(f"{describe_unknown_gains(examined.model.drive_units)}: {GAIN_REMEDY}", GAIN_REMEDY)
            regressor, settings = examined.known_regressor, examined.read.settings
            base = _base(regressor, settings.pivots)
            factor = Factor.from_trials(examined.trials, regressor, base, settings, examined.effort_kind)
            named = Factor(**{**vars(factor), "sources": (task.recording,)})
            return Mapped(encode_factor(named), "", time.process_time() - begin)
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        return Mapped(b"", reason, time.process_time() - begin)


def summarize_robot(recordings: Sequence[tuple[bytes, float]]) -> RobotSummary:
    """Merge the factors of the recordings of a robot, and compare the recordings.

    Args:
        recordings: content of the file of each recording's factor, and time of the recording [s].

    Raises:
        InputError: factors of other robots or choices.
    """
    begin = time.process_time()
    parts = [parse_factor(content, "factor") for content, _ in recordings]
    merged, rows = Factor.merged(parts), [part.statistics for part in parts]
    return RobotSummary(
        encode_factor(merged),
        fit_drift(rows, [moment for _, moment in recordings]),
        compare_recordings(rows),
        time.process_time() - begin,
    )


def merge_statistics(parts: Sequence[RowStatistics]) -> RowStatistics:
    """Merge statistics of rows: one node of the tree of a reduction."""
    return RowStatistics.merged(parts)


def report_version() -> str:
    """Version of this package in this process."""
    return __version__


def _check_version(version: str) -> None:
    """Check the version of this process.

    Raises:
        VersionError: another one.
    """
    if version != __version__:
        raise VersionError(f"a worker runs robot_dyn_id {__version__}, expected {version}; install {version} on it")


@contextmanager
def _opened(task: MapTask) -> Iterator[FileRecording]:
    """The recording of a task, while its files are there."""
    of_bags = task.configuration
    with _local(task.recording) as path:
        yield open_recording(
            path,
            of_bags.topic,
            of_bags.reference_topic,
            channel_topics=of_bags.channel_topics,
            columns=of_bags.column_meaning,
            definitions=of_bags.definitions,
        )


@contextmanager
def _local(recording: str) -> Iterator[Path]:
    """The recording as a local file or folder; one of object storage is copied for as long as it is used.

    Raises:
        InputError: nothing there, or the protocol is unknown or not installed.
    """
    if not is_address(recording):
        yield Path(recording)
        return
    if "::" in recording:
        raise InputError(f"{recording}: chained addresses are not supported; give a single address")
    try:
        import fsspec
    except ImportError:
        raise InputError(f"{recording}: needs fsspec; install it with pip install '.[fleet]'") from None
    _remove_left_over()
    with _locked_folder() as folder:
        try:
            system, path = fsspec.core.url_to_fs(recording)
            name = path.rstrip("/").rpartition("/")[2]
            if name in ("", ".", ".."):
                raise ValueError("the address ends with no name of a file or a folder")
            target = folder / "copy" / name
            target.parent.mkdir()
            system.get(path, str(target), recursive=system.isdir(path))
        except (OSError, ImportError, ValueError) as error:
            raise InputError(f"{recording}: cannot be read ({error})") from None
        yield target


@contextmanager
def _locked_folder() -> Iterator[Path]:
    """A temporary folder, locked until this process ends, whatever ends it.

    Where files cannot be locked, it is not: other processes cannot lock it either, and leave it.
    """
    with ExitStack() as kept:
        while True:
            folder = Path(
                kept.enter_context(tempfile.TemporaryDirectory(prefix=COPY_PREFIX, ignore_cleanup_errors=True))
            )
            try:
                lock = kept.enter_context((folder / LOCK).open("wb"))
            except FileNotFoundError:  # removed as left over, by a process whose clock differs
                continue
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                break
        yield folder


def _remove_left_over() -> None:
    """Remove copies of processes of this computer that were killed: nothing holds their locks any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{glob.escape(COPY_PREFIX)}*"):
        with suppress(OSError), (folder / LOCK).open("rb") as lock:
            if time.time() - folder.stat().st_mtime > LEFT_OVER_S:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def _base(regressor: Regressor, pivots: str) -> BaseParameters:
    """Base parameters of a regressor, computed once for all recordings with the same columns and robot."""
    key = (regressor.model.urdf, regressor.model.joint_names, tuple(regressor.model.held.items()), regressor.names)
    constants = tuple((term.name, tuple(term.constants.items())) for _, term in regressor.terms)
    gravity = tuple(np.asarray(regressor.model.gravity).tolist())
    return _base_of(_Keyed((key, constants, gravity, pivots), regressor), pivots)


@dataclass(frozen=True)
class _Keyed:
    """A regressor that is equal to another if its key is."""

    key: Any
    regressor: Regressor = field(compare=False, hash=False)


@lru_cache(maxsize=8)
def _base_of(keyed: _Keyed, pivots: str) -> BaseParameters:
    return compute_base_parameters(keyed.regressor, pivots=pivots)
