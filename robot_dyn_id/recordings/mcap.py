# SPDX-License-Identifier: Apache-2.0
"""MCAP storage (`.mcap`), as raw messages, finished or not.

The framing of records is read here and not by the `mcap` library: its readers refuse a file whose writer
was killed, its stream reader hands out half a record at the end of one, and it spends more on a message than
all the decoding costs.
"""

from __future__ import annotations

import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import lz4.frame  # type: ignore[import-untyped]
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Schema

from robot_dyn_id.recordings.reading import (
    MSG_LANGUAGE,
    RawMessage,
    Salvage,
    StoredMessage,
    TopicDescription,
    Unreadable,
    Warn,
)

_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")  # opcode, length of the content
_MESSAGE = struct.Struct("<HIqq")  # channel, sequence, log time, publish time
_FOOTER = struct.Struct("<BQQQI")  # head, summary start, summary offset start, checksum
_LEARNED = (Opcode.SCHEMA, Opcode.CHANNEL)
_KNOWN = {int(opcode) for opcode in Opcode} | set(range(0x80, 0x100))  # from 0x80 on they are for private use
_CHUNK_TIMES = 28  # bytes of a chunk before the name of its compression: two times, size and checksum
_KEPT = (*_LEARNED, Opcode.MESSAGE, Opcode.CHUNK)
_LARGEST = 256 * 2**20  # [bytes] of a record, and of a chunk when it is unpacked


def _zstd(data: bytes, size: int) -> bytes:
    """Unpack at most `size` bytes: the frame itself may state another size, which would be allocated."""
    if zstandard.frame_content_size(data) > size:
        raise ValueError("more than the chunk states")
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=max(size, 1))


_DECOMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "": lambda data, size: data,
    "zstd": _zstd,
    "lz4": lambda data, size: bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size + 1)),
}
_SENSELESS = (
    *(McapError, struct.error, zstandard.ZstdError),
    *(ValueError, RuntimeError, EOFError, MemoryError, OverflowError),
)
"""Exceptions of the libraries on bytes that make no sense."""


class _Damaged(Exception):
    """The file ends or makes no sense here."""


class _Topics:
    """Topic and type name of each channel, and definition of each type, met so far."""

    def __init__(self) -> None:
        self._schemas: dict[int, str] = {}
        self.channels: dict[int, tuple[str, str]] = {}
        self.definitions: dict[str, str] = {}

    @property
    def complete(self) -> bool:
        """Whether there are channels, each with the definition of its type."""
        return bool(self.channels) and all(kind for _, kind in self.channels.values())

    def learn(self, opcode: int, content: bytes) -> None:
        """Take in a schema or a channel; other records teach nothing."""
        if opcode not in _LEARNED:
            return
        stream = ReadDataStream(BytesIO(content))
        try:
            if opcode == Opcode.SCHEMA:
                schema = Schema.read(stream)
                self._schemas[schema.id] = schema.name
                if schema.encoding == MSG_LANGUAGE:
                    self.definitions[schema.name] = schema.data.decode(errors="replace")
            else:
                channel = Channel.read(stream)
                self.channels[channel.id] = (channel.topic, self._schemas.get(channel.schema_id, ""))
        except _SENSELESS:
            raise _Damaged("a channel makes no sense") from None


def topics(path: Path) -> dict[str, str]:
    """Type name of each topic: from the summary, or from the whole file if it was not finished.

    Raises:
        Unreadable: not an MCAP file.
    """
    return dict(_known(path).channels.values())


def definitions(path: Path) -> dict[str, str]:
    """Definition of each type in the language of `.msg` files.

    Raises:
        Unreadable: not an MCAP file.
    """
    return _known(path).definitions


def _known(path: Path) -> _Topics:
    """Topics and definitions: from the summary, or from the whole file if it was not finished."""
    with path.open("rb") as stream:
        _check_magic(stream)
        known = _summary(stream)
        if not known.complete:
            for buffer in _buffers(stream, Damage()):  # `messages` reports it
                with suppress(_Damaged):
                    for opcode, start, end in _records(buffer):
                        known.learn(opcode, buffer[start:end])
    return known


