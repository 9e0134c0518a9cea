# SPDX-License-Identifier: Apache-2.0
"""Contract of all recording formats: protocols, errors, chunks of a constant size."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError, make_storable
from robot_dyn_id.findings import Definition, Finding, Section

SAMPLES_DROPPED = Definition(
    "samples_dropped",
    Section.DATA,
    "info",
    "Samples without time stamp, joints or valid values are left out.",
    "check the recorder or the export",
    check="rows",
)

DATA_UNUSED = Definition(
    "data_unused",
    Section.DATA,
    "info",
    "A file holds columns or keys that the package does not read.",
)

RawMessage = tuple[str, str, int, bytes]
"""Topic, type name, log (arrival) time [ns], serialized message as it was received."""

MSG_LANGUAGE = "ros2msg"
"""Encoding of definitions in the language of `.msg` files."""

Warn = Callable[[str], None]
"""Receives one phrase for the user about a part of a damaged file that is left out."""


@dataclass(frozen=True)
class TopicDescription:
    """A topic as a bag describes it.

    Attributes:
        name: name of the topic.
        type_name: such as `sensor_msgs/msg/JointState`.
        schema: definition of the type; empty if the file has none.
        schema_encoding: language of the definition: `ros2msg` or `ros2idl`.
        type_hash: RIHS01 hash of the type; empty if the file has none.
        offered_qos: profiles that its publishers offered, as YAML; empty if the file has none.
    """

    name: str
    type_name: str
    schema: str
    schema_encoding: str
    type_hash: str
    offered_qos: str


@dataclass(frozen=True)
class StoredMessage:
    """A message of a storage file.

    Attributes:
        topic: its topic.
        log_time: when it arrived [ns].
        publish_time: when it was sent [ns].
        data: the serialized message.
    """

    topic: TopicDescription
    log_time: int
    publish_time: int
    data: bytes


@dataclass
class Salvage:
    """Result of a pass over a storage file, complete when the pass has ended.

    Attributes:
        topics: topics by name, also those without messages.
        damage: what is wrong with the file, one sentence each; empty for a whole file.
        lost_bytes: bytes of messages that cannot be read; None if the storage does not record it.
    """

    topics: dict[str, TopicDescription] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    lost_bytes: int | None = 0


class Unreadable(Exception):
    """Why a file cannot be used; `reading` turns it into an `InputError` that names the file."""


class Storage(Protocol):
    """A file format that holds raw messages of several topics (a module with these functions)."""

    def topics(self, path: Path) -> dict[str, str]:
        """Type name of each topic."""
        ...

    def definitions(self, path: Path) -> dict[str, str]:
        """Definition of each type in the language of `.msg` files, as far as the file has them."""
        ...

    def messages(self, path: Path, topics: Collection[str], warn: Warn) -> Iterator[RawMessage]:
        """Messages of `topics` in the order in which they were stored; of a damaged file, those before it."""
        ...

    def salvage(self, path: Path, found: Salvage) -> Iterator[StoredMessage]:
        """Every message that can be read, also behind damage; what is wrong is noted in `found`."""
        ...


@runtime_checkable
class FileRecording(Recording, Protocol):
    """A recording from a file that reports the samples that could not be used."""

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of samples that a pass over `joints` leaves out, by reason; the same in every pass."""
        ...

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about the samples of `joints`: drops, repairs and damage."""
        ...


LONGEST_SOURCE = 4096
"""Longest name of a recording [characters]: that of a path."""


def name_source_of(path: Path) -> str:
    """Name of a recording for messages and reports, which must be text: paths may hold any bytes."""
    return make_storable(str(path), LONGEST_SOURCE)


@contextmanager
def reading(source: str | Path) -> Iterator[None]:
    """Turn everything that a broken file causes into one line that names it.

    Raises:
        InputError: the file is missing, not readable or not what its name says.
    """
    try:
        yield
    except Unreadable as error:
        raise InputError(f"{source}: {join_lines(error)}") from None
    except FileNotFoundError:
        raise InputError(f"{source}: no such file; check the path") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{source}: cannot be read ({reason}); check the file and its permissions") from None


def check_regular(path: Path) -> None:
    """Refuse devices and pipes: they may never end, or never begin.

    Raises:
        Unreadable: not a regular file.
        OSError: there is no such file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise Unreadable("not a regular file; copy what it gives into one")


def join_lines(text: object) -> str:
    """The text without the line breaks that libraries put into theirs."""
    return " ".join(str(text).split())


def format_dropped(dropped: Mapping[str, int], noun: str) -> tuple[str, ...]:
    """Counted reasons as text, such as `3 messages dropped: no stamp`."""
    return tuple(f"{n} {noun}{'' if n == 1 else 's'} dropped: {reason}" for reason, n in dropped.items())


def report_dropped(source: str, dropped: Mapping[str, int], noun: str) -> tuple[Finding, ...]:
    """Findings about samples that were left out.

    Args:
        source: name of the recording.
        dropped: number of samples by reason.
        noun: word for a sample of this source: `message`, `row`, `sample`.
    """
    return tuple(SAMPLES_DROPPED.found(f"{source}: {text}") for text in format_dropped(dropped, noun))


def report_unused(source: str, kind: str, names: Sequence[str]) -> tuple[Finding, ...]:
    """Finding about columns or keys (`kind`) of a file that are not read."""
    return (DATA_UNUSED.found(f"{source}: {kind} not used: {', '.join(names)}"),) if names else ()


def mask_infinities(values: Array) -> Array:
    """The values, NaN in place of infinities: no sensor reads infinity, it stands for a missing value."""
    return np.where(np.isfinite(values), values, np.nan)


def rechunk(pieces: Iterable[Chunk], size: int) -> Iterator[Chunk]:
    """Cut pieces of any length into chunks of `size` samples (the last one may be shorter)."""
    held: list[Chunk] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        if count >= size:
            joined = Chunk.join(held)
            whole = count - count % size
            for start in range(0, whole, size):
                yield joined.take(slice(start, start + size))
            held = [joined.take(slice(whole, None))]
            count -= whole
    if count:
        yield Chunk.join(held)
