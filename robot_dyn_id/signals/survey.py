# SPDX-License-Identifier: Apache-2.0
"""First pass over the recordings, before anything is decided: rates, ranges, spectra.

From it follow the sample rate, the cut-off frequency, which velocity to trust, and what the health gate looks at.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import OF_ALL_JOINTS, Corrected, as_corrected
from robot_dyn_id.data.observer import observed
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.blocks import Stretch
from robot_dyn_id.signals.cleaning import GAP_STEPS, Drive, Repairs, begin, clean, compute_median_step
from robot_dyn_id.signals.cutoff import (
    choose_cutoff,
    choose_motion_cutoff,
    find_acceleration_limit,
    find_motion_bandwidth,
)
from robot_dyn_id.signals.stillness import Stillness, StillnessObserver
from robot_dyn_id.signals.windows import Cut, cut_windows
from robot_dyn_id.wording import format_counts

PERIODOGRAM = 8.0
"""Length of one periodogram [s]."""

MOST_BEGUN = 8
"""Number of recordings whose passes begin together: the first samples of each are held in memory."""

SURVEY_GAP_S = 0.25
"""Longest gap that is bridged for the periodograms [s], from which the cut-off follows."""


@dataclass(frozen=True)
class Spectra:
    """Summed Hann periodograms, shape (n, frequencies) each.

    Attributes:
        frequency: [Hz].
        seconds: time that the periodograms cover [s].
        position: power of the positions.
        derived: power of the derivative of the positions.
        recorded: power of the recorded velocities, or None.
        cross: conjugate of the derivative times the recorded velocity, or None.
    """

    frequency: Array
    seconds: float
    position: Array
    derived: Array
    recorded: Array | None
    cross: NDArray[np.complex128] | None

    def plus(self, other: Spectra) -> Spectra:
        """The sum of both."""
        recorded = None if self.recorded is None or other.recorded is None else self.recorded + other.recorded
        cross = None if self.cross is None or other.cross is None else self.cross + other.cross
        position, derived = self.position + other.position, self.derived + other.derived
        return Spectra(self.frequency, self.seconds + other.seconds, position, derived, recorded, cross)

    @property
    def density(self) -> Array:
        """Power spectral density of the positions [rad^2/Hz or m^2/Hz], shape (n, frequencies)."""
        return 2.0 * self.position / self.seconds


@dataclass(frozen=True)
class Survey:
    """Result of the first pass over all trials; arrays have one value per joint.

    Attributes:
        joint_names: the joints.
        sources: what the trials are called.
        steps: median step of the stamps of each trial [s].
        rate: samples per second, from the median step of the stamps [Hz].
        repairs: what was dropped, and how many gaps are bridged or not.
        trials: time from the first to the last usable sample of each trial.
        interruptions: gaps in the clocks of all trials.
        seams: number of interruptions that are spans left out on purpose.
        left_out: number of rows (samples times joints) that are left out on purpose, by the code of the finding that
            reports them.
        rests: time at rest in each trial.
        longest_gap: longest gap that is bridged [s].
        q_min, q_max: positions reached.
        tau_min, tau_max: efforts recorded.
        tau_distinct: number of distinct effort values (up to 1000).
        zero_rows: share of the samples in which the effort is exactly zero.
        bandwidth: frequency below which the motion lies [Hz]; 0 for joints at rest.
        whiteness: variance of the steps between samples over twice that of the positions: 1 for white noise.
        speed: RMS velocity [rad/s or m/s].
        derived_limit: frequency up to which second derivatives of the positions are exact [Hz], see
            `cutoff.find_acceleration_limit`.
        recorded_limit: the same of derivatives of recorded velocities; that of the positions if none are recorded.
        has_velocity: whether velocities are recorded.
        has_temperature: whether temperatures are.
        velocity_gain: recorded velocity over the derivative of the position, where there is motion; negative if they
            have opposite signs.
        velocity_lag: delay of the recorded velocity [s].
        quieter_recorded: whether the recorded velocity has less noise than the derivative.
        sha256: hash of the usable samples.
    """

    joint_names: tuple[str, ...]
    sources: tuple[str, ...]
    steps: tuple[float, ...]
    rate: float
    repairs: Repairs
    trials: tuple[Stretch, ...]
    interruptions: tuple[Stretch, ...]
    seams: int
    left_out: Mapping[str, int]
    rests: tuple[Stillness, ...]
    longest_gap: float
    q_min: Array
    q_max: Array
    tau_min: Array
    tau_max: Array
    tau_distinct: Integers
    zero_rows: Array
    bandwidth: Array
    whiteness: Array
    speed: Array
    derived_limit: Array
    recorded_limit: Array
    has_velocity: bool
    has_temperature: bool
    velocity_gain: Array
    velocity_lag: Array
    quieter_recorded: Mask
    sha256: str

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Uninterrupted segments of all trials: between gaps that are not bridged."""
        found = []
        for whole in self.trials:
            start = whole.start
            for gap in self.interruptions:
                if gap.trial == whole.trial and gap.duration > self.longest_gap:
                    found.append(Stretch(whole.trial, start, gap.start))
                    start = gap.stop
            found.append(Stretch(whole.trial, start, whole.stop))
        return tuple(found)

    def with_longest_gap(self, longest: float) -> Survey:
        """The survey with other gaps bridged.

        Args:
            longest: longest gap that is bridged [s].
        """
        split = sum(gap.duration > longest for gap in self.interruptions)
        bridged = len(self.interruptions) - split
        repairs = replace(self.repairs, gaps=max(0, split - self.seams), bridged=bridged)
        return replace(self, longest_gap=longest, repairs=repairs)

    def with_left_out(self, rows: Mapping[str, int]) -> Survey:
        """The survey with further rows that are left out on purpose, by code."""
        counts = Counter(self.left_out) + Counter(rows)
        return replace(self, left_out=dict(sorted(counts.items())))

    @property
    def durations(self) -> tuple[float, ...]:
        """Length of each uninterrupted segment [s]."""
        return tuple(stretch.duration for stretch in self.stretches)

    @property
    def cutoff(self) -> float:
        """Cut-off frequency for regressor and efforts that suits the motion [Hz]."""
        return choose_cutoff(self.bandwidth, self.speed, self.rate)

    def motion_cutoff(self, recorded_velocity: bool) -> float:
        """Cut-off frequency for positions and velocities before they are differentiated [Hz].

        Args:
            recorded_velocity: whether velocities are the recorded ones.
        """
        limit = self.recorded_limit if recorded_velocity else self.derived_limit
        resolution = 1.0 / min(PERIODOGRAM, max(self.durations))
        return choose_motion_cutoff(self.cutoff, self.bandwidth, limit, self.speed, resolution)

    @property
    def velocity_agrees(self) -> bool:
        """Whether the recorded velocities agree with the derivatives of the positions on every joint that moves.

        In size (5 %) and time (a quarter of a sample, 5 ms at most): many drives report a velocity that is filtered
        and late.
        """
        return self.velocity_agrees_where(np.ones(len(self.joint_names), dtype=bool))

    def velocity_agrees_where(self, joints: Mask) -> bool:
        """See `velocity_agrees`, of some joints alone, shape (n,). Velocities that are missing do not agree."""
        allowed = min(0.25 / self.rate, 5e-3)
        agree = (np.abs(self.velocity_gain - 1.0) < 0.05) & (np.abs(self.velocity_lag) < allowed)
        return bool(np.all(agree[joints & (self.bandwidth > 0)]))

    @property
    def recorded_velocity(self) -> bool:
        """Whether the recorded velocities are the ones to use: they agree with the positions and have less noise."""
        moving = self.bandwidth > 0
        if not (self.has_velocity and moving.any()):
            return False
        return self.velocity_agrees and bool(np.all(self.quieter_recorded[moving]))


