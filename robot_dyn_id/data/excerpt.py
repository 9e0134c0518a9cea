# SPDX-License-Identifier: Apache-2.0
"""Parts of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.chunk import LATEST, Chunk, Span
from robot_dyn_id.data.recording import DerivedRecording, Recording


@dataclass(frozen=True)
class Excerpt(DerivedRecording):
    """The part of a recording between two times, counted from its first stamp.

    Attributes:
        recording: the complete recording.
        start: start of the part [s]; samples with start <= t - t_first < stop belong to it.
        stop: end of the part [s].
        without: spans at rest that are left out [s], in order; samples with start <= t - t_first <= stop of a span.
        excluded: spans that the user leaves out [s].
    """

    recording: Recording
    start: float
    stop: float
    without: tuple[Span, ...] = ()
    excluded: tuple[Span, ...] = ()

    @property
    def left_out(self) -> tuple[Span, ...]:
        """All spans that are left out [s], in order and apart from each other."""
        joined: list[Span] = []
        for start, stop in sorted((*self.without, *self.excluded)):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
            else:
                joined.append((start, stop))
        return tuple(joined)

    @property
    def source(self) -> str:
        """See `Recording`."""
        start = "start" if self.start == -np.inf else f"{self.start:g} s"
        stop = "end" if self.stop == np.inf else f"{self.stop:g} s"
        spans = ", ".join(f"[{start:g} s, {stop:g} s]" for start, stop in self.left_out)
        return f"{self.recording.source} [{start}, {stop})" + (f" without {spans}" if spans else "")

    @property
    def seams(self) -> int:
        """Number of interior spans that are left out."""
        return sum(start > max(self.start, 0.0) and stop < self.stop for start, stop in self.left_out)

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        first: float | None = None
        for chunk in self.recording.chunks(joints):
            if first is None:
                stamps = chunk.t[np.abs(chunk.t) <= LATEST]
                if not len(stamps):
                    continue
                first = float(stamps[0])
            since = chunk.t - first
            keep = (since >= self.start) & (since < self.stop)
            for start, stop in self.left_out:
                keep &= (since < start) | (since > stop)
            yield chunk.take(keep)


@dataclass(frozen=True)
class SpannedRecording(DerivedRecording):
    """The samples of a recording in some spans.

    Attributes:
        recording: the complete recording.
        spans: spans of its stamps [s]; samples with start <= t < stop of one of them are kept.
    """

    recording: Recording
    spans: tuple[Span, ...]

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`; chunks without a sample are left out."""
        for chunk in self.recording.chunks(joints):
            keep = np.zeros(len(chunk), dtype=bool)
            for start, stop in self.spans:
                keep |= (chunk.t >= start) & (chunk.t < stop)
            if keep.any():
                yield chunk.take(keep)


def inside_excerpt(recording: Recording, change: Callable[[Recording], Recording]) -> Recording:
    """A changed recording; an excerpt stays one, of the changed complete recording.

    Args:
        recording: the recording.
        change: makes the changed recording; its stamps are those of the original.
    """
    if isinstance(recording, Excerpt):
        return replace(recording, recording=inside_excerpt(recording.recording, change))
    return change(recording)


def whole_of(recording: Recording) -> Recording:
    """The complete recording behind an excerpt."""
    return recording.recording if isinstance(recording, Excerpt) else recording


def first_stamp(recording: Recording, joints: Sequence[str]) -> float:
    """First stamp of the complete recording, from which findings count times [s]; 0 without any.

    Args:
        recording: the recording, or an excerpt.
        joints: names of the joints.
    """
    for chunk in whole_of(recording).chunks(joints):
        stamps = chunk.t[np.abs(chunk.t) <= LATEST]
        if len(stamps):
            return float(stamps[0])
    return 0.0
