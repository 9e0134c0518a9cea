# SPDX-License-Identifier: Apache-2.0
"""Correction of recordings before a model is identified from them: meaning and time of the efforts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robot_dyn_id.data.excerpt import Excerpt, inside_excerpt
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.channel_faults import find_channel_faults
from robot_dyn_id.identification.diagnosis.delays import EffortDelay, RealignedRecording, estimate_delay
from robot_dyn_id.identification.diagnosis.diagnosis import EFFORT_GRAVITY_COMPENSATED, diagnose
from robot_dyn_id.identification.diagnosis.directions import examine_directions
from robot_dyn_id.identification.diagnosis.health import independent_positions, overrule, refuse
from robot_dyn_id.identification.diagnosis.positions import ContinuedRecording, examine_positions
from robot_dyn_id.identification.diagnosis.resolution import examine_resolution
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.spikes import DespikedRecording, examine_spikes
from robot_dyn_id.identification.diagnosis.stamps import EvenlyStampedRecording, examine_jitter
from robot_dyn_id.identification.diagnosis.weight_gains import CurrentRecording, WeightGain, estimate_weight_gains
from robot_dyn_id.identification.settings import COMPENSATED_KINDS, CURRENT_KINDS, Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import DRIVE_UNITS, GAIN_UNKNOWN, UNKNOWN, describe_unknown_gains
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.survey import PERIODOGRAM
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED, MOTION_USES

EFFORT_DELAYED = Definition(
    "effort_delayed",
    Section.HEALTH,
    "warning",
    "The inertial and gravity torque of the strong joints is late or early by a common time: efforts and "
    "positions are stamped at different times. The delay is compensated.",
    "correct the time stamps, or the filter of the effort signal",
    lowers=dict.fromkeys(("computed_torque", "collision_detection"), LIMITED),
    check="delay",
)

CLOCK_DRIFT = Definition(
    "clock_drift",
    Section.HEALTH,
    "warning",
    "The delay of the efforts changes steadily during a recording: efforts and positions are stamped by different "
    "clocks. The drift is compensated.",
    "stamp all channels by one clock",
    lowers=dict.fromkeys((*MOTION_USES, "collision_detection"), LIMITED),
    check="clock",
)

GAINS_FROM_MASSES = Definition(
    "gains_from_masses",
    Section.DATA,
    "warning",
    "Currents came without gains, which are estimated from the masses of the URDF: all torques are as wrong as "
    "these masses are.",
    "give measured gains, `gain` [N m/A] of each joint, in the configuration",
)

REALIGNMENTS = 3
"""Number of times that a delay is estimated and compensated; each removes what the linearization left."""


def correct_positions(
    recordings: Sequence[Recording], model: RobotModel
) -> tuple[list[Recording], tuple[Finding, ...]]:
    """Continue angles that are wrapped to one turn, and leave out spikes of encoders.

    Args:
        recordings: the recordings.
        model: the robot.

    Returns:
        The recordings, and findings about them.
    """
    corrected: list[Recording] = []
    findings: list[Finding] = []
    for recording in recordings:
        complete = recording.recording if isinstance(recording, Excerpt) else recording
        faults, found = examine_positions(complete, model)
        corrected.append(inside_excerpt(recording, partial(ContinuedRecording, faults=faults)) if faults else recording)
        findings += found
    return corrected, tuple(findings)


def correct_channels(
    recordings: Sequence[Recording], joints: Sequence[str], drives: Mapping[str, Drive]
) -> tuple[list[Recording], tuple[Finding, ...]]:
    """Average stamps that jitter, replace spikes, and leave out stretches of channels that are not measurements.

    Stretches at rest that are left out are examined too.

    Args:
        recordings: the recordings.
        joints: joints, n.
        drives: drives of the joints whose effort is a current.

    Returns:
        The recordings, and findings about them.
    """
    corrected, findings = [], []
    for recording in recordings:
        complete = recording.recording if isinstance(recording, Excerpt) else recording
        clock, jitter = examine_jitter(complete, joints)
        faults = find_channel_faults(complete, joints, drives)
        (limits, spikes), coarse = examine_spikes(complete, joints, drives), examine_resolution(complete, joints)
        if clock is not None:
            recording = inside_excerpt(recording, partial(EvenlyStampedRecording, clock=clock))
        if faults.efforts or faults.positions:
            recording = inside_excerpt(recording, faults.apply)
        if spikes:
            recording = inside_excerpt(recording, partial(DespikedRecording, limits=limits, drives=drives))
        corrected.append(recording)
        findings += [*jitter, *faults.findings, *spikes, *coarse]
    return corrected, tuple(findings)


@dataclass(frozen=True)
class Meaning:
    """Meaning of the efforts of recordings: what they are read as.

    Attributes:
        training: recordings to identify from.
        held_out: recordings to validate on.
        model: the robot, without gravity where the efforts contain none, with the units of efforts of unknown gain.
        drives: gains and signs of all joints whose effort is a current.
        findings: findings about gains, and about efforts that are stated to contain no weight.
        effort_kind: content of the measured effort, one of `parameters.EFFORT_KINDS`; unknown if neither the settings
            nor the channels of the recordings determine it.
    """

    training: list[Recording]
    held_out: list[Recording]
    model: RobotModel
    drives: Mapping[str, Drive]
    findings: tuple[Finding, ...]
    effort_kind: str


def interpret_efforts(
    training: Sequence[Recording], held_out: Sequence[Recording], model: RobotModel, settings: Settings
) -> Meaning:
    """Read the efforts as the settings state, with gains by the URDF's masses where currents come without them.

    Args:
        training: recordings to identify from.
        held_out: recordings to validate on.
        model: the robot as configured.
        settings: meaning of the efforts, drives, choices about signals.

    Raises:
        InputError: external torques, or currents without gains of a robot without masses.
    """
    kind = settings.effort_kind
    joints = model.joint_names
    currents_alone = kind == "auto" and all(_has_currents_alone(recording, joints) for recording in training)
    stored = "current" if currents_alone else UNKNOWN if kind == "auto" else kind
    plain = Meaning(list(training), list(held_out), model, settings.drives, (), stored)
    if kind == "external":
        sources = ", ".join(recording.source for recording in training)
        raise InputError(
            f"{sources}: external torques contain no dynamics of the robot: record joint torques or currents"
        )
    if kind in COMPENSATED_KINDS:
        return replace(plain, model=replace(model, gravity=np.zeros(3)), findings=report_compensated(kind))
    missing = [name for name in joints if settings.drives.get(name, Drive()).gain is None]
    if kind in CURRENT_KINDS and not missing:
        trained, validated = (read_as_trained(group, kind) for group in (training, held_out))
        return replace(plain, training=trained, held_out=validated)
    if not missing or not (kind in CURRENT_KINDS or (currents_alone and model.inertial_parameters.any())):
        return plain
    if not model.inertial_parameters.any():
        raise InputError(
            f"{model.name}: gains of {', '.join(missing)} cannot be estimated, as the URDF has no masses: give `gain` "
            "in the configuration"
        )
    trained, validated = (read_as_trained(group, "current") for group in (training, held_out))
    signs = {name: settings.drives.get(name, Drive()).sign for name in missing}
    unit = {**settings.drives, **{name: Drive.from_unknown_gain(sign) for name, sign in signs.items()}}
    trials = FilteredTrials.from_recordings(trained, joints, unit, settings.signals)
    gains = [gain for gain in estimate_weight_gains(MotionSamples.from_trials(trials), model) if gain.joint in missing]
    found = {g.joint: Drive(abs(g.value), signs[g.joint] * (1.0 if g.value > 0 else -1.0)) for g in gains if g.known}
    drive_units = {name: DRIVE_UNITS[stored] for name in missing if name not in found}
    findings = (*_report_gains(gains), *report_unknown_gains(drive_units))
    model = replace(model, drive_units=drive_units)
    return Meaning(trained, validated, model, {**unit, **found}, findings, stored)


def read_as_trained(recordings: Sequence[Recording], effort_kind: str) -> list[Recording]:
    """Recordings with the channel of their efforts that a model was identified from.

    Args:
        recordings: the recordings.
        effort_kind: content of that channel, one of `parameters.EFFORT_KINDS`.
    """
    if effort_kind not in CURRENT_KINDS:
        return list(recordings)
    return [inside_excerpt(recording, CurrentRecording) for recording in recordings]


def report_compensated(effort_kind: str) -> tuple[Finding, ...]:
    """Finding about a model of efforts that are known to contain no weight."""
    if effort_kind not in COMPENSATED_KINDS:
        return ()
    message = f"efforts are {effort_kind.replace('_', ' ')}: the model has no gravity, and predicts such efforts"
    return (EFFORT_GRAVITY_COMPENSATED.found(message, severity="info"),)


def _has_currents_alone(recording: Recording, joints: Sequence[str]) -> bool:
    """Whether a recording has currents and no efforts."""
    first = next((chunk for chunk in recording.chunks(joints) if len(chunk)), None)
    return first is not None and first.tau is None and first.current is not None


def _report_gains(gains: Sequence[WeightGain]) -> tuple[Finding, ...]:
    """Finding about gains by the URDF's masses."""
    known = [gain for gain in gains if gain.known]
    if not known:
        return ()
    listed = ", ".join(f"{g.joint} {g.value:.4g} +- {g.standard_deviation:.2g}" for g in known)
    message = f"gains are estimated from the URDF's masses [effort per current]: {listed}"
    return (GAINS_FROM_MASSES.found(message, [gain.joint for gain in known]),)


