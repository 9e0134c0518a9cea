# SPDX-License-Identifier: Apache-2.0
"""Positions that jump: angles that are wrapped to one turn, and spikes of an encoder.

Steps from sample to sample are compared with those around them, as `spikes` compares efforts. A step of whole turns
that is ordinary without them is wrapped; steps that return after a few samples are a spike; others are jumps, which are
reported alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk, with_margins
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.health import LIMIT_TOLERANCE
from robot_dyn_id.identification.diagnosis.spikes import (
    DEVIATION_PER_MEDIAN,
    MARGIN,
    RANGE_SHARE,
    SPIKE_RATIO,
    SampledRows,
    find_spikes,
    running_median,
)
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.cleaning import LARGEST_POSITION
from robot_dyn_id.uses import LIMITED, USES
from robot_dyn_id.wording import format_counts

POSITIONS_WRAPPED = Definition(
    "positions_wrapped",
    Section.HEALTH,
    "info",
    "The angle of a joint jumps by whole turns, or is a whole turn outside of the limits of the URDF: it is "
    "wrapped to 0 to 2 pi, or to -pi to pi. It is continued across the jumps.",
    check="positions",
)

ENCODER_SPIKES = Definition(
    "encoder_spikes",
    Section.HEALTH,
    "info",
    "Positions jump by more than five times what the joint otherwise moves from sample to sample, and return "
    "after at most ten samples. These samples are left out.",
    "check the encoder, its cable, and the driver that publishes its positions",
    check="positions",
)

ENCODER_JUMPS = Definition(
    "encoder_jumps",
    Section.HEALTH,
    "warning",
    "Positions jump by more than five times what the joint otherwise moves from sample to sample, and do not "
    "return: the encoder has lost its zero, or the file holds two recordings.",
    "check the encoder; split the recording at these times",
    lowers=dict.fromkeys(USES, LIMITED),
    check="positions",
)

TURN = 2.0 * math.pi
"""One turn [rad]."""

WRAPPED_STEP, WRAPPED_RATIO = 5e-3, 10.0
"""Largest step without its whole turns [rad], or as a ratio to the usual step around it, of an angle that is
wrapped."""

CLEAR_STEP = TURN / 16
"""Largest usual step with which the turns in a step are known [rad]."""

LARGEST_GROUP = 4
"""Number of steps among the surrounding ones that may be large: two spikes make four."""

JUMP_RATIO = 5.0
"""Size of a jump, as a ratio to the largest other step."""

LONGEST_SPIKE_SAMPLES = 10
"""Largest number of samples after which a spike returns."""

LISTED = 5
"""Number of times that a finding lists."""


@dataclass(frozen=True)
class Jump:
    """Step of one joint's position.

    Attributes:
        row: number of the sample behind it.
        t: its stamp [s].
        before: stamp of the sample before it [s].
        size: the step [rad or m].
    """

    row: int
    t: float
    before: float
    size: float


@dataclass(frozen=True)
class PositionFaults:
    """Jumps of the positions of a recording; all by joint.

    Attributes:
        wraps: stamp from which on whole turns are added, and their number, shape (k, 2).
        spikes: first and last stamp of the samples in spikes, shape (k, 2).
        turns: whole turns that are added everywhere.
    """

    wraps: Mapping[str, Array] = field(default_factory=dict)
    spikes: Mapping[str, Array] = field(default_factory=dict)
    turns: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything to correct."""
        return bool(self.wraps or self.spikes or self.turns)