def messages(path: Path, topics: Collection[str], warn: Warn) -> Iterator[RawMessage]:
    """Messages of `topics` in storage order; of a damaged file the same as `salvage`.

    Raises:
        Unreadable: not an MCAP file.
    """
    damage = Damage()
    with path.open("rb") as stream:
        _check_magic(stream)
        known = _summary(stream)
        for channel, log_time, _, (buffer, start, end) in _stored(stream, known, damage):
            if channel[0] in topics:
                yield (*channel, log_time, buffer[start:end])
    if damage.places:
        warn(str(damage))


def _stored(stream: BinaryIO, known: Any, damage: Damage) -> Iterator[tuple[Any, int, int, tuple[bytes, int, int]]]:
    """Every message that can be read: its channel, both times, and the buffer that holds it from one place to another.

    Args:
        stream: the file.
        known: learns the other records, and has the channels by number.
        damage: takes what cannot be read.
    """
    for buffer in _buffers(stream, damage):
        try:
            for opcode, start, end in _records(buffer):
                if opcode != Opcode.MESSAGE:
                    known.learn(opcode, buffer[start:end])
                    continue
                number, _, log_time, publish_time = _MESSAGE.unpack_from(buffer, start)
                channel = known.channels.get(number)
                if channel is None:
                    damage.lose(end - start, "messages that belong to no channel")
                else:
                    yield channel, log_time, publish_time, (buffer, start + _MESSAGE.size, end)
        except _Damaged as found:
            damage.lose(0, str(found))


@dataclass
class Damage:
    """Parts of a file that cannot be read.

    Attributes:
        places: descriptions of them.
        lost_bytes: number of bytes of messages that cannot be read.
        finished: whether the file does not just end where more was to be written.
    """

    places: list[str] = field(default_factory=list)
    lost_bytes: int = 0
    finished: bool = True

    def lose(self, count: int, what: str) -> None:
        """Note a damaged part of `count` bytes."""
        self.lost_bytes += count
        if what not in self.places:
            self.places.append(what)

    def __str__(self) -> str:
        """Description after the name of the file and "is"."""
        what = "damaged" if self.finished or len(self.places) > 1 else "not finished"
        others = len(self.places) - 1
        more = f", and {others} more place{'s' if others > 1 else ''}" if others else ""
        lost = f"; {self.lost_bytes} bytes are left out, and the rest is read" if self.lost_bytes else ""
        return f"{what}: {self.places[0]}{more}{lost}"


def salvage(path: Path, found: Salvage) -> Iterator[StoredMessage]:
    """Every message that can be read: also those behind a chunk that is damaged, and of a chunk that was cut off.

    Args:
        path: path of the file.
        found: takes the topics, what is wrong with the file, and the number of bytes that cannot be read.

    Raises:
        Unreadable: not an MCAP file, or not one of ROS 2.
    """
    known = _Described(found)
    damage = Damage(found.damage)
    count = 0
    with path.open("rb") as stream:
        _check_magic(stream)
        for topic, log_time, publish_time, (buffer, start, end) in _stored(stream, known, damage):
            count += 1
            yield StoredMessage(topic, log_time, publish_time, buffer[start:end])
    found.lost_bytes = damage.lost_bytes
    if not found.damage and _indexed(path) != count:
        found.damage.append("the index at its end is missing or wrong")


class _Described:
    """Description of each channel met so far."""

    def __init__(self, found: Salvage) -> None:
        self._found = found
        self._schemas: dict[int, Schema] = {}
        self.channels: dict[int, TopicDescription] = {}

    def learn(self, opcode: int, content: bytes) -> None:
        """Take in a schema or a channel; other records say nothing about topics.

        Raises:
            _Damaged: the record makes no sense.
            Unreadable: the messages of the channel are not those of ROS 2.
        """
        if opcode not in _LEARNED:
            return
        stream = ReadDataStream(BytesIO(content))
        try:
            if opcode == Opcode.SCHEMA:
                schema = Schema.read(stream)
                self._schemas[schema.id] = schema
                return
            channel = Channel.read(stream)
            schema = self._schemas[channel.schema_id]
            text = schema.data.decode()
        except (*_SENSELESS, KeyError):
            raise _Damaged("a channel makes no sense") from None
        if channel.message_encoding != "cdr":
            raise Unreadable(
                f"topic {channel.topic} is encoded as {channel.message_encoding}, not as a ROS 2 message (cdr): "
                "use the command line of mcap, `mcap recover`"
            )
        described = TopicDescription(
            name=channel.topic,
            type_name=schema.name,
            schema=text,
            schema_encoding=schema.encoding,
            type_hash=channel.metadata.get("topic_type_hash", ""),
            offered_qos=channel.metadata.get("offered_qos_profiles", ""),
        )
        self.channels[channel.id] = self._found.topics.setdefault(channel.topic, described)
        if self.channels[channel.id].type_name != schema.name:
            raise Unreadable(f"topic {channel.topic} has messages of two types; they cannot be kept in one bag")