def report_unknown_gains(drive_units: Mapping[str, str]) -> tuple[Finding, ...]:
    """Finding about joints whose efforts are currents of unknown gain.

    Args:
        drive_units: units of their efforts, by joint name.
    """
    if not drive_units:
        return ()
    return (GAIN_UNKNOWN.found(describe_unknown_gains(drive_units), list(drive_units)),)


FEWEST_POSITIONS = 8
"""Least number of independent positions of the joints whose efforts are judged: a correlation of 0.8 of fewer is not
significant at 1 %."""

RESOLUTION_PERIODS = 2.0
"""Half of the main lobe of a Hann window, times its length: bandwidths of short recordings are too large by it."""


@dataclass(frozen=True)
class CorrectedTrials:
    """Trials that a model can be identified from.

    Attributes:
        trials: the trials, with efforts at the time of the motion.
        model: the robot, without gravity where the efforts contain none.
        findings: what was found and corrected.
        weightless: whether the model has no gravity because the data show that the efforts contain none.
    """

    trials: FilteredTrials
    model: RobotModel
    findings: tuple[Finding, ...]
    weightless: bool


def correct_trials(trials: FilteredTrials, model: RobotModel, settings: Settings) -> CorrectedTrials:
    """Diagnose trials, and correct what can be corrected.

    Args:
        trials: training data.
        model: the robot as configured.
        settings: meaning of the efforts, and codes of errors that are overruled.

    Raises:
        UnsafeDataError: a fault that cannot be corrected, and is not overruled.
    """
    samples = MotionSamples.from_trials(trials)
    diagnosis = diagnose(samples, model, independent_positions(trials.survey))
    refuse_short(diagnosis.findings, settings.ignore, trials)
    findings = refuse(diagnosis.findings, settings.ignore, trials.survey.sources)
    findings += overrule(diagnosis.doubts, settings.ignore)
    findings += examine_directions(model.joint_names, samples.motion.q, samples.segment)
    weightless = diagnosis.weightless and settings.effort_kind == "auto"
    if weightless:
        model = replace(model, gravity=np.zeros(3))
    aligned, delayed = realign(trials, model) if diagnosis.sufficient else (trials, ())
    return CorrectedTrials(aligned, model, (*findings, *delayed), weightless)