@dataclass
class _Ranges:
    """Running extremes and sums of the cleaned samples."""

    count: int = 0
    low: dict[str, Any] = field(default_factory=dict)
    high: dict[str, Any] = field(default_factory=dict)
    known: Array | float = 0.0
    zeros: Array | float = 0.0
    distinct: list[set[float]] = field(default_factory=list)
    trials: dict[int, Stretch] = field(default_factory=dict)
    interruptions: list[Stretch] = field(default_factory=list)
    warm: bool = True
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, trial: int, step: float, chunk: Chunk) -> None:
        tau = np.zeros_like(chunk.q) if chunk.tau is None else chunk.tau
        channels = [c for c in (chunk.q, chunk.dq, chunk.tau, chunk.temperature, chunk.reference) if c is not None]
        self.digest.update(np.column_stack([chunk.t, *channels]).tobytes())  # row by row, whatever the chunks
        q, tau = (np.ascontiguousarray(values.T) for values in (chunk.q, tau))
        for name, values in {"q": q, "tau": tau}.items():
            least, most = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
            self.low[name] = np.fmin(self.low[name], least) if name in self.low else least
            self.high[name] = np.fmax(self.high[name], most) if name in self.high else most
        self.count += len(chunk)
        self.warm &= chunk.temperature is not None
        self.known = self.known + np.count_nonzero(np.isfinite(tau), axis=1)
        self.zeros = self.zeros + np.count_nonzero(tau == 0.0, axis=1)
        self.distinct = self.distinct or [set() for _ in tau]
        for values_of_joint, column in zip(self.distinct, tau, strict=True):
            if len(values_of_joint) < 1000:
                values_of_joint.update(np.unique(column[np.isfinite(column)])[:1000].tolist())
        before = self.trials.get(trial)
        stamps = chunk.t if before is None else np.concatenate([[before.stop], chunk.t])
        for gap in np.flatnonzero(np.diff(stamps) > GAP_STEPS * step).tolist():
            self.interruptions.append(Stretch(trial, float(stamps[gap]), float(stamps[gap + 1])))
        start = float(chunk.t[0]) if before is None else before.start
        self.trials[trial] = Stretch(trial, start, float(chunk.t[-1]))


