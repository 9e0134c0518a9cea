# SPDX-License-Identifier: Apache-2.0
"""Correction of recordings before a model is identified from them: positions, channels, and time of the efforts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    Stored,
    as_corrected,
)
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.channel_faults import EffortObserver, report_exclusions
from robot_dyn_id.identification.diagnosis.delays import EffortDelay, estimate_delay, estimate_joint_delays
from robot_dyn_id.identification.diagnosis.fingerprint import FingerprintObserver
from robot_dyn_id.identification.diagnosis.health import EFFORT_CONSTANT, find_dead
from robot_dyn_id.identification.diagnosis.hypotheses import GravityFits
from robot_dyn_id.identification.diagnosis.observation import observation_of
from robot_dyn_id.identification.diagnosis.positions import PositionFaults
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.spikes import SpikeObserver
from robot_dyn_id.identification.diagnosis.stamps import examine_jitter
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.payoff import Payoff
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import Fingerprint
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.survey import Survey, survey
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED, MOTION_USES

EFFORT_DELAYED = Definition(
    "effort_delayed",
    Section.HEALTH,
    "warning",
    "The inertial and gravity torque of the strong joints, or of single ones, is late or early: efforts and "
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
    corrected = [one.correct(recording) for recording, one in zip(recordings, found, strict=True)]
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
    passes = [_SecondPass(recording, joints, drives) for recording in recordings]
    surveyed = survey([one.observed() for one in passes], joints, drives)
    corrected: list[Corrected] = []
    findings: list[Finding] = []
    for one in passes:
        recording, found, rows = one.conclude()
        surveyed = surveyed.with_left_out(rows)
        corrected.append(recording)
        findings += found
    prints = tuple(one.fingerprint.conclude() for one in passes)
    return CorrectedChannels(corrected, surveyed, prints, tuple(findings))


class _SecondPass:
    """Second pass over one recording, with the corrections of the first, and its observers."""

    def __init__(self, recording: Corrected, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
        """Begin a pass; see `correct_channels`."""
        self.recording, self.source, self.first = recording, recording.recording.source, observation_of(recording)
        samples = Chunk(self.first.first.t, self.first.first.q)
        for faults in recording.those(PositionFaults):
            (samples,) = faults.apply(iter([samples]), joints)
        self.clock, self.jitter = examine_jitter(self.source, samples.t, samples.q)
        self.limits = replace(self.first.spikes, drives=drives)
        self.fingerprint = FingerprintObserver(recording.epoch, next(iter(recording.those(Excerpt)), None))
        self.efforts = EffortObserver(joints, drives, self.first.runs.limits, self.first.positions.ranges)
        self.spikes = SpikeObserver(self.source, joints, self.limits)

    def observed(self) -> Corrected:
        """The recording with its corrections and the observers of the pass."""
        stored, part = self.recording.those(Stored), self.recording.those(Excerpt)
        others = [one for one in self.recording.complete.corrections if not isinstance(one, Stored)]
        observers = (Observing(self.efforts), Observing(self.spikes))
        whole = replace(self.recording, corrections=(*stored, Observing(self.fingerprint), *others, *observers, *part))
        return whole.corrected(*self._corrections((), bool(self.limits.limits)))

    def conclude(self) -> tuple[Corrected, tuple[Finding, ...], Mapping[str, int]]:
        """The corrected recording, findings about it, and numbers of the efforts that are left out by code."""
        efforts, rows = self.efforts.conclude()
        spikes = self.spikes.conclude()
        corrected = self.recording.corrected(*self._corrections(efforts, bool(spikes)))
        found = [report_exclusions(self.source, one, self.first.runs.length) for one in corrected.those(Exclusions)]
        return corrected, (*self.jitter, *(one for of in found for one in of), *spikes, *self.first.findings), rows

    def _corrections(self, efforts: tuple[ExcludedSpan, ...], spiky: bool) -> Iterator[Correction]:
        if self.clock is not None:
            yield self.clock
        if efforts or self.first.runs.frozen:
            yield Exclusions(efforts, self.first.runs.frozen)
        if spiky:
            yield self.limits


@dataclass(frozen=True)
class Realigned:
    """Trials whose efforts are at the time of their motion.

    Attributes:
        trials: the trials.
        findings: findings about each recording that was changed.
        tried: delays that were compared with none.
    """

    trials: FilteredTrials
    findings: tuple[Finding, ...] = ()
    tried: tuple[Tried, ...] = ()


def leave_out_dead(trials: FilteredTrials) -> FilteredTrials:
    """The trials without the equations of joints whose effort is not recorded; their motion moves the other joints."""
    dead = [name for name, one in zip(trials.joints, find_dead(trials.survey), strict=True) if one]
    if not dead or len(dead) == len(trials.joints):
        return trials
    spans = Exclusions(tuple(ExcludedSpan(name, -np.inf, np.inf, EFFORT_CONSTANT.code) for name in dead))
    without = [as_corrected(recording).corrected(spans) for recording in trials.recordings]
    surveyed = trials.survey.with_left_out({EFFORT_CONSTANT.code: len(dead) * trials.survey.repairs.rows})
    return replace(trials, recordings=without, surveyed=surveyed)


def realign(trials: FilteredTrials, model: RobotModel) -> Realigned:
    """Move the efforts of each recording to the time of its motion, where a delay pays.

    A delay of all joints is that of one recording, whose stamps are wrong; that of a single joint is one of its drive,
    and the same in all recordings. Both are estimated with the gravity that fits best near that of the robot: what a
    tilt of the base leaves hides them.

    Args:
        trials: the trials.
        model: the robot.
    """
    recordings: list[Recording] = []
    findings: list[Finding] = []
    tried: list[Tried] = []
    for recording in trials.recordings:
        moved, found, row = _realign(recording, trials, model)
        recordings.append(moved)
        findings += found
        tried += row
    if any(row.chosen for row in tried):
        trials = trials.with_recordings(recordings)
    try:
        samples = MotionSamples.from_trials(trials)
    except InputError:  # too short for the filter
        return Realigned(trials)
    model = _lean(samples, model)
    own = estimate_joint_delays(samples, model)
    rows = _compare_joints(own, trials, model)
    tried += rows.values()
    late = [name for name, row in rows.items() if row.chosen]
    if late:
        kept = [one if name in late else 0.0 for name, one in zip(trials.joints, own, strict=True)]
        trials = _shifted(trials, kept)
        listed = ", ".join(rows[name].name for name in late)
        message = f"efforts of single joints are late or early: {listed}; this is compensated"
        findings.append(EFFORT_DELAYED.found(message, late))
    return Realigned(trials, tuple(findings), tuple(tried))


def _shifted(trials: FilteredTrials, own: Sequence[float]) -> FilteredTrials:
    """The trials with the efforts of single joints at the time of the motion; delay of each joint [s]."""
    shift = EffortDelay.of_joints(own)
    return trials.with_recordings([as_corrected(one).corrected(shift) for one in trials.recordings])


def _compare_joints(own: Sequence[float], trials: FilteredTrials, model: RobotModel) -> dict[str, Tried]:
    """Comparison of trials without and with delays of single joints, by joint; none if they are too short.

    Each is judged by the errors of its own joint: those of the others say nothing about its drive. It must be the main
    cause of them: friction that no family has looks like a delay.
    """
    late = np.array(own) != 0.0
    if not late.any():
        return {}
    names = [f"{name} {1e3 * one:+.0f} ms" for name, one in zip(trials.joints, own, strict=True)]
    try:
        payoff = Payoff.from_trials(trials, _shifted(trials, own), model)
    except InputError:
        return {}
    rows = [row.as_main_cause() for row in payoff.weigh_joints("delay", names, late)]
    rows = [replace(row, chosen=row.pays) for row in rows]
    return dict(zip([trials.joints[j] for j in np.flatnonzero(late).tolist()], rows, strict=True))


def _lean(samples: MotionSamples, model: RobotModel) -> RobotModel:
    """The robot with the gravity that fits best near its own."""
    if not model.gravity.any():
        return model
    return replace(model, gravity=GravityFits.from_samples(samples, model).refine(model.gravity))


def _realign(
    recording: Recording, trials: FilteredTrials, model: RobotModel
) -> tuple[Recording, list[Finding], list[Tried]]:
    """The recording with its efforts at the time of its motion, if that pays, findings about it, and the comparison."""
    delays: list[EffortDelay] = []
    moved = recording
    for _ in range(REALIGNMENTS):
        try:
            samples = MotionSamples.from_trials(trials.with_recordings([moved]))
        except InputError:  # too short for the filter
            return recording, [], []
        leaning = _lean(samples, model)
        delay = estimate_delay(samples, leaning)
        if not delay.significant:
            break
        delays.append(delay)
        moved = as_corrected(moved).corrected(delay)
    if not delays:
        return recording, [], []
    name = f"{1e3 * sum(delay.delay for delay in delays):.0f} ms in {recording.source}"
    before, after = (trials.with_recordings([one]) for one in (recording, moved))
    rows = _compare(name, before, after, leaning, len(trials.recordings))
    if any(row.chosen for row in rows):
        return moved, _report_delays(recording.source, delays), rows
    return recording, [], rows


def _compare(
    name: str, before: FilteredTrials, after: FilteredTrials, model: RobotModel, alternatives: int
) -> list[Tried]:
    """Comparison of trials with and without a delay; none if they are too short to hold a block out."""
    try:
        row = Payoff.from_trials(before, after, model).weigh("delay", name, alternatives)
    except InputError:
        return []
    return [replace(row, chosen=row.pays)]


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
