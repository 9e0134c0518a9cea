# SPDX-License-Identifier: Apache-2.0
"""Chunks of recorded samples, the common format of files and topics.

A recording is never held in memory as a whole: it is a re-iterable sequence of chunks. Every pass gives the same
samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import InputError

Span = tuple[float, float]
"""A start and a stop [s]."""

LATEST = 1e11
"""Largest plausible stamp [s]; larger ones are not times of any clock."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive samples of one trial, one column per joint, exactly as recorded (SI units, or A for `current`).

    Attributes:
        t: message stamps [s], shape (n,), counted from the recording's `epoch`. May jitter, repeat or step back.
        q: joint positions [rad or m], shape (n, joints). NaN where the source had no finite value.
        dq: joint velocities [rad/s or m/s], shape (n, joints), or None if the source has none.
        tau: joint efforts [N m or N], shape (n, joints), or None. The unit is the source's: gains are applied later.
        current: motor currents [A], shape (n, joints), or None.
        temperature: joint temperatures [degrees Celsius], shape (n, joints), or None.
        reference: commanded (reference) positions [rad or m], shape (n, joints), or None.
    """

    t: Array
    q: Array
    dq: Array | None = None
    tau: Array | None = None
    current: Array | None = None
    temperature: Array | None = None
    reference: Array | None = None

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays.

        Raises:
            InputError: arrays of different lengths or joint counts.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            array = np.ascontiguousarray(value, dtype=np.float64)
            expected = (len(self.t),) if field.name == "t" else self.q.shape
            if array.shape != expected or self.q.ndim != 2 or len(self.q) != len(self.t):
                raise InputError(f"{field.name} has shape {array.shape}, expected {expected} (samples x joints)")
            if array is value:
                array = array.view()
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.t)

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        return sum(getattr(self, field.name).nbytes for field in fields(self) if getattr(self, field.name) is not None)

    def take(self, index: slice | Mask | NDArray[np.intp]) -> Chunk:
        """The chunk with the rows that `index` selects."""
        return Chunk(self.t[index], *(None if c is None else c[index] for c in self._channels()))  # type: ignore[arg-type]

    def joints(self, columns: Sequence[int]) -> Chunk:
        """The chunk with only some columns, in the order given."""
        if list(columns) == list(range(self.q.shape[1])):
            return self
        return Chunk(self.t, *(None if c is None else c[:, columns] for c in self._channels()))  # type: ignore[arg-type]

    @staticmethod
    def join(chunks: Sequence[Chunk]) -> Chunk:
        """Chunks of one trial, end to end. A channel must be present in all of them or in none."""
        channels = zip(*(chunk._channels() for chunk in chunks), strict=True)
        joined = [None if parts[0] is None else np.concatenate(parts) for parts in channels]
        return Chunk(np.concatenate([chunk.t for chunk in chunks]), *joined)  # type: ignore[arg-type]

    def _channels(self) -> tuple[Array | None, ...]:
        return self.q, self.dq, self.tau, self.current, self.temperature, self.reference


@dataclass
class Margins:
    """Gives consecutive chunks the samples around them, so that a running filter does not depend on the chunks.

    Each sample is due once, in order: with `reach` samples on both sides, except at the ends of the trial.

    Attributes:
        reach: number of samples that a filter needs on both sides.
    """

    reach: int
    _held: Chunk | None = None
    _due: int = 0  # first held row that was not due yet

    def add(self, chunk: Chunk) -> Iterator[tuple[Chunk, slice]]:
        """Continue with a chunk: samples, and rows of them that are due, if there are any."""
        joined = chunk if self._held is None else Chunk.join([self._held, chunk])
        ready = len(joined) - self.reach
        self._held = joined
        if ready > self._due:
            yield joined, slice(self._due, ready)
            first = max(0, ready - self.reach)
            self._held, self._due = joined.take(slice(first, None)), ready - first

    def finish(self) -> Iterator[tuple[Chunk, slice]]:
        """End the trial: the last samples that are due, if there are any."""
        if self._held is not None and len(self._held) > self._due:
            yield self._held, slice(self._due, len(self._held))


def add_margins(chunks: Iterable[Chunk], reach: int) -> Iterator[tuple[Chunk, slice]]:
    """Consecutive chunks of one trial with the samples around them, and rows of them that are due; see `Margins`."""
    margins = Margins(reach)
    for chunk in chunks:
        yield from margins.add(chunk)
    yield from margins.finish()
