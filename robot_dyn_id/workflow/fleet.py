# SPDX-License-Identifier: Apache-2.0
"""Identification of a fleet: recordings of many robots of one type, listed by a manifest."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import base_parameters
from robot_dyn_id.dynamics.prior import FLOOR, inertial_scales, term_scales
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import Consistent, WeightedLeastSquares
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.files.factor import parse_factor, write_factor
from robot_dyn_id.files.manifest import DEFAULT, Manifest, ManifestEntry
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.findings import Definition, Finding, Section, summarize_findings
from robot_dyn_id.fleet.differences import (
    FAMILY_WISE_ERROR,
    MIN_ROBOTS,
    Comparison,
    ParameterDifference,
    compare_robots,
    difference_from_others,
    name_differences,
)
from robot_dyn_id.fleet.drift import Drift, overdispersion, overdispersion_of_others
from robot_dyn_id.fleet.evidence import Evidence
from robot_dyn_id.fleet.population import VariationModel
from robot_dyn_id.identification.assembly import HeldOutErrors, assemble_from_factor
from robot_dyn_id.identification.change_words import BODY, ParameterColumns, describe_changes
from robot_dyn_id.identification.comparison import adjust_holm
from robot_dyn_id.identification.factor import Choices, Factor, require_mergeable
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import BaseParameters, ParameterSet, urdf_hash
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.report.fleet import write_fleet_page
from robot_dyn_id.report.folder import output_folder
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.fleet_store import FactorStore
from robot_dyn_id.workflow.fleet_tasks import (
    Mapped,
    MapTask,
    RobotSummary,
    SignalChoices,
    digest_recording,
    map_recording,
    merge_statistics,
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

ROBOT_DIFFERS = Definition(
    "robot_differs",
    Section.FLEETS,
    "warning",
    "The parameters of a robot differ from those of the other robots by more than their variation from robot to "
    "robot and the noise explain (docs/fleet.md states how often sound robots are named): another payload, wear, "
    "another part, efforts in another unit, or another robot under this serial number.",
    "inspect the robot, above all the joints of the parameters that are named",
)

ROBOT_RECORDINGS_DISAGREE = Definition(
    "robot_recordings_disagree",
    Section.FLEETS,
    "warning",
    "Recordings with one serial number differ more than those of one robot do: two robots share the number, the "
    "robot was changed between them, or one is in another unit.",
    "check the serial numbers, dates and configurations of the manifest",
)

ROBOT_DRIFTS = Definition(
    "robot_drifts",
    Section.FLEETS,
    "info",
    "A parameter of a robot changes with time by more than the noise explains (Holm's correction, intended "
    "family-wise error 1 %).",
    "look at the trend: friction changes with temperature and wear",
)

FLEET_SMALL = Definition(
    "fleet_small",
    Section.FLEETS,
    "info",
    "The fleet has fewer robots than the variation from robot to robot can be estimated from: every robot is "
    "identified from its own recordings alone, and none is compared.",
    "record more robots of this type",
)

SURVEYED = 8
"""Number of recordings from which the signals of the whole fleet are chosen."""

BRANCHES = 8
"""Factors that one node of the tree of a reduction merges."""

UNKNOWN_RADIUS_M = 0.2
"""Radius of gyration by which the inertial parameters of a body without masses in the URDF vary together [m]."""

ESTIMATOR = "fleet"
"""Name of the estimator in the parameter sets of robots; that of the pooled set is `weighted`."""

ROBOTS, FACTORS, POOLED = "robots", "factors", "pooled"
REPORT, PAGE = "fleet.json", "fleet.html"

RESULTS = (REPORT, PAGE, f"{POOLED}.yaml", ROBOTS, FACTORS)
"""Files and folders of a folder of results."""

DISAGREEMENT = 0.01
"""Probability, with Holm's correction, below which recordings of one robot are reported to disagree."""


@dataclass(frozen=True)
class LeftOut:
    """A recording that is not used.

    Attributes:
        entry: its entry in the manifest.
        reason: why it is not used.
    """

    entry: ManifestEntry
    reason: str


