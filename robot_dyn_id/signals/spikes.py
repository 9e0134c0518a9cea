# SPDX-License-Identifier: Apache-2.0
"""Single samples of the effort that are far from their neighbors, as transmission errors leave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.ndimage import median_filter

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.findings import Finding, format_counts, make_finding

MEDIAN_SAMPLES = 5
"""Number of samples of the median that a sample is compared with; up to two spikes next to each other are found."""

SPIKE_RATIO = 12.0
"""Distance from the median, over its robust standard deviation, above which a sample is a spike."""

RANGE_SHARE = 0.02
"""Distance from the median, as a share of the range of the effort in the chunk, below which nothing is a spike."""

DEVIATION_PER_MEDIAN = 1.4826
"""Standard deviation of normal noise over the median of its magnitude."""


class DespikedRecording(DerivedRecording):
    """A recording whose spikes of the effort are replaced by the median of the samples around them."""

    def __init__(self, recording: Recording) -> None:
        """Wrap a recording."""
        self.recording = recording

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        for chunk in self.recording.chunks(joints):
            changed = {}
            for name, values in (("tau", chunk.tau), ("current", chunk.current)):
                if values is not None and (spikes := find_spikes(values)).any():
                    changed[name] = np.where(spikes, _median(values), values)
            yield replace(chunk, **changed) if changed else chunk


def find_spikes(values: Array) -> Mask:
    """Samples far from the median of those around them, shape (N, n).

    Args:
        values: a channel of consecutive samples, NaN where missing, shape (N, n).
    """
    if len(values) < 2 * MEDIAN_SAMPLES:
        return np.zeros(values.shape, dtype=bool)
    distance = np.abs(values - _median(values))
    spikes = np.zeros(values.shape, dtype=bool)
    for joint, column in enumerate(distance.T):
        changed = column[column > 0.0]
        if len(changed):
            low, high = np.nanquantile(values[:, joint], (0.01, 0.99))
            deviation = DEVIATION_PER_MEDIAN * float(np.median(changed))
            spikes[:, joint] = column > max(SPIKE_RATIO * deviation, RANGE_SHARE * (high - low))
    return spikes


def examine_spikes(recording: Recording, joints: Sequence[str]) -> tuple[Finding, ...]:
    """Finding about the spikes of a recording's efforts, which `DespikedRecording` replaces."""
    count = np.zeros(len(joints), dtype=np.int64)
    for chunk in recording.chunks(joints):
        values = chunk.tau if chunk.tau is not None else chunk.current
        if values is not None and len(values):
            count += find_spikes(values).sum(axis=0)
    if not count.any():
        return ()
    found = {name: int(number) for name, number in zip(joints, count, strict=True) if number}
    message = f"{recording.source}: single efforts far from those around them are replaced: {format_counts(found)}"
    return (make_finding("effort_outliers", message, found),)


def _median(values: Array) -> Array:
    """Running median along the samples, shape (N, n); missing samples count as the median of all."""
    finite = np.isfinite(values)
    if not finite.all():
        middle = [
            np.median(column[known]) if known.any() else 0.0 for column, known in zip(values.T, finite.T, strict=True)
        ]
        values = np.where(finite, values, np.array(middle))
    return np.asarray(median_filter(values, size=(MEDIAN_SAMPLES, 1), mode="nearest"))
