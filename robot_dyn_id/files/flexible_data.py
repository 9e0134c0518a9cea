# SPDX-License-Identifier: Apache-2.0
"""From files of experiments with flexible joints to arrays at a constant rate: what `robot-dyn-id flexible` reads."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.data.resampling import interpolate_cubic
from robot_dyn_id.errors import InputError, UsageError, suggest_known
from robot_dyn_id.files.flexible_section import ExperimentSettings, FlexibleSettings
from robot_dyn_id.findings import Finding
from robot_dyn_id.flexible import Experiment, FlexibleModel
from robot_dyn_id.identification.diagnosis.health import CLOCK_GAPS
from robot_dyn_id.recordings.experiments import RecordedExperiment, open_experiment
from robot_dyn_id.recordings.joint_states import NANOSECONDS
from robot_dyn_id.recordings.reading import format_dropped, report_dropped, report_unused
from robot_dyn_id.recordings.rosbag2 import MessageReading
from robot_dyn_id.signals.cleaning import GAP_STEPS, Drive, Repairs, clean, compute_median_step, make_efforts
from robot_dyn_id.signals.windows import Cut, cut_windows

WHOLE_SEGMENT = 2**40
"""Length of a window that is longer than every segment [samples]."""

MIN_RANGE = 0.05
"""Range of a joint's angle above which the gear ratio is checked [rad or m]."""

RATIO_RANGE = (0.5, 2.0)
"""Measured over configured gear ratio: outside this range the ratio, or its sign, is wrong."""

MAX_CLOSING_STEPS = 10.0
"""Distance of the last sample of a periodic motion from the first one, in largest steps, above which it is open."""


@dataclass(frozen=True)
class ExperimentData:
    """Content of the files of experiments.

    Attributes:
        experiments: experiments, each at a constant rate; a recording with gaps is several.
        sources: the files.
        sha256: hash of the data that were read.
        findings: findings about the files.
    """

    experiments: tuple[Experiment, ...]
    sources: tuple[str, ...]
    sha256: str
    findings: tuple[Finding, ...]


def open_experiments(
    paths: Sequence[str], topic: str | None, settings: FlexibleSettings, reading: MessageReading | None = None
) -> list[RecordedExperiment]:
    """Open files, with what the configuration says of them over what they say themselves.

    Args:
        paths: the files.
        topic: topic of bags with the joints; None for the only one.
        settings: the section `flexible` of the configuration.
        reading: settings for the messages of bags.

    Raises:
        InputError: a file that cannot be read.
        UsageError: an experiment that is static and periodic, or poses from a bag.
    """
    order, motors = settings.motor_names, tuple(settings.motors.values())
    found = []
    for path in paths:
        one = open_experiment(path, topic, settings.motor_topic, order, motors, reading)
        given = settings.experiments.get(Path(path).name, ExperimentSettings())
        static = one.static if given.static is None else given.static
        if one.static and not static:
            raise InputError(f"{path}: has no time stamps, so that its samples are poses; add the key t")
        if static and Path(path).suffix not in (".npz", ".csv"):
            raise UsageError(f"{path}: is a bag, whose messages are not poses: write a row per pose as .npz or .csv")
        periodic = one.periodic if given.periodic is None else given.periodic
        moving = one.moving if given.moving is None else given.moving
        if static and (periodic or moving):
            raise UsageError(f"{path}: is static, poses at rest, and also periodic or moving: leave one out")
        found.append(RecordedExperiment(one.source, one.links, one.motors, static, periodic, moving))
    return found


def read_experiments(
    recorded: Sequence[RecordedExperiment],
    model: FlexibleModel,
    drives: Mapping[str, Drive],
    settings: FlexibleSettings,
) -> ExperimentData:
    """Read what was opened.

    Args:
        recorded: the files.
        model: the arm.
        drives: gains of rigid joints whose effort is a current, and signs of torques.
        settings: names of the motors, and which of their torques are currents.

    Raises:
        InputError: data that cannot be used, a gear ratio that is not the motors', a periodic motion that does not
            close.
    """
    sources = [one.source for one in recorded]
    twice = [source for source in sources if sources.count(source) > 1]
    if twice:
        raise InputError(f"{twice[0]}: is given twice; give each file once")
    short = [Path(source).name for source in sources]
    names = short if len(set(short)) == len(short) else sources
    digest, experiments, findings = hashlib.sha256(), list[Experiment](), list[Finding]()
    for name, one in zip(names, recorded, strict=True):
        samples = _both_sides(one, model, drives, settings)
        for channel in (samples.t, samples.q, samples.tau):
            digest.update(np.ascontiguousarray(channel).tobytes())
        repairs = Repairs()
        found = _experiments(name, one, model, samples, repairs)
        for experiment in found:
            _check_ratios(model, experiment)
        experiments += found
        findings += _report_repairs(name, one, model, settings, repairs)
    return ExperimentData(tuple(experiments), tuple(sources), digest.hexdigest(), tuple(dict.fromkeys(findings)))