@dataclass(frozen=True)
class RobotResult:
    """Result of one robot in one configuration.

    Attributes:
        robot: serial number.
        configuration: mechanical configuration.
        parameters: parameter set; it borrows from the fleet unless the robot differs from it.
        factor: factor of its recordings.
        dates: dates of its recordings [s since the Unix epoch].
        statistic: squared Mahalanobis distance from the other robots; NaN for fleets that are too small.
        freedom: its degrees of freedom.
        probability: probability of such a statistic for a robot of the fleet, with Holm's correction.
        differs: whether it differs from the fleet; False if it was not compared.
        differences: parameters in which it differs; may be empty, as several can differ by little each.
        in_words: sentences about what differs: friction, rotor inertia, bodies, offsets; empty if it does not differ.
        drift: linear drift of its parameters; None for recordings of a single date.
        agreement: probability of recordings that differ as much if they are of one robot, with Holm's correction.
        reduce_seconds: processor time of the reduction [s].
    """

    robot: str
    configuration: str
    parameters: ParameterSet = field(repr=False)
    factor: Factor = field(repr=False)
    dates: tuple[float, ...]
    statistic: float
    freedom: float
    probability: float
    differs: bool
    differences: tuple[ParameterDifference, ...]
    in_words: tuple[str, ...]
    drift: Drift | None
    agreement: float
    reduce_seconds: float


@dataclass(frozen=True)
class Variation:
    """Variation of a group of parameters from robot to robot.

    Attributes:
        name: parameters of the group.
        deviation: their standard deviation, as a share of their size.
    """

    name: str
    deviation: float


@dataclass(frozen=True)
class ConfigurationResult:
    """Result of all robots in one configuration.

    Attributes:
        configuration: mechanical configuration.
        robots: results by robot.
        pooled: parameter set of all robots together that do not differ.
        pooled_robots: serial numbers of these.
        mean: mean of the base parameters over robots, shape (p,); empty for fleets that are too small.
        variations: variation from robot to robot.
        inflation: factor by which the test's statistics were too large.
        dispersion: variance of the noise between recordings of one robot over that within one.
    """

    configuration: str
    robots: tuple[RobotResult, ...]
    pooled: ParameterSet = field(repr=False)
    pooled_robots: tuple[str, ...]
    mean: Array
    variations: tuple[Variation, ...]
    inflation: float
    dispersion: float

    @property
    def is_compared(self) -> bool:
        """Whether there are enough robots to compare them."""
        return len(self.robots) >= MIN_ROBOTS


