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
from robot_dyn_id.data.chunk import Chunk, Margins
from robot_dyn_id.data.corrected import Corrected, as_corrected
from robot_dyn_id.data.observer import observe
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.health import LIMIT_TOLERANCE
from robot_dyn_id.identification.diagnosis.spikes import (
    DEVIATION_PER_MEDIAN,
    MARGIN,
    RANGE_SHARE,
    SPIKE_RATIO,
    SURROUNDING_SAMPLES,
    SampledRows,
    are_isolated,
    running_median,
    surroundings,
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
    explains_errors=True,
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

MOST_JUMPS = 1024
"""Number of steps of a joint that are kept until it is known which of them are jumps."""

MIDDLE = SURROUNDING_SAMPLES // 2
"""Place of a step among those around it."""

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

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """Continue positions across turns, without those in spikes (NaN); see `Correction`."""
        for chunk in chunks:
            q = chunk.q.copy()
            for column, name in enumerate(joints):
                turns = np.full(len(chunk), self.turns.get(name, 0), dtype=np.float64)
                if name in self.wraps:
                    t, number = self.wraps[name].T
                    turns += np.append(0.0, np.cumsum(number))[np.searchsorted(t, chunk.t, side="right")]
                q[:, column] += TURN * turns
                for start, stop in self.spikes.get(name, ()):
                    q[(chunk.t >= start) & (chunk.t <= stop), column] = np.nan
            yield replace(chunk, q=q)


@dataclass(frozen=True)
class ObservedPositions:
    """Jumps of the positions of a recording, and their ranges.

    Attributes:
        faults: what is corrected.
        findings: findings about it.
        ranges: range of each joint without jumps [rad or m], shape (n,).
        ordinary: largest step of each joint from sample to sample that is not one of a spike [rad or m], shape (n,);
            infinite without spikes.
    """

    faults: PositionFaults
    findings: tuple[Finding, ...]
    ranges: Array
    ordinary: Array

    def correct(self, recording: Corrected) -> Corrected:
        """The recording without the faults."""
        return recording.corrected(self.faults) if self.faults else recording


@dataclass
class _LargestSteps:
    """The steps of one joint that are farthest from the median of those around them, at most `MOST_JUMPS`.

    Attributes:
        kept: rows of distance, row, stamp, stamp before, the steps around, and their distances.
        least: distance that others exceed to be kept.
        ordinary: largest step among those that are not kept.
    """

    kept: Array = field(default_factory=lambda: np.zeros((0, 4 + 2 * SURROUNDING_SAMPLES)))
    least: float = 0.0
    ordinary: float = 0.0

    def add(self, block: _Block, row: int, joint: int, steps: Array, distance: Array) -> None:
        """Continue with the rows of a block that are due.

        Args:
            block: the block.
            row: number of its first sample that is due.
            joint: number of the joint.
            steps: steps around each one, shape (N, `SURROUNDING_SAMPLES`).
            distance: their distances.
        """
        due = np.arange(block.due.start, block.due.stop)
        far = due[distance[due, MIDDLE] > self.least]
        if len(far) > MOST_JUMPS:
            far = far[np.argpartition(distance[far, MIDDLE], -MOST_JUMPS)[-MOST_JUMPS:]]
        left = np.isfinite(distance[due, MIDDLE])
        left[far - block.due.start] = False
        self._leave(steps[due[left], MIDDLE])
        places = [distance[far, MIDDLE], row + far - block.due.start, block.t[far], block.t[np.maximum(far - 1, 0)]]
        new = np.concatenate([np.stack(places, axis=1), steps[far], distance[far]], axis=1)
        self.kept = np.concatenate([self.kept, new])
        if len(self.kept) > 2 * MOST_JUMPS:
            order = np.argpartition(self.kept[:, 0], -MOST_JUMPS)
            self._leave(self.kept[order[:-MOST_JUMPS], 4 + MIDDLE])
            self.kept = self.kept[order[-MOST_JUMPS:]]
            self.least = float(self.kept[:, 0].min())

    def _leave(self, steps: Array) -> None:
        self.ordinary = max(self.ordinary, float(np.abs(steps).max(initial=0.0)))

    def jumps(self, limit: float) -> tuple[list[Jump], float]:
        """Steps that are much larger than others, in order, and the largest other step.

        Args:
            limit: distance of a step from the median of those around it above which it may be a jump.
        """
        kept = self.kept[np.argsort(self.kept[:, 1])]
        around, distances = kept[:, 4 : 4 + SURROUNDING_SAMPLES], kept[:, 4 + SURROUNDING_SAMPLES :]
        agree = kept[:, 0] <= limit
        most = max(self.ordinary, float(np.abs(around[agree, MIDDLE]).max(initial=0.0)))
        far = kept[are_isolated(around, distances, np.full(len(kept), limit), LARGEST_GROUP)]
        found = [Jump(int(one[1]), one[2], one[3], one[4 + MIDDLE]) for one in far.tolist()]
        return [one for one in found if abs(one.size) > JUMP_RATIO * most], most


class PositionObserver:
    """Observer of jumps of the positions."""

    def __init__(self, source: str, model: RobotModel) -> None:
        """Begin a recording of a robot, of which only revolute joints are wrapped."""
        self.source, self.model = source, model
        count = len(model.joint_names)
        self._margins, self._sampled = Margins(MARGIN + 1), SampledRows()
        self._steps = [_LargestSteps() for _ in range(count)]
        self._recorded: list[_LargestSteps] | None = None
        """The same of steps with their whole turns; None: no step has any."""
        self._turns: list[list[tuple[float, float]]] = [[] for _ in range(count)]
        self._wraps = np.zeros(count, dtype=np.int64)
        self._low, self._high, self._largest = np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)
        self._start, self._end, self._row = np.nan, np.nan, 0

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        for around, due in self._margins.add(chunk):
            self._add(_block(around, due, ~self.model.slides))

    def _add(self, block: _Block) -> None:
        due = block.due
        t, q, steps, turns = block.t[due], block.q[due], block.steps[due], block.turns[due]
        self._low, self._high = np.fmin(self._low, np.fmin.reduce(q)), np.fmax(self._high, np.fmax.reduce(q))
        self._largest = np.fmax(self._largest, np.fmax.reduce(np.abs(steps + TURN * turns), initial=0.0))
        self._wraps += np.count_nonzero(turns, axis=0) - np.count_nonzero(np.abs(steps) > 0.5 * TURN, axis=0)
        distance = np.abs(block.steps - running_median(block.steps))
        self._sampled.add(np.stack([distance[due], q, np.broadcast_to(t[:, None], q.shape)], axis=1))
        if turns.any() and self._recorded is None:
            self._recorded = [replace(one) for one in self._steps]
        self._keep(self._steps, block, block.steps, distance)
        if self._recorded is not None:
            recorded = block.steps + TURN * block.turns
            self._keep(self._recorded, block, recorded, np.abs(recorded - running_median(recorded)))
            for row, joint in np.argwhere(turns):
                self._turns[joint].append((t[row], -turns[row, joint]))
        self._row += len(t)
        self._start = float(block.t[0]) if np.isnan(self._start) else self._start
        self._end = float(block.t[-1])

    def _keep(self, largest: Sequence[_LargestSteps], block: _Block, steps: Array, distance: Array) -> None:
        around, distances = surroundings(steps), surroundings(distance)
        for joint, one in enumerate(largest):
            one.add(block, self._row, joint, around[:, joint], distances[:, joint])

    def conclude(self) -> ObservedPositions:
        """Jumps, which `PositionFaults` corrects where that is possible."""
        for around, due in self._margins.finish():
            self._add(_block(around, due, ~self.model.slides))
        joints, low, high = self.model.joint_names, self._low, self._high
        found, ordinary = PositionFaults(), np.full(len(joints), np.inf)
        findings: tuple[Finding, ...] = ()
        if (self._largest > np.maximum(RANGE_SHARE * (high - low), 0.0)).any():
            rows = np.concatenate(self._sampled.rows)
            found, findings, ordinary = self._find_jumps(rows)
            (samples,) = found.apply(iter([Chunk(rows[:, 2, 0], rows[:, 1])]), joints)
            low, high = np.fmin.reduce(samples.q, initial=np.inf), np.fmax.reduce(samples.q, initial=-np.inf)
        found = replace(found, turns=_turns_into_limits(self.model, low, high, found.wraps))
        findings = (*_report_wraps(self.source, found), *findings)
        return ObservedPositions(found, findings, np.maximum(high - low, 0.0), ordinary)

    def _find_jumps(self, rows: Array) -> tuple[PositionFaults, tuple[Finding, ...], Array]:
        """Find wrapped angles, spikes, and jumps that do not return; see `ObservedPositions.ordinary`.

        Args:
            rows: evenly spaced samples: distances of the steps from those around them, positions and stamps.
        """
        wraps: dict[str, Array] = {}
        spikes: dict[str, Array] = {}
        left: dict[str, list[Jump]] = {}
        ordinary = np.full(len(self._steps), np.inf)
        for joint, name in enumerate(self.model.joint_names):
            steps = self._steps[joint]
            if self._wraps[joint] > 0:  # more such steps than other large ones
                wraps[name] = np.array(self._turns[joint])
            elif self._recorded is not None:
                steps = self._recorded[joint]
            jumps, most = steps.jumps(_limit(*rows[:, :2, joint].T))
            spans, remaining = _pair(jumps, most, self._row, self._start, self._end)
            if spans:
                spikes[name], ordinary[joint] = np.array(spans), JUMP_RATIO * most
            if remaining:
                left[name] = remaining
        return PositionFaults(wraps, spikes), _report_jumps(self.source, self._start, spikes, left), ordinary


