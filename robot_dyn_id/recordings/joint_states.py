# SPDX-License-Identifier: Apache-2.0
"""sensor_msgs/msg/JointState in CDR: many messages decoded, or many samples encoded, at once.

Messages of one publisher differ in their stamp, their frame_id and their numbers only. So one message is
taken apart, and what it teaches (its layout) is applied to all messages of the same length that agree in
every other byte that counts. Padding does not: middleware leaves there what was in memory, and also behind
the last field.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.recordings.reading import finite

TYPE_NAME = "sensor_msgs/msg/JointState"
NANOSECONDS = 1_000_000_000

_HEADER = 4  # bytes of encapsulation; CDR aligns from behind it
_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}

Stamps = Integers
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class _Layout:
    """Where things are in a message.

    Attributes:
        order: byte order, `<` or `>`.
        names: joint names.
        blocks: (offset, count) of position, velocity and effort.
        fixed: indices of the bytes that two messages must share to have this layout.
    """

    order: str
    names: tuple[str, ...]
    blocks: tuple[tuple[int, int], ...]
    fixed: NDArray[np.intp]

    @property
    def usable(self) -> bool:
        """Whether there is one position, and one velocity and effort if any, per joint, and no name twice."""
        n = len(self.names)
        (_, positions), *others = self.blocks
        return positions == n == len(set(self.names)) and all(count in (0, n) for _, count in others)


@dataclass(frozen=True)
class JointStates:
    """Messages of a batch that hold the same joints in the same order.

    Attributes:
        rows: their places in the batch, shape (n,), ascending.
        names: joint names.
        usable: False if the arrays do not fit the names; then there are no values.
        q: positions [rad or m], shape (n, joints).
        dq: velocities [rad/s or m/s], shape (n, joints), or None if the messages have none.
        tau: efforts, shape (n, joints), or None if the messages have none.
    """

    rows: NDArray[np.intp]
    names: tuple[str, ...]
    usable: bool
    q: Array | None = None
    dq: Array | None = None
    tau: Array | None = None


@dataclass(frozen=True)
class Batch:
    """A batch of messages, decoded.

    Attributes:
        groups: the messages that could be decoded, by layout, in order of first appearance.
        decodable: which messages could be decoded, shape (n,).
        stamps: message stamps [ns], shape (n,); 0 where not decodable.
    """

    groups: tuple[JointStates, ...]
    decodable: Mask
    stamps: Stamps


def decode(messages: Sequence[bytes]) -> Batch:
    """Decode JointState messages of any mixture of layouts."""
    groups: list[JointStates] = []
    decodable = np.zeros(len(messages), dtype=bool)
    stamps = np.zeros(len(messages), dtype=np.int64)
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, message in enumerate(messages):
        by_length[len(message)].append(place)
    for length, places in by_length.items():
        rows = np.array(places)
        joined = b"".join([messages[place] for place in places])
        raw = np.frombuffer(joined, dtype=np.uint8).reshape(len(places), length)
        while len(rows):
            try:
                layout = _parse(raw[0].tobytes())
            except ValueError:
                raw, rows = raw[1:], rows[1:]
                continue
            same = (raw[:, layout.fixed] == raw[0, layout.fixed]).all(axis=1)
            decodable[rows[same]] = True
            stamps[rows[same]] = _stamps(raw[same], layout.order)
            groups.append(_values(raw[same], rows[same], layout))
            raw, rows = raw[~same], rows[~same]
    return Batch(tuple(sorted(groups, key=lambda group: int(group.rows[0]))), decodable, stamps)


def header_stamps(messages: Sequence[bytes]) -> Stamps:
    """Stamps [ns], shape (n,), of messages of any type that begins with a std_msgs/Header; missing bytes count as 0."""
    first = b"".join([message[:12].ljust(12, b"\x00") for message in messages])
    raw = np.frombuffer(first, dtype=np.uint8).reshape(-1, 12)
    little = raw[:, 1] == 1
    return np.where(little, _stamps(raw, "<"), _stamps(raw, ">"))


def encode(names: Sequence[str], stamps: Stamps, q: Array, dq: Array | None, tau: Array | None) -> list[bytes]:
    """Encode samples as little-endian CDR messages, the way middleware would send them.

    Args:
        names: joint names, one per column.
        stamps: message stamps [ns], shape (n,).
        q: positions, shape (n, joints).
        dq: velocities, same shape, or None for an empty field.
        tau: efforts, same shape, or None for an empty field.
    """
    template = _template(names, dq is not None, tau is not None)
    raw = np.tile(np.frombuffer(template, dtype=np.uint8), (len(stamps), 1))
    seconds, nanoseconds = np.divmod(np.asarray(stamps, dtype=np.int64), NANOSECONDS)
    raw[:, 4:8] = seconds.astype("<i4")[:, None].view(np.uint8)
    raw[:, 8:12] = nanoseconds.astype("<u4")[:, None].view(np.uint8)
    for values, (offset, count) in zip((q, dq, tau), _parse(template).blocks, strict=True):
        if values is not None and count:
            raw[:, offset : offset + 8 * count] = np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
    return [row.tobytes() for row in raw]


def _parse(message: bytes) -> _Layout:
    """Take one message apart.

    Raises:
        ValueError: the bytes are not a JointState in CDR.
    """
    order = _ORDERS.get(message[:2])
    if order is None:
        raise ValueError("unknown encapsulation")
    number = struct.Struct(order + "I")
    fixed = [0, 1]

    def count(at: int, size: int) -> tuple[int, int]:
        """The counter at or behind `at` and the offset behind it, if that number of items of `size` bytes follows."""
        at += -at % 4
        if at + 4 > len(message):
            raise ValueError("too short")
        fixed.extend(range(at, at + 4))
        (found,) = number.unpack_from(message, at)
        if at + 4 + found * size > len(message):
            raise ValueError("too short")
        return found, at + 4

    length, at = count(_HEADER + 8, 1)  # frame_id: its content is free to change
    joints, at = count(at + length, 4)
    names = []
    for _ in range(joints):
        length, at = count(at, 1)
        fixed.extend(range(at, at + length))
        names.append(message[at : at + length].rstrip(b"\x00").decode())
        at += length
    blocks = []
    for _ in range(3):
        values, at = count(at, 8)
        if values:  # an empty sequence has no elements to align
            at += -(at - _HEADER) % 8
        blocks.append((at, values))
        at += 8 * values
    if at > len(message):
        raise ValueError("too short")
    return _Layout(order, tuple(names), tuple(blocks), np.array(fixed))


def _stamps(raw: Bytes, order: str) -> Stamps:
    """Stamps [ns] of messages of one byte order."""
    seconds = np.ascontiguousarray(raw[:, 4:8]).view(order + "i4")[:, 0].astype(np.int64)
    nanoseconds = np.ascontiguousarray(raw[:, 8:12]).view(order + "u4")[:, 0]
    stamps: Stamps = seconds * NANOSECONDS + nanoseconds
    return stamps


def _values(raw: Bytes, rows: NDArray[np.intp], layout: _Layout) -> JointStates:
    """The numbers of messages of one layout."""
    if not layout.usable:
        return JointStates(rows, layout.names, usable=False)
    fields: list[Array | None] = []
    for offset, count in layout.blocks:
        block = np.ascontiguousarray(raw[:, offset : offset + 8 * count])
        fields.append(finite(block.view(layout.order + "f8")) if count else None)
    return JointStates(rows, layout.names, True, *fields)


def _template(names: Sequence[str], velocities: bool, efforts: bool) -> bytes:
    """A message with the given joints in which stamp and numbers are zero."""
    message = bytearray(b"\x00\x01\x00\x00" + bytes(8) + struct.pack("<I", 1) + b"\x00")

    def put_count(value: int) -> None:
        message.extend(bytes(-len(message) % 4) + struct.pack("<I", value))

    put_count(len(names))
    for name in names:
        text = name.encode() + b"\x00"
        put_count(len(text))
        message.extend(text)
    for present in (True, velocities, efforts):
        count = len(names) if present else 0
        put_count(count)
        if count:
            message.extend(bytes(-(len(message) - _HEADER) % 8 + 8 * count))
    return bytes(message)
