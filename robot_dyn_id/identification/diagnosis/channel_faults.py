# SPDX-License-Identifier: Apache-2.0
"""Stretches of channels that do not measure: brakes, saturated or frozen efforts, frozen encoders.

A channel that measures changes from sample to sample. Runs of exactly equal values are found whatever the chunks; what
they mean follows from the motion and from the range of the channel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk, Margins
from robot_dyn_id.data.corrected import ExcludedSpan, Exclusions
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.positions import TURN, ObservedPositions, PositionFaults
from robot_dyn_id.signals.cleaning import LARGEST_EFFORT, Drive, read_reported_efforts
from robot_dyn_id.uses import LIMITED, USES

EFFORT_ZERO_AT_REST = Definition(
    "effort_zero_at_rest",
    Section.HEALTH,
    "info",
    "Efforts are exactly zero while the robot is at rest: the brakes carry it. These rows are left out.",
)

EFFORT_SATURATED = Definition(
    "effort_saturated",
    Section.HEALTH,
    "warning",
    "Many samples of an effort in motion are at its very largest or smallest value: the sensor or the drive is at "
    "its limit. These rows are left out.",
    "record a slower motion, or one with a smaller load",
    explains_errors=True,
    check="clipping",
)

EFFORT_FROZEN = Definition(
    "effort_frozen",
    Section.HEALTH,
    "warning",
    "The effort of a joint is exactly constant for a time in which the joint moves, or after which the effort "
    "jumps, while it otherwise changes from sample to sample. These rows are left out.",
    "check the connection of the effort sensor",
    lowers=dict.fromkeys(USES, LIMITED),
    check="effort",
)

ENCODER_FROZEN = Definition(
    "encoder_frozen",
    Section.HEALTH,
    "warning",
    "The position of a joint is exactly constant for a time and then jumps. These rows are left out. An error if "
    "that is more than 15 % of a recording.",
    "check the encoder, and the driver that publishes its positions",
    lowers=dict.fromkeys(USES, LIMITED),
    explains_errors=True,
    check="positions",
)

SHORTEST_RUN_S, SHORTEST_RUN_SAMPLES = 0.25, 10
"""Duration [s] and number of equal samples from which on a run is considered."""

SHORTEST_DEAD_S = 0.5
"""Duration of a constant effort, other than 0 at rest, that is not a measurement [s]."""

LEAST_CHANGE_SHARE = 0.5
"""Share of samples that differ from the one before, above which a long constant stretch is not a measurement."""

LARGEST_DEAD_SHARE = 0.99
"""Share of a recording in constant efforts above which the channel as a whole is constant; see `effort_constant`."""

REST_RATIO = 0.02
"""Motion in a run, as a ratio to the range of the joint, below which the joint is at rest."""

REST_TIME_S = 1.0
"""Time in which a joint that moves goes farther than `REST_RATIO` [s]."""

SPEED_SAMPLES = 5
"""Number of samples on both sides that a speed is taken from."""

JUMP_RATIO = 4.0
"""Step at the end of a frozen position, as a ratio to the largest usual step."""

USUAL_STEP_SHARE = 0.998
"""Share of steps that are usual."""

LARGEST_FROZEN_SHARE = 0.15
"""Share of a recording with frozen positions above which it is refused."""

LONGEST_PAUSE_STEPS = 5.0
"""Time after a run, in steps of it, from which on a jump is a gap in the recording."""

STEPS_PER_CHUNK = 2000
"""Number of steps per chunk whose size is kept."""

MAX_STEPS = 2**16
"""Largest number of steps whose size is kept; of longer recordings every second, fourth, ... of them."""

DECIMALS = 9
"""Decimals of the values that are compared: a conversion of units may change the last bits."""

EXTREMES = 6
"""Number of the largest and smallest distinct values that are counted."""

OUTERMOST = 64
"""Number of the largest and smallest samples of a chunk that are searched for distinct values first."""

FEWEST_SATURATED, SATURATED_SHARE = 8, 1e-3
"""Number and share of samples at the very limit from which on a channel saturates."""

SATURATED_RATIO = 6.0
"""Samples at the limit over those at the next values, above which the channel saturates: the top of a quantized
sine has a ratio of three."""


@dataclass(frozen=True)
class ConstantRun:
    """Stretch of exactly equal values of one channel.

    Attributes:
        start: first stamp [s].
        stop: last stamp [s].
        value: the value.
        samples: number of samples.
        jump: step to the following value; NaN at the end of the recording.
        following: stamp of the following sample [s].
        low: least position of the joint meanwhile [rad or m].
        high: greatest position.
    """

    start: float
    stop: float
    value: float
    samples: int
    jump: float
    following: float
    low: float
    high: float

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.stop - self.start

    def without(self, faults: PositionFaults, joint: str) -> ConstantRun:
        """The run of positions if what follows it is not a jump of a wrapped angle, or the spike of an encoder."""
        wraps = faults.wraps.get(joint, np.zeros((0, 2)))
        jump = self.jump + TURN * float(wraps[wraps[:, 0] == self.following, 1].sum())
        spikes = faults.spikes.get(joint, np.zeros((0, 2)))
        lost = ((spikes[:, 0] <= self.following) & (self.following <= spikes[:, 1])).any()
        return replace(self, jump=np.nan if lost else jump)


@dataclass
class _OpenRun:
    """Run of equal values that may continue in the next chunk."""

    value: float = np.nan
    start: float = np.nan
    stop: float = np.nan
    samples: int = 0
    low: float = np.inf
    high: float = -np.inf

    def extend(self, t: Array, q: Array) -> None:
        """Continue with samples of the same value."""
        if len(t):
            self.start = float(t[0]) if self.samples == 0 else self.start
            self.stop = float(t[-1])
            self.samples += len(t)
            self.low, self.high = min(self.low, float(np.fmin.reduce(q))), max(self.high, float(np.fmax.reduce(q)))

    def close(self, following: float, at: float) -> list[ConstantRun]:
        """The run, if it is long enough, before a sample of another value."""
        long = self.samples >= SHORTEST_RUN_SAMPLES and self.stop - self.start >= SHORTEST_RUN_S
        if not (long and np.isfinite(self.value)):
            return []
        jump = following - self.value
        return [ConstantRun(self.start, self.stop, self.value, self.samples, jump, at, self.low, self.high)]


@dataclass
class _Extremes:
    """Numbers of the largest and smallest distinct values of a channel, collected chunk by chunk."""

    samples: int = 0
    counts: dict[float, int] = field(default_factory=dict)

    def add(self, values: Array) -> None:
        """Continue with samples of a chunk, rounded, shape (N,)."""
        self.samples += len(values)
        for number, count in _count_outer(values[np.isfinite(values)]):
            self.counts[number] = self.counts.get(number, 0) + count
        ordered = sorted(self.counts)
        kept = {*ordered[:EXTREMES], *ordered[-EXTREMES:]}
        self.counts = {number: count for number, count in self.counts.items() if number in kept}

    def saturated(self) -> list[float]:
        """Limits at which the channel saturates, other than 0."""
        ordered = sorted(self.counts)
        limits = []
        for values in (ordered[:EXTREMES], ordered[::-1][:EXTREMES]):
            if len(values) < EXTREMES or values[0] == 0.0:
                continue
            at_limit = self.counts[values[0]]
            near = float(np.mean([self.counts[value] for value in values[1:]]))
            many = at_limit >= max(FEWEST_SATURATED, SATURATED_SHARE * self.samples)
            if many and at_limit > SATURATED_RATIO * near:
                limits.append(values[0])
        return limits


def find_saturation(values: Array) -> list[float]:
    """Limits at which a channel saturates, other than 0, from its samples in motion, shape (N,)."""
    extremes = _Extremes()
    extremes.add(_rounded(values))
    return extremes.saturated()


def _rounded(values: Array) -> Array:
    """Values as they are compared; NaN where they are implausible, and are dropped later."""
    return np.asarray(np.round(np.where(np.abs(values) <= LARGEST_EFFORT, values, np.nan), DECIMALS), dtype=np.float64)


def _count_outer(values: Array) -> list[tuple[float, int]]:
    """The `EXTREMES` smallest and largest distinct values, and how often each of them occurs.

    Args:
        values: finite values, shape (N,).
    """
    if len(values) <= 4 * OUTERMOST:
        distinct, counts = np.unique(values, return_counts=True)
        pairs = list(zip(distinct.tolist(), counts.tolist(), strict=True))
        return list(dict([*pairs[:EXTREMES], *pairs[-EXTREMES:]]).items())
    ordered = np.partition(values, (OUTERMOST, len(values) - OUTERMOST))
    found = []
    for outer, is_low in ((ordered[:OUTERMOST], True), (ordered[-OUTERMOST:], False)):
        distinct = np.unique(outer)
        if len(distinct) <= EXTREMES:  # the innermost of them may occur among the other samples, too
            distinct = np.unique(values)
        kept = distinct[:EXTREMES] if is_low else distinct[-EXTREMES:]
        beyond = values <= kept[-1] if is_low else values >= kept[0]
        found.append(np.unique(values[beyond], return_counts=True))
    low, high = (dict(zip(distinct.tolist(), counts.tolist(), strict=True)) for distinct, counts in found)
    return list({**low, **high}.items())


@dataclass
class _Steps:
    """Sizes of the steps between consecutive samples, evenly spaced and at most `MAX_STEPS` of them.

    Those of positions are without the whole turns of wrapped angles.
    """

    turn: float = np.inf
    parts: list[Array] = field(default_factory=list)
    every: int = 1

    def add(self, values: Array) -> None:
        """Continue with samples of a chunk, shape (N,)."""
        spacing = max(1, len(values) // STEPS_PER_CHUNK) * self.every
        steps = values[1::spacing] - values[:-1:spacing]
        if np.isfinite(self.turn):
            steps -= self.turn * np.round(steps / self.turn)
        self.parts.append(np.abs(steps))
        while sum(map(len, self.parts)) > MAX_STEPS:
            self.every *= 2
            self.parts = [np.concatenate(self.parts)[::2].copy()]

    def usual(self, largest: float = np.inf) -> float:
        """Largest usual step of those up to a largest one."""
        steps = np.concatenate(self.parts) if self.parts else np.zeros(0)
        steps = steps[np.isfinite(steps) & (steps > 0.0) & (steps <= largest)]
        return float(np.quantile(steps, USUAL_STEP_SHARE)) if len(steps) else 0.0


@dataclass
class _Runs:
    """Runs of equal values and steps of one channel, collected chunk by chunk."""

    steps: _Steps = field(default_factory=_Steps)
    runs: list[ConstantRun] = field(default_factory=list)
    samples: int = 0
    changes: int = 0
    open: _OpenRun = field(default_factory=_OpenRun)

    def add(self, t: Array, values: Array, q: Array) -> None:
        """Continue with samples of a chunk, values rounded, shape (N,) each."""
        self.samples += len(values)
        starts = np.flatnonzero(values != np.concatenate([[self.open.value], values[:-1]]))  # NaN differs from itself
        self.changes += len(starts)
        self.steps.add(values)
        ends = np.concatenate([starts, [len(values)]])
        self.open.extend(t[: ends[0]], q[: ends[0]])
        if not len(starts):
            return
        self.runs += self.open.close(float(values[starts[0]]), float(t[starts[0]]))
        long = np.flatnonzero((np.diff(ends) >= SHORTEST_RUN_SAMPLES) & (np.arange(len(starts)) < len(starts) - 1))
        for number in (*long.tolist(), len(starts) - 1):
            self.open = _OpenRun(float(values[starts[number]]))
            self.open.extend(t[ends[number] : ends[number + 1]], q[ends[number] : ends[number + 1]])
            if number < len(starts) - 1:
                self.runs += self.open.close(float(values[ends[number + 1]]), float(t[ends[number + 1]]))

    def finish(self) -> None:
        """End the last run."""
        self.runs += self.open.close(np.nan, np.nan)

    @property
    def change_share(self) -> float:
        """Share of samples that differ from the one before, outside of long runs."""
        inside = sum(run.samples for run in self.runs)
        return (self.changes - len(self.runs)) / max(self.samples - inside, 1)


@dataclass(frozen=True)
class ChannelRuns:
    """Frozen positions, and efforts at which a channel may saturate, in all samples of a recording.

    Attributes:
        frozen: stretches with frozen positions.
        limits: efforts at which a channel may saturate, by joint.
        length: time from the first to the last sample [s].
    """

    frozen: tuple[ExcludedSpan, ...]
    limits: Mapping[str, list[float]]
    length: float


class RunsObserver:
    """Observer of constant positions and of the extremes of the efforts."""

    def __init__(self, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
        """Begin a recording of n joints, with drives of those whose effort is a current."""
        self.joints, self.drives = tuple(joints), drives
        self._positions = [_Runs(_Steps(TURN)) for _ in joints]
        self._extremes = [_Extremes() for _ in joints]
        self._first, self._last = np.nan, np.nan

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        usable = np.isfinite(chunk.t)
        t, q = chunk.t[usable], chunk.q[usable]
        if not len(t):
            return
        self._first = float(t[0]) if np.isnan(self._first) else self._first
        self._last = float(t[-1])
        measured = read_reported_efforts(chunk, self.joints, self.drives)
        for joint, (positions, extremes) in enumerate(zip(self._positions, self._extremes, strict=True)):
            positions.add(t, _rounded(q[:, joint]), q[:, joint])
            if measured is not None:
                extremes.add(_rounded(measured[usable, joint]))

    def conclude(self, positions: ObservedPositions) -> ChannelRuns:
        """Stretches with frozen positions, and limits.

        Args:
            positions: jumps of the positions for other reasons.
        """
        frozen = [
            ExcludedSpan(name, run.start, run.stop, "encoder_frozen")
            for name, channel, ordinary in zip(self.joints, self._positions, positions.ordinary, strict=True)
            for run in _find_frozen(name, channel, positions.faults, float(ordinary))
        ]
        return ChannelRuns(
            tuple(frozen),
            {name: one.saturated() for name, one in zip(self.joints, self._extremes, strict=True)},
            self._last - self._first if np.isfinite(self._first) else 0.0,
        )


def _find_frozen(name: str, channel: _Runs, faults: PositionFaults, ordinary: float) -> list[ConstantRun]:
    """Runs of positions that end with a jump: the joint went on moving.

    Args:
        name: name of the joint.
        channel: its positions.
        faults: jumps for other reasons.
        ordinary: largest step that is not that of a spike of the encoder.
    """
    channel.finish()
    if not channel.runs:
        return []
    usual = channel.steps.usual(ordinary)
    return [
        run
        for run in (one.without(faults, name) for one in channel.runs)
        if abs(run.jump) > JUMP_RATIO * usual > 0.0
        and run.following - run.stop < LONGEST_PAUSE_STEPS * run.duration / run.samples
    ]


class EffortObserver:
    """Observer of efforts that are not measurements, in positions that are corrected.

    A channel saturates only where its efforts are at a limit in motion: a joint that often rests at one pose often has
    one effort.
    """

    def __init__(
        self, joints: Sequence[str], drives: Mapping[str, Drive], limits: Mapping[str, list[float]], ranges: Array
    ) -> None:
        """Begin a recording.

        Args:
            joints: joints, n.
            drives: drives of the joints whose effort is a current.
            limits: efforts at which a channel may saturate, by joint.
            ranges: ranges of the positions [rad or m], shape (n,).
        """
        self.joints, self.drives, self.limits, self.ranges = tuple(joints), drives, limits, ranges
        self._efforts = [_Runs() for _ in joints]
        self._margins = Margins(SPEED_SAMPLES)
        self._moving = {name: _Extremes() for name in joints if limits[name]}
        self._at_limits: list[tuple[ExcludedSpan, float, int]] = []

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        measured = read_reported_efforts(chunk, self.joints, self.drives)
        if measured is None:
            return
        usable = np.isfinite(chunk.t)
        values = _rounded(measured)
        if usable.any():
            for joint, efforts in enumerate(self._efforts):
                efforts.add(chunk.t[usable], values[usable, joint], chunk.q[usable, joint])
        if self._moving:
            self._collect_limits(chunk.t, values)
            self._collect_moving(self._margins.add(chunk))

    def _collect_limits(self, t: Array, values: Array) -> None:
        """Stretches in which efforts are at a limit, and their numbers of samples."""
        for joint, name in enumerate(self.joints):
            for limit in self.limits[name]:
                at_limit = (values[:, joint] == limit) & np.isfinite(t)
                edges = np.flatnonzero(np.diff(np.concatenate([[False], at_limit, [False]]).astype(np.int8)))
                self._at_limits += [
                    (ExcludedSpan(name, float(t[first]), float(t[last - 1]), "effort_saturated"), limit, last - first)
                    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
                ]

    def _collect_moving(self, blocks: Iterator[tuple[Chunk, slice]]) -> None:
        """Extremes of the efforts in motion."""
        for around, due in blocks:
            measured = read_reported_efforts(around, self.joints, self.drives)
            assert measured is not None
            index = np.arange(due.start, due.stop)
            before, after = np.maximum(index - SPEED_SAMPLES, 0), np.minimum(index + SPEED_SAMPLES, len(around) - 1)
            elapsed = (around.t[after] - around.t[before])[:, None]
            slowest = REST_RATIO * self.ranges / REST_TIME_S * np.abs(elapsed)
            moving = np.abs(around.q[after] - around.q[before]) > slowest
            for joint, name in enumerate(self.joints):
                if name in self._moving:
                    self._moving[name].add(_rounded(measured[due, joint][moving[:, joint]]))

    def conclude(self) -> tuple[tuple[ExcludedSpan, ...], Counter[str]]:
        """Stretches whose efforts are left out, and their numbers of rows by the code of the finding about them."""
        self._collect_moving(self._margins.finish())
        confirmed = {
            name: [one for one in self.limits[name] if one in extremes.saturated()]
            for name, extremes in self._moving.items()
        }
        spans: list[ExcludedSpan] = []
        rows: Counter[str] = Counter()
        for name, efforts, size in zip(self.joints, self._efforts, self.ranges, strict=True):
            efforts.finish()
            for run, reason in _judge_effort(efforts, float(size), confirmed.get(name, ())):
                spans.append(ExcludedSpan(name, run.start, run.stop, reason))
                rows[reason] += run.samples
        for span, limit, samples in self._at_limits:
            if limit in confirmed[span.joint]:
                spans.append(span)
                rows[span.reason] += samples
        return tuple(spans), rows


def _judge_effort(channel: _Runs, size: float, limits: Sequence[float]) -> list[tuple[ConstantRun, str]]:
    """Constant efforts of one joint that are not measurements, and the code of the finding about each.

    Efforts other than 0 are constant at rest where their steps are larger than their noise: only those that stay
    constant in motion, or jump afterwards, are not measurements.

    Args:
        channel: efforts of the joint.
        size: range of its positions [rad or m].
        limits: efforts at which the channel saturates.
    """
    if not channel.runs or sum(run.samples for run in channel.runs) > LARGEST_DEAD_SHARE * channel.samples:
        return []
    usual = channel.steps.usual()
    changing = channel.change_share > LEAST_CHANGE_SHARE
    found = []
    for run in channel.runs:
        at_rest = run.high - run.low <= REST_RATIO * size
        jumps = abs(run.jump) > JUMP_RATIO * usual > 0.0
        if run.value == 0.0 and at_rest and (changing or jumps):
            found.append((run, "effort_zero_at_rest"))
        elif run.value not in limits and run.duration >= SHORTEST_DEAD_S and changing and (jumps or not at_rest):
            found.append((run, "effort_frozen"))
    return found


def _union_duration(spans: Sequence[ExcludedSpan]) -> float:
    """Time in which at least one joint has a stretch [s]."""
    total, until = 0.0, -np.inf
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.stop - max(span.start, until))
        until = max(until, span.stop)
    return total


def report_exclusions(source: str, exclusions: Exclusions, length: float) -> tuple[Finding, ...]:
    """One finding for each kind of fault.

    Args:
        source: name of the recording.
        exclusions: stretches that are left out.
        length: length of the recording [s].
    """
    spans = (*exclusions.efforts, *exclusions.positions)

    def found(reason: str) -> tuple[str, list[str]]:
        total: dict[str, float] = {}
        for span in spans:
            if span.reason == reason:
                total[span.joint] = total.get(span.joint, 0.0) + span.stop - span.start
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in total.items()), list(total)

    findings = []
    rest, joints = found("effort_zero_at_rest")
    if joints:
        message = f"{source}: efforts are exactly 0 at rest, as behind closed brakes, and left out: {rest}"
        findings.append(EFFORT_ZERO_AT_REST.found(message, joints))
    dead, joints = found("effort_frozen")
    if joints:
        message = f"{source}: efforts are constant for a time, and left out: {dead}"
        findings.append(EFFORT_FROZEN.found(message, joints))
    clipped, joints = found("effort_saturated")
    if joints:
        message = f"{source}: efforts are at a limit of their sensor or drive, and left out: {clipped}"
        findings.append(EFFORT_SATURATED.found(message, joints))
    frozen, joints = found("encoder_frozen")
    if joints:
        message = f"{source}: positions are constant for a time and then jump, and are left out: {frozen}"
        lost = _union_duration(exclusions.positions) > LARGEST_FROZEN_SHARE * length
        findings.append(ENCODER_FROZEN.found(message, joints, "error" if lost else None))
    return tuple(findings)
