# SPDX-License-Identifier: Apache-2.0
"""Time stamps: their unit and rate, and jitter that the samples themselves do not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk, add_margins
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.running import running_maximum, running_mean

STAMPS_NOT_IN_SECONDS = Definition(
    "stamps_not_in_seconds",
    Section.HEALTH,
    "error",
    "Time stamps are more than 0.2 s apart, or are times since 1970 in another unit: they are in milliseconds, "
    "microseconds or nanoseconds.",
    "convert the time stamps to seconds",
    check="clock",
)

SAMPLE_RATE_LOW = Definition(
    "sample_rate_low",
    Section.HEALTH,
    "error",
    "Samples are more than 0.2 s apart: they show positions, but no accelerations. Stamps in milliseconds have a "
    "finding of their own: in that unit these joints would be faster than any arm.",
    "record the joint states at 50 Hz or more",
    check="clock",
)

CLOCK_JITTER = Definition(
    "clock_jitter",
    Section.HEALTH,
    "info",
    "Time stamps jitter, but the samples are equally spaced, as their interpolation shows: they are stamped on "
    "arrival. The stamps are averaged.",
    "stamp samples where they are measured",
    check="clock",
)

UNITS = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
"""Units of stamps that are not in seconds, per second."""

LONGEST_STEP_S = 0.2
"""Longest median step that shows accelerations [s]: 5 Hz."""

LARGEST_SPEED, SPEED_QUANTILE = 30.0, 0.9
"""Speed that no joint of an arm has [rad/s or m/s], and the quantile over the samples that is compared with it."""

EARLIEST_EPOCH_S, LATEST_EPOCH_S = 5e8, 5e9
"""Seconds since 1970 that stamps of a clock may have."""

EXAMINED = 20_000
"""Number of samples that are examined."""

LEAST_JITTER_RATIO = 0.05
"""Standard deviation of the steps, as a ratio to the median step, below which stamps do not jitter."""

JITTER_ERROR_RATIO = 0.7
"""Ratio of the interpolation errors with uniform and with recorded stamps, below which only the stamps jitter."""

GAP_STEPS, GAP_SIGMAS = 8.0, 10.0
"""Step between stamps, in mean steps and standard deviations of the jitter, above which it is a gap."""

LARGEST_BURST = 4
"""Largest number of samples that arrive after a late one before they are on time."""

LEVEL_SAMPLES = 11
"""Number of samples whose median is the lateness before or after a lost sample."""

LARGEST_CLEAR_JITTER = 0.5
"""Median change of the lateness from sample to sample, in samples, up to which lost samples are recognized."""

LEVEL_SIGMAS = 6.0
"""Change of the level, in standard deviations, that does not happen by chance."""

SMOOTHING_SAMPLES = 101
"""Number of samples over which jittering stamps are averaged."""


def examine_stamp_unit(stamps: Array, positions: Array) -> tuple[Finding, ...]:
    """Finding about stamps that are not in seconds, or about samples that are too far apart.

    Stamps that are far apart are in the unit in which they are not, unless the joints would be faster in it than any
    arm: then they are in seconds, at a low rate.

    Args:
        stamps: stamps of the first samples, shape (N,).
        positions: their positions, shape (N, n).
    """
    usable = np.isfinite(stamps)
    stamps, positions = stamps[usable], positions[usable]
    steps = np.diff(stamps)
    steps = steps[steps > 0.0]
    if not len(steps):
        return ()
    median, start = float(np.median(steps)), abs(float(stamps[0]))
    epoch = [name for name, unit in UNITS.items() if EARLIEST_EPOCH_S * unit < start < LATEST_EPOCH_S * unit]
    if not epoch and median <= LONGEST_STEP_S:
        return ()
    rate = ["milliseconds" if median < 200.0 else "microseconds" if median < 2e5 else "nanoseconds"]
    unit = (epoch or rate)[0]
    message = f"time stamps are {median:.3g} apart in the median, from {start:.3g} on"
    if median > LONGEST_STEP_S * UNITS[unit]:
        return (STAMPS_NOT_IN_SECONDS.found(f"{message}, which no unit of time explains"),)
    if not epoch and _usual_travel(positions) > LARGEST_SPEED * median / UNITS[unit]:
        message = f"samples are {median:.3g} s apart ({1.0 / median:.2g} Hz), which does not show accelerations"
        return (SAMPLE_RATE_LOW.found(message),)
    message += f": they appear to be in {unit}"
    return (STAMPS_NOT_IN_SECONDS.found(message, action=f"divide the time stamps by {UNITS[unit]:.0e}"),)


def _usual_travel(positions: Array) -> float:
    """Distance that the fastest joint moves between two samples, without the largest ones; 0 without positions.

    Args:
        positions: shape (N, n), NaN where missing.
    """
    travel = np.fmax.reduce(np.abs(np.diff(positions, axis=0)), axis=1, initial=0.0)
    return float(np.quantile(travel, SPEED_QUANTILE)) if len(travel) else 0.0


@dataclass(frozen=True)
class FirstSamples:
    """Up to `EXAMINED` first samples of a recording.

    Attributes:
        t: stamps [s], shape (N,).
        q: positions, shape (N, n).
        has_currents: whether currents are recorded.
        has_efforts: whether efforts are recorded.
    """

    t: Array
    q: Array
    has_currents: bool
    has_efforts: bool

    @property
    def currents_alone(self) -> bool:
        """Whether currents are recorded, and no efforts."""
        return self.has_currents and not self.has_efforts


class FirstObserver:
    """Observer of the first samples, which refuses stamps that are not in seconds."""

    def __init__(self, source: str, joints: Sequence[str]) -> None:
        """Begin a recording of n joints."""
        self.source = source
        self._t, self._q = [np.zeros(0)], [np.zeros((0, len(joints)))]
        self._count, self._has_currents, self._has_efforts = 0, False, False

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`.

        Raises:
            UnsafeDataError: stamps in another unit, or at a low rate.
        """
        if self._count >= EXAMINED or not len(chunk):
            return
        if not self._count:
            self._has_currents, self._has_efforts = chunk.current is not None, chunk.tau is not None
        left = EXAMINED - self._count
        self._t.append(chunk.t[:left].copy())
        self._q.append(chunk.q[:left].copy())
        self._count += len(chunk)
        if self._count >= EXAMINED:
            self.conclude()

    def conclude(self) -> FirstSamples:
        """The samples.

        Raises:
            UnsafeDataError: see `observe`.
        """
        kinds = self._has_currents, self._has_efforts
        found = FirstSamples(np.concatenate(self._t), np.concatenate(self._q), *kinds)
        findings = examine_stamp_unit(found.t, found.q)
        if findings:
            raise UnsafeDataError.from_findings(findings, [self.source])
        return found


