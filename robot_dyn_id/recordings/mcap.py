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
from collections.abc import Callable, Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

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
            try:
                for buffer in _buffers(stream):
                    for opcode, start, end in _records(buffer):
                        known.learn(opcode, buffer[start:end])
            except _Damaged:
                pass  # `messages` says it
    return known


def messages(path: Path, topics: Collection[str], warn: Warn) -> Iterator[RawMessage]:
    """Messages of `topics` in storage order; of an unfinished or damaged file, those in front of its end.

    Raises:
        Unreadable: not an MCAP file.
    """
    known = _Topics()
    with path.open("rb") as stream:
        _check_magic(stream)
        try:
            for buffer in _buffers(stream):
                for opcode, start, end in _records(buffer):
                    if opcode != Opcode.MESSAGE:
                        known.learn(opcode, buffer[start:end])
                        continue
                    number, _, log_time, _ = _MESSAGE.unpack_from(buffer, start)
                    channel = known.channels.get(number)
                    if channel is None:
                        raise _Damaged("a message belongs to no channel")
                    if channel[0] in topics:
                        yield (*channel, log_time, buffer[start + _MESSAGE.size : end])
        except _Damaged as damage:
            warn(f"not finished, or damaged near byte {stream.tell()} ({damage}); what follows is not read")


def salvage(path: Path, found: Salvage) -> Iterator[StoredMessage]:
    """Every message that can be read: also those behind a chunk that is damaged, and of a chunk that was cut off.

    Args:
        path: path of the file.
        found: takes the topics, what is wrong with the file, and the number of bytes that cannot be read.

    Raises:
        Unreadable: not an MCAP file, or not one of ROS 2.
    """
    known = _Described(found)
    count = 0
    with path.open("rb") as stream:
        _check_magic(stream)
        for content in _salvaged(stream, found):
            try:
                for opcode, start, end in _records(content):
                    if opcode != Opcode.MESSAGE:
                        known.learn(opcode, content[start:end])
                        continue
                    number, _, log_time, publish_time = _MESSAGE.unpack_from(content, start)
                    topic = known.channels.get(number)
                    if topic is None:
                        _lose(found, end - start, "messages that belong to no channel")
                        continue
                    count += 1
                    yield StoredMessage(topic, log_time, publish_time, content[start + _MESSAGE.size : end])
            except _Damaged as damage:
                _lose(found, 0, str(damage))
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


def _salvaged(stream: BinaryIO, found: Salvage) -> Iterator[bytes]:
    """Runs of whole records of the data section, chunks unpacked, as far as the framing can be followed."""
    size = os.fstat(stream.fileno()).st_size
    stream.seek(len(_MAGIC))
    while True:
        position = stream.tell()
        head = stream.read(_HEAD.size)
        opcode, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if opcode == Opcode.DATA_END:
            return
        if not head:
            found.damage.append("it was not finished: its end is missing")
            return
        if opcode not in _KNOWN:
            _lose(found, size - position, f"it makes no sense from byte {position} on")
            return
        content = stream.read(min(length, size - stream.tell()))
        if len(content) < length:
            whole, lost = _begun(content) if opcode == Opcode.CHUNK else (b"", len(head) + len(content))
            _lose(found, lost, f"it ends within a record, at byte {size}")
            if whole:
                yield whole
            return
        if opcode != Opcode.CHUNK:
            yield head + content
            continue
        try:
            yield _unpacked(content)
        except _Damaged as damage:
            _lose(found, len(head) + length, f"{damage} (byte {position})")


def _begun(content: bytes) -> tuple[bytes, int]:
    """The whole records of a chunk that was cut off, none if it is compressed; and the number of bytes behind them."""
    try:
        stream = BytesIO(content)
        stream.seek(_CHUNK_TIMES)
        (length,) = struct.unpack("<I", stream.read(4))
        if stream.read(length) != b"":
            return b"", len(content)
        stream.seek(8, os.SEEK_CUR)
        records = stream.read()
    except struct.error:
        return b"", len(content)
    end = 0
    try:
        for _, _, stop in _records(records):
            end = stop
    except _Damaged:
        pass  # what follows was not written
    return records[:end], len(records) - end


def _lose(found: Salvage, count: int, what: str) -> None:
    """Note damage, and bytes that cannot be read because of it."""
    assert found.lost_bytes is not None
    found.lost_bytes += count
    if what not in found.damage:
        found.damage.append(what)


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
    if start != _MAGIC:
        raise Unreadable("not an MCAP file; give the file that the recorder wrote")


def _summary(stream: BinaryIO) -> _Topics:
    """Topics that the summary names; none if there is no sound summary."""
    known = _Topics()
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(0, size - _FOOTER.size - len(_MAGIC)))
    tail = stream.read()
    if len(tail) < _FOOTER.size + len(_MAGIC) or not tail.endswith(_MAGIC):
        return known
    opcode, _, start, _, _ = _FOOTER.unpack_from(tail)
    if opcode != Opcode.FOOTER or not 0 < start < size:
        return known
    try:
        for opcode, record in _framed(stream, start, Opcode.FOOTER):
            known.learn(opcode, record[_HEAD.size :])
    except _Damaged:
        return _Topics()
    return known


def _buffers(stream: BinaryIO) -> Iterator[bytes]:
    """The data section: runs of whole records, chunks unpacked."""
    for opcode, record in _framed(stream, len(_MAGIC), Opcode.DATA_END):
        yield _unpacked(record[_HEAD.size :]) if opcode == Opcode.CHUNK else record


def _framed(stream: BinaryIO, start: int, last: Opcode) -> Iterator[tuple[int, bytes]]:
    """Opcode and bytes of the records from `start` up to the record `last`, without those of no use here.

    Raises:
        _Damaged: the file ends before.
    """
    size = os.fstat(stream.fileno()).st_size
    stream.seek(start)
    while True:
        head = stream.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise _Damaged("it ends there")
        opcode, length = _HEAD.unpack(head)
        if opcode == last:
            return
        if opcode == 0:  # what a file system leaves behind when the power fails
            raise _Damaged("no records there")
        if length > size - stream.tell():
            raise _Damaged("it ends within a record")
        if opcode in _KEPT and length > _LARGEST:
            raise _Damaged("a record is too large")
        if opcode in _KEPT:
            yield opcode, head + stream.read(length)
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
