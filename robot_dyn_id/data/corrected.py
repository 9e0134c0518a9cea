# SPDX-License-Identifier: Apache-2.0
"""Corrected recordings: a recording and the corrections of its samples, which are values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import LATEST, Chunk, Span
from robot_dyn_id.data.observer import Observer, observed
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.data.stream_store import StreamStore


class Correction(Protocol):
    """A change of the samples of a recording, as a value.

    Those that move efforts in time have `effort_stamps` too: stamps before the correction of the efforts at stamps
    behind it, shape (N,).
    """

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """Chunks of the same trial, corrected; their samples do not depend on how it is cut into chunks."""
        ...


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Excerpt:
    """The part of a recording between two times, counted from its first stamp.

    Attributes:
        start: start of the part [s]; samples with start <= t - t_first < stop belong to it.
        stop: end of the part [s].
        without: spans at rest that are left out [s], in order; samples with start <= t - t_first <= stop of a span.
        excluded: spans that the user leaves out [s].
    """

    start: float = -np.inf
    stop: float = np.inf
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
    def name(self) -> str:
        """Name of the part, which follows that of the recording."""
        start = "start" if self.start == -np.inf else f"{self.start:g} s"
        stop = "end" if self.stop == np.inf else f"{self.stop:g} s"
        spans = ", ".join(f"[{start:g} s, {stop:g} s]" for start, stop in self.left_out)
        return f"[{start}, {stop})" + (f" without {spans}" if spans else "")

    @property
    def seams(self) -> int:
        """Number of interior spans that are left out."""
        return sum(start > max(self.start, 0.0) and stop < self.stop for start, stop in self.left_out)

    def apply(
        self, chunks: Iterator[Chunk], joints: Sequence[str], left_out: Counter[str] | None = None
    ) -> Iterator[Chunk]:
        """The samples of the part; see `Corrected.read` for those in spans that are left out."""
        left_out = Counter() if left_out is None else left_out
        first: float | None = None
        for chunk in chunks:
            if first is None:
                first = first_of(chunk.t)
                if first is None:
                    continue
            since = chunk.t - first
            moving, kept = self._moving(since), self.kept(since)
            left_out["rest_left_out"] += int(np.count_nonzero(self._within(since) & ~moving))
            left_out["times_excluded"] += int(np.count_nonzero(moving & ~kept))
            yield chunk.take(kept)

    def kept(self, since: Array) -> Mask:
        """Samples of the part by their times since the first stamp [s], shape (N,)."""
        return self._moving(since) & ~_in_spans(since, self.excluded)

    def _moving(self, since: Array) -> Mask:
        return self._within(since) & ~_in_spans(since, self.without)

    def _within(self, since: Array) -> Mask:
        return np.asarray((since >= self.start) & (since < self.stop))


def _in_spans(times: Array, spans: Sequence[Span]) -> Mask:
    """Times within spans, ends included, shape (N,)."""
    inside = np.zeros(len(times), dtype=bool)
    for start, stop in spans:
        inside |= (times >= start) & (times <= stop)
    return inside


def first_of(t: Array) -> float | None:
    """First stamp that is one [s]; None if there is none."""
    stamps = t[np.abs(t) <= LATEST]
    return float(stamps[0]) if len(stamps) else None


@dataclass(frozen=True)
class KeptSpans:
    """The samples of a recording in some spans.

    Attributes:
        spans: spans of its stamps [s]; samples with start <= t < stop of one of them are kept.
    """

    spans: tuple[Span, ...]

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Correction`; chunks without a sample are left out."""
        for chunk in chunks:
            keep = np.zeros(len(chunk), dtype=bool)
            for start, stop in self.spans:
                keep |= (chunk.t >= start) & (chunk.t < stop)
            if keep.any():
                yield chunk.take(keep)


@dataclass(frozen=True)
class ExcludedSpan:
    """Stretch of one joint's channel that is not a measurement.

    Attributes:
        joint: name of the joint.
        start: first stamp [s], in the clock of the recording.
        stop: last stamp [s].
        reason: code of the finding that reports it.
    """

    joint: str
    start: float
    stop: float
    reason: str


@dataclass(frozen=True)
class Exclusions:
    """Stretches of single joints that are left out.

    Efforts keep their values, so that filters need not bridge them, and are left out as rows of their joint alone (see
    `excluded_mask`). Positions are needed for the equations of all joints: where one is left out the sample is.

    Attributes:
        efforts: stretches whose efforts are left out.
        positions: stretches whose positions are left out.
    """

    efforts: tuple[ExcludedSpan, ...] = ()
    positions: tuple[ExcludedSpan, ...] = ()

    @property
    def seams(self) -> int:
        """Number of interruptions by positions that are left out."""
        count, until = 0, -np.inf
        for span in sorted(self.positions, key=lambda span: span.start):
            count += int(span.start > until)
            until = max(until, span.stop)
        return count

    def apply(
        self, chunks: Iterator[Chunk], joints: Sequence[str], left_out: Counter[str] | None = None
    ) -> Iterator[Chunk]:
        """The samples with positions; see `Corrected.read` for rows that are left out."""
        left_out = Counter() if left_out is None else left_out
        reasons = {span.reason: [one for one in self.efforts if one.reason == span.reason] for span in self.efforts}
        for chunk in chunks:
            for reason, spans in reasons.items():
                left_out[reason] += int(_inside(spans, joints, chunk.t, 0.0).sum())
            lost: Mask = np.asarray(_inside(self.positions, joints, chunk.t, 0.0).any(axis=0))
            left_out["encoder_frozen"] += int(np.count_nonzero(lost))
            yield chunk.take(~lost) if lost.any() else chunk