@dataclass(frozen=True)
class SampleClock:
    """Clock of equally spaced samples whose stamps jitter.

    Attributes:
        step: time between samples [s].
        gap: step between stamps from which on they are apart by a gap and not by jitter [s].
        counts_lost: whether the time between two stamps shows how many samples are lost between them; otherwise stamps
            jitter too much, and none are assumed lost.
    """

    step: float
    gap: float
    counts_lost: bool

    def numbers(self, t: Array, index: Array) -> Array:
        """Numbers of samples with finite stamps in the order of their arrival, shape (N,).

        A late sample takes the number before that of the next one.

        Args:
            t: stamps [s], shape (N,).
            index: numbers of the samples if none are lost, shape (N,).
        """
        if not self.counts_lost or not len(t):
            return index
        order = np.arange(len(t), dtype=np.float64)
        ahead = np.concatenate([[0.0], np.cumsum(np.round(np.diff(t) / self.step))]) - order
        return np.asarray(order - running_maximum(-ahead, 0, LARGEST_BURST))

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """Average stamps over `SMOOTHING_SAMPLES` samples; see `Correction`."""
        for around, due in add_margins(chunks, SMOOTHING_SAMPLES):
            yield replace(around.take(due), t=_average(around.t, self)[due])


def examine_jitter(source: str, t: Array, q: Array) -> tuple[SampleClock | None, tuple[Finding, ...]]:
    """Find stamps that jitter though the samples are equally spaced, as stamps of arrival do.

    Every position is interpolated from its four neighbors, once with the recorded stamps and once with those of equally
    spaced samples, of which some may be lost; smaller errors with the latter show that the samples were equally spaced.

    Args:
        source: name of the recording.
        t: stamps of its first samples [s], shape (N,).
        q: their positions, shape (N, n).

    Returns:
        Clock of the samples, None if the stamps do not jitter; findings.
    """
    usable = np.isfinite(t) & np.isfinite(q).all(axis=1)
    t, q = t[usable], q[usable]
    forward = np.concatenate([[True], np.diff(np.maximum.accumulate(t)) > 0.0]) if len(t) else np.zeros(0, dtype=bool)
    index = np.flatnonzero(usable)[forward].astype(np.float64)
    t, q = t[forward], q[forward]
    if len(t) < 4 * SMOOTHING_SAMPLES:
        return None, ()
    mean, median = float(t[-1] - t[0]) / (len(t) - 1), float(np.median(np.diff(t)))
    half = SMOOTHING_SAMPLES // 2
    lateness = t[half:-half] - running_mean(t, SMOOTHING_SAMPLES)
    jitter = float(np.std(lateness[SMOOTHING_SAMPLES - half : -(SMOOTHING_SAMPLES - half)]))
    if jitter < LEAST_JITTER_RATIO * mean:
        return None, ()
    recorded = _interpolation_error(t, q)
    moving = recorded > 0.0
    if not moving.any():
        return None, ()
    gap = GAP_STEPS * mean + GAP_SIGMAS * jitter
    steps = np.diff(t)
    inside = steps <= gap
    best, clock = JITTER_ERROR_RATIO, None
    for candidate in (SampleClock(median, gap, True), SampleClock(float(steps[inside].mean()), gap, False)):
        numbers = candidate.numbers(t, index)
        if (np.diff(numbers) <= 0.0).any() or _jumps(t, numbers, candidate):
            continue
        ratio = float(np.median(_interpolation_error(numbers, q)[moving] / recorded[moving]))
        if ratio < best:
            best, clock = ratio, replace(candidate, step=float(steps[inside].sum() / np.diff(numbers)[inside].sum()))
    if clock is None:
        return None, ()
    jitter = float(np.std((t - _average(t, clock))[SMOOTHING_SAMPLES:-SMOOTHING_SAMPLES]))
    message = (
        f"{source}: time stamps jitter by {1e3 * jitter:.1f} ms though the samples are equally spaced; they "
        "are averaged"
    )
    return clock, (CLOCK_JITTER.found(message),)