@dataclass(frozen=True)
class FleetResult:
    """Result of a fleet.

    Attributes:
        configurations: results by mechanical configuration.
        left_out: recordings that are not used.
        findings: what was found.
        recordings: number of recordings that are used.
        restored: number of them whose factors were in the store.
        signals: filters and rate that all recordings were processed with.
        map_seconds: processor time of each recording that was reduced in this run [s].
        factor_bytes: sizes of the factors of all recordings [bytes].
    """

    configurations: tuple[ConfigurationResult, ...]
    left_out: tuple[LeftOut, ...]
    findings: tuple[Finding, ...]
    recordings: int
    restored: int
    signals: Choices
    map_seconds: tuple[float, ...]
    factor_bytes: tuple[int, ...]

    def save(self, folder: str | Path) -> dict[str, Any]:
        """Write `fleet.json`, `fleet.html`, the parameter sets and the factors of the robots.

        Args:
            folder: the folder of the results, created if needed.

        Returns:
            Content of `fleet.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        root = output_folder(folder)
        summary = summarize_fleet(self)
        for name in (ROBOTS, FACTORS):
            output_folder(root / name)
        for group in self.configurations:
            write_parameters(root / f"{POOLED}{_suffix(group.configuration)}.yaml", group.pooled)
            for one in group.robots:
                write_parameters(root / _robot_file(one), one.parameters)
                write_factor(root / FACTORS / f"{one.robot}{_suffix(one.configuration)}.npz", one.factor)
        write_fleet_page(root / PAGE, summary)
        write_atomically(root / REPORT, json.dumps(finite(summary), indent=1, allow_nan=False) + "\n")
        return summary

    @property
    def differing(self) -> tuple[RobotResult, ...]:
        """Results of the robots that differ from their fleet."""
        return tuple(one for group in self.configurations for one in group.robots if one.differs)


def summarize_fleet(result: FleetResult) -> dict[str, Any]:
    """The result as `--json` and `fleet.json` hold it."""
    return {
        "task": "fleet",
        "robots": [_summarize_robot(one, group) for group in result.configurations for one in group.robots],
        "differing": [one.robot for one in result.differing],
        "configurations": [
            {
                "configuration": group.configuration,
                "compared": group.is_compared,
                "pooled_file": f"{POOLED}{_suffix(group.configuration)}.yaml",
                "pooled_robots": list(group.pooled_robots),
                "held_out_nrmse": group.pooled.judgment.held_out_all_joints_nrmse,
                "parameters": [
                    {"name": name, "unit": unit, "pooled": value, "mean": mean}
                    for name, unit, value, mean in zip(
                        group.pooled.base.names,
                        group.pooled.base.units,
                        group.pooled.estimate.values.tolist(),
                        group.mean.tolist() or [None] * len(group.pooled.base.names),
                        strict=True,
                    )
                ],
                "variation": [{"name": one.name, "relative_deviation": one.deviation} for one in group.variations],
                "inflation": group.inflation,
                "dispersion": group.dispersion,
            }
            for group in result.configurations
        ],
        "left_out": [
            {"robot": one.entry.robot, "recording": one.entry.recording, "reason": one.reason}
            for one in result.left_out
        ],
        "recordings": {"used": result.recordings, "restored": result.restored, "left_out": len(result.left_out)},
        "signals": dict(result.signals),
        "cost": {
            "map_seconds": float(np.median(result.map_seconds)) if result.map_seconds else None,
            "factor_bytes": float(np.median(result.factor_bytes)),
        },
        "software_version": __version__,
        **summarize_findings(result.findings),
    }


def _summarize_robot(one: RobotResult, group: ConfigurationResult) -> dict[str, Any]:
    names, units = one.parameters.base.names, one.parameters.base.units
    drift = []
    if one.drift is not None:
        ends = one.drift.intervals(group.dispersion).tolist()
        drift = [
            {"name": name, "unit": f"{unit}/d", "rate": rate, "interval": interval}
            for name, unit, rate, interval in zip(names, units, one.drift.rates.tolist(), ends, strict=True)
        ]
    return {
        "robot": one.robot,
        "configuration": one.configuration,
        "parameters_file": _robot_file(one),
        "dates": [datetime.fromtimestamp(date, timezone.utc).isoformat() for date in one.dates],
        "differs": one.differs if group.is_compared else None,
        "chi_square": one.statistic,
        "degrees_of_freedom": one.freedom,
        "probability": one.probability if group.is_compared else None,
        "differences": [vars(difference) for difference in one.differences],
        "in_words": list(one.in_words),
        "recordings_agree": one.agreement,
        "held_out_nrmse": one.parameters.judgment.held_out_all_joints_nrmse,
        "verdict": one.parameters.judgment.verdict,
        "drift": drift,
    }


def format_probability(probability: float) -> str:
    """A probability, with the least one that a double of normal precision holds as a bound: `p 1.2e-05`."""
    least = np.finfo(np.float64).tiny
    return f"p {probability:.1e}" if probability >= least else f"p < {least:.0e}"


def _suffix(configuration: str) -> str:
    return "" if configuration == DEFAULT else f"@{configuration}"


def _robot_file(one: RobotResult) -> str:
    """Parameter file of a robot in the folder of the results."""
    return f"{ROBOTS}/{one.robot}{_suffix(one.configuration)}.yaml"


def finite(value: Any) -> Any:
    """Replace infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


@dataclass(frozen=True)
class _Model:
    """Robot, terms and base parameters that all factors share, and thresholds of the verdicts."""

    regressor: Regressor
    base: BaseParameters
    thresholds: Thresholds


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
    groups = list(dict.fromkeys(entry.configuration for entry in reduced.entries))
    results, findings = [], list(_report_left_out(reduced.left_out))
    for group in groups:
        progress(Stage(f"comparing the robots ({group})"))
        members = {key: one for key, one in summaries.items() if key[1] == group}
        result, found = _identify_group(group, members, reduced, model, executor)
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


