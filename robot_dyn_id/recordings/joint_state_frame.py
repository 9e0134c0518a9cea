# SPDX-License-Identifier: Apache-2.0
"""JointState messages of one publisher in CDR, which differ in their stamp, their numbers and their padding only."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

from robot_dyn_id.recordings.cdr import HEADER

STAMP = struct.Struct("<iI")
"""Seconds and nanoseconds behind the encapsulation."""

LONGEST_TAIL = 16
"""Bytes that middleware may leave behind the last field, more where arrays are empty."""

PLAIN, FREE = 255, 0
"""Masks of bytes that are the same in all messages, and of those that differ or are padding."""


class JointStateFrame:
    """Everything in serialized messages but their stamp and their numbers, in little-endian CDR.

    Attributes:
        template: a message with zeros in place of stamp and numbers.
        offsets: places of the first position, velocity and effort.
    """

    def __init__(self, names: Sequence[str], counts: Sequence[int], frame_id: str = "") -> None:
        """Make the constant parts.

        Args:
            names: joint names.
            counts: numbers of positions, velocities and efforts.
            frame_id: frame of the header.
        """
        message, mask = bytearray(), bytearray()

        def put(content: bytes, kind: int = PLAIN) -> None:
            message.extend(content)
            mask.extend(len(content) * bytes([kind]))

        def put_count(value: int) -> None:
            put(bytes(-len(message) % 4), FREE)
            put(struct.pack("<I", value))

        def put_text(text: bytes) -> None:
            put_count(len(text) + 1)
            put(text + b"\x00")

        put(b"\x00\x01")
        put(bytes(2 + STAMP.size), FREE)  # options of the encapsulation
        put_text(frame_id.encode())
        put_count(len(names))
        for name in names:
            put_text(name.encode())
        spans = []
        for count in counts:
            put_count(count)
            if count:
                put(bytes(-(len(message) - HEADER) % 8), FREE)
            spans.append((len(message), len(message) + 8 * count))
            put(bytes(8 * count), FREE)
        self.template, self.offsets = bytes(message), tuple(begin for begin, _ in spans)
        self._spans = spans
        ends = HEADER + STAMP.size, *(place for span in spans for place in span)
        self._between = [self.template[begin:end] for begin, end in list(pairwise(ends))[::2]]
        self._mask = int.from_bytes(mask, "little")
        self._plain = int.from_bytes(message, "little") & self._mask

    def encode(self, seconds: int, nanoseconds: int, numbers: bytes) -> bytes:
        """Serialize a message.

        Args:
            seconds: seconds of the stamp.
            nanoseconds: nanoseconds of the stamp.
            numbers: positions, velocities and efforts, one after the other, as little-endian doubles.
        """
        words, place = [self.template[:HEADER], STAMP.pack(seconds, nanoseconds)], 0
        for part, (begin, end) in zip(self._between, self._spans, strict=True):
            words += part, numbers[place : place + end - begin]
            place += end - begin
        return b"".join(words)

    def fits(self, message: bytes) -> bool:
        """Whether a message has these names, this frame, these counts and this byte order."""
        if not 0 <= len(message) - len(self.template) <= LONGEST_TAIL:
            return False
        return int.from_bytes(message, "little") & self._mask == self._plain

    def read(self, message: bytes) -> tuple[int, int, list[bytes]]:
        """Seconds and nanoseconds of the stamp of a message that fits, and its positions, velocities and efforts.

        Returns:
            The numbers as little-endian doubles.
        """
        seconds, nanoseconds = STAMP.unpack_from(message, HEADER)
        return seconds, nanoseconds, [message[begin:end] for begin, end in self._spans]