def survey(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    drives: Mapping[str, Drive],
    need_effort: bool = True,
) -> Survey:
    """Survey all trials in one pass; without `need_effort` efforts are not read, and their ranges are 0.

    Observers among the corrections of the recordings observe this pass.

    Raises:
        InputError: no usable sample, efforts missing, unknown joints.
    """
    sources = [as_corrected(recording) for recording in recordings]
    rests, left_out = [StillnessObserver(joints) for _ in sources], Counter[str]()
    if len(sources) <= MOST_BEGUN:
        passes = [_Pass.begin(*both, joints, left_out) for both in zip(sources, rests, strict=True)]
        steps = [one.step for one in passes]
    else:
        passes, steps = [], [compute_median_step(one.unobserved, joints) for one in sources]
    step = float(np.median(steps))
    repairs, ranges = Repairs(), _Ranges()
    length = max(16, math.ceil(PERIODOGRAM / step))
    spectra: Spectra | None = None
    for trial, recording in enumerate(sources):
        begun = passes[trial] if passes else _Pass.begin(recording, rests[trial], joints, left_out)

        def watched(trial: int = trial, recording: Recording = begun) -> Iterator[tuple[int, Chunk]]:
            used = drives if need_effort else None
            for segment, chunk in clean(recording, joints, used, steps[trial], repairs, SURVEY_GAP_S):
                ranges.add(trial, steps[trial], chunk)
                yield segment, Chunk(t=chunk.t, q=chunk.q, dq=chunk.dq)  # of which the spectra are

        for window in cut_windows(watched(), Cut(step, length // 2, length // 4, SURVEY_GAP_S, steps[trial])):
            if window.q.shape[1] >= min(length, 16):
                one = _periodograms(window.q, window.dq, step, length)
                spectra = one if spectra is None else spectra.plus(one)
    if not ranges.count or repairs.total_dropped >= repairs.rows:
        counts = format_counts(repairs.dropped) or "empty"
        hint = _name_missing(recordings, joints) or "; check the columns or fields that they are read from"
        raise InputError(f"{', '.join(r.source for r in recordings)}: no usable sample ({counts}){hint}")
    if spectra is None:
        raise InputError(f"{recordings[0].source}: too short: {ranges.count} usable samples")
    left = {code: rows * (len(joints) if code in OF_ALL_JOINTS else 1) for code, rows in left_out.items()}
    found = _conclude(sources, joints, step, repairs, ranges, spectra)
    return replace(found, steps=tuple(steps), rests=tuple(one.conclude() for one in rests)).with_left_out(left)


@dataclass(frozen=True)
class _Pass(DerivedRecording):
    """A recording in a pass that has begun.

    Attributes:
        recording: the recording.
        step: median distance of its time stamps [s].
        begun: its chunks.
    """

    recording: Corrected
    step: float
    begun: Iterator[Chunk]

    @classmethod
    def begin(
        cls, recording: Corrected, rest: StillnessObserver, joints: Sequence[str], left_out: Counter[str]
    ) -> _Pass:
        """Begin a pass; see `cleaning.begin` and `Corrected.read`."""
        return cls(recording, *begin(recording.source, observed(recording.read(joints, left_out), rest)))

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """The chunks of this pass."""
        return self.begun


def _periodograms(q: Array, dq: Array | None, step: float, length: int) -> Spectra:
    """Spectra of one stretch: position, derivative of the position, recorded velocity, and product of the velocities.

    Each is weighted with the duration of the stretch.
    """
    count = q.shape[1]
    velocity = np.gradient(q, step, axis=1)
    window = np.hanning(count)
    scale = step / (window**2).sum() * count * step

    def transform(values: Array) -> NDArray[np.complex128]:
        return np.asarray(np.fft.rfft(_without_trend(values) * window, n=length, axis=1) * math.sqrt(scale))

    position, derived = np.abs(transform(q)) ** 2, transform(velocity)
    # the central difference has gain sin(w h) / (w h): undone, so that it compares with a true velocity
    turn = 2 * np.pi * np.fft.rfftfreq(length)
    gain = np.where(turn < 2.5, np.sinc(turn / np.pi), np.sinc(2.5 / np.pi))
    derived = derived / gain
    frequency = np.asarray(np.fft.rfftfreq(length, step), dtype=np.float64)
    if dq is None:
        return Spectra(frequency, count * step, position, np.abs(derived) ** 2, None, None)
    recorded = transform(dq)
    return Spectra(
        frequency, count * step, position, np.abs(derived) ** 2, np.abs(recorded) ** 2, np.conj(derived) * recorded
    )


def _without_trend(values: Array) -> Array:
    """Rows minus their least-squares straight lines, shape (n, N)."""
    place = np.arange(values.shape[1]) - 0.5 * (values.shape[1] - 1)
    slope = values @ place / max(1.0, float(place @ place))
    return np.asarray(values - values.mean(axis=1, keepdims=True) - slope[:, None] * place)


def _name_missing(recordings: Sequence[Recording], joints: Sequence[str]) -> str:
    """Advice about joints whose positions are never finite; empty if every joint has some."""
    found = np.zeros(len(joints), dtype=bool)
    for recording in recordings:
        for chunk in recording.chunks(joints):
            found |= np.isfinite(chunk.q).any(axis=0)
    missing = [name for name, one in zip(joints, found, strict=True) if not one]
    hint = "name the other joints in `identify: [...]` of the configuration"
    return f": positions of {', '.join(missing)} are never recorded; {hint}" if missing else ""


def _conclude(
    recordings: Sequence[Corrected],
    joints: Sequence[str],
    step: float,
    repairs: Repairs,
    ranges: _Ranges,
    spectra: Spectra,
) -> Survey:
    frequency = spectra.frequency
    known = np.maximum(ranges.known, 1.0)
    still = ranges.high["q"] - ranges.low["q"] < 1e-9
    of_joints = [find_motion_bandwidth(frequency, power, 1.0 / step) for power in spectra.density]
    bandwidth, speed = np.where(still, 0.0, np.array(of_joints).T)
    total = spectra.position.sum(axis=1)
    derived_limit = np.array([find_acceleration_limit(frequency, power, 1.0 / step, 2) for power in spectra.density])
    recorded_limit = derived_limit
    if spectra.recorded is not None:
        density = 2.0 * spectra.recorded / spectra.seconds
        recorded_limit = np.array([find_acceleration_limit(frequency, power, 1.0 / step, 1) for power in density])
    inside = (frequency > 0) & (frequency <= np.maximum(bandwidth, 2 / PERIODOGRAM)[:, None])
    gain, lag, quieter = np.ones(len(joints)), np.zeros(len(joints)), np.zeros(len(joints), dtype=bool)
    if spectra.recorded is not None and spectra.cross is not None:
        turn = 2 * np.pi * frequency
        for j in range(len(joints)):
            power, cross = spectra.derived[j, inside[j]], spectra.cross[j, inside[j]]
            if power.sum() > 0:
                weight = turn[inside[j]]
                phase = np.angle(np.copysign(1.0, cross.real.sum()) * cross)  # opposite signs are not a delay
                lag[j] = float(-(weight * phase * np.abs(cross)).sum() / max((weight**2 * np.abs(cross)).sum(), 1e-300))
                gain[j] = float((cross * np.exp(1j * weight * lag[j])).real.sum() / power.sum())
            noisy = frequency > 2 * max(bandwidth[j], 2 / PERIODOGRAM)
            quieter[j] = spectra.recorded[j, noisy].sum() <= spectra.derived[j, noisy].sum()
    found = Survey(
        joint_names=tuple(joints),
        sources=tuple(recording.source for recording in recordings),
        steps=(),
        rate=1.0 / step,
        repairs=repairs,
        trials=tuple(ranges.trials.values()),
        interruptions=tuple(ranges.interruptions),
        seams=sum(recording.seams for recording in recordings),
        left_out={},
        rests=(),
        longest_gap=0.0,
        q_min=ranges.low["q"],
        q_max=ranges.high["q"],
        tau_min=np.nan_to_num(ranges.low["tau"]),
        tau_max=np.nan_to_num(ranges.high["tau"]),
        tau_distinct=np.array([len(distinct) for distinct in ranges.distinct]),
        zero_rows=np.asarray(ranges.zeros) / known,
        bandwidth=bandwidth,
        whiteness=spectra.position @ (1.0 - np.cos(2 * np.pi * frequency * step)) / np.maximum(total, 1e-300),
        speed=speed,
        derived_limit=derived_limit,
        recorded_limit=recorded_limit,
        has_velocity=spectra.recorded is not None,
        has_temperature=ranges.warm,
        velocity_gain=gain,
        velocity_lag=lag,
        quieter_recorded=quieter,
        sha256=ranges.digest.hexdigest(),
    )
    return found.with_longest_gap(0.0)