def _buffers(stream: BinaryIO, damage: Damage) -> Iterator[bytes]:
    """Runs of whole records of the data section, chunks unpacked.

    Behind a record that makes no sense it goes on at the next chunk of the index, if there is a sound one.
    """
    size, indexed = os.fstat(stream.fileno()).st_size, _chunk_offsets(stream)
    position: int | None = len(_MAGIC)
    while position is not None:
        stream.seek(position)
        head = stream.read(_HEAD.size)
        opcode, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if opcode == Opcode.DATA_END:
            return
        if not head:
            damage.finished = False
            damage.lose(0, "its end is missing")
            return
        end, place = position + len(head) + length, f"byte {position}"
        following = bisect_right(indexed, position)
        chunk = indexed[following] if following < len(indexed) else None
        limit = size if chunk is None else chunk
        meant = following > 0 and indexed[following - 1] == position
        if len(head) < _HEAD.size:
            damage.finished = False
            damage.lose(len(head), f"it ends within a record ({place})")
        elif opcode not in _KNOWN or (meant and opcode != Opcode.CHUNK):
            damage.lose(limit - position, f"no record can be read there ({place})")
            position = chunk
            continue
        elif end > limit:
            content = stream.read(min(limit - position - len(head), _LARGEST))
            whole, lost = _begun(content) if opcode == Opcode.CHUNK else (b"", limit - position)
            damage.finished = chunk is not None or _ends(stream)
            damage.lose(
                lost, f"{'a record states a wrong length' if damage.finished else 'it ends within a record'} ({place})"
            )
            if whole:
                yield whole
            position = chunk
            continue
        elif opcode in _KEPT and length > _LARGEST:
            damage.lose(end - position, f"a record is too large ({place})")
        elif opcode == Opcode.CHUNK:
            try:
                yield _unpacked(stream.read(length))
            except _Damaged as part:
                damage.lose(end - position, f"{part} ({place})")
        elif opcode in _KEPT:
            yield head + stream.read(length)
        position = end


def _chunk_offsets(stream: BinaryIO) -> list[int]:
    """Positions of the chunks by the index at the end of the file; none if it has no checksum, or a wrong one."""
    size = os.fstat(stream.fileno()).st_size
    start, tail = _summary_start(stream)
    if not start or not (checksum := _FOOTER.unpack_from(tail)[-1]):
        return []
    stream.seek(start)
    content = stream.read(size - start)
    if zlib.crc32(content[: -len(_MAGIC) - 4]) != checksum:
        return []
    records = _records(content[: -len(_MAGIC)])
    try:
        indexes = [begin for opcode, begin, _ in records if opcode == Opcode.CHUNK_INDEX]
        return sorted(struct.unpack_from("<Q", content, begin + 16)[0] for begin in indexes)
    except (_Damaged, struct.error):
        return []


def _begun(content: bytes) -> tuple[bytes, int]:
    """The whole records of a chunk that was cut off, none if it is compressed; and the number of bytes behind them."""
    try:
        stream = BytesIO(content)
        stream.seek(_CHUNK_TIMES)
        (length,) = struct.unpack("<I", stream.read(4))
        if stream.read(length) != b"":
            return b"", len(content)
        (length,) = struct.unpack("<Q", stream.read(8))
        records = stream.read(min(length, len(content)))
        (checksum,) = struct.unpack_from("<I", content, _CHUNK_TIMES - 4)
        if len(records) == length and checksum not in (0, zlib.crc32(records)):
            return b"", len(content)
    except struct.error:
        return b"", len(content)
    end = 0
    try:
        for _, _, stop in _records(records):
            end = stop
    except _Damaged:
        pass  # what follows was not written
    return records[:end], len(records) - end