class ContinuedRecording(DerivedRecording):
    """A recording whose positions are continued across turns, and are missing (NaN) in spikes."""

    def __init__(self, recording: Recording, faults: PositionFaults) -> None:
        """Wrap a recording.

        Args:
            recording: the recording.
            faults: what is corrected.
        """
        self.recording = recording
        self.faults = faults

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        for chunk in self.recording.chunks(joints):
            q = chunk.q.copy()
            for column, name in enumerate(joints):
                turns = np.full(len(chunk), self.faults.turns.get(name, 0), dtype=np.float64)
                if name in self.faults.wraps:
                    t, number = self.faults.wraps[name].T
                    turns += np.append(0.0, np.cumsum(number))[np.searchsorted(t, chunk.t, side="right")]
                q[:, column] += TURN * turns
                for start, stop in self.faults.spikes.get(name, ()):
                    q[(chunk.t >= start) & (chunk.t <= stop), column] = np.nan
            yield replace(chunk, q=q)


def examine_positions(recording: Recording, model: RobotModel) -> tuple[PositionFaults, tuple[Finding, ...]]:
    """Find jumps of the positions of a recording, which `ContinuedRecording` corrects where that is possible.

    Args:
        recording: the recording.
        model: the robot; only revolute joints are wrapped.

    Returns:
        What is corrected, and findings about it.
    """
    joints = model.joint_names
    largest, wraps = np.zeros(len(joints)), np.zeros(len(joints), dtype=np.int64)
    low, high = _find_range(recording, joints)
    for block in _blocks(recording, joints, ~model.slides):
        steps, turns = block.steps[block.due], block.turns[block.due]
        largest = np.fmax(largest, np.fmax.reduce(np.abs(steps + TURN * turns), initial=0.0))
        wraps += np.count_nonzero(turns, axis=0) - np.count_nonzero(np.abs(steps) > 0.5 * TURN, axis=0)
    found = PositionFaults()
    findings: tuple[Finding, ...] = ()
    if (largest > np.maximum(RANGE_SHARE * (high - low), 0.0)).any():
        found, findings = _find_jumps(recording, joints, wraps > 0)  # more such steps than other large ones
        low, high = _find_range(ContinuedRecording(recording, found), joints)
    found = replace(found, turns=_turns_into_limits(model, low, high, found.wraps))
    return found, (*_report_wraps(recording.source, found), *findings)


def _find_range(recording: Recording, joints: Sequence[str]) -> tuple[Array, Array]:
    """Least and greatest plausible position of each joint, shape (n,) each; infinite and reversed without any."""
    low, high = np.full(len(joints), np.inf), np.full(len(joints), -np.inf)
    for chunk in recording.chunks(joints):
        q = np.where(np.abs(chunk.q) <= LARGEST_POSITION, chunk.q, np.nan)
        low, high = np.fmin(low, np.fmin.reduce(q, initial=np.inf)), np.fmax(high, np.fmax.reduce(q, initial=-np.inf))
    return low, high


@dataclass(frozen=True)
class _Block:
    """Consecutive samples and the steps to them, with samples around those that are due.

    Attributes:
        t: stamps [s], shape (N,).
        q: positions, shape (N, n); where they are missing those before.
        steps: steps from the samples before, without the whole turns of wrapped angles, shape (N, n).
        turns: whole turns of wrapped angles in the steps, shape (N, n).
        due: rows that belong to no other block.
    """

    t: Array
    q: Array
    steps: Array
    turns: Array
    due: slice


def _blocks(recording: Recording, joints: Sequence[str], wrapped: Mask) -> Iterator[_Block]:
    """Pass over a recording.

    Args:
        recording: the recording.
        joints: names of the joints, n.
        wrapped: joints whose steps may contain whole turns, shape (n,).
    """
    for around, due in with_margins(recording.chunks(joints), MARGIN + 1):
        t, q = around.t, np.where(np.abs(around.q) <= LARGEST_POSITION, around.q, np.nan)
        if due.stop == len(t):  # the end of the recording, which has steps of zero behind it
            t, q = np.pad(t, (0, MARGIN), mode="edge"), np.pad(q, ((0, MARGIN), (0, 0)), mode="edge")
        rows = np.maximum.accumulate(np.where(np.isfinite(q), np.arange(len(q))[:, None], 0), axis=0)
        q = np.take_along_axis(q, rows, axis=0)
        steps = np.diff(q, axis=0, prepend=q[:1])
        turns = np.where(wrapped, np.round(steps / TURN), 0.0)
        if not np.any(turns):  # NaN counts as such
            yield _Block(t, q, steps, turns, due)
            continue
        rest = np.abs(steps - TURN * turns)
        usual = running_median(rest)
        ordinary = (usual < CLEAR_STEP) & (rest <= np.maximum(WRAPPED_STEP, WRAPPED_RATIO * usual))
        turns = np.where(ordinary, turns, 0.0)
        yield _Block(t, q, steps - TURN * turns, turns, due)