def _restore_model(robot: RobotDescription, configuration: Configuration, choices: Choices) -> _Model:
    """Robot, terms and base parameters of factors."""
    model = RobotModel.from_description(robot, choices["joint_names"], choices["held"], tuple(choices["gravity"]))
    settings = configuration.settings
    regressor = Regressor(model, terms_on_joints(model, settings.fixed_terms, settings.couplings))
    return _Model(regressor, base_parameters(regressor, pivots=settings.pivots), settings.thresholds)


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


def merge_tree(parts: Sequence[RowStatistics], executor: Executor) -> list[RowStatistics]:
    """Merge statistics in a tree, of which the root and its at most `BRANCHES` children stay with the caller.

    Args:
        parts: at least one.
        executor: where the nodes are merged.

    Returns:
        The children of the root.

    Raises:
        LostTaskError: workers died as often as it was tried.
    """
    level = list(parts)
    while len(level) > BRANCHES:
        nodes = [level[start : start + BRANCHES] for start in range(0, len(level), BRANCHES)]
        above: dict[int, RowStatistics] = {}
        for number, merged in executor.run(merge_statistics, nodes):
            if isinstance(merged, LostTaskError):
                raise merged
            above[number] = merged
        level = [above[number] for number in range(len(nodes))]
    return level


def _identify_group(
    configuration: str,
    members: Mapping[tuple[str, str], RobotSummary],
    reduced: _Reduced,
    model: _Model,
    executor: Executor,
) -> tuple[ConfigurationResult, list[Finding]]:
    """Results of the robots in one configuration, and findings about them."""
    summaries = list(members.values())
    factors = [parse_factor(one.factor, key[0]) for key, one in members.items()]
    names = [key[0] for key in members]
    rows = [factor.statistics for factor in factors]
    repeats = [one.agreement for one in summaries]
    dispersion = overdispersion(repeats)
    comparison = None
    if len(rows) >= MIN_ROBOTS:
        everyone = RowStatistics.merged(merge_tree(rows, executor)).estimate(model.base.names)
        evidence = Evidence.from_statistics(rows, dispersion)
        changes = _expected_changes(model, everyone, evidence.scales)
        comparison = compare_robots(evidence, _spread(model, everyone, evidence.scales), changes=changes)
    differs = np.zeros(len(rows), dtype=bool) if comparison is None else comparison.differs
    others = overdispersion_of_others(repeats).tolist()
    agreements = adjust_holm(np.array([one.probability(rest) for one, rest in zip(repeats, others, strict=True)]))
    recordings = _group_by_robot(reduced)
    robots = tuple(
        _robot_result(
            _Member(
                key,
                factors[number],
                summaries[number],
                [
                    (parse_factor(reduced.factor(n), reduced.entries[n].recording).statistics, reduced.entries[n].date)
                    for n in recordings[key]
                ],
                float(agreements[number]),
            ),
            number,
            comparison,
            model,
        )
        for number, key in enumerate(members)
    )
    sound = [number for number in range(len(rows)) if not differs[number]]
    parts = merge_tree([rows[number] for number in sound], executor)
    merged = replace(Factor.merged([factors[n] for n in sound]), statistics=RowStatistics.merged(parts))
    estimate = merged.statistics.estimate(model.base.names)
    pooled = assemble_from_factor(
        IdentifiedModel(model.regressor, model.base, estimate),
        merged,
        HeldOutErrors.from_recordings(parts, model.base.names),
        model.thresholds,
        WeightedLeastSquares.name,
        __version__,
    )
    population = None if comparison is None else comparison.population
    result = ConfigurationResult(
        configuration=configuration,
        robots=robots,
        pooled=pooled,
        pooled_robots=tuple(names[number] for number in sound),
        mean=np.zeros(0) if population is None else population.mean,
        variations=()
        if population is None
        else tuple(map(Variation, population.spread.names, population.deviations.tolist())),
        inflation=1.0 if comparison is None else comparison.inflation,
        dispersion=dispersion,
    )
    return result, _report_robots(result, model.base.names)