def refuse_short(findings: Sequence[Finding], ignore: Sequence[str], trials: FilteredTrials) -> None:
    """Refuse data that seem faulty, but are too short to show it.

    Args:
        findings: findings about the efforts.
        ignore: codes of errors that are overruled.
        trials: the data.

    Raises:
        InputError: less than one periodogram, and an error about joints whose motions together hold fewer than
            `FEWEST_POSITIONS` independent positions.
    """
    seconds = sum(trials.survey.durations)
    bandwidth = np.maximum(trials.survey.bandwidth - RESOLUTION_PERIODS / max(trials.survey.durations), 0.0)
    positions = dict(zip(trials.joints, (2.0 * seconds * bandwidth).tolist(), strict=True))
    errors = [one for one in findings if one.severity == "error" and one.code not in ignore]
    held = {sum(positions[name] for name in one.joints): one for one in errors if one.joints}
    if not held or min(held) >= FEWEST_POSITIONS or seconds >= PERIODOGRAM:
        return
    raise InputError(
        f"{trials.sources}: {seconds:.2g} s of motion are too short: they hold about {min(held):.0f} independent "
        f"positions, and {FEWEST_POSITIONS} are needed to judge efforts: record longer (as far as they go, "
        f"{held[min(held)].message})"
    )


def realign(trials: FilteredTrials, model: RobotModel) -> tuple[FilteredTrials, tuple[Finding, ...]]:
    """Move the efforts of each recording to the time of its motion, where a delay is significant.

    Returns:
        The trials, and one finding for each recording that was changed.
    """
    recordings, findings = [], []
    for recording in trials.recordings:
        moved, found = _realign(recording, trials, model)
        recordings.append(moved)
        findings += found
    return (trials.with_recordings(recordings), tuple(findings)) if findings else (trials, ())


def _realign(recording: Recording, trials: FilteredTrials, model: RobotModel) -> tuple[Recording, list[Finding]]:
    delays: list[EffortDelay] = []
    for _ in range(REALIGNMENTS):
        try:
            samples = MotionSamples.from_trials(trials.with_recordings([recording]))
        except InputError:  # too short for the filter
            break
        delay = estimate_delay(samples, model)
        if not delay.significant:
            break
        delays.append(delay)
        recording = inside_excerpt(recording, partial(RealignedRecording, delay=delay))
    return recording, _report_delays(recording.source, delays)


def _report_delays(source: str, delays: list[EffortDelay]) -> list[Finding]:
    """Findings about compensated delays and drifts, of which the first is the largest."""
    if not delays:
        return []
    findings = []
    total, deviation = 1e3 * sum(delay.delay for delay in delays), 1e3 * delays[-1].delay_deviation
    if abs(total) > 2.0 * deviation:
        late = "late" if total > 0 else "early"
        message = (
            f"{source}: efforts are {abs(total):.0f} ms (+- {deviation:.1f} ms) {late} with respect to the motion; "
            "this is compensated"
        )
        findings.append(EFFORT_DELAYED.found(message))
    drift = sum(delay.drift for delay in delays if delay.drifts)
    if drift:
        spread = max(delay.drift_deviation for delay in delays if delay.drifts)
        message = (
            f"{source}: the clock of the efforts drifts by {1e3 * drift:.2f} ms per s (+- {1e3 * spread:.2f}) against "
            "that of the positions; this is compensated"
        )
        findings.append(CLOCK_DRIFT.found(message))
    return findings
