# SPDX-License-Identifier: Apache-2.0
"""Time stamps: their unit, and jitter that the samples themselves do not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.ndimage import uniform_filter1d

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk, with_margins
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.findings import Finding, make_finding

UNITS = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
"""Units of stamps that are not in seconds, per second."""

LONGEST_STEP_S = 1.0
"""Longest plausible median step [s]."""

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

SMOOTHING_SAMPLES = 101
"""Number of samples over which jittering stamps are averaged."""


def examine_stamp_unit(recording: Recording, joints: Sequence[str]) -> tuple[Finding, ...]:
    """Finding about stamps that are not in seconds."""
    stamps = _first_samples(recording, joints)[0]
    stamps = stamps[np.isfinite(stamps)]
    steps = np.diff(stamps)
    steps = steps[steps > 0.0]
    if not len(steps) or (median := float(np.median(steps))) <= LONGEST_STEP_S:
        return ()
    epoch = [
        name for name, unit in UNITS.items() if EARLIEST_EPOCH_S * unit < abs(float(stamps[0])) < LATEST_EPOCH_S * unit
    ]
    rate = ["milliseconds" if median < 200.0 else "microseconds" if median < 2e5 else "nanoseconds"]
    unit = (epoch or rate)[0]
    message = f"time stamps are {median:.3g} apart in the median, instead of less than 1 s"
    if median > LONGEST_STEP_S * UNITS[unit]:
        return (make_finding("stamps_not_in_seconds", f"{message}, which no unit of time explains"),)
    message += f": they appear to be in {unit}"
    return (make_finding("stamps_not_in_seconds", message, action=f"divide the time stamps by {UNITS[unit]:.0e}"),)


def require_seconds(recordings: Sequence[Recording], joints: Sequence[str]) -> None:
    """Refuse stamps that are not in seconds.

    Raises:
        UnsafeDataError: stamps in another unit.
    """
    for recording in recordings:
        findings = examine_stamp_unit(recording, joints)
        if findings:
            raise UnsafeDataError.from_findings(findings, [recording.source])


def _first_samples(recording: Recording, joints: Sequence[str]) -> tuple[Array, Array]:
    """Stamps and positions of the first `EXAMINED` samples, shape (N,) and (N, n)."""
    parts: list[Chunk] = []
    for chunk in recording.chunks(joints):
        parts.append(chunk)
        if sum(map(len, parts)) >= EXAMINED:
            break
    if not parts:
        return np.zeros(0), np.zeros((0, len(joints)))
    t, q = np.concatenate([part.t for part in parts]), np.concatenate([part.q for part in parts])
    return t[:EXAMINED], q[:EXAMINED]


def examine_jitter(recording: Recording, joints: Sequence[str]) -> tuple[float, tuple[Finding, ...]]:
    """Find stamps that jitter though the samples are equally spaced, as stamps of arrival do.

    Every position is interpolated from its four neighbors, once with the recorded stamps and once with equally spaced
    ones; smaller errors with the latter show that the samples were equally spaced.

    Returns:
        Step from which on stamps are apart by a gap and not by jitter [s], 0 if the stamps do not jitter; findings.
    """
    t, q = _first_samples(recording, joints)
    usable = np.isfinite(t) & np.isfinite(q).all(axis=1)
    t, q = t[usable], q[usable]
    forward = np.concatenate([[True], np.diff(np.maximum.accumulate(t)) > 0.0]) if len(t) else np.zeros(0, dtype=bool)
    t, q = t[forward], q[forward]
    if len(t) < 4 * SMOOTHING_SAMPLES:
        return 0.0, ()
    mean = float(t[-1] - t[0]) / (len(t) - 1)
    jitter = float(np.std((t - uniform_filter1d(t, SMOOTHING_SAMPLES))[SMOOTHING_SAMPLES:-SMOOTHING_SAMPLES]))
    if jitter < LEAST_JITTER_RATIO * mean:
        return 0.0, ()
    recorded, even = _interpolation_error(t, q), _interpolation_error(np.arange(len(t), dtype=np.float64), q)
    moving = recorded > 0.0
    if not moving.any() or float(np.median(even[moving] / recorded[moving])) > JITTER_ERROR_RATIO:
        return 0.0, ()
    message = (
        f"{recording.source}: time stamps jitter by {1e3 * jitter:.1f} ms though the samples are equally spaced; they "
        "are averaged"
    )
    return GAP_STEPS * mean + GAP_SIGMAS * jitter, (make_finding("clock_jitter", message),)


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


class EvenlyStampedRecording(DerivedRecording):
    """A recording whose stamps are averaged over `SMOOTHING_SAMPLES` samples."""

    def __init__(self, recording: Recording, gap: float) -> None:
        """Wrap a recording.

        Args:
            recording: the recording.
            gap: step between stamps across which they are not averaged [s].
        """
        self.recording = recording
        self.gap = gap

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`; the stamps do not depend on the chunks."""
        reach = SMOOTHING_SAMPLES // 2
        for around, due in with_margins(self.recording.chunks(joints), reach):
            yield replace(around.take(due), t=_average(around.t, reach, self.gap)[due])


def _average(t: Array, reach: int, gap: float) -> Array:
    """Stamps averaged over a symmetric reach, which is shorter near the ends and near gaps of the recording."""
    gaps = np.flatnonzero(np.abs(np.diff(t)) > gap)
    bounds = np.concatenate([[0], gaps + 1, [len(t)]])
    index = np.arange(len(t))
    part = np.searchsorted(bounds, index, side="right") - 1
    near = np.minimum(reach, np.minimum(index - bounds[part], bounds[part + 1] - 1 - index))
    total = np.concatenate([[0.0], np.cumsum(t - t[0])])
    return np.asarray((total[index + near + 1] - total[index - near]) / (2 * near + 1) + t[0])