def correct_motion(recording: Recording, model: RobotModel) -> tuple[Corrected, tuple[Finding, ...]]:
    """Continue wrapped angles and leave out spikes of encoders of a recording of which nothing else is examined.

    Args:
        recording: a recording of the robot's motion.
        model: the robot.

    Returns:
        The recording with this correction, and findings about it.

    Raises:
        InputError: a recording that cannot be read.
    """
    corrected, observer = as_corrected(recording), PositionObserver(recording.source, model)
    observe(corrected.complete, model.joint_names, observer)
    found = observer.conclude()
    return found.correct(corrected), found.findings


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


def _block(around: Chunk, due: slice, wrapped: Mask) -> _Block:
    """Steps to consecutive samples.

    Args:
        around: the samples.
        due: see `_Block`.
        wrapped: joints whose steps may contain whole turns, shape (n,).
    """
    t, q = around.t, np.where(np.abs(around.q) <= LARGEST_POSITION, around.q, np.nan)
    if due.stop == len(t):  # the end of the recording, which has steps of zero behind it
        t, q = np.pad(t, (0, MARGIN), mode="edge"), np.pad(q, ((0, MARGIN), (0, 0)), mode="edge")
    rows = np.maximum.accumulate(np.where(np.isfinite(q), np.arange(len(q))[:, None], 0), axis=0)
    q = np.take_along_axis(q, rows, axis=0)
    steps = np.diff(q, axis=0, prepend=q[:1])
    turns = np.where(wrapped, np.round(steps / TURN), 0.0)
    if not np.any(turns):  # NaN counts as such
        return _Block(t, q, steps, turns, due)
    rest = np.abs(steps - TURN * turns)
    usual = running_median(rest)
    ordinary = (usual < CLEAR_STEP) & (rest <= np.maximum(WRAPPED_STEP, WRAPPED_RATIO * usual))
    turns = np.where(ordinary, turns, 0.0)
    return _Block(t, q, steps - TURN * turns, turns, due)


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
