# SPDX-License-Identifier: Apache-2.0
"""Overlapping windows of a recording on a uniform grid.

Short gaps are bridged, see `bridging`. The grid of a segment starts at its first stamp and is cut into windows by
sample count alone: whoever brings the samples, in whatever portions, gets the same windows. Each window overlaps its
neighbors so far that filters have settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.resampling import interpolate_cubic
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.signals.bridging import CHANNELS, CONTEXT_SAMPLES, bridge
from robot_dyn_id.signals.cleaning import GAP_STEPS

SPLINE_REACH = 48
"""Samples after which the ends of a cubic spline have no effect (0.27^48 < 1e-27)."""


@dataclass(frozen=True)
class Window:
    """A stretch of one segment on its uniform grid, joint-major.

    Attributes:
        segment: number of the segment.
        start: grid number of the first sample.
        t: time of each sample [s], shape (N,).
        q: positions, shape (n, N).
        dq: recorded velocities, shape (n, N), or None.
        tau: efforts, shape (n, N), or None.
        temperature: temperatures of the joints, shape (n, N), or None.
        reference: wanted positions, shape (n, N), or None.
        core: the samples that belong to this window and no other.
        ends: whether the window reaches the segment's last sample.
        effort_missing: efforts that are interpolated over missing samples, shape (n, N).
        motion_missing: samples in which the positions are, shape (N,).
        velocity_missing: samples in which a recorded velocity is, shape (N,).
        trial: number of the trial.
    """

    segment: int
    start: int
    t: Array
    q: Array
    dq: Array | None
    tau: Array | None
    temperature: Array | None
    reference: Array | None
    core: slice
    ends: bool
    effort_missing: Mask
    motion_missing: Mask
    velocity_missing: Mask
    trial: int = 0


@dataclass(frozen=True)
class FilteredWindow:
    """A window after filtering: smooth motion and raw efforts.

    Attributes:
        segment: number of the segment.
        t: time [s], shape (N,).
        motion: motion of the joints.
        tau: efforts as recorded [N m or N], shape (n, N), or None.
        number: grid number of each sample, shape (N,).
        own: samples that belong to this window and are not cut off, shape (N,).
        settled: samples that no filter transient inside the segment has reached.
        valid: samples of each joint whose rows are used, shape (n, N); the others are zero in a tile, so that those
            that follow keep their time.
        reference: commanded (reference) motion of the robot's controller, or None where it is not recorded.
        trial: number of the trial.
    """

    segment: int
    t: Array
    motion: Motion
    tau: Array | None
    number: Integers
    own: Mask
    settled: slice
    valid: Mask
    reference: Motion | None = None
    trial: int = 0

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        motions = [motion for motion in (self.motion, self.reference) if motion is not None]
        channels = [channel for one in motions for channel in (one.q, one.dq, one.ddq, one.temperature)]
        arrays = (self.t, self.tau, self.number, self.own, self.valid, *channels)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def used(self) -> Mask:
        """Samples of this window of which at least one joint has a row, shape (N,)."""
        return np.asarray(self.own & self.valid.any(axis=0))


@dataclass(frozen=True)
class Cut:
    """Division of segments into windows.

    Attributes:
        step: distance of the grid's samples [s].
        core: samples that a window owns.
        margin: samples that it shares with the adjacent windows on each side.
        longest_gap: longest gap that is bridged [s].
        recorded_step: median distance of the stamps of the recording [s]; 0: that of the grid.
    """

    step: float
    core: int
    margin: int
    longest_gap: float = 0.0
    recorded_step: float = 0.0

    @property
    def sample_step(self) -> float:
        """Median distance of the stamps of the recording [s]."""
        return self.recorded_step or self.step

    @property
    def reach(self) -> float:
        """Time around a window whose samples affect it [s]: of the spline, and of the bridges."""
        spline = SPLINE_REACH * max(self.step, self.sample_step)
        return spline + 2.0 * self.longest_gap + 2 * CONTEXT_SAMPLES * self.sample_step


def cut_windows(segments: Iterable[tuple[int, Chunk]], cut: Cut) -> Iterator[Window]:
    """Cut a cleaned recording, as it comes from `cleaning.clean`, into windows on the uniform grid."""
    held: list[Chunk] = []
    current, begin, number = -1, 0.0, 0

    def ready() -> Iterator[Window]:
        """All windows of the held samples that need nothing that is still to come."""
        nonlocal held, number
        while held:
            if held[-1].t[-1] <= begin + ((number + 1) * cut.core + cut.margin) * cut.step + cut.reach:
                return
            joined = Chunk.join(held)
            yield _window(joined, current, begin, number, cut, closed=False)
            number += 1
            oldest = begin + (number * cut.core - cut.margin) * cut.step - cut.reach
            held = [joined.take(slice(max(0, int(np.searchsorted(joined.t, oldest)) - 1), None))]

    def rest() -> Iterator[Window]:
        """Remaining windows when the segment has ended."""
        nonlocal number
        if held:
            joined = Chunk.join(held)
            last = int(np.floor((joined.t[-1] - begin) / cut.step + 1e-9))
            while number * cut.core <= last and len(joined) > 3:
                yield _window(joined, current, begin, number, cut, closed=True)
                number += 1

    for segment, chunk in segments:
        if segment != current:
            yield from rest()
            held, current, begin, number = [], segment, float(chunk.t[0]), 0
        held.append(chunk)
        yield from ready()
    yield from rest()


def _window(samples: Chunk, segment: int, begin: float, number: int, cut: Cut, closed: bool) -> Window:
    first = max(0, number * cut.core - cut.margin)
    last = (number + 1) * cut.core + cut.margin
    present = int(np.floor((samples.t[-1] - begin) / cut.step + 1e-9)) + 1
    ends = closed and last >= present
    last = min(last, present) if closed else last
    grid = np.arange(first, last)
    t = np.minimum(begin + grid * cut.step, samples.t[-1])
    step, reach = cut.sample_step, cut.reach
    low = int(np.searchsorted(samples.t, begin + first * cut.step - reach))
    high = int(np.searchsorted(samples.t, begin + (last - 1) * cut.step + reach, side="right"))
    bridged = bridge(samples.take(slice(low, high)), step, max(cut.longest_gap, GAP_STEPS * step))
    near = bridged.samples

    channels = {name: values for name in CHANNELS if (values := getattr(near, name)) is not None}
    columns = interpolate_cubic(t, near.t, np.concatenate(list(channels.values()), axis=1))  # one spline: same stamps
    parts = np.split(np.ascontiguousarray(columns.T), len(channels))
    resampled: dict[str, Array] = dict(zip(channels, parts, strict=True))

    def on_grid(missing: Mask) -> Mask:
        """Samples that are closest to a missing one."""
        if not missing.any():
            return np.zeros((*missing.shape[1:], len(t)), dtype=bool)
        after = np.minimum(np.searchsorted(near.t, t), len(near) - 1)
        before = np.maximum(after - 1, 0)
        return np.asarray(missing[np.where(t - near.t[before] < near.t[after] - t, before, after)].T)

    own = slice(number * cut.core - first, min((number + 1) * cut.core, last) - first)
    return Window(
        segment=segment,
        start=first,
        t=t,
        q=resampled["q"],
        dq=resampled.get("dq"),
        tau=resampled.get("tau"),
        temperature=resampled.get("temperature"),
        reference=resampled.get("reference"),
        core=own,
        ends=ends,
        effort_missing=on_grid(bridged.effort_missing),
        motion_missing=on_grid(bridged.motion_missing),
        velocity_missing=on_grid(bridged.velocity_missing),
    )