def _report_repairs(
    name: str, one: RecordedExperiment, model: FlexibleModel, settings: FlexibleSettings, repairs: Repairs
) -> list[Finding]:
    """Findings about samples that a file left out, and repairs that it needed."""
    findings = [*one.links.findings(model.model.joint_names), *report_dropped(name, repairs.dropped, "sample")]
    if repairs.gaps:
        message = f"{name}: {repairs.gaps + 1} pieces, as its clock has gaps"
        findings.append(CLOCK_GAPS.found(message, severity="info"))
    if one.motors is not None and one.motors is not one.links:
        used = list(_motor_names(one, settings).values())
        findings += one.motors.findings(used)
        unknown = [motor for motor in one.motors.joint_names if motor not in used]
        findings += report_unused(name, "motors that do not belong to a flexible joint are", unknown)
    return findings


def _both_sides(
    one: RecordedExperiment, model: FlexibleModel, drives: Mapping[str, Drive], settings: FlexibleSettings
) -> Chunk:
    """Angles and torques of n joints, then of f motors, NaN where not measured, shape (N, n + f)."""
    joints = model.model.joint_names
    links = Chunk.join(list(one.links.chunks(joints)))
    sensed = [number for number, name in enumerate(joints) if name in model.sensed]
    tau = np.full(links.q.shape, np.nan)
    if sensed and (links.tau is not None or links.current is not None):
        tau[:, sensed] = _efforts(links.joints(sensed), one.links, [joints[number] for number in sensed], drives)
    q, torque = (np.full((len(links), len(model.joints)), np.nan) for _ in range(2))
    covered = np.ones(len(links), dtype=bool)
    if one.motors is not None:
        names = _motor_names(one, settings)
        if not names:
            raise InputError(
                f"{one.source}: its motors are {', '.join(one.motors.joint_names)}; none is one of a "
                f"flexible joint, {', '.join(settings.motor_names)}"
            )
        there = list(names)
        called = list(names.values())
        side = Chunk.join(list(one.motors.chunks(called)))
        own = np.full(side.q.shape, np.nan)
        if side.tau is not None or side.current is not None:
            of_joint = {name: settings.drives.get(model.joints[place].name) for place, name in names.items()}
            known = {name: drive for name, drive in of_joint.items() if drive is not None}
            lacking = [name for name in called if name not in known] if side.tau is None else []
            if lacking:
                raise InputError(
                    f"{one.source}: motor {lacking[0]} has only a current; give its joint's torque_constant [N m/A]"
                )
            own = _efforts(side, one.motors, called, known)
        stamps = side.t + (one.motors.epoch - one.links.epoch) / NANOSECONDS
        covered = (links.t >= np.nanmin(stamps)) & (links.t <= np.nanmax(stamps))
        if not covered.any():
            raise InputError(
                f"{one.source}: no message of the motors lies within the joints' time: are both stamped by one clock?"
            )
        both = _at(links.t, stamps, np.concatenate([side.q, own], axis=1))
        q[:, there], torque[:, there] = both[:, : len(there)], both[:, len(there) :]
    both_q, both_tau = np.concatenate([links.q, q], axis=1), np.concatenate([tau, torque], axis=1)
    return Chunk(t=links.t, q=both_q, tau=both_tau).take(covered)


def _motor_names(one: RecordedExperiment, settings: FlexibleSettings) -> dict[int, str]:
    """Names of the motors in a recording, by their place among the flexible joints.

    Where motors are apart from the joints they may also go by the names of their joints.
    """
    held = () if one.motors is None else one.motors.joint_names
    apart = one.motors is not one.links
    names = {}
    for place, (joint, motor) in enumerate(zip(settings.joints, settings.motor_names, strict=True)):
        called = [name for name in (motor, *([joint.name] if apart else [])) if name in held]
        if called:
            names[place] = called[0]
    return names


def _efforts(samples: Chunk, recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive]) -> Array:
    efforts = make_efforts(samples, recording, joints, drives).tau
    assert efforts is not None
    return efforts


def _at(stamps: Array, t: Array, values: Array) -> Array:
    """Values, shape (any, k), at other stamps; NaN beyond the ends and within gaps. Equal stamps: as they are."""
    if np.array_equal(stamps, t):
        return values
    measured = np.isfinite(values).any(axis=0)
    usable = np.isfinite(values[:, measured]).all(axis=1)
    t, order = np.unique(t[usable], return_index=True)
    found = np.full((len(stamps), values.shape[1]), np.nan)
    if len(t) < 4:
        return found
    found[:, measured] = interpolate_cubic(stamps, t, values[usable][order][:, measured])
    after = np.clip(np.searchsorted(t, stamps), 1, len(t) - 1)
    gap = t[after] - t[after - 1] > GAP_STEPS * np.median(np.diff(t))
    found[(stamps < t[0]) | (stamps > t[-1]) | gap] = np.nan
    return found


