# SPDX-License-Identifier: Apache-2.0
"""Messages in CDR, taken apart by the definition of their type: offsets of the numbers, and texts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array
from robot_dyn_id.recordings.definitions import NUMBERS, TEXT, Definitions

HEADER = 4
"""Bytes of encapsulation; CDR aligns from behind it."""

_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
_DEEPEST = 20  # types within types
_FREE = "frame_id"  # the text that may change from message to message of a publisher

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Numbers:
    """Places of numbers in a message.

    Attributes:
        code: NumPy's code of one number, with its byte order.
        offsets: offset of each number; -1: the message has none.
    """

    code: str
    offsets: tuple[int, ...]

    def __len__(self) -> int:
        """Number of numbers."""
        return len(self.offsets)

    def read(self, raw: Bytes) -> Array:
        """The numbers of messages with this layout, shape (n, numbers); NaN where the message lacks one.

        Args:
            raw: bytes of the messages, shape (n, length).
        """
        size = np.dtype(self.code).itemsize
        start, count = self.offsets[0] if self.offsets else 0, len(self.offsets)
        if start >= 0 and self.offsets == tuple(range(start, start + count * size, size)):
            block = np.ascontiguousarray(raw[:, start : start + count * size])
            return block.view(self.code).astype(np.float64, copy=False)
        offsets = np.array(self.offsets, dtype=np.intp)
        places = np.maximum(offsets, 0)[:, None] + np.arange(size)
        values = np.ascontiguousarray(raw[:, places.ravel()]).view(self.code).astype(np.float64)
        values[:, offsets < 0] = np.nan
        return values


@dataclass(frozen=True)
class MessageLayout:
    """Where things are in a message.

    Attributes:
        order: byte order, `<` or `>`.
        numbers: places of the numbers of each field by its path, such as `feedback.positions` or `items.0.value`.
        texts: texts of each field by its path.
        counts: number of items of each sequence and array of types by its path.
        fixed: indices of the bytes that two messages must share to have this layout.
    """

    order: str
    numbers: dict[str, Numbers] = field(repr=False)
    texts: dict[str, tuple[str, ...]]
    counts: dict[str, int]
    fixed: NDArray[np.intp] = field(repr=False)


def read_layout_of(message: bytes, type_name: str, definitions: Definitions) -> MessageLayout:
    """Take one message apart.

    Args:
        message: the message.
        type_name: its type without `/msg`.
        definitions: that type and its parts.

    Raises:
        ValueError: the bytes are not such a message in CDR.
    """
    return _Dissection(message, definitions).layout(type_name)


class _Dissection:
    """A pass over the fields of one message; see `read_layout_of`."""

    def __init__(self, message: bytes, definitions: Definitions) -> None:
        order = _ORDERS.get(message[:2])
        if order is None:
            raise ValueError("unknown encapsulation")
        self._message, self._definitions, self._order = message, definitions, order
        self._counter = struct.Struct(order + "I")
        self._at = HEADER
        self._fixed = [0, 1]
        self._numbers: dict[str, Numbers] = {}
        self._texts: dict[str, tuple[str, ...]] = {}
        self._counts: dict[str, int] = {}

    def layout(self, type_name: str) -> MessageLayout:
        """The layout of the whole message."""
        self._type(type_name, "", 0)
        if self._at > len(self._message):
            raise ValueError("too short")
        return MessageLayout(self._order, self._numbers, self._texts, self._counts, np.array(self._fixed))

    def _type(self, type_name: str, path: str, depth: int) -> None:
        fields = self._definitions.get(type_name)
        if not fields or depth > _DEEPEST:
            raise ValueError(f"no definition of {type_name}")
        for entry in fields:
            self._field(entry.kind, entry.length, f"{path}{entry.name}", depth)

    def _field(self, kind: str, length: int | None, path: str, depth: int) -> None:
        count = 1 if length is None else length or self._count(1)
        if kind in NUMBERS:
            size = int(NUMBERS[kind][1])
            if count:  # an empty sequence has no items to align
                self._at += -(self._at - HEADER) % size
            self._require(count * size)
            offsets = tuple(range(self._at, self._at + count * size, size))
            self._numbers[path] = Numbers(self._order + NUMBERS[kind], offsets)
            self._at += count * size
        elif kind == TEXT:
            self._texts[path] = tuple([self._text(path) for _ in range(count)])
        elif length is None:
            self._type(kind, f"{path}.", depth + 1)
        else:
            self._require(count)
            self._counts[path] = count
            for number in range(count):
                self._type(kind, f"{path}.{number}.", depth + 1)

    def _count(self, size: int) -> int:
        """The counter here or behind the gap, if that number of items of `size` bytes can follow."""
        self._at += -self._at % 4
        self._require(4)
        self._fixed.extend(range(self._at, self._at + 4))
        (count,) = self._counter.unpack_from(self._message, self._at)
        self._at += 4
        self._require(count * size)
        return int(count)

    def _text(self, path: str) -> str:
        length, start = self._count(1), self._at
        self._at += length
        if path.rpartition(".")[2] == _FREE:
            return ""
        self._fixed.extend(range(start, self._at))
        return self._message[start : self._at].rstrip(b"\x00").decode()

    def _require(self, size: int) -> None:
        if self._at + size > len(self._message):
            raise ValueError("too short")


def stack(messages: Sequence[bytes]) -> Bytes:
    """Messages of one length as an array of bytes, shape (n, length)."""
    joined = b"".join(messages)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(messages), len(messages[0]))