def _find_jumps(
    recording: Recording, joints: Sequence[str], wrapped: Mask
) -> tuple[PositionFaults, tuple[Finding, ...]]:
    """Find wrapped angles, spikes, and jumps that do not return; see `_blocks`."""
    sampled = SampledRows()
    wraps: dict[str, list[tuple[float, float]]] = {name: [] for name in joints}
    length, start, end = 0, np.nan, np.nan
    for block in _blocks(recording, joints, wrapped):
        distance = np.abs(block.steps - running_median(block.steps))
        sampled.add(np.stack([distance, block.q], axis=1)[block.due])
        for row, joint in np.argwhere(block.turns[block.due] != 0.0):
            wraps[joints[joint]].append((block.t[block.due][row], -block.turns[block.due][row, joint]))
        length += len(block.t[block.due])
        start = float(block.t[0]) if np.isnan(start) else start
        end = float(block.t[-1])
    rows = np.concatenate(sampled.rows)
    limits = np.array([_limit(*rows[:, :, joint].T) for joint in range(len(joints))])
    jumps: list[list[Jump]] = [[] for _ in joints]
    ordinary, row = np.zeros(len(joints)), 0
    for block in _blocks(recording, joints, wrapped):
        due = block.due
        far = find_spikes(block.steps, limits, LARGEST_GROUP)[due]
        steps = block.steps[due]
        agrees = np.abs(block.steps - running_median(block.steps))[due] <= limits
        ordinary = np.fmax(ordinary, np.fmax.reduce(np.where(agrees, np.abs(steps), 0.0), initial=0.0))
        for place, joint in np.argwhere(far):
            at = due.start + place
            jump = Jump(row + place, float(block.t[at]), float(block.t[at - 1]), float(steps[place, joint]))
            jumps[joint].append(jump)
        row += len(steps)
    kept = [[one for one in of if abs(one.size) > JUMP_RATIO * most] for of, most in zip(jumps, ordinary, strict=True)]
    spikes, left = {}, {}
    for name, of_joint, most in zip(joints, kept, ordinary.tolist(), strict=True):
        spans, left[name] = _pair(of_joint, most, length, start, end)
        if spans:
            spikes[name] = np.array(spans)
    faults = PositionFaults({name: np.array(of) for name, of in wraps.items() if of}, spikes)
    return faults, _report_jumps(recording.source, start, spikes, {name: of for name, of in left.items() if of})


def _limit(distance: Array, q: Array) -> float:
    """Distance of a step from the median of those around it above which it may be a jump.

    Args:
        distance: such distances, shape (N,).
        q: positions, shape (N,).
    """
    if not np.isfinite(q).any():
        return np.inf
    usual = distance[distance > 0.0]
    low, high = np.nanquantile(q, (0.01, 0.99))
    noise = DEVIATION_PER_MEDIAN * float(np.median(usual)) if len(usual) else 0.0
    return max(SPIKE_RATIO * noise, RANGE_SHARE * float(high - low))


