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
from robot_dyn_id.data.chunk import Chunk, Margins, add_margins
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.cleaning import Drive, flag_current, read_reported_efforts
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


MARGIN = MEDIAN_SAMPLES // 2 + SURROUNDING_SAMPLES // 2
"""Number of samples on both sides that decide whether a sample is a spike."""


def find_spikes(values: Array, limits: Array) -> Mask:
    """Isolated samples far from the median of those around them, shape (N, n).

    Args:
        values: a channel of consecutive samples, NaN where missing, shape (N, n).
        limits: distance from the median above which a sample may be a spike, shape (n,).
    """
    distance = np.abs(values - running_median(values))
    spikes: Mask = distance > limits
    rows, joints = np.nonzero(spikes)
    if len(rows):
        around, distances = (surroundings(one)[rows, joints] for one in (values, distance))
        spikes[rows, joints] = are_isolated(around, distances, limits[joints], LARGEST_GROUP)
    return spikes


def surroundings(values: Array) -> Array:
    """The samples around each one, NaN outside, shape (N, n, `SURROUNDING_SAMPLES`); a view."""
    reach = SURROUNDING_SAMPLES // 2
    padded = np.pad(values, ((reach, reach), (0, 0)), constant_values=np.nan)
    return sliding_window_view(padded, SURROUNDING_SAMPLES, axis=0)


def are_isolated(values: Array, distances: Array, limits: Array, largest_group: int) -> Mask:
    """Samples far from the median of those around them, most of which agree, shape (k,).

    Args:
        values: each sample in the middle of those around it, shape (k, `SURROUNDING_SAMPLES`).
        distances: their distances from the median of those around them.
        limits: distance above which a sample may be a spike, shape (k,).
        largest_group: largest number of samples among them that may be far from the median.
    """
    middle, far = distances[:, SURROUNDING_SAMPLES // 2], distances > limits[:, None]
    others = np.isfinite(values) & ~far
    low, high = (
        bound(np.where(others, values, empty), axis=1) for bound, empty in ((np.min, np.inf), (np.max, -np.inf))
    )
    spread = np.where(others.any(axis=1), high - low, 0.0)
    agree = (others.sum(axis=1) >= MEDIAN_SAMPLES // 2) & (middle > ISOLATION * spread)
    return np.asarray((middle > limits) & agree & (far.sum(axis=1) <= largest_group))


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


@dataclass(frozen=True)
class SpikeLimits:
    """Replacement of spikes of the effort by the median of the samples around them.

    Attributes:
        limits: distance from the median above which an isolated sample is a spike, by joint; empty: none is that far.
        drives: drives of the joints whose effort is a current.
    """

    limits: Mapping[str, float]
    drives: Mapping[str, Drive]

    def array(self, joints: Sequence[str]) -> Array:
        """The limits of some joints, shape (n,)."""
        return np.array([self.limits.get(name, np.inf) for name in joints])

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Correction`."""
        limits = self.array(joints)
        for around, due in add_margins(chunks, MARGIN):
            chunk = around.take(due)
            values = read_reported_efforts(around, joints, self.drives)
            if values is None or not (spikes := find_spikes(values, limits)[due]).any():
                yield chunk
                continue
            median, current = running_median(values)[due], flag_current(around, joints, self.drives)
            yield replace(
                chunk,
                tau=None if chunk.tau is None else np.where(spikes & ~current, median, chunk.tau),
                current=None if chunk.current is None else np.where(spikes & current, median, chunk.current),
            )


class DistanceObserver:
    """Observer of the distances of efforts from those around them, from which their limits follow."""

    def __init__(self, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
        """Begin a recording of n joints, with drives of those whose effort is a current."""
        self.joints, self.drives = tuple(joints), drives
        self._margins, self._sampled, self._farthest = Margins(MARGIN), SampledRows(), np.zeros(len(joints))

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        self._continue(self._margins.add(chunk))

    def _continue(self, blocks: Iterator[tuple[Chunk, slice]]) -> None:
        for around, due in blocks:
            values = read_reported_efforts(around, self.joints, self.drives)
            if values is None:
                continue
            distance = np.abs(values - running_median(values))[due]
            self._farthest = np.fmax(self._farthest, np.fmax.reduce(distance, initial=0.0))
            speed = np.gradient(around.q, axis=0)[due] if len(around) > 1 else np.zeros_like(distance)
            speed = np.abs(speed - np.pi * np.round(speed / np.pi))  # without the turns of a wrapped angle
            self._sampled.add(np.stack([distance, values[due], speed], axis=1))

    def conclude(self) -> SpikeLimits:
        """Limits; no effort is a spike if none is farther from those around it."""
        self._continue(self._margins.finish())
        if self._sampled.total < 2 * MEDIAN_SAMPLES:
            return SpikeLimits({}, self.drives)
        rows = np.concatenate(self._sampled.rows)
        limits = np.array([_limit(*rows[:, :, joint].T) for joint in range(len(self.joints))])
        far = (self._farthest > limits).any()
        return SpikeLimits(dict(zip(self.joints, limits.tolist(), strict=True)) if far else {}, self.drives)


class SpikeObserver:
    """Observer of spikes of the effort: their number."""

    def __init__(self, source: str, joints: Sequence[str], limits: SpikeLimits) -> None:
        """Begin a recording of n joints, with limits above which isolated samples are spikes."""
        self.source, self.joints, self.limits = source, tuple(joints), limits
        self._margins, self._count = Margins(MARGIN), np.zeros(len(joints), dtype=np.int64)

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        if self.limits.limits:
            self._continue(self._margins.add(chunk))

    def _continue(self, blocks: Iterator[tuple[Chunk, slice]]) -> None:
        for around, due in blocks:
            values = read_reported_efforts(around, self.joints, self.limits.drives)
            if values is not None:
                self._count += find_spikes(values, self.limits.array(self.joints))[due].sum(axis=0)

    def conclude(self) -> tuple[Finding, ...]:
        """Finding about spikes, which `SpikeLimits` replaces."""
        self._continue(self._margins.finish())
        found = {name: int(number) for name, number in zip(self.joints, self._count, strict=True) if number}
        message = f"{self.source}: single efforts far from those around them are replaced: {format_counts(found)}"
        return (EFFORT_OUTLIERS.found(message, found),) if found else ()


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
