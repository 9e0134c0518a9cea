# SPDX-License-Identifier: Apache-2.0
"""Stretches of channels that do not measure: brakes, saturated or frozen efforts, frozen encoders.

A channel that measures changes from sample to sample. Runs of exactly equal values are found in one pass, whatever the
chunks; what they mean follows from the motion and from the range of the channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import with_margins
from robot_dyn_id.data.exclusion import ExcludedSpan, ExcludingRecording
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.cleaning import LARGEST_EFFORT, Drive, reported_efforts
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
        pause: time to the following sample [s].
        low: least position of the joint meanwhile [rad or m].
        high: greatest position.
    """

    start: float
    stop: float
    value: float
    samples: int
    jump: float
    pause: float
    low: float
    high: float

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.stop - self.start


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
        jump, pause = following - self.value, at - self.stop
        return [ConstantRun(self.start, self.stop, self.value, self.samples, jump, pause, self.low, self.high)]


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
    """Sizes of the steps between consecutive samples, evenly spaced and at most `MAX_STEPS` of them."""

    parts: list[Array] = field(default_factory=list)
    every: int = 1

    def add(self, values: Array) -> None:
        """Continue with samples of a chunk, shape (N,)."""
        spacing = max(1, len(values) // STEPS_PER_CHUNK) * self.every
        self.parts.append(np.abs(values[1::spacing] - values[:-1:spacing]))  # no view, which keeps all of its samples
        while sum(map(len, self.parts)) > MAX_STEPS:
            self.every *= 2
            self.parts = [np.concatenate(self.parts)[::2].copy()]

    @property
    def usual(self) -> float:
        """Largest usual step."""
        steps = np.concatenate(self.parts) if self.parts else np.zeros(0)
        steps = steps[np.isfinite(steps) & (steps > 0.0)]
        return float(np.quantile(steps, USUAL_STEP_SHARE)) if len(steps) else 0.0


@dataclass
class _Channel:
    """Runs and extremes of one channel, collected chunk by chunk."""

    runs: list[ConstantRun] = field(default_factory=list)
    samples: int = 0
    changes: int = 0
    steps: _Steps = field(default_factory=_Steps)
    extremes: _Extremes = field(default_factory=_Extremes)
    open: _OpenRun = field(default_factory=_OpenRun)

    def add(self, t: Array, values: Array, q: Array) -> None:
        """Continue with samples of a chunk, shape (N,) each."""
        values = _rounded(values)
        self.samples += len(values)
        starts = np.flatnonzero(values != np.concatenate([[self.open.value], values[:-1]]))  # NaN differs from itself
        self.changes += len(starts)
        self.steps.add(values)
        self.extremes.add(values)
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
class ChannelFaults:
    """Stretches of a recording that are not measurements.

    Attributes:
        efforts: stretches whose efforts are left out.
        positions: stretches whose positions are left out.
        findings: findings about them.
    """

    efforts: tuple[ExcludedSpan, ...]
    positions: tuple[ExcludedSpan, ...]
    findings: tuple[Finding, ...]

    def apply(self, recording: Recording) -> Recording:
        """The recording without these stretches."""
        if not (self.efforts or self.positions):
            return recording
        return ExcludingRecording(recording, self.efforts, self.positions)


def find_channel_faults(recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive]) -> ChannelFaults:
    """Find stretches of a recording that are not measurements, in one pass or, if a channel saturates, two.

    Args:
        recording: the recording.
        joints: joints to examine.
        drives: drives of the joints whose effort is a current.
    """
    efforts = [_Channel() for _ in joints]
    positions = [_Channel() for _ in joints]
    low, high = np.full(len(joints), np.inf), np.full(len(joints), -np.inf)
    first, length = np.nan, 0.0
    for chunk in recording.chunks(joints):
        usable = np.isfinite(chunk.t)
        t, q = chunk.t[usable], chunk.q[usable]
        if not len(t):
            continue
        first = float(t[0]) if not np.isfinite(first) else first
        length = float(t[-1]) - first
        low, high = np.fmin(low, np.fmin.reduce(q)), np.fmax(high, np.fmax.reduce(q))
        measured = reported_efforts(chunk, joints, drives)
        for joint in range(len(joints)):
            positions[joint].add(t, q[:, joint], q[:, joint])
            if measured is not None:
                efforts[joint].add(t, measured[usable, joint], q[:, joint])
    for channel in (*efforts, *positions):
        channel.finish()
    ranges = np.maximum(high - low, 0.0)
    limits = {name: channel.extremes.saturated() for name, channel in zip(joints, efforts, strict=True)}
    if any(limits.values()):
        limits = _confirm_limits(recording, joints, drives, limits, ranges)
    spans: list[ExcludedSpan] = []
    for name, channel, size in zip(joints, efforts, ranges, strict=True):
        spans += _judge_effort(name, channel, float(size), limits[name])
    if any(limits.values()):
        spans = [*spans, *_saturated_spans(recording, joints, drives, limits)]
    frozen = [
        ExcludedSpan(name, run.start, run.stop, "encoder_frozen")
        for name, channel in zip(joints, positions, strict=True)
        for run in _frozen(channel)
    ]
    lost = _union_duration(frozen) > LARGEST_FROZEN_SHARE * length
    return ChannelFaults(tuple(spans), tuple(frozen), _report(recording.source, (*spans, *frozen), lost))


