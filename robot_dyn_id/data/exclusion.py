# SPDX-License-Identifier: Apache-2.0
"""Stretches of a recording whose efforts or positions are not measurements, and the recording without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import DerivedRecording, Recording


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


class ExcludingRecording(DerivedRecording):
    """A recording with stretches of single joints that are left out.

    Efforts keep their values, so that filters need not bridge them, and are left out as rows of their joint alone (see
    `excluded_mask`). Positions are needed for the equations of all joints: where one is left out the sample is.
    """

    def __init__(
        self, recording: Recording, efforts: Sequence[ExcludedSpan], positions: Sequence[ExcludedSpan]
    ) -> None:
        """Wrap a recording.

        Args:
            recording: the recording.
            efforts: stretches whose efforts are left out.
            positions: stretches whose positions are left out.
        """
        self.recording = recording
        self.efforts = tuple(efforts)
        self.positions = tuple(positions)

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        for chunk in self.recording.chunks(joints):
            kept: Mask = np.asarray(~_inside(self.positions, joints, chunk.t, 0.0).any(axis=0))
            yield chunk if kept.all() else chunk.take(kept)

    @property
    def seams(self) -> int:
        """Number of interruptions by positions that are left out."""
        count, until = 0, -np.inf
        for span in sorted(self.positions, key=lambda span: span.start):
            count += int(span.start > until)
            until = max(until, span.stop)
        return count

    def count_efforts(self, joints: Sequence[str]) -> dict[str, int]:
        """Number of efforts of these joints that are left out, by the code of the finding that reports them."""
        counts: dict[str, int] = {}
        reasons = sorted({span.reason for span in self.efforts if span.joint in joints})
        for chunk in self.recording.chunks(joints) if reasons else ():
            for reason in reasons:
                spans = [span for span in self.efforts if span.reason == reason]
                counts[reason] = counts.get(reason, 0) + int(_inside(spans, joints, chunk.t, 0.0).sum())
        return counts


def excluded_mask(recording: Recording, joints: Sequence[str], t: Array, margin: float) -> Mask:
    """Samples whose effort is left out, in a recording or in one that it is derived from, shape (n, N).

    Args:
        recording: the recording.
        joints: names of the joints, n.
        t: stamps in the clock of the recording [s], shape (N,).
        margin: time on both sides of a stretch that its values reach by filters [s].
    """
    mask = np.zeros((len(joints), len(t)), dtype=bool)
    view: object = recording
    while isinstance(view, DerivedRecording):
        if isinstance(view, ExcludingRecording):
            mask |= _inside(view.efforts, joints, t, margin)
        t = view.effort_stamps(t)
        view = view.recording
    return mask


def _inside(spans: Sequence[ExcludedSpan], joints: Sequence[str], t: Array, margin: float) -> Mask:
    mask = np.zeros((len(joints), len(t)), dtype=bool)
    for span in spans:
        if span.joint in joints:
            mask[list(joints).index(span.joint)] |= (t >= span.start - margin) & (t <= span.stop + margin)
    return mask