def _jumps(t: Array, numbers: Array, clock: SampleClock) -> bool:
    """Whether stamps change by a step for good, apart from gaps, as if samples were lost that are not counted.

    A step is larger than half a sample, and than what the scatter of the lateness makes by chance.

    Args:
        t: stamps [s], shape (N,).
        numbers: numbers of the samples.
        clock: clock of the samples.
    """
    changes = np.diff(t) / clock.step - np.diff(numbers)
    changes[np.diff(t) > clock.gap] = 0.0
    if float(np.median(np.abs(changes))) > LARGEST_CLEAR_JITTER:
        return False
    from scipy.ndimage import median_filter  # slow to import, and seldom used

    level = median_filter(np.cumsum(changes), LEVEL_SAMPLES)
    jumps = np.abs(level[LEVEL_SAMPLES:] - level[:-LEVEL_SAMPLES])
    scatter = 1.4826 * float(np.median(jumps))
    return bool(jumps.max(initial=0.0) > max(0.5, LEVEL_SIGMAS * scatter))


def _interpolation_error(t: Array, q: Array) -> Array:
    """RMS error of positions interpolated from two neighbors on either side, shape (n,)."""
    neighbors = [t[:-4], t[1:-3], t[3:-1], t[4:]]
    values = [q[:-4], q[1:-3], q[3:-1], q[4:]]
    middle = t[2:-2]
    estimate = np.zeros_like(q[2:-2])
    for own, value in zip(neighbors, values, strict=True):
        weight = np.ones_like(middle)
        for other in neighbors:
            if other is not own:
                weight *= (middle - other) / (own - other)
        estimate += weight[:, None] * value
    return np.asarray(np.sqrt(((q[2:-2] - estimate) ** 2).mean(axis=0)))


def _average(t: Array, clock: SampleClock) -> Array:
    """Stamps averaged over a symmetric reach, which is shorter near the ends and near gaps of the recording.

    Stamps that are not finite, and those that go backward, are left as they are; so are repeated ones where lost
    samples are counted.
    """
    averaged = np.array(t)
    usable = np.isfinite(t)
    change = np.diff(t[usable], prepend=-np.inf)
    usable[usable] = change > 0.0 if clock.counts_lost else change >= 0.0
    known = t[usable]
    if not len(known):
        return averaged
    bounds = np.concatenate([[0], np.flatnonzero(np.abs(np.diff(known)) > clock.gap) + 1, [len(known)]])
    index = np.arange(len(known))
    part = np.searchsorted(bounds, index, side="right") - 1
    near = np.minimum(SMOOTHING_SAMPLES // 2, np.minimum(index - bounds[part], bounds[part + 1] - 1 - index))
    even = clock.step * clock.numbers(known, np.flatnonzero(usable).astype(np.float64))
    total = np.concatenate([[0.0], np.cumsum(known - known[0] - even)])
    late = (total[index + near + 1] - total[index - near]) / (2 * near + 1)
    averaged[usable] = known[0] + even + late
    return averaged
