# SPDX-License-Identifier: Apache-2.0
"""Single samples of the effort that are far from their neighbors, as transmission errors leave them.

A spike is far from the running median, compared with what the effort of the moving joint usually is (a joint that rests
most of the time has little noise, and torque of its motion is not an error), and isolated: the samples around it agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk, with_margins
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.cleaning import Drive, reported_efforts, takes_current
from robot_dyn_id.wording import format_counts

EFFORT_OUTLIERS = Definition(
    "effort_outliers",
    Section.HEALTH,
    "info",
    "Single efforts are far from those around them, which agree, as transmission errors leave them. The median of "
    "the samples around them replaces them.",
    "check the wiring and the driver of the joint",
    check="effort",
)

MEDIAN_SAMPLES = 5
"""Number of samples of the median that a sample is compared with; up to two spikes next to each other are found."""

SPIKE_RATIO = 12.0
"""Distance from the median, over its robust standard deviation, above which a sample is a spike."""

RANGE_SHARE = 0.02
"""Distance from the median, as a share of the range of the effort, below which nothing is a spike."""

SURROUNDING_SAMPLES = 7
"""Number of samples, with the spike in their middle, of which all but spikes must agree."""

LARGEST_GROUP = 2
"""Number of samples among the surrounding ones that may be far from the median."""

ISOLATION = 2.0
"""Distance of a spike from the median, over the range of the samples around it."""

MOVING_SHARE = 0.05
"""Speed, as a share of its 99 % quantile, above which a joint moves."""

DEVIATION_PER_MEDIAN = 1.4826
"""Standard deviation of normal noise over the median of its magnitude."""

SAMPLED = 50_000
"""Largest number of samples that the limits of a recording are taken from, evenly over it."""


class DespikedRecording(DerivedRecording):
    """A recording whose spikes of the effort are replaced by the median of the samples around them."""

    def __init__(self, recording: Recording, limits: Mapping[str, float], drives: Mapping[str, Drive]) -> None:
        """Wrap a recording.

        Args:
            recording: the recording.
            limits: distance from the median above which an isolated sample is a spike, by joint; see `examine_spikes`.
            drives: drives of the joints whose effort is a current.
        """
        self.recording = recording
        self.limits = dict(limits)
        self.drives = dict(drives)

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`; the spikes do not depend on the chunks."""
        limits = np.array([self.limits.get(name, np.inf) for name in joints])
        for around, due in with_margins(self.recording.chunks(joints), MARGIN):
            chunk = around.take(due)
            values = reported_efforts(around, joints, self.drives)
            if values is None or not (spikes := find_spikes(values, limits)[due]).any():
                yield chunk
                continue
            median, current = running_median(values)[due], takes_current(around, joints, self.drives)
            yield replace(
                chunk,
                tau=None if chunk.tau is None else np.where(spikes & ~current, median, chunk.tau),
                current=None if chunk.current is None else np.where(spikes & current, median, chunk.current),
            )


MARGIN = MEDIAN_SAMPLES // 2 + SURROUNDING_SAMPLES // 2
"""Number of samples on both sides that decide whether a sample is a spike."""


