# SPDX-License-Identifier: Apache-2.0
"""Correction of recordings before a model is identified from them: positions, channels, and time of the efforts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from robot_dyn_id.data.excerpt import Excerpt, inside_excerpt
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.channel_faults import find_channel_faults
from robot_dyn_id.identification.diagnosis.delays import EffortDelay, RealignedRecording, estimate_delay
from robot_dyn_id.identification.diagnosis.positions import ContinuedRecording, examine_positions
from robot_dyn_id.identification.diagnosis.resolution import examine_resolution
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.spikes import DespikedRecording, examine_spikes
from robot_dyn_id.identification.diagnosis.stamps import EvenlyStampedRecording, examine_jitter
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.cleaning import Drive
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
