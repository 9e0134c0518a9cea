# SPDX-License-Identifier: Apache-2.0
"""Identification of a fleet: recordings of many robots of one type, listed by a manifest."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import Consistent, WeightedLeastSquares
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.files.factor import parse_factor
from robot_dyn_id.files.manifest import Manifest, ManifestEntry
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.factor import Choices, require_mergeable
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.workflow.fleet_comparison import FleetModel, identify_group
from robot_dyn_id.workflow.fleet_results import FleetResult, LeftOut
from robot_dyn_id.workflow.fleet_store import FactorStore
from robot_dyn_id.workflow.fleet_tasks import (
    Mapped,
    MapTask,
    RobotSummary,
    SignalChoices,
    digest_recording,
    map_recording,
    summarize_robot,
    survey_recording,
)
from robot_dyn_id.workflow.scheduler import Executor, LostTaskError

RECORDING_LEFT_OUT = Definition(
    "recording_left_out",
    Section.FLEETS,
    "warning",
    "A recording of the manifest cannot be read, is refused by a health check, has other choices than the others, "
    "or is listed twice under different names.",
    "correct the recording or its entry in the manifest, and run again: what is done is kept",
)

SURVEYED = 8
"""Number of recordings from which the signals of the whole fleet are chosen."""


@dataclass(frozen=True)
class _Reduced:
    """Recordings of a fleet in the order of the manifest, whose factors are in the store.

    Factors are read where they are needed: those of all recordings together could exceed the memory.
    """

    entries: list[ManifestEntry]
    digests: list[str]
    store: FactorStore
    left_out: list[LeftOut]
    restored: int
    seconds: list[float]

    def factor(self, number: int) -> bytes:
        """Content of the file of a recording's factor.

        Raises:
            InputError: it is not in the store any more.
        """
        return self.store.read(self.digests[number])

    def factors(self) -> Iterator[bytes]:
        """Contents of the files of all factors."""
        return map(self.factor, range(len(self.entries)))


def identify_fleet(
    manifest: Manifest, executor: Executor, store: str | Path, progress: Progress = ignore_progress
) -> FleetResult:
    """Identify the robots of a fleet.

    Args:
        manifest: the recordings.
        executor: where the tasks run.
        store: folder that keeps the factors of the recordings, by their content.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: robots with different robot descriptions, or no recording that can be used.
        UsageError: a configuration that factors do not suffice for.
        VersionError: a worker runs another version.
    """
    robot = _describe_robot(manifest)
    configuration = _pinned(read_configuration(manifest.config))
    progress(Stage(f"choosing the signals of {len(manifest.recordings)} recordings"))
    configuration = choose_signals(manifest.recordings, robot, configuration, executor)
    kept = FactorStore.from_options(store, robot, configuration)
    reduced = _reduce_recordings(manifest.recordings, MapTask("", robot, configuration), executor, kept, progress)
    reduced, choices = _of_equal_choices(reduced)
    model = _restore_model(robot, configuration, choices)
    summaries = _summarize_robots(reduced, executor, progress)
    numbers = _group_by_robot(reduced)

    def read(key: tuple[str, str]) -> list[tuple[RowStatistics, float]]:
        entries = ((reduced.entries[n], reduced.factor(n)) for n in numbers[key])
        return [(parse_factor(content, entry.recording).statistics, entry.date) for entry, content in entries]

    groups = list(dict.fromkeys(entry.configuration for entry in reduced.entries))
    results, findings = [], list(_report_left_out(reduced.left_out))
    for group in groups:
        progress(Stage(f"comparing the robots ({group})"))
        members = {key: one for key, one in summaries.items() if key[1] == group}
        result, found = identify_group(group, members, read, model, executor)
        results.append(result)
        findings += found
    return FleetResult(
        configurations=tuple(results),
        left_out=tuple(reduced.left_out),
        findings=tuple(findings),
        recordings=len(reduced.entries),
        restored=reduced.restored,
        signals={name: choices[name] for name in ("sample_rate", "decimation", "cutoff", "motion_cutoff", "velocity")},
        map_seconds=tuple(reduced.seconds),
        factor_bytes=tuple(map(len, reduced.factors())),
    )


def choose_signals(
    entries: Sequence[ManifestEntry], robot: RobotDescription, configuration: Configuration, executor: Executor
) -> Configuration:
    """Choose filters, rate and source of the velocities once for a fleet, from some of its recordings.

    What the configuration states stays. Everything else is the median over the recordings; recorded velocities are
    used if they agree with the positions in all of them.

    Args:
        entries: all recordings.
        robot: robot description of the fleet.
        configuration: configuration of the identification.
        executor: where the recordings are read.

    Raises:
        InputError: none of the recordings can be read.
    """
    count = min(SURVEYED, len(entries))
    places = np.unique(np.linspace(0, len(entries) - 1, count).round().astype(int)).tolist()
    found: list[SignalChoices] = []
    for group in (places, [place for place in range(len(entries)) if place not in places]):
        tasks = [MapTask(entries[place].recording, robot, configuration) for place in group]
        for _, one in executor.run(survey_recording, tasks):
            if isinstance(one, SignalChoices):
                found.append(one)
        if found:
            break
    if not found:
        # the reason of the first recording, as a run of it alone would report it
        (_, first), *_ = executor.run(map_recording, [MapTask(entries[0].recording, robot, configuration)])
        reason = first.reason if isinstance(first, Mapped) else str(first)
        raise InputError(f"none of the {len(entries)} recordings can be used; the first: {reason}")
    settings = configuration.settings
    cutoff = settings.cutoff or float(np.median([one.cutoff for one in found]))
    motion = settings.motion_cutoff or float(np.median([one.motion_cutoff for one in found]))
    rate = settings.sample_rate or float(np.median([one.sample_rate for one in found]))
    velocity = settings.velocity
    if velocity == "auto":
        velocity = "recorded" if all(one.recorded_velocity for one in found) else "derivative"
    return configuration.with_values(cutoff=cutoff, motion_cutoff=motion, sample_rate=rate, velocity=velocity)


def _describe_robot(manifest: Manifest) -> RobotDescription:
    """Robot description of the fleet.

    Raises:
        InputError: one of a recording differs.
    """
    robot = RobotDescription.from_file(manifest.robot_description)
    hashes: dict[str, str] = {}
    for entry in manifest.recordings:
        path = entry.robot_description
        if path is None:
            continue
        if path not in hashes:
            hashes[path] = urdf_hash(RobotDescription.from_file(path).text)
        if hashes[path] != urdf_hash(robot.text):
            raise InputError(
                f"robot {entry.robot}: its robot description {path} (SHA-256 {hashes[path][:12]}...) is not that of "
                f"the fleet, {manifest.robot_description} ({urdf_hash(robot.text)[:12]}...): it is another robot, or "
                "two robots have one serial number; list robots of one type in a manifest"
            )
    return robot


def _pinned(configuration: Configuration) -> Configuration:
    """The configuration with the estimator `weighted` in place of the default.

    Raises:
        UsageError: an estimator, or an option, that factors do not suffice for.
    """
    if configuration.settings.estimator == Consistent():
        configuration = configuration.with_values(estimator=WeightedLeastSquares())
    require_mergeable(configuration.settings)
    return configuration


def _reduce_recordings(
    entries: Sequence[ManifestEntry], task: MapTask, executor: Executor, store: FactorStore, progress: Progress
) -> _Reduced:
    """Read each recording, or its factor from the store.

    Raises:
        InputError: no recording can be used.
    """
    digests = [""] * len(entries)
    for done, (number, digest) in enumerate(executor.run(digest_recording, [entry.recording for entry in entries])):
        progress(Stage("reading the recordings", done, len(entries)))
        digests[number] = digest if isinstance(digest, str) else ""
    reasons: dict[int, str] = {}
    first: dict[str, int] = {}
    for number, digest in enumerate(digests):
        if digest and digest in first:
            reasons[number] = f"the content is that of {entries[first[digest]].recording}"
        elif digest:
            first[digest] = number
    kept = {number for number in first.values() if store.get(digests[number])}
    missing = [n for n in range(len(entries)) if n not in reasons and n not in kept]
    restored = len(entries) - len(missing) - len(reasons)
    seconds = []
    progress(Stage("reducing the recordings", 0, len(missing)))
    tasks = [replace(task, recording=entries[number].recording) for number in missing]
    for done, (place, result) in enumerate(executor.run(map_recording, tasks), start=1):
        number = missing[place]
        if isinstance(result, LostTaskError):
            reasons[number] = str(result)
        elif result.reason:
            reasons[number] = result.reason
        elif not digests[number]:  # it would be compared with no other, and kept under no name
            reasons[number] = "its content could not be read in the first pass; run the command again"
        else:
            seconds.append(result.seconds)
            store.put(digests[number], result.factor)
        progress(Stage("reducing the recordings", done, len(missing)))
    used = [number for number in range(len(entries)) if number not in reasons]
    left_out = [LeftOut(entries[number], reasons[number]) for number in sorted(reasons)]
    if not used:
        raise InputError(f"none of the {len(entries)} recordings can be used; the first: {left_out[0].reason}")
    return _Reduced([entries[n] for n in used], [digests[n] for n in used], store, left_out, restored, seconds)


def _of_equal_choices(reduced: _Reduced) -> tuple[_Reduced, Choices]:
    """The recordings whose factors can be merged: those with the most frequent choices, and these choices.

    Of recordings of the same samples the first is used.

    Raises:
        InputError: fewer than half have these choices.
    """
    choices: dict[bytes, Choices] = {}
    hashes, samples = [], []
    for content in reduced.factors():
        factor = parse_factor(content, "factor")
        hashes.append(hashlib.sha256(json.dumps(factor.choices, sort_keys=True).encode()).digest())
        choices.setdefault(hashes[-1], factor.choices)
        digests = factor.fingerprint.digests
        samples.append(hashlib.sha256(digests.tobytes()).digest() if digests.size else b"")
    frequent, count = Counter(hashes).most_common(1)[0]
    chosen = choices[frequent]
    left_out, used = list(reduced.left_out), []
    first: dict[bytes, str] = {}
    for number, entry in enumerate(reduced.entries):
        if hashes[number] != frequent:
            try:
                parse_factor(reduced.factor(number), entry.recording).check_choices(chosen)
            except InputError as error:
                if 2 * count < len(hashes):
                    message = f"only {count} of {len(hashes)} recordings were processed alike; the first other: {error}"
                    raise InputError(message) from None
                left_out.append(LeftOut(entry, str(error)))
        elif samples[number] and samples[number] in first:
            left_out.append(LeftOut(entry, f"the samples are those of {first[samples[number]]}"))
        else:
            first[samples[number]] = entry.recording
            used.append(number)
    kept = [reduced.entries[n] for n in used], [reduced.digests[n] for n in used]
    return replace(reduced, entries=kept[0], digests=kept[1], left_out=left_out), chosen


def _restore_model(robot: RobotDescription, configuration: Configuration, choices: Choices) -> FleetModel:
    """Robot, terms and base parameters of factors."""
    model = RobotModel.from_description(robot, choices["joint_names"], choices["held"], tuple(choices["gravity"]))
    settings = configuration.settings
    regressor = Regressor(model, place_terms_on_joints(model, settings.fixed_terms, settings.couplings))
    return FleetModel(regressor, compute_base_parameters(regressor, pivots=settings.pivots), settings.thresholds)


def _summarize_robots(reduced: _Reduced, executor: Executor, progress: Progress) -> dict[tuple[str, str], RobotSummary]:
    """Merge the recordings of each robot and configuration."""
    groups = _group_by_robot(reduced)
    keys = list(groups)
    found: dict[int, RobotSummary] = {}
    tasks = ([(reduced.factor(n), reduced.entries[n].date) for n in numbers] for numbers in groups.values())
    for done, (number, summary) in enumerate(executor.run(summarize_robot, tasks)):
        progress(Stage("merging the recordings of each robot", done, len(groups)))
        if isinstance(summary, LostTaskError):
            raise summary
        found[number] = summary
    return {key: found[number] for number, key in enumerate(keys)}


def _group_by_robot(reduced: _Reduced) -> dict[tuple[str, str], list[int]]:
    """Numbers of the recordings of each robot in each configuration."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(reduced.entries):
        groups.setdefault(entry.key, []).append(number)
    return groups


def _report_left_out(left_out: Sequence[LeftOut]) -> Iterator[Finding]:
    """Findings about recordings that are not used."""
    for one in left_out:
        yield RECORDING_LEFT_OUT.found(f"{one.entry.recording} of robot {one.entry.robot}: {one.reason}")