def _judge_effort(name: str, channel: _Channel, size: float, limits: Sequence[float]) -> list[ExcludedSpan]:
    """Constant efforts of one joint that are not measurements.

    Efforts other than 0 are constant at rest where their steps are larger than their noise: only those that stay
    constant in motion, or jump afterwards, are not measurements.

    Args:
        name: the joint.
        channel: its efforts.
        size: range of its positions [rad or m].
        limits: efforts at which the channel saturates.
    """
    if not channel.runs or sum(run.samples for run in channel.runs) > LARGEST_DEAD_SHARE * channel.samples:
        return []
    usual = channel.steps.usual
    changing = channel.change_share > LEAST_CHANGE_SHARE
    spans = []
    for run in channel.runs:
        at_rest = run.high - run.low <= REST_RATIO * size
        jumps = abs(run.jump) > JUMP_RATIO * usual > 0.0
        if run.value == 0.0 and at_rest and (changing or jumps):
            spans.append(ExcludedSpan(name, run.start, run.stop, "effort_zero_at_rest"))
        elif run.value not in limits and run.duration >= SHORTEST_DEAD_S and changing and (jumps or not at_rest):
            spans.append(ExcludedSpan(name, run.start, run.stop, "effort_frozen"))
    return spans


def _frozen(channel: _Channel) -> list[ConstantRun]:
    """Runs of positions that end with a jump: the joint went on moving."""
    if not channel.runs:
        return []
    usual = channel.steps.usual
    return [
        run
        for run in channel.runs
        if abs(run.jump) > JUMP_RATIO * usual > 0.0 and run.pause < LONGEST_PAUSE_STEPS * run.duration / run.samples
    ]


def _union_duration(spans: Sequence[ExcludedSpan]) -> float:
    """Time in which at least one joint has a stretch [s]."""
    total, until = 0.0, -np.inf
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.stop - max(span.start, until))
        until = max(until, span.stop)
    return total


def _confirm_limits(
    recording: Recording,
    joints: Sequence[str],
    drives: Mapping[str, Drive],
    limits: Mapping[str, Sequence[float]],
    ranges: Array,
) -> dict[str, list[float]]:
    """Limits at which channels saturate in motion: a joint that often rests at one pose often has one effort.

    Args:
        recording: the recording.
        joints: joints, n.
        drives: drives of the joints whose effort is a current.
        limits: limits from all samples, by joint.
        ranges: ranges of the positions [rad or m], shape (n,).
    """
    moving_extremes = {name: _Extremes() for name in joints if limits[name]}
    for around, due in with_margins(recording.chunks(joints), SPEED_SAMPLES):
        measured = reported_efforts(around, joints, drives)
        if measured is None:
            continue
        index = np.arange(due.start, due.stop)
        before, after = np.maximum(index - SPEED_SAMPLES, 0), np.minimum(index + SPEED_SAMPLES, len(around) - 1)
        elapsed = (around.t[after] - around.t[before])[:, None]
        moving = np.abs(around.q[after] - around.q[before]) > REST_RATIO * ranges / REST_TIME_S * np.abs(elapsed)
        for joint, name in enumerate(joints):
            if name in moving_extremes:
                values = measured[due, joint][moving[:, joint]]
                moving_extremes[name].add(_rounded(values))
    confirmed = {name: extremes.saturated() for name, extremes in moving_extremes.items()}
    return {name: [limit for limit in limits[name] if limit in confirmed.get(name, ())] for name in joints}


def _saturated_spans(
    recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive], limits: Mapping[str, list[float]]
) -> list[ExcludedSpan]:
    """Stretches in which efforts are at a limit."""
    spans: list[ExcludedSpan] = []
    for chunk in recording.chunks(joints):
        measured = reported_efforts(chunk, joints, drives)
        if measured is None:
            continue
        for joint, name in enumerate(joints):
            at_limit = np.isin(_rounded(measured[:, joint]), limits[name]) & np.isfinite(chunk.t)
            edges = np.flatnonzero(np.diff(np.concatenate([[False], at_limit, [False]]).astype(np.int8)))
            spans += [
                ExcludedSpan(name, float(chunk.t[first]), float(chunk.t[last - 1]), "effort_saturated")
                for first, last in zip(edges[::2], edges[1::2], strict=True)
            ]
    return spans


def _report(source: str, spans: Sequence[ExcludedSpan], lost: bool) -> tuple[Finding, ...]:
    """One finding for each kind of fault.

    Args:
        source: name of the recording.
        spans: stretches that are left out.
        lost: whether frozen positions take more of the recording than may be missing.
    """

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
        findings.append(ENCODER_FROZEN.found(message, joints, "error" if lost else None))
    return tuple(findings)