def find_spikes(values: Array, limits: Array, largest_group: int = LARGEST_GROUP) -> Mask:
    """Isolated samples far from the median of those around them, shape (N, n).

    Args:
        values: a channel of consecutive samples, NaN where missing, shape (N, n).
        limits: distance from the median above which a sample may be a spike, shape (n,).
        largest_group: see `LARGEST_GROUP`.
    """
    distance = np.abs(values - running_median(values))
    spikes: Mask = distance > limits
    for row, joint in np.argwhere(spikes):
        part = slice(max(0, row - SURROUNDING_SAMPLES // 2), row + SURROUNDING_SAMPLES // 2 + 1)
        far = distance[part, joint] > limits[joint]
        others = values[part, joint][~far]
        others = others[np.isfinite(others)]
        agree = len(others) >= MEDIAN_SAMPLES // 2 and distance[row, joint] > ISOLATION * float(np.ptp(others))
        spikes[row, joint] = agree and np.count_nonzero(far) <= largest_group
    return spikes


@dataclass
class SampledRows:
    """Evenly spaced samples of a recording, whatever its chunks: rows of values, at most `SAMPLED`."""

    rows: list[Array] = field(default_factory=list)
    every: int = 1
    total: int = 0

    def add(self, rows: Array) -> None:
        """Continue with consecutive rows."""
        self.rows.append(rows[-self.total % self.every :: self.every].copy())  # a view would keep all rows in memory
        self.total += len(rows)
        while sum(map(len, self.rows)) > SAMPLED:
            self.every *= 2
            self.rows = [np.concatenate(self.rows)[::2].copy()]


def examine_spikes(
    recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive]
) -> tuple[Mapping[str, float], tuple[Finding, ...]]:
    """Find spikes of a recording's efforts, which `DespikedRecording` replaces.

    Args:
        recording: the recording.
        joints: joints, n.
        drives: drives of the joints whose effort is a current.

    Returns:
        Distance from the median above which an isolated sample is a spike, by joint; finding about spikes.
    """
    sampled, farthest = SampledRows(), np.zeros(len(joints))
    for around, due in with_margins(recording.chunks(joints), MARGIN):
        values = reported_efforts(around, joints, drives)
        if values is None:
            return {}, ()
        distance = np.abs(values - running_median(values))[due]
        farthest = np.fmax(farthest, np.fmax.reduce(distance, initial=0.0))
        speed = np.abs(np.gradient(around.q, axis=0))[due] if len(around) > 1 else np.zeros_like(distance)
        sampled.add(np.stack([distance, values[due], speed], axis=1))
    rows = np.concatenate(sampled.rows) if sampled.rows else np.zeros((0, 3, len(joints)))
    if sampled.total < 2 * MEDIAN_SAMPLES:
        return {}, ()
    limits = np.array([_limit(*rows[:, :, joint].T) for joint in range(len(joints))])
    if not (farthest > limits).any():
        return {}, ()
    count = np.zeros(len(joints), dtype=np.int64)
    for around, due in with_margins(recording.chunks(joints), MARGIN):
        values = reported_efforts(around, joints, drives)
        if values is not None:
            count += find_spikes(values, limits)[due].sum(axis=0)
    if not count.any():
        return {}, ()
    found = {name: int(number) for name, number in zip(joints, count, strict=True) if number}
    message = f"{recording.source}: single efforts far from those around them are replaced: {format_counts(found)}"
    finding = EFFORT_OUTLIERS.found(message, found)
    return dict(zip(joints, limits.tolist(), strict=True)), (finding,)


def _limit(distance: Array, values: Array, speed: Array) -> float:
    """Distance from the median above which a sample of one joint may be a spike; infinite without distances.

    Args:
        distance: distance of samples from the median of those around them, shape (N,).
        values: the samples.
        speed: speed of the joint, in any unit.
    """
    known = speed[np.isfinite(speed)]
    moving = speed > MOVING_SHARE * float(np.quantile(known, 0.99)) if len(known) else np.zeros(len(speed), dtype=bool)
    groups = [part[part > 0.0] for part in (distance, distance[moving])]
    deviations = [DEVIATION_PER_MEDIAN * float(np.median(part)) for part in groups if len(part)]
    if not deviations:
        return np.inf
    low, high = np.nanquantile(values, (0.01, 0.99))
    return max(SPIKE_RATIO * max(deviations), RANGE_SHARE * float(high - low))


def running_median(values: Array) -> Array:
    """Running median of the known samples, shape (N, n); NaN where none is known. The outer samples are repeated."""
    reach = MEDIAN_SAMPLES // 2
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    if np.isfinite(values).all():
        return _median_of_known(padded)
    ordered = np.sort(sliding_window_view(padded, MEDIAN_SAMPLES, axis=0), axis=2)  # NaN last
    known = np.isfinite(ordered).sum(axis=2, keepdims=True)
    lower, upper = (np.maximum(known - 1, 0) // 2, known // 2)
    upper = np.minimum(upper, MEDIAN_SAMPLES - 1)
    middle = 0.5 * (np.take_along_axis(ordered, lower, axis=2) + np.take_along_axis(ordered, upper, axis=2))
    return np.asarray(middle[:, :, 0])


def _median_of_known(padded: Array) -> Array:
    """Running median of finite samples with the repeated outer ones: the smallest are sorted out until the middle."""
    reach = MEDIAN_SAMPLES // 2
    around = [padded[first : len(padded) - 2 * reach + first] for first in range(MEDIAN_SAMPLES)]
    for place in range(reach + 1):
        for after in range(MEDIAN_SAMPLES - 1, place, -1):
            low = np.minimum(around[after - 1], around[after])
            around[after] = np.maximum(around[after - 1], around[after])
            around[after - 1] = low
    return np.asarray(around[reach])