def _pair(
    jumps: Sequence[Jump], most: float, length: int, start: float, end: float
) -> tuple[list[tuple[float, float]], list[Jump]]:
    """Spans of the samples in spikes, and jumps that do not return.

    Args:
        jumps: jumps of one joint, in order.
        most: largest other step: all that a joint moves from sample to sample.
        length: number of samples of the recording.
        start: first stamp [s].
        end: last stamp [s].
    """
    spans: list[tuple[float, float]] = []
    left: list[Jump] = []
    place = 0
    while place < len(jumps):
        first = jumps[place]
        near = [one for one in jumps[place:] if one.row - first.row <= LONGEST_SPIKE_SAMPLES]
        moved = np.cumsum([one.size for one in near])
        returns = [
            number
            for number in range(1, len(near))
            if abs(moved[number]) <= 2.0 * most * (1 + near[number].row - first.row)
        ]
        if returns:
            spans.append((first.t, near[returns[0]].before))
            place += returns[0]
        elif length - first.row <= LONGEST_SPIKE_SAMPLES:
            spans.append((first.t, end))
            break
        elif first.row <= LONGEST_SPIKE_SAMPLES:
            spans.append((start, first.before))
        else:
            left.append(first)
        place += 1
    return spans, left


def _turns_into_limits(model: RobotModel, low: Array, high: Array, wrapped: Collection[str]) -> dict[str, int]:
    """Turns that bring the positions of joints into their limits, where they are outside by one turn.

    Args:
        model: the robot.
        low: least position of each joint, shape (n,).
        high: greatest position.
        wrapped: joints whose angles are wrapped.
    """
    found = {}
    limits = zip(model.joint_names, model.slides, model.limits.lower, model.limits.upper, low, high, strict=True)
    for name, slides, lower, upper, least, most in limits:
        inside = [
            turns
            for turns in (0, -1, 1)
            if least + TURN * turns >= lower - LIMIT_TOLERANCE and most + TURN * turns <= upper + LIMIT_TOLERANCE
        ]
        within_a_turn = max(abs(least), abs(most)) <= TURN + LIMIT_TOLERANCE
        if not slides and inside and inside[0] and (within_a_turn or name in wrapped):
            found[name] = inside[0]
    return found


def _report_wraps(source: str, faults: PositionFaults) -> tuple[Finding, ...]:
    """Finding about angles that are wrapped to one turn."""
    joints = list(dict.fromkeys((*faults.wraps, *faults.turns)))
    if not joints:
        return ()
    listed = ", ".join(
        f"{name} ({len(faults.wraps[name])} jumps)" if name in faults.wraps else f"{name} (off by a turn everywhere)"
        for name in joints
    )
    message = f"{source}: angles are wrapped to one turn, and are continued: {listed}"
    return (POSITIONS_WRAPPED.found(message, joints),)


def _report_jumps(
    source: str, start: float, spikes: Mapping[str, Array], left: Mapping[str, Sequence[Jump]]
) -> tuple[Finding, ...]:
    """Findings about spikes, which are left out, and about jumps that do not return.

    Args:
        source: name of the recording.
        start: its first stamp [s].
        spikes: see `PositionFaults`.
        left: jumps that do not return, by joint.
    """

    def times(stamps: Sequence[float]) -> str:
        listed = ", ".join(f"{stamp - start:.2f} s" for stamp in sorted(stamps)[:LISTED])
        return listed + (", ..." if len(stamps) > LISTED else "")

    findings = []
    if spikes:
        counts = format_counts({name: len(spans) for name, spans in spikes.items()})
        at = times([stamp for spans in spikes.values() for stamp in spans[:, 0].tolist()])
        message = f"{source}: spikes of the encoders, where positions jump and return, are left out: {counts} (at {at})"
        findings.append(ENCODER_SPIKES.found(message, spikes))
    if left:
        sizes = ", ".join(
            f"{name} by up to {max(abs(jump.size) for jump in jumps):.2g} at {times([jump.t for jump in jumps])}"
            for name, jumps in left.items()
        )
        message = f"{source}: positions jump and do not return: {sizes}"
        findings.append(ENCODER_JUMPS.found(message, left))
    return tuple(findings)
