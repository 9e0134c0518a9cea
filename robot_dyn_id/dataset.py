"""Chunks of recorded samples: the value that files and topics turn into.

A recording is never held as a whole: it is a re-iterable sequence of chunks. Walking it twice gives the same samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.errors import InputError

Array = NDArray[np.float64]

Item = TypeVar("Item")

Span = tuple[float, float]
"""A start and a stop [s]."""

LATEST = 1e11
"""Stamps beyond this [s] are no time of any clock."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive samples of one trial, one column per joint, exactly as recorded (SI units, or A for `current`).

    Attributes:
        t: message stamps [s], shape (n,), counted from the recording's `epoch`. May jitter, repeat or step back.
        q: joint positions [rad or m], shape (n, joints). NaN where the source had no finite value.
        dq: joint velocities [rad/s or m/s], shape (n, joints), or None if the source has none.
        tau: joint efforts [N m or N], shape (n, joints), or None. The unit is the source's: gains are applied later.
        current: motor currents [A], shape (n, joints), or None.
        temperature: of the joints [degrees Celsius], shape (n, joints), or None.
        reference: positions that the robot's controller was told [rad or m], shape (n, joints), or None.
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

    def take(self, index: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Chunk:
        """The chunk with the rows that `index` selects."""
        return Chunk(self.t[index], *(None if c is None else c[index] for c in self._channels()))  # type: ignore[arg-type]

    def joints(self, columns: Sequence[int]) -> Chunk:
        """The chunk with only some columns, in the order given."""
        return Chunk(self.t, *(None if c is None else c[:, columns] for c in self._channels()))  # type: ignore[arg-type]

    @staticmethod
    def join(chunks: Sequence[Chunk]) -> Chunk:
        """Chunks of one trial, end to end. A channel must be present in all of them or in none."""
        channels = zip(*(chunk._channels() for chunk in chunks), strict=True)
        joined = [None if parts[0] is None else np.concatenate(parts) for parts in channels]
        return Chunk(np.concatenate([chunk.t for chunk in chunks]), *joined)  # type: ignore[arg-type]

    def _channels(self) -> tuple[Array | None, ...]:
        return self.q, self.dq, self.tau, self.current, self.temperature, self.reference


class Recording(Protocol):
    """One trial: a re-iterable source of chunks.

    Attributes:
        source: what a person calls it (a path).
        joint_names: the joints that the source holds, in its order.
        epoch: what `t` counts from, in nanoseconds of the recording's clock (0 where `t` is the source's own).
        effort_is_torque: True where the source itself says that efforts are in N m or N; False where it does not
            say, so that efforts of joints with a configured gain are currents.
    """

    @property
    def source(self) -> str: ...  # noqa: D102
    @property
    def joint_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def epoch(self) -> int: ...  # noqa: D102
    @property
    def effort_is_torque(self) -> bool: ...  # noqa: D102

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Walk the trial from its first sample; columns are `joints`, in that order.

        Raises:
            InputError: a joint that the source does not hold, or a file that cannot be read.
        """
        ...


@dataclass(frozen=True)
class ArrayRecording:
    """A trial that is already in memory (tests, simulations, `.npz` and `.csv` files).

    Attributes:
        source: what a person calls it.
        joint_names: names of the columns.
        samples: all samples.
        epoch: see `Recording`.
        effort_is_torque: see `Recording`.
        chunk_size: samples per chunk handed out.
    """

    source: str
    joint_names: tuple[str, ...]
    samples: Chunk
    epoch: int = 0
    effort_is_torque: bool = True
    chunk_size: int = 8192

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Walk the samples chunk by chunk; see `Recording.chunks`."""
        columns = columns_of(self.joint_names, joints, self.source)
        for start in range(0, len(self.samples), self.chunk_size):
            yield self.samples.take(slice(start, start + self.chunk_size)).joints(columns)


def columns_of(available: Sequence[str], wanted: Sequence[str], source: str) -> list[int]:
    """Column numbers of the joints `wanted` among those `available`.

    Raises:
        InputError: a wanted joint is not there.
    """
    missing = [name for name in wanted if name not in available]
    if missing:
        raise InputError(f"{source}: no joint {', '.join(missing)}; it holds {', '.join(available)}")
    return [list(available).index(name) for name in wanted]


class Derived:
    """A recording made of another one: what it does not say itself is what that one says.

    Attributes:
        recording: the other one.
    """

    recording: Recording

    @property
    def source(self) -> str:
        """See `Recording`."""
        return self.recording.source

    @property
    def joint_names(self) -> tuple[str, ...]:
        """See `Recording`."""
        return self.recording.joint_names

    @property
    def epoch(self) -> int:
        """See `Recording`."""
        return self.recording.epoch

    @property
    def effort_is_torque(self) -> bool:
        """See `Recording`."""
        return self.recording.effort_is_torque


@dataclass(frozen=True)
class Excerpt(Derived):
    """The part of a recording between two times, counted from its first stamp.

    Attributes:
        recording: the whole.
        start, stop: [s]; samples with start <= t - t_first < stop belong to it.
        without: spans in it that are left out [s], in order; of each, samples with start <= t - t_first <= stop.
    """

    recording: Recording
    start: float
    stop: float
    without: tuple[Span, ...] = ()

    @property
    def source(self) -> str:
        """See `Recording`."""
        start = "start" if self.start == -np.inf else f"{self.start:g} s"
        stop = "end" if self.stop == np.inf else f"{self.stop:g} s"
        spans = ", ".join(f"[{start:g} s, {stop:g} s]" for start, stop in self.without)
        return f"{self.recording.source} [{start}, {stop})" + (f" without {spans}" if spans else "")

    @property
    def seams(self) -> int:
        """How often its samples go on behind a span that was left out."""
        return sum(start > max(self.start, 0.0) and stop < self.stop for start, stop in self.without)

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
            for start, stop in self.without:
                keep &= (since < start) | (since > stop)
            yield chunk.take(keep)


REMEMBERED = 32 * 2**20
"""Largest recording that is kept decoded [bytes]; a larger one is read anew at each walk, so that memory is bounded."""


def remembered(
    walk: Callable[[], Iterator[Item]], size: Callable[[Item], int], limit: int = REMEMBERED
) -> Callable[[], Iterator[Item]]:
    """A walk whose items are kept after the first time, if they are not too large.

    Args:
        walk: begins anew at each call.
        size: of an item [bytes].
        limit: for all of them [bytes].
    """
    kept: tuple[Item, ...] | None = None
    too_large = False

    def again() -> Iterator[Item]:
        nonlocal kept, too_large
        if kept is not None:
            yield from kept
            return
        seen: list[Item] = []
        total = 0
        for item in walk():
            total += size(item)
            too_large = too_large or total > limit
            if too_large:
                seen.clear()
            else:
                seen.append(item)
            yield item
        kept = None if too_large else tuple(seen)

    return again


class Remembered(Derived):
    """A recording whose chunks are kept after the first walk, if they are not too large.

    Estimation walks over the data ten times and more, and decoding would be most of its time.
    """

    def __init__(self, recording: Recording, limit: int = REMEMBERED) -> None:
        """Wrap a recording; `limit` is in bytes."""
        self.recording, self._limit = recording, limit
        self._walks: dict[tuple[str, ...], Callable[[], Iterator[Chunk]]] = {}

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        names = tuple(joints)
        if names not in self._walks:
            self._walks[names] = remembered(lambda: self.recording.chunks(names), lambda c: c.nbytes, self._limit)
        return self._walks[names]()
