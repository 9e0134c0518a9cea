# SPDX-License-Identifier: Apache-2.0
"""Streams of computed items that are computed once, and read again in later passes.

Items stay in memory up to a limit that all streams share. Those beyond it are written to a temporary file without a
name, so that memory does not grow with a recording; files take at most half of the space that is free without them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Hashable, Iterator
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass
from typing import IO, Any, TypeVar

import numpy as np

Item = TypeVar("Item")

MEMORY_LIMIT_BYTES = 8 * 2**20
"""Items of all streams of a store that are kept in memory; others are kept in a file."""

STREAMS = 12
"""Number of streams that a store keeps; the one that has not been read for longest is dropped first."""


@dataclass(frozen=True, eq=False)
class Identity:
    """Key that is equal for the same object alone, which it keeps alive.

    Attributes:
        value: the object.
    """

    value: object

    def __eq__(self, other: object) -> bool:
        """Whether the other key is that of the same object."""
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        """Hash of the identity."""
        return id(self.value)


@dataclass(frozen=True, slots=True)
class _Place:
    """Array in a file.

    Attributes:
        start: offset of its first byte.
        dtype: its type.
        shape: its shape.
        writeable: whether it may be changed.
    """

    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    writeable: bool


@dataclass
class _StoredStream:
    """Items of one stream: the first ones in memory, the arrays of the others in a file.

    Attributes:
        items: the items, those behind `whole` with `_Place` for their arrays.
        whole: number of items whose arrays are in memory.
        nbytes: size of these [bytes].
        file: temporary file of the other arrays; None: all are in memory.
        end: size of the file [bytes].
    """

    items: list[Any] = field(default_factory=list)
    whole: int = 0
    nbytes: int = 0
    file: IO[bytes] | None = None
    end: int = 0

    def append(self, item: object, size: int, room: int, written: int = 0) -> None:
        """Append an item.

        Args:
            item: the item.
            size: its size [bytes].
            room: memory that is left for it [bytes]; an item that is larger is written to the file, with all others
                that follow.
            written: size of the files of all other streams [bytes].

        Raises:
            OSError: the files would take more than half of the space that is free without them.
        """
        if self.file is None and size <= room:
            self.items.append(item)
            self.whole += 1
            self.nbytes += size
            return
        if self.file is None:
            # read at any place by passes that overlap; closed with the last reference
            self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        space = os.fstatvfs(self.file.fileno())
        if written + self.end + size > space.f_bavail * space.f_frsize - size:
            raise OSError("too little space is left for a temporary file")
        self.items.append(_map_arrays(item, np.ndarray, self._write))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items."""
        for number, item in enumerate(self.items):
            yield item if number < self.whole else _map_arrays(item, _Place, self._read)

    def _write(self, array: np.ndarray) -> _Place:
        assert self.file is not None
        place = _Place(self.end, array.dtype, array.shape, array.flags.writeable)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        written = 0
        while written < len(data):
            written += os.pwrite(self.file.fileno(), data[written:], self.end + written)
        self.end += written
        return place

    def _read(self, place: _Place) -> np.ndarray:
        assert self.file is not None
        array = np.empty(place.shape, place.dtype)
        data = array.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(data):
            count = os.preadv(self.file.fileno(), [data[done:]], place.start + done)
            if count == 0:
                raise OSError("a temporary file has been truncated")
            done += count
        array.flags.writeable = place.writeable
        return array


def _map_arrays(item: Any, kind: type, change: Callable[[Any], object]) -> Any:
    """A copy of a dataclass, and of those in it, with values of one type changed."""
    if isinstance(item, kind):
        return change(item)
    if not is_dataclass(item) or isinstance(item, _Place):
        return item
    changed = copy(item)
    for one in fields(item):
        value = getattr(item, one.name)
        object.__setattr__(changed, one.name, _map_arrays(value, kind, change))
    return changed


class StreamStore:
    """Streams of dataclasses of arrays, by key. Items must not be changed by their readers.

    Copies, also by pickle, are empty: they compute the items again.
    """

    def __init__(self, limit: int = MEMORY_LIMIT_BYTES, streams: int = STREAMS) -> None:
        """Start empty.

        Args:
            limit: size of the items of all streams together that are kept in memory [bytes].
            streams: number of streams that are kept.
        """
        self._limit, self._streams = limit, streams
        self._stored: dict[Hashable, _StoredStream] = {}
        self._passes: dict[Hashable, int] = {}
        self._closed = False

    def __reduce__(self) -> tuple[type[StreamStore], tuple[int, int]]:
        """An empty store of the same limits: files have no copies."""
        return StreamStore, (self._limit, self._streams)

    def close(self) -> None:
        """Free memory and files; later passes compute the items again, and keep none."""
        self._closed = True
        self._stored.clear()

    def stream(
        self, key: Hashable, start: Callable[[], Iterator[Item]], size: Callable[[Item], int], skipped: int = 0
    ) -> Iterator[Item]:
        """The items of a stream; they are kept once a pass has reached the end.

        Args:
            key: key of the stream.
            start: starts a pass; called if the stream is not in the store.
            size: size of an item [bytes].
            skipped: number of passes that are not kept, for streams that are usually read once.
        """
        found = self._stored.pop(key, None)
        if found is not None:
            self._stored[key] = found  # read last
            yield from found
            return
        passes = self._passes[key] = self._passes.get(key, 0) + 1
        if passes <= skipped or self._closed:
            yield from start()
            return
        stored: _StoredStream | None = _StoredStream()
        for item in start():
            if stored is not None:
                try:
                    room = self._limit - self._in_memory - stored.nbytes
                    stored.append(item, size(item), room, sum(one.end for one in self._stored.values()))
                except OSError:  # too little space is left: later passes compute the items again
                    stored = None
            yield item
        if stored is None or self._closed:
            return
        self._stored[key] = stored
        while len(self._stored) > self._streams:
            del self._stored[next(iter(self._stored))]

    @property
    def _in_memory(self) -> int:
        """Size of the items in memory [bytes]."""
        return sum(stored.nbytes for stored in self._stored.values())