def _inside(spans: Sequence[ExcludedSpan], joints: Sequence[str], t: Array, margin: float) -> Mask:
    mask = np.zeros((len(joints), len(t)), dtype=bool)
    for span in spans:
        if span.joint in joints:
            mask[list(joints).index(span.joint)] |= (t >= span.start - margin) & (t <= span.stop + margin)
    return mask


OF_ALL_JOINTS = ("rest_left_out", "times_excluded", "encoder_frozen")
"""Codes of samples that are left out, in contrast to rows of one joint."""


@dataclass(frozen=True)
class Corrected(DerivedRecording):
    """A recording with corrections of its samples: the only view on a recording there is.

    Attributes:
        recording: the complete recording.
        corrections: the corrections, in the order of their application.
        observation: what the first pass over the complete recording found; None: it has not been made.
    """

    recording: Recording
    corrections: tuple[Correction, ...] = ()
    observation: object | None = field(default=None, repr=False, compare=False)

    @property
    def source(self) -> str:
        """See `Recording`."""
        return " ".join([self.recording.source, *(part.name for part in self.those(Excerpt))])

    @property
    def effort_is_torque(self) -> bool:
        """See `Recording`: currents are not torques, whatever the source states."""
        return self.recording.effort_is_torque and not any(self.those(ReadAsCurrent))

    @property
    def excerpt(self) -> Excerpt:
        """The part of the recording."""
        return next(iter(self.those(Excerpt)), Excerpt())

    @property
    def seams(self) -> int:
        """Number of interruptions that are spans left out on purpose."""
        return sum(one.seams for one in self.corrections if isinstance(one, Excerpt | Exclusions))

    @property
    def unobserved(self) -> Corrected:
        """The same without observers, which observe one pass alone."""
        return replace(self, corrections=tuple(one for one in self.corrections if not isinstance(one, Observing)))

    def those(self, kind: type[Kind]) -> list[Kind]:
        """The corrections of one kind."""
        return [one for one in self.corrections if isinstance(one, kind)]

    @property
    def complete(self) -> Corrected:
        """The corrected complete recording."""
        return replace(self, corrections=tuple(one for one in self.corrections if not isinstance(one, Excerpt)))

    def corrected(self, *corrections: Correction) -> Corrected:
        """The recording with further corrections; a part stays one, of the corrected complete recording."""
        return replace(self, corrections=(*self.complete.corrections, *corrections, *self.those(Excerpt)))

    def select(self, excerpt: Excerpt) -> Corrected:
        """Another part of the recording."""
        return replace(self, corrections=(*self.complete.corrections, excerpt))

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        return self.read(joints, Counter())

    def read(self, joints: Sequence[str], left_out: Counter[str]) -> Iterator[Chunk]:
        """Start a pass.

        Args:
            joints: names of the joints.
            left_out: counts of the samples (of all joints) and rows that are left out on purpose are added to it, by
                the code of the finding that reports them.
        """
        chunks = self.recording.chunks(joints)
        for one in self.corrections:
            counted = (left_out,) if isinstance(one, Excerpt | Exclusions) else ()
            chunks = one.apply(chunks, joints, *counted)
        return chunks


@dataclass(frozen=True)
class Observing:
    """A correction that changes nothing: an observer of the samples at its place among the corrections.

    Attributes:
        observer: the observer; it observes one pass.
    """

    observer: Observer

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """The same chunks."""
        return observed(chunks, self.observer)


@dataclass(frozen=True)
class ReadAsCurrent:
    """Efforts are currents, whatever their source states."""

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Correction`."""
        for chunk in chunks:
            yield chunk if chunk.current is not None else replace(chunk, current=chunk.tau, tau=None)


@dataclass(frozen=True, eq=False)
class Stored:
    """Samples are computed once, and read from a store in later passes.

    Estimation makes ten and more passes over the data; decoding would take most of its time.

    Attributes:
        store: store that keeps the chunks; it does not outlive this value.
    """

    store: StreamStore = field(default_factory=StreamStore)

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Correction`."""
        return self.store.stream((id(self), tuple(joints)), lambda: chunks, lambda chunk: chunk.nbytes)


def as_corrected(recording: Recording) -> Corrected:
    """A recording with its corrections, none if it has not been corrected."""
    return recording if isinstance(recording, Corrected) else Corrected(recording)


def whole_of(recording: Recording) -> Recording:
    """The complete recording behind one that is corrected."""
    return recording.recording if isinstance(recording, Corrected) else recording


def excluded_mask(recording: Recording, joints: Sequence[str], t: Array, margin: float) -> Mask:
    """Samples whose effort is left out, shape (n, N).

    Args:
        recording: the recording.
        joints: names of the joints, n.
        t: stamps in the clock of the recording [s], shape (N,).
        margin: time on both sides of a stretch that its values reach by filters [s].
    """
    mask = np.zeros((len(joints), len(t)), dtype=bool)
    for one in reversed(as_corrected(recording).corrections):
        if isinstance(one, Exclusions):
            mask |= _inside(one.efforts, joints, t, margin)
        t = one.effort_stamps(t) if hasattr(one, "effort_stamps") else t
    return mask


def first_stamp(recording: Recording, joints: Sequence[str]) -> float:
    """First stamp of the complete recording, from which findings count times [s]; 0 without any.

    Args:
        recording: the recording, or a part.
        joints: names of the joints.
    """
    firsts = (first_of(chunk.t) for chunk in as_corrected(recording).complete.chunks(joints))
    return next((first for first in firsts if first is not None), 0.0)