def _group_by_robot(reduced: _Reduced) -> dict[tuple[str, str], list[int]]:
    """Numbers of the recordings of each robot in each configuration."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(reduced.entries):
        groups.setdefault(entry.key, []).append(number)
    return groups


@dataclass(frozen=True)
class _Member:
    """One robot in one configuration.

    Attributes:
        key: serial number and configuration.
        factor: merged factor of its recordings.
        summary: what its recordings yield without the other robots.
        recordings: statistics and date of each recording.
        agreement: see `RobotResult`.
    """

    key: tuple[str, str]
    factor: Factor
    summary: RobotSummary
    recordings: Sequence[tuple[RowStatistics, float]]
    agreement: float


def _robot_result(member: _Member, number: int, comparison: Comparison | None, model: _Model) -> RobotResult:
    """Result of one robot.

    Args:
        member: the robot.
        number: its number in the comparison.
        comparison: test of all robots; None for fleets that are too small.
        model: robot, terms and base parameters.
    """
    names, rows, factor = model.base.names, [one for one, _ in member.recordings], member.factor
    estimate = factor.statistics.estimate(names)
    differences: tuple[ParameterDifference, ...] = ()
    in_words: tuple[str, ...] = ()
    statistic = freedom = np.nan
    probability = 1.0
    if comparison is not None:
        statistic, freedom = float(comparison.statistics[number]), float(comparison.freedom[number])
        probability = float(comparison.adjusted[number])
    if comparison is None or comparison.differs[number]:
        held_out = HeldOutErrors.from_recordings(rows, names)
    else:
        population = comparison.population
        values, covariance = population.predict(number)
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        estimate = replace(
            estimate,
            values=values,
            covariance=covariance,
            standard_deviations=sigma,
            unexcited=(),
            prior_strength=np.nan,  # that of the fleet, which is not one on single links
        )
        held_out = HeldOutErrors.from_predictions(
            rows, [population.predict_without(number, others) for others in _leaving_out(rows)]
        )
    if comparison is not None and comparison.differs[number]:
        differences = name_differences(comparison, number, names)
        own, mean, covariance = difference_from_others(comparison, number)
        columns = ParameterColumns.from_regressor(model.regressor, _full_values(model, mean))
        in_words = describe_changes(own - mean, covariance, model.base.mapping, columns, names)
    identified = IdentifiedModel(model.regressor, model.base, estimate)
    return RobotResult(
        robot=member.key[0],
        configuration=member.key[1],
        parameters=assemble_from_factor(identified, factor, held_out, model.thresholds, ESTIMATOR, __version__),
        factor=factor,
        dates=tuple(date for _, date in member.recordings),
        statistic=statistic,
        freedom=freedom,
        probability=probability,
        differs=comparison is not None and bool(comparison.differs[number]),
        differences=differences,
        in_words=in_words,
        drift=member.summary.drift,
        agreement=member.agreement,
        reduce_seconds=member.summary.seconds,
    )


def _leaving_out(rows: Sequence[RowStatistics]) -> Iterator[RowStatistics | None]:
    """All rows but those of each recording in turn; None where there are no others."""
    for number in range(len(rows)):
        others = [*rows[:number], *rows[number + 1 :]]
        yield RowStatistics.merged(others) if others else None


def _full_values(model: _Model, values: Array) -> Array:
    """Values of all columns, shape (c,): bodies of the URDF, and terms of base parameters, shape (p,)."""
    full = np.zeros(len(model.regressor.names))
    full[model.base.independent] = values
    inertial = model.regressor.model.inertial_parameters.ravel()
    full[: len(inertial)] = inertial
    return full


def _expected_changes(model: _Model, everyone: Estimate, scales: Array) -> Array:
    """Changes that single robots are tested for: a body that is heavier as a whole, and more of a term in all joints.

    Args:
        model: robot, terms and base parameters.
        everyone: estimate of all robots together.
        scales: see `Evidence`.

    Returns:
        Changes of the scaled base parameters, shape (p, c).
    """
    columns = ParameterColumns.from_regressor(model.regressor, _full_values(model, everyone.values))
    groups = [(kind, place if kind == BODY else "") for kind, place in zip(columns.kinds, columns.places, strict=True)]
    found = [
        model.base.mapping @ np.where([other == group for other in groups], columns.values, 0.0)
        for group in dict.fromkeys(groups)
    ]
    return np.array([change for change in found if np.any(change)]).reshape(-1, len(scales)).T / scales[:, None]


def _spread(model: _Model, everyone: Estimate, scales: Array) -> VariationModel:
    """Variation of the parameters of a fleet, in proportion to their sizes.

    Args:
        model: robot, terms and base parameters.
        everyone: estimate of all robots together, for the sizes of the terms.
        scales: see `Evidence`.
    """
    regressor, base = model.regressor, model.base
    robot = regressor.model
    inertial = 10 * len(robot.body_names)
    full = np.zeros(len(regressor.names))
    full[base.independent] = everyone.values
    terms = term_scales(regressor, full[inertial:])
    kinds = [column.term.symbols[column.index] for column in regressor.term_columns]
    floors = [FLOOR * terms[np.array([other == kind for other in kinds])].mean() for kind in kinds]
    radius = UNKNOWN_RADIUS_M
    alike = np.tile([1.0, *[radius] * 3, *[radius**2] * 6], len(robot.body_names))
    bodies = inertial_scales(robot) if robot.inertial_parameters.any() else alike
    labels = [f"inertia of {name}" for name in robot.body_names for _ in range(10)] + list(regressor.names[inertial:])
    single = {p: base.names[p] for p, column in enumerate(base.independent.tolist()) if column < inertial}
    return VariationModel.from_sizes(base.mapping, np.append(bodies, np.maximum(terms, floors)), labels, scales, single)


def _report_left_out(left_out: Sequence[LeftOut]) -> Iterator[Finding]:
    """Findings about recordings that are not used."""
    for one in left_out:
        yield RECORDING_LEFT_OUT.found(f"{one.entry.recording} of robot {one.entry.robot}: {one.reason}")


def _report_robots(result: ConfigurationResult, names: Sequence[str]) -> list[Finding]:
    """Findings about robots that differ, whose recordings disagree, or that drift."""
    findings = []
    suffix = f" ({result.configuration})"
    if not result.is_compared:
        message = f"{len(result.robots)} robots{suffix}: too few to compare them, fewer than {MIN_ROBOTS}"
        findings.append(FLEET_SMALL.found(message))
    for one in result.robots:
        if one.differs:
            named = ", ".join(f"{d.name} {d.value:.3g} ({d.fleet:.3g})" for d in one.differences[:5])
            listed = f"{'; '.join(one.in_words)}; {named or 'no single parameter differs significantly'}"
            message = (
                f"robot {one.robot}{suffix} differs from the fleet ({format_probability(one.probability)}): {listed}"
            )
            findings.append(ROBOT_DIFFERS.found(message))
        if one.agreement < DISAGREEMENT:
            chance = format_probability(one.agreement)
            message = f"the recordings of robot {one.robot}{suffix} disagree with one another ({chance})"
            findings.append(ROBOT_RECORDINGS_DISAGREE.found(message))
    findings += _report_drift(result, names, suffix)
    return findings


def _report_drift(result: ConfigurationResult, names: Sequence[str], suffix: str) -> Iterator[Finding]:
    """Findings about parameters that drift, with Holm's correction for all robots and parameters."""
    from scipy.special import erfc

    drifting = [one for one in result.robots if one.drift is not None]
    if not drifting:
        return
    rates = np.array([one.drift.rates for one in drifting if one.drift is not None])
    spread = np.array([one.drift.standard_deviations for one in drifting if one.drift is not None])
    sigma = np.sqrt(result.dispersion) * np.maximum(spread, 1e-300)
    adjusted = adjust_holm(np.asarray(erfc(np.abs(rates) / sigma / np.sqrt(2.0))).ravel()).reshape(rates.shape)
    for number, one in enumerate(drifting):
        places = np.flatnonzero(adjusted[number] < FAMILY_WISE_ERROR)
        if len(places):
            order = places[np.argsort(adjusted[number][places])][:5].tolist()
            listed = ", ".join(f"{names[p]} {rates[number, p]:.2g} +- {sigma[number, p]:.1g}" for p in order)
            yield ROBOT_DRIFTS.found(f"robot {one.robot}{suffix}: change per day of {listed}")
