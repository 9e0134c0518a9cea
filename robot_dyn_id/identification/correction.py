# SPDX-License-Identifier: Apache-2.0
"""Correction of recordings before a model is identified from them: meaning and time of the efforts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import (
    Corrected,
    Correction,
    Excerpt,
    ExcludedSpan,
    Exclusions,
    Observing,
    ReadAsCurrent,
    Stored,
    as_corrected,
)
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.channel_faults import EffortObserver, report_exclusions
from robot_dyn_id.identification.diagnosis.delays import EffortDelay, estimate_delay
from robot_dyn_id.identification.diagnosis.diagnosis import EFFORT_GRAVITY_COMPENSATED, diagnose
from robot_dyn_id.identification.diagnosis.directions import examine_directions
from robot_dyn_id.identification.diagnosis.fingerprint import Fingerprint, FingerprintObserver
from robot_dyn_id.identification.diagnosis.health import independent_positions, overrule, refuse
from robot_dyn_id.identification.diagnosis.observation import observation_of
from robot_dyn_id.identification.diagnosis.positions import PositionFaults
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.spikes import SpikeLimits, SpikeObserver
from robot_dyn_id.identification.diagnosis.stamps import SampleClock, examine_jitter
from robot_dyn_id.identification.diagnosis.weight_gains import WeightGain, estimate_weight_gains
from robot_dyn_id.identification.settings import COMPENSATED_KINDS, CURRENT_KINDS, Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import DRIVE_UNITS, GAIN_UNKNOWN, UNKNOWN, describe_unknown_gains
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.survey import PERIODOGRAM, Survey, survey
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


def correct_positions(recordings: Sequence[Corrected]) -> tuple[list[Corrected], tuple[Finding, ...]]:
    """Continue angles that are wrapped to one turn, and leave out spikes of encoders.

    Args:
        recordings: recordings that have been observed; see `observe_recordings`.

    Returns:
        The recordings, and findings about them.
    """
    found = [observation_of(recording).positions for recording in recordings]
    corrected = [
        recording.corrected(one.faults) if one.faults else recording
        for recording, one in zip(recordings, found, strict=True)
    ]
    return corrected, tuple(finding for one in found for finding in one.findings)


@dataclass(frozen=True)
class CorrectedChannels:
    """Recordings whose channels are corrected.

    Attributes:
        recordings: the recordings.
        survey: their survey.
        fingerprints: fingerprint of each as it was recorded.
        findings: findings about them.
    """

    recordings: list[Corrected]
    survey: Survey
    fingerprints: tuple[Fingerprint, ...]
    findings: tuple[Finding, ...]


def correct_channels(
    recordings: Sequence[Corrected], joints: Sequence[str], drives: Mapping[str, Drive]
) -> CorrectedChannels:
    """Average stamps that jitter, replace spikes, and leave out stretches of channels that are not measurements.

    This is the second pass over the recordings, which is that of the survey. Stretches at rest that are left out are
    examined too.

    Args:
        recordings: recordings that have been observed; see `observe_recordings`.
        joints: joints, n.
        drives: drives of the joints whose effort is a current.
    """
    passes = [_SecondPass.begin(recording, joints, drives) for recording in recordings]
    surveyed = survey([one.observed for one in passes], joints, drives)
    corrected: list[Corrected] = []
    findings: list[Finding] = []
    for one in passes:
        recording, found, rows = one.conclude()
        surveyed = surveyed.with_left_out(rows)
        corrected.append(recording)
        findings += found
    prints = tuple(one.fingerprint.conclude() for one in passes)
    return CorrectedChannels(corrected, surveyed, prints, tuple(findings))


@dataclass(frozen=True)
class _SecondPass:
    """Second pass over one recording, with the corrections of the first.

    Attributes:
        recording: the recording.
        clock: clock of its samples; None: that of its stamps.
        frozen: stretches whose positions are left out.
        limits: limits of its spikes.
        fingerprint, efforts, spikes: observers of the pass.
        jitter: findings about its stamps.
    """

    recording: Corrected
    clock: SampleClock | None
    frozen: tuple[ExcludedSpan, ...]
    limits: SpikeLimits
    fingerprint: FingerprintObserver
    efforts: EffortObserver
    spikes: SpikeObserver
    jitter: tuple[Finding, ...]

    @classmethod
    def begin(cls, recording: Corrected, joints: Sequence[str], drives: Mapping[str, Drive]) -> _SecondPass:
        """Begin a pass; see `correct_channels`."""
        found, source = observation_of(recording), recording.recording.source
        faults = next(iter(recording.those(PositionFaults)), PositionFaults())
        (first,) = faults.apply(iter([Chunk(found.first.t, found.first.q)]), joints)
        clock, jitter = examine_jitter(source, first.t, first.q)
        limits = replace(found.spikes, drives=drives)
        return cls(
            recording,
            clock,
            found.runs.find_frozen(faults),
            limits,
            FingerprintObserver(recording.epoch, next(iter(recording.those(Excerpt)), None)),
            EffortObserver(joints, drives, found.runs.limits, found.positions.ranges),
            SpikeObserver(source, joints, limits),
            jitter,
        )

    @property
    def observed(self) -> Corrected:
        """The recording with its corrections and the observers of the pass."""
        stored = self.recording.those(Stored)
        others = [one for one in self.recording.complete.corrections if not isinstance(one, Stored)]
        first, second = Observing(self.fingerprint), (Observing(self.efforts), Observing(self.spikes))
        part = self.recording.those(Excerpt)
        corrections: tuple[Correction, ...] = (*stored, first, *others, *second, *part)
        observed = replace(self.recording, corrections=corrections)
        return observed.corrected(*self._corrections(Exclusions((), self.frozen), bool(self.limits.limits)))

    def conclude(self) -> tuple[Corrected, tuple[Finding, ...], Mapping[str, int]]:
        """The corrected recording, findings about it, and numbers of the efforts that are left out by code."""
        found = observation_of(self.recording)
        efforts, rows = self.efforts.conclude()
        exclusions = Exclusions(efforts, self.frozen)
        spikes = self.spikes.conclude()
        faults = report_exclusions(self.recording.recording.source, exclusions, found.runs.length)
        corrected = self.recording.corrected(*self._corrections(exclusions, bool(spikes)))
        return corrected, (*self.jitter, *faults, *spikes, *found.coarse), rows

    def _corrections(self, exclusions: Exclusions, spiky: bool) -> tuple[Correction, ...]:
        clock = () if self.clock is None else (self.clock,)
        excluded = (exclusions,) if exclusions.efforts or exclusions.positions else ()
        return (*clock, *excluded, *((self.limits,) if spiky else ()))


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

    training: list[Corrected]
    held_out: list[Corrected]
    model: RobotModel
    drives: Mapping[str, Drive]
    findings: tuple[Finding, ...]
    effort_kind: str


def interpret_efforts(
    training: Sequence[Corrected], held_out: Sequence[Corrected], model: RobotModel, settings: Settings
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
    currents_alone = kind == "auto" and all(observation_of(recording).first.currents_alone for recording in training)
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


def read_as_trained(recordings: Sequence[Corrected], effort_kind: str) -> list[Corrected]:
    """Recordings with the channel of their efforts that a model was identified from.

    Args:
        recordings: the recordings.
        effort_kind: content of that channel, one of `parameters.EFFORT_KINDS`.
    """
    if effort_kind not in CURRENT_KINDS:
        return list(recordings)
    return [recording.corrected(ReadAsCurrent()) for recording in recordings]


def report_compensated(effort_kind: str) -> tuple[Finding, ...]:
    """Finding about a model of efforts that are known to contain no weight."""
    if effort_kind not in COMPENSATED_KINDS:
        return ()
    message = f"efforts are {effort_kind.replace('_', ' ')}: the model has no gravity, and predicts such efforts"
    return (EFFORT_GRAVITY_COMPENSATED.found(message, severity="info"),)


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
        recording = as_corrected(recording).corrected(delay)
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