def _indexed(path: Path) -> int | None:
    """Number of messages that the summary at the end of a file states; None if there is no sound summary."""
    from mcap.reader import make_reader  # a fiftieth of a second of every start

    try:
        with path.open("rb") as stream:
            summary = make_reader(stream).get_summary()
    except _SENSELESS:
        return None
    if summary is None or summary.statistics is None:
        return None
    count = summary.statistics.message_count
    return count if summary.chunk_indexes or not count else None


def _check_magic(stream: BinaryIO) -> None:
    start = stream.read(len(_MAGIC))
    if not start:
        raise Unreadable("the file is empty: its recorder was ended before the first message; record it again")
    if start == _MAGIC:
        return
    opcode, length = _HEAD.unpack(head) if len(head := stream.read(_HEAD.size)) == _HEAD.size else (0, 0)
    if opcode == Opcode.HEADER and length <= os.fstat(stream.fileno()).st_size:
        raise Unreadable("its first bytes are damaged; copy the file again")
    raise Unreadable("not an MCAP file; give the file that the recorder wrote")


def _ends(stream: BinaryIO) -> bool:
    """Whether a file ends as a finished one."""
    stream.seek(-len(_MAGIC), os.SEEK_END)
    return stream.read() == _MAGIC


def _summary_start(stream: BinaryIO) -> tuple[int, bytes]:
    """Position of the summary, 0 if there is none, and the bytes of the footer."""
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(0, size - _FOOTER.size - len(_MAGIC)))
    tail = stream.read()
    if len(tail) < _FOOTER.size + len(_MAGIC) or not tail.endswith(_MAGIC):
        return 0, tail
    opcode, _, start, _, _ = _FOOTER.unpack_from(tail)
    return (start, tail) if opcode == Opcode.FOOTER and 0 < start < size else (0, tail)


def _summary(stream: BinaryIO) -> _Topics:
    """Topics that the summary names; none if there is no sound summary."""
    known = _Topics()
    start, _ = _summary_start(stream)
    if not start:
        return known
    try:
        for opcode, content in _framed(stream, start):
            known.learn(opcode, content)
    except _Damaged:
        return _Topics()
    return known


def _framed(stream: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    """Opcode and content of the schemas and channels from `start` up to the footer.

    Raises:
        _Damaged: the file ends before.
    """
    size = os.fstat(stream.fileno()).st_size
    stream.seek(start)
    while True:
        head = stream.read(_HEAD.size)
        opcode, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if opcode == Opcode.FOOTER:
            return
        if opcode not in _KNOWN or length > size - stream.tell() or (opcode in _LEARNED and length > _LARGEST):
            raise _Damaged("no sound summary")
        if opcode in _LEARNED:
            yield opcode, stream.read(length)
        else:
            stream.seek(length, os.SEEK_CUR)


def _records(buffer: bytes) -> Iterator[tuple[int, int, int]]:
    """Opcode, start and end of the content of each record.

    Raises:
        _Damaged: a record does not fit.
    """
    at, size = 0, len(buffer)
    while at < size:
        if at + _HEAD.size > size:
            raise _Damaged("half a record")
        opcode, length = _HEAD.unpack_from(buffer, at)
        start = at + _HEAD.size
        at = start + length
        if at > size or (opcode == Opcode.MESSAGE and length < _MESSAGE.size):
            raise _Damaged("half a record")
        yield opcode, start, at


def _unpacked(content: bytes) -> bytes:
    """The records within a chunk.

    Raises:
        _Damaged: it cannot be unpacked, or its checksum differs.
        Unreadable: a compression that MCAP does not define.
    """
    try:
        chunk = Chunk.read(ReadDataStream(BytesIO(content)))
    except _SENSELESS:
        raise _Damaged("a chunk makes no sense") from None
    if chunk.compression not in _DECOMPRESS:
        raise Unreadable(f"chunks are compressed with '{chunk.compression}'; use zstd, lz4 or none")
    if chunk.uncompressed_size > _LARGEST:
        raise _Damaged("a chunk is too large")
    try:
        records = _DECOMPRESS[chunk.compression](chunk.data, chunk.uncompressed_size)
    except _SENSELESS:
        raise _Damaged("a chunk cannot be unpacked") from None
    if len(records) != chunk.uncompressed_size or chunk.uncompressed_crc not in (0, zlib.crc32(records)):
        raise _Damaged("a chunk's checksum differs")
    return records
