# SPDX-License-Identifier: Apache-2.0
"""Joint states in CDR, of any type that can be read: many messages decoded at once; JointState also encoded.

Messages of one publisher differ in their stamp, their frame_id and their numbers only. So one message is
taken apart, and what it teaches (its layout) is applied to all messages of the same length that agree in
every other byte that counts. Padding does not: middleware leaves there what was in memory, and also behind
the last field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.recordings.cdr import Bytes, MessageLayout, read_layout_of, stack
from robot_dyn_id.recordings.definitions import COMMON, Definitions, shorten_type
from robot_dyn_id.recordings.joint_state_frame import JointStateFrame
from robot_dyn_id.recordings.reading import mask_infinities
from robot_dyn_id.recordings.types.contract import CHANNELS, JointColumns, MessageType, Q
from robot_dyn_id.recordings.types.joint_state import JOINT_STATE

TYPE_NAME = JOINT_STATE.name
NANOSECONDS = 1_000_000_000

Stamps = Integers

_EARLIEST, _LATEST = -(2**31), 2**31
"""Range of the stamps of ROS [s]; numbers beyond are not times."""


@dataclass(frozen=True)
class JointStates:
    """Messages of a batch that hold the same joints in the same order.

    Attributes:
        rows: their places in the batch, shape (n,), ascending.
        names: joint names.
        usable: False if the arrays do not fit the names; then there are no values.
        channels: values by channel in the units of `Chunk`, shape (n, joints); what the messages have not is left out.
        unused: names of what the messages have besides.
    """

    rows: NDArray[np.intp]
    names: tuple[str, ...]
    usable: bool
    channels: Mapping[str, Array] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class Decoder:
    """Reader of the messages of one topic.

    Attributes:
        kind: type of the messages.
        definitions: definition of the type and its parts.
        names: names of the joints where the messages have none; empty: those that are usual for the type.
        channel: the only channel to read, as positions; empty: all channels.
    """

    kind: MessageType = JOINT_STATE
    definitions: Definitions = field(default_factory=lambda: COMMON, repr=False)
    names: tuple[str, ...] = ()
    channel: str = ""

    def decode(self, messages: Sequence[bytes]) -> Batch:
        """Decode messages of any mixture of layouts."""
        groups: list[JointStates] = []
        decodable = np.zeros(len(messages), dtype=bool)
        stamps = np.zeros(len(messages), dtype=np.int64)
        by_length: dict[int, list[int]] = defaultdict(list)
        for place, message in enumerate(messages):
            by_length[len(message)].append(place)
        for places in by_length.values():
            rows = np.array(places)
            raw = stack([messages[place] for place in places])
            while len(rows):
                try:
                    layout, columns = self.inspect(raw[0].tobytes())
                except ValueError:
                    raw, rows = raw[1:], rows[1:]
                    continue
                same = (raw[:, layout.fixed] == raw[0, layout.fixed]).all(axis=1)
                decodable[rows[same]] = True
                stamps[rows[same]] = _stamps_at(raw[same], columns)
                groups.append(_values(raw[same], rows[same], columns))
                raw, rows = raw[~same], rows[~same]
        return Batch(tuple(sorted(groups, key=lambda group: int(group.rows[0]))), decodable, stamps)

    def inspect(self, message: bytes) -> tuple[MessageLayout, JointColumns]:
        """Layout of a message, and the channels in it.

        Raises:
            ValueError: not such a message.
        """
        layout = read_layout_of(message, shorten_type(self.kind.name), self.definitions)
        try:
            return layout, self._columns(self.kind.columns(layout))
        except KeyError as error:
            raise ValueError(f"no field {error}") from None

    def _columns(self, columns: JointColumns) -> JointColumns:
        """The columns with the names that the messages lack, and of the one channel if only one is wanted."""
        names, channels = columns.names, columns.channels
        if not names:
            names = self.names or self.kind.default_names
        if self.channel:
            wanted = self.kind.default_channel or self.channel
            channels = {Q: channels[wanted]} if wanted in channels else {}
        return JointColumns(names, channels, columns.stamp, columns.unused)


class StreamDecoder:
    """Reader of single messages of one topic; it keeps the layout of the last one, which most others share."""

    def __init__(self, decoder: Decoder) -> None:
        """Read the messages of a topic."""
        self._decoder = decoder
        self._fixed: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._sample: Bytes = np.empty(0, dtype=np.uint8)
        self._columns = JointColumns((), {})

    def read(self, message: bytes) -> tuple[int, JointStates]:
        """Stamp [ns] and values of a message, one row.

        Raises:
            ValueError: not such a message.
        """
        raw = stack([message])
        if len(message) != len(self._sample) or (raw[0, self._fixed] != self._sample[self._fixed]).any():
            layout, self._columns = self._decoder.inspect(message)
            self._fixed, self._sample = layout.fixed, raw[0]
        rows = np.zeros(1, dtype=np.intp)
        return int(_stamps_at(raw, self._columns)[0]), _values(raw, rows, self._columns)


def decode(messages: Sequence[bytes]) -> Batch:
    """Decode JointState messages of any mixture of layouts."""
    return Decoder().decode(messages)


def read_header_stamps(messages: Sequence[bytes]) -> Stamps:
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
    frame = JointStateFrame(names, [0 if values is None else len(names) for values in (q, dq, tau)])
    raw = np.tile(np.frombuffer(frame.template, dtype=np.uint8), (len(stamps), 1))
    seconds, nanoseconds = np.divmod(np.asarray(stamps, dtype=np.int64), NANOSECONDS)
    raw[:, 4:8] = seconds.astype("<i4")[:, None].view(np.uint8)
    raw[:, 8:12] = nanoseconds.astype("<u4")[:, None].view(np.uint8)
    for values, offset in zip((q, dq, tau), frame.offsets, strict=True):
        if values is not None:
            raw[:, offset : offset + 8 * len(names)] = np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
    return [row.tobytes() for row in raw]


def _stamps(raw: Bytes, order: str) -> Stamps:
    """Stamps [ns] of messages of one byte order."""
    seconds = np.ascontiguousarray(raw[:, 4:8]).view(order + "i4")[:, 0].astype(np.int64)
    nanoseconds = np.ascontiguousarray(raw[:, 8:12]).view(order + "u4")[:, 0]
    stamps: Stamps = seconds * NANOSECONDS + nanoseconds
    return stamps


def _stamps_at(raw: Bytes, columns: JointColumns) -> Stamps:
    """Stamps [ns] of messages of one layout, shape (n,); 0 where they have none, or one out of range."""
    stamps: Stamps = np.zeros(len(raw), dtype=np.int64)
    if columns.stamp:
        seconds, *rest = (places.read(raw)[:, 0] for places in columns.stamp)
        seconds = np.where((seconds >= _EARLIEST) & (seconds < _LATEST), seconds, 0.0)
        whole = np.floor(seconds)
        nanoseconds = rest[0] if rest else np.rint((seconds - whole) * NANOSECONDS)
        stamps = whole.astype(np.int64) * NANOSECONDS + nanoseconds.astype(np.int64)
    return stamps


def _values(raw: Bytes, rows: NDArray[np.intp], columns: JointColumns) -> JointStates:
    """The numbers of messages of one layout, if there is one position, and at most one of each other, per joint."""
    n, counts = len(columns.names), {channel: len(places) for channel, places in columns.channels.items()}
    usable = counts.get(Q) == n == len(set(columns.names)) and all(count in (0, n) for count in counts.values())
    if not usable:
        return JointStates(rows, columns.names, usable=False)
    read = {
        channel: mask_infinities(columns.channels[channel].read(raw)) for channel in CHANNELS if counts.get(channel)
    }
    return JointStates(rows, columns.names, True, read, columns.unused)
