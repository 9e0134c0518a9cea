# SPDX-License-Identifier: Apache-2.0
"""Blocks of recordings for cross-validation.

Neighboring samples are correlated by the motion and by the filters, so that cross-validation leaves out contiguous
stretches of time, and a guard between them (Burman, Chow and Nolan 1994, h-block cross-validation). Every trial is
divided evenly and contributes to as many blocks as its length permits: leaving out one trial at a time fails where the
trials differ in speed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.chunk import Span
from robot_dyn_id.errors import InputError

BLOCKS = 8
"""Number of blocks for the choice of a model."""

GUARD_PERIODS = 0.5
"""Guard on either side of a boundary between blocks, in periods of the cut-off."""

SHORTEST_PIECE_PERIODS = 4.0
"""Shortest piece of a trial that is a part of a block, in periods of the cut-off; the guards take one of them."""

SPANS_PER_BLOCK = 4
"""Most spans of a block that stand for all of it."""

LARGEST_SPREAD_SHARE = 0.75
"""Largest share of a block that its spans take; beyond it they would hardly be quicker than the whole block."""

NO_BLOCK = -1
"""Block number of samples that belong to no block: guards, and the ends of segments. No fit uses them."""

ALL_FITS = -2
"""Block number of trials that are not divided, such as static poses: every fit uses them, none is judged on them."""


@dataclass(frozen=True)
class Stretch:
    """Uninterrupted stretch of a trial.

    Attributes:
        trial: number of the trial.
        start: first stamp [s], in the clock of the trial.
        stop: last stamp [s].
    """

    trial: int
    start: float
    stop: float

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.stop - self.start


@dataclass(frozen=True)
class Piece(Stretch):
    """Stretch of a trial that belongs to a block, without guards.

    Attributes:
        block: number of the block.
    """

    block: int


@dataclass(frozen=True)
class Blocks:
    """Division of trials into blocks.

    Attributes:
        count: number of blocks.
        pieces: stretches of the trials that belong to the blocks; samples outside of them belong to no block.
    """

    count: int
    pieces: tuple[Piece, ...]

    @classmethod
    def from_stretches(
        cls, stretches: Sequence[Stretch], count: int, cutoff: float, edge: float, period: float = 0.0
    ) -> Blocks:
        """Divide every trial evenly into pieces, and distribute the pieces over the blocks.

        A trial that is long enough has one piece in each block. A shorter one has fewer pieces, none of them shorter
        than `SHORTEST_PIECE_PERIODS`; the next trial continues with the next block. Data that are too short for
        `count` blocks make fewer.

        Args:
            stretches: uninterrupted stretches of the trials to divide; other trials are used in every fit.
            count: number of blocks, at least 2.
            cutoff: cut-off frequency of the low-pass filter [Hz].
            edge: time at both ends of a stretch that is not used [s].
            period: period of the motion, of which every piece has a whole number [s]; 0: unknown.

        Raises:
            InputError: data that are too short for two blocks.
        """
        used = [Stretch(s.trial, s.start + edge, s.stop - edge) for s in stretches if s.duration > 2.0 * edge]
        trials = sorted({stretch.trial for stretch in used})
        of_trial = [[stretch for stretch in used if stretch.trial == trial] for trial in trials]
        lengths = [sum(stretch.duration for stretch in group) for group in of_trial]
        shortest = max(SHORTEST_PIECE_PERIODS / cutoff, period)
        numbers = [min(count, max(1, int(length / shortest))) for length in lengths]
        if len(numbers) == 1:
            numbers = [max(2, numbers[0])]
        blocks = min(count, sum(numbers))
        if blocks < 2:
            raise InputError("the recordings are too short for cross-validation: record longer")
        guard, first = GUARD_PERIODS / cutoff, 0
        pieces: list[Piece] = []
        for group, length, number in zip(of_trial, lengths, numbers, strict=True):
            ends = np.linspace(0.0, length, number + 1)
            if period > 0.0:
                whole = int(length / period)
                ends[1:-1] = period * np.round(np.linspace(0.0, whole, number + 1)[1:-1])
            for k, (start, stop) in enumerate(pairwise(ends.tolist())):
                inner = (start + guard * (k > 0), stop - guard * (k < number - 1))
                pieces += _cut(group, inner, (first + k) % blocks)
            first += number
        return cls(blocks, tuple(pieces))

    def spread(self, duration: float, shortest: float) -> tuple[Piece, ...]:
        """Spans of all blocks that together last about a given time, evenly distributed over each block.

        Every trial has at least one.

        Args:
            duration: total time [s]; it is longer if the spans would be shorter than `shortest`.
            shortest: shortest span [s].

        Returns:
            The spans; all pieces of a block that is hardly longer than its spans.
        """
        found: list[Piece] = []
        for block in range(self.count):
            pieces = [piece for piece in self.pieces if piece.block == block]
            length = sum(piece.duration for piece in pieces)
            count = int(np.clip(duration / self.count / shortest, 1, SPANS_PER_BLOCK))
            span = max(duration / self.count / count, shortest)
            if count * span > LARGEST_SPREAD_SHARE * length:
                found += pieces
                continue
            for center in (np.arange(count) + 0.5) * length / count:
                found += _cut(pieces, (center - 0.5 * span, center + 0.5 * span), block)
        first = {piece.trial: piece for piece in reversed(self.pieces)}
        for trial in sorted(set(first) - {piece.trial for piece in found}):
            start = first[trial].start
            found.append(replace(first[trial], stop=min(start + shortest, first[trial].stop)))
        return tuple(found)

    def numbers(self, trial: int, t: Array) -> Integers:
        """Block of each sample of a trial, or `NO_BLOCK`; `ALL_FITS` for a trial without pieces; shape (N,).

        Args:
            trial: number of the trial.
            t: stamps [s], shape (N,).
        """
        pieces = [piece for piece in self.pieces if piece.trial == trial]
        numbers = np.full(len(t), NO_BLOCK if pieces else ALL_FITS)
        for piece in pieces:
            numbers[(t >= piece.start) & (t < piece.stop)] = piece.block
        return numbers


@dataclass(frozen=True)
class KeptBlocks:
    """Some of the blocks; rows outside of them are left out.

    Attributes:
        blocks: the division.
        kept: numbers of the blocks that are kept; `ALL_FITS` keeps the trials that are not divided.
    """

    blocks: Blocks
    kept: Collection[int]

    def mask(self, trial: int, t: Array) -> Mask:
        """Whether each sample of a trial is kept, shape (N,).

        Args:
            trial: number of the trial.
            t: stamps [s], shape (N,).
        """
        return np.isin(self.blocks.numbers(trial, t), list(self.kept))


def _cut(stretches: Sequence[Stretch], span: Span, block: int) -> list[Piece]:
    """Pieces of a span of the joined time of several stretches [s]."""
    pieces, passed = [], 0.0
    for stretch in stretches:
        start, stop = max(span[0] - passed, 0.0), min(span[1] - passed, stretch.duration)
        if start < stop:
            pieces.append(Piece(stretch.trial, stretch.start + start, stretch.start + stop, block))
        passed += stretch.duration
    return pieces