def _experiments(
    name: str, one: RecordedExperiment, model: FlexibleModel, samples: Chunk, repairs: Repairs
) -> list[Experiment]:
    """Samples at a constant rate; gaps make several experiments of them."""
    assert samples.tau is not None
    joints = len(model.model.joint_names)

    def experiment(name: str, rate: float, q: Array, tau: Array) -> Experiment:
        q, tau = (np.where(measured[:, None], x, np.nan) for x, measured in ((q, of_q), (tau, of_tau)))
        return Experiment(name, rate, q[:joints], tau[:joints], q[joints:], tau[joints:], one.moving, one.periodic)

    of_q, of_tau = (np.asarray(np.isfinite(values).any(axis=0)) for values in (samples.q, samples.tau))
    of_q[:joints] = True
    if one.static:
        return [experiment(name, 0.0, samples.q.T, samples.tau.T)]
    filled = Chunk(t=samples.t, q=np.where(of_q, samples.q, 0.0), tau=np.where(of_tau, samples.tau, 0.0))
    names = (*model.model.joint_names, *(f"motor of {joint.name}" for joint in model.joints))
    assert filled.tau is not None
    complete: Mask = np.asarray(np.isfinite(filled.tau).all(axis=1))
    repairs.rows += int(np.count_nonzero(~complete))
    repairs.drop("effort missing or not finite", int(np.count_nonzero(~complete)))
    recording = ArrayRecording(one.source, names, filled.take(complete))
    step = compute_median_step(recording, names)
    pieces = list(clean(recording, names, {}, step, repairs))
    if one.periodic:
        whole = Chunk.join([piece for _, piece in pieces]).t if pieces else np.zeros(0)
        if repairs.gaps:
            raise InputError(f"{one.source}: is periodic, and its clock has {repairs.gaps} gaps: give a whole period")
        step = (whole[-1] - whole[0]) / (len(whole) - 1) if len(whole) > 1 else step
    found = list(cut_windows(pieces, Cut(step, WHOLE_SEGMENT, 0)))
    if not found:
        reasons = "; ".join(format_dropped(repairs.dropped, "sample"))
        raise InputError(f"{one.source}: no piece of four samples is left; {reasons or 'record more'}")
    if one.periodic:
        _check_closed(one.source, found[0].q)
    labels = [name] if len(found) == 1 else [f"{name} [{number}]" for number in range(1, len(found) + 1)]
    return [
        experiment(label, 1.0 / step, window.q, np.asarray(window.tau))
        for label, window in zip(labels, found, strict=True)
    ]


def _check_closed(source: str, q: Array) -> None:
    """Refuse a periodic motion whose last sample does not lead to its first one; q of shape (any, N)."""
    steps = np.abs(np.diff(q, axis=1)).max(axis=1)
    open_by = np.abs(q[:, 0] - q[:, -1])
    worst = int(np.argmax(open_by / np.maximum(steps, 1e-12)))
    if open_by[worst] > MAX_CLOSING_STEPS * steps[worst] > 0.0:
        raise InputError(
            f"{source}: is marked as periodic, and an angle ends {open_by[worst]:.3g} from where it "
            f"begins: cut it to whole periods, or leave periodic out"
        )


def _check_ratios(model: FlexibleModel, experiment: Experiment) -> None:
    """Refuse a gear ratio that is not what the motor turns.

    Raises:
        InputError: the joint, its ratio and the motor's.
    """
    for place, joint in enumerate(model.joints):
        q, motor = experiment.q[model.numbers[place]], experiment.motor_q
        if motor is None or not np.isfinite(motor[place]).all() or np.ptp(q) < MIN_RANGE:
            continue
        turns = float(np.polyfit(q - q.mean(), motor[place], 1)[0])
        if not RATIO_RANGE[0] <= turns / joint.ratio <= RATIO_RANGE[1]:
            raise InputError(
                f"{experiment.name}: the motor of {joint.name} turns {turns:.4g} times as far as the "
                f"joint, and its ratio is {joint.ratio:g}: correct ratio, sign, or unit"
            )


def check_names(held: Collection[str], settings: FlexibleSettings, known: Sequence[str]) -> None:
    """Refuse flexible joints that the robot has not, or that are held.

    Args:
        held: names of the locked joints.
        settings: the section `flexible` of the configuration.
        known: the robot's joints.

    Raises:
        UsageError: the joint.
    """
    for joint in settings.joints:
        if joint.name not in known:
            raise UsageError(
                f"flexible.joints: {joint.name} is not a moving joint of the robot; {suggest_known(joint.name, known)}"
            )
        if joint.name in held:
            raise UsageError(f"joint {joint.name} is both held and flexible: choose one")
