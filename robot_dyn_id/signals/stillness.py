# SPDX-License-Identifier: Apache-2.0
"""Time at rest in a recording: a recorder that was left running, a paused excitation.

Samples at rest contain no information about inertia and viscous friction, and not even about weight: dry friction holds
the robot at any torque within its own. Long rest would yet affect the choice of the cut-off, the weights, and the
held-out part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import LATEST, Chunk, Span
from robot_dyn_id.data.corrected import as_corrected, whole_of
from robot_dyn_id.data.observer import observe
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.cleaning import LARGEST_POSITION
from robot_dyn_id.wording import format_spans

REST_LEFT_OUT = Definition(
    "rest_left_out",
    Section.DATA,
    "info",
    "The robot is at rest for more than 5 s; that time is left out.",
    check="rest",
)

TIMES_EXCLUDED = Definition(
    "times_excluded",
    Section.DATA,
    "info",
    "Times of a recording are left out as `exclude` states.",
)

BIN = 0.5
"""Time in which a joint must change its place [s]."""

NOISE = 2.0
"""Changes below this many times the roughness (largest second difference of the positions: some seven
standard deviations of their noise, or one step of the encoder) are noise."""

CREEP, TRAVEL = 2e-3, 0.02
"""A change below this share of what the joint's fast motion changes in that time is a drift; it is taken to change this
much at least [rad or m]."""

SHORTEST = 5.0
"""Stillness is left out from this length on [s]: braking, reversals and short rests belong to a motion."""


@dataclass(frozen=True)
class Stillness:
    """Time at rest in a recording; times are counted from its first stamp.

    Attributes:
        length: time from the first to the latest stamp [s].
        spans: stillness that lasts [s], in order.
        moves: whether it moves at all.
    """

    length: float
    spans: tuple[Span, ...]
    moves: bool

    @property
    def at_rest(self) -> float:
        """Total time at rest [s]."""
        return sum(stop - start for start, stop in self.spans)

    def moving(self) -> tuple[Span, ...]:
        """The spans between, from the first stamp on."""
        ends = [0.0, *(time for span in self.spans for time in span), self.length]
        return tuple((start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True) if stop > start)


@dataclass
class _Bins:
    """Least and greatest position and greatest roughness of each joint in each bin: (3, n) values per half second.

    All of them extremes, so that they do not depend on how a recording is cut into chunks.
    """

    extremes: dict[int, Array]
    before: Array

    def add(self, since: Array, q: Array) -> None:
        joined = np.concatenate([self.before, q])
        rough = np.zeros_like(joined)
        rough[2:] = np.abs(np.diff(joined, n=2, axis=0))
        rough, self.before = rough[len(self.before) :], joined[-2:]
        numbers = np.floor(since / BIN).astype(np.int64)
        runs = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        new = np.stack(
            [np.minimum.reduceat(q, runs), np.maximum.reduceat(q, runs), np.maximum.reduceat(rough, runs)], 1
        )
        for number, values in zip(numbers[runs].tolist(), new, strict=True):
            old = self.extremes.get(number, values)
            low = np.minimum(old[0], values[0])
            self.extremes[number] = np.stack([low, *np.maximum(old[1:], values[1:])])

    def moving(self) -> tuple[list[int], Mask]:
        """Numbers of the bins that hold samples, and whether any joint moves in them."""
        numbers = sorted(self.extremes)
        low, high, rough = np.stack([self.extremes[number] for number in numbers], axis=1)
        change = high - low
        fast = np.quantile(change, 0.9, axis=0)  # not the largest: a single wrong sample would make it
        moves = change > np.maximum(NOISE * rough, CREEP * np.maximum(fast, TRAVEL))
        return numbers, np.asarray(moves.any(axis=1))


class StillnessObserver:
    """Observer of the time in which no joint moves for long."""

    def __init__(self, joints: Sequence[str]) -> None:
        """Begin a recording of n joints."""
        self._first, self._latest = math.inf, -math.inf
        self._bins = _Bins({}, np.empty((0, len(joints))))

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        stamps = chunk.t[np.abs(chunk.t) <= LATEST]
        if not len(stamps):
            return
        self._first = float(stamps[0]) if self._first == math.inf else self._first
        self._latest = max(self._latest, float(stamps.max()))
        plausible = (np.abs(chunk.q) <= LARGEST_POSITION).all(axis=1)
        kept = (np.abs(chunk.t) <= LATEST) & (chunk.t >= self._first) & plausible
        if kept.any():
            self._bins.add(chunk.t[kept] - self._first, chunk.q[kept])

    def conclude(self) -> Stillness:
        """The time at rest."""
        length = max(0.0, self._latest - self._first)
        if not self._bins.extremes:
            return Stillness(length, (), False)
        numbers, moves = self._bins.moving()
        return Stillness(length, _spans(numbers, moves, length) if moves.any() else ((0.0, length),), bool(moves.any()))


def find_stillness(recording: Recording, joints: Sequence[str]) -> Stillness:
    """Time at rest in a recording, in a pass of its own."""
    observer = StillnessObserver(joints)
    observe(recording, joints, observer)
    return observer.conclude()


def _spans(numbers: Sequence[int], moves: Mask, length: float) -> tuple[Span, ...]:
    """Runs of still bins, those that last; a bin without samples ends a run."""
    spans: list[Span] = []
    run: list[int] = []
    for number, moving in [*zip(numbers, moves.tolist(), strict=True), (numbers[-1] + 2, True)]:
        if run and (moving or number != run[-1] + 1):
            start, stop = run[0] * BIN, length if run[-1] == numbers[-1] else (run[-1] + 1) * BIN
            spans += [(start, stop)] if stop - start >= SHORTEST else []
            run = []
        if not moving:
            run.append(number)
    return tuple(spans)


def report_rest_left_out(recordings: Sequence[Recording]) -> tuple[Finding, ...]:
    """Findings about time that was left out, at rest or as the user states, one of each for each file."""
    rest: dict[str, dict[Span, None]] = {}
    stated: dict[str, dict[Span, None]] = {}
    for recording in recordings:
        part = as_corrected(recording).excerpt
        for found, spans in ((rest, part.without), (stated, part.excluded)):
            found.setdefault(whole_of(recording).source, {}).update(dict.fromkeys(spans))
    return (
        *(
            REST_LEFT_OUT.found(f"{source} is at rest {format_spans(sorted(spans))}, which is left out")
            for source, spans in rest.items()
            if spans
        ),
        *(
            TIMES_EXCLUDED.found(f"{source}: left out as stated, {format_spans(sorted(spans))}")
            for source, spans in stated.items()
            if spans
        ),
    )
