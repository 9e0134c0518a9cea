# SPDX-License-Identifier: Apache-2.0
"""Recovery of bags whose recorder was killed, or whose disk was full: a new, complete bag of every whole message."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.recordings.bag_files import METADATA, Bag, decompress_message, is_storage, open_bag, read_information
from robot_dyn_id.recordings.bag_writer import BagWriter, QosProfile, definition
from robot_dyn_id.recordings.joint_states import NANOSECONDS
from robot_dyn_id.recordings.reading import MSG_LANGUAGE, Salvage, StoredMessage, TopicDescription, reading
from robot_dyn_id.text.yaml import parse_yaml

TYPE_DEFINITION_MISSING = Definition(
    "type_definition_missing",
    Section.DATA,
    "info",
    "The definition of a message type is neither in the bag nor installed.",
    "install the package of the message type and recover the bag again",
)

RECOVERED, DAMAGED = "_recovered", "_damaged"
"""Suffixes of the name of the new bag and, where it takes the name of the original, of the original."""


@dataclass(frozen=True)
class Recovery:
    """Outcome of a recovery.

    Attributes:
        bag: the complete bag; the original if that is whole.
        original: where the original is now.
        whole: whether the original is whole, and nothing was written.
        messages: number of messages, by topic.
        seconds: time from the first message to the last [s].
        lost_bytes: bytes of messages that cannot be read; None if the storage does not record it.
        damage: what is wrong with the original, one sentence each.
        findings: findings about what the new bag lacks.
    """

    bag: Path
    original: Path
    whole: bool
    messages: dict[str, int]
    seconds: float
    lost_bytes: int | None
    damage: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def name_target_of(path: Path, out: Path | None, replace: bool) -> Path:
    """The folder or file that the recovered bag becomes.

    Args:
        path: path of the original.
        out: folder that the user names.
        replace: whether the recovered bag takes the name of the original.

    Raises:
        UsageError: it exists; `out` and `replace` are given; or `replace` for a file that does not end in `.mcap`.
        InputError: the original does not exist.
    """
    if out is not None and replace:
        raise UsageError("`out` and `replace` exclude each other: give one of them")
    if not path.exists():
        raise InputError(f"{path}: no such file; check the path")
    if replace and path.is_file() and path.suffix != ".mcap":
        raise UsageError(f"{path}: an .mcap file cannot replace a {path.suffix} file: give `out` instead")
    target = path if replace else out or path.with_name(_stem(path) + RECOVERED)
    for new in (_set_aside(path),) if replace else (target,):
        if os.path.lexists(new):
            raise UsageError(f"{new}: exists, and bags are never overwritten: remove it or give another `out`")
    return target


def recover(path: Path, target: Path, progress: Progress = ignore_progress) -> Recovery:
    """Write a complete bag of every message that can be read; the original is not changed.

    The new bag is written next to its target and renamed when it is complete. If the target is the original itself, the
    original is renamed before, to a name that ends in `DAMAGED`.

    Args:
        path: bag folder or storage file.
        target: see `name_target_of`.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: not a bag, nothing in it can be read, or the new bag cannot be written.
    """
    bag = open_bag(path)
    progress(Stage(f"checking {path}"))
    found = _Pass(bag)
    for _ in found.messages():
        pass
    damage = [*found.damage, *_wrong_metadata(path, found.total)]
    if not damage:
        return found.recovery(path, path, ())
    if not found.total:
        raise InputError(f"{path}: no whole message can be read ({'; '.join(damage)}); record again")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        progress(Stage(f"writing {target}"))
        findings = _write(_Pass(bag), found, part, _stem(target))
        original = _put_in_place(part, path, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return found.recovery(target, original, tuple(damage), tuple(findings))


class _Pass:
    """One pass over all messages of a bag, and what it counts.

    Attributes:
        topics: topics by name.
        counts: number of messages, by topic.
        damage: what is wrong with the storage files.
        lost_bytes: see `Salvage`.
    """

    def __init__(self, bag: Bag) -> None:
        self._bag = bag
        self._first, self._last = 2**63, 0
        self.topics: dict[str, TopicDescription] = {}
        self.counts: Counter[str] = Counter()
        self.damage: list[str] = []
        self.lost_bytes: int | None = 0

    @property
    def total(self) -> int:
        """Number of messages."""
        return sum(self.counts.values())

    def messages(self) -> Iterator[StoredMessage]:
        """The messages in storage order.

        Raises:
            InputError: a file is not what its name says.
        """
        for file in self._bag.files:
            found = Salvage()
            with reading(file.source):
                for message in file.storage.salvage(file.path, found):
                    self.counts[message.topic.name] += 1
                    self._first = min(self._first, message.log_time)
                    self._last = max(self._last, message.log_time)
                    yield message
            self.topics.update(found.topics)
            self.damage += [f"{file.source.name}: {text}" for text in found.damage]
            if file.path != file.source and file.source.suffix == ".db3":
                self.damage.append(f"{file.source.name}: it was not closed, a journal is next to it")
            if self.lost_bytes is not None:
                self.lost_bytes = None if found.lost_bytes is None else self.lost_bytes + found.lost_bytes

    def recovery(
        self, bag: Path, original: Path, damage: tuple[str, ...], findings: tuple[Finding, ...] = ()
    ) -> Recovery:
        """The outcome, as far as this pass knows it."""
        return Recovery(
            bag=bag,
            original=original,
            whole=not damage,
            messages={name: self.counts[name] for name in self.topics},
            seconds=max(0, self._last - self._first) / NANOSECONDS,
            lost_bytes=self.lost_bytes,
            damage=damage,
            findings=findings,
        )


def _wrong_metadata(path: Path, count: int) -> list[str]:
    """Faults of the metadata.yaml of a folder."""
    if not path.is_dir():
        return []
    if not (path / METADATA).exists():
        return [f"{METADATA} is missing"]
    stated = read_information(path / METADATA).get("message_count")
    if stated is None:
        return [f"{METADATA} is damaged"]
    return [] if stated == count else [f"{METADATA} states {stated} messages, and {count} are there"]


def _write(messages: _Pass, found: _Pass, folder: Path, name: str) -> list[Finding]:
    """Write the new bag.

    Returns:
        Findings about what it lacks.

    Raises:
        InputError: it cannot be written, or holds fewer messages than were found.
    """
    findings = []
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder.parent}: cannot be created ({error.strerror})") from None
    with BagWriter(folder, name) as bag:
        for topic in found.topics.values():
            schema, type_hash = topic.schema, topic.type_hash
            if not schema:
                with suppress(InputError):
                    schema, type_hash = definition(topic.type_name)
            if not schema:
                text = f"topic {topic.name}: the definition of {topic.type_name} is in neither bag"
                findings.append(TYPE_DEFINITION_MISSING.found(text))
            encoding = topic.schema_encoding if topic.schema else MSG_LANGUAGE
            bag.add_topic(topic.name, topic.type_name, schema, type_hash, _profiles(topic.offered_qos), encoding)
        for message in messages.messages():
            data = decompress_message(message.data)
            bag.write(message.topic.name, message.topic.type_name, message.log_time, data, message.publish_time)
    if messages.counts != found.counts:
        raise InputError(f"{found.damage[0] if found.damage else folder}: the bag has changed meanwhile; try again")
    for file in folder.iterdir():
        _to_disk(file)
    return findings


def _profiles(text: str) -> list[QosProfile]:
    """QoS profiles as they are stored; none if they are damaged."""
    try:
        profiles = parse_yaml(text, "QoS profiles")
    except InputError:
        return []
    return [profile for profile in profiles if isinstance(profile, dict)] if isinstance(profiles, list) else []


def _put_in_place(part: Path, path: Path, target: Path) -> Path:
    """Rename the complete new bag, and the original before if it has that name.

    Returns:
        Where the original is now.

    Raises:
        InputError: a file cannot be renamed; no message is lost then.
    """
    original = path
    try:
        if target == path:
            original = _set_aside(path)
            path.rename(original)
        new = part if target != path or original.is_dir() else next(part.glob("*.mcap"))
        new.rename(target)
        _to_disk(target.parent)
    except OSError as error:
        raise InputError(f"{target}: cannot be put in place ({error.strerror}); the original is {original}") from None
    return original


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _stem(path: Path) -> str:
    """Name without the suffixes of a storage file."""
    name = path.name
    while is_storage(Path(name)):
        name = Path(name).stem
    return name


def _set_aside(path: Path) -> Path:
    """Name of an original whose name the recovered bag takes."""
    suffix = path.suffix if path.is_file() else ""
    return path.with_name(path.name.removesuffix(suffix) + DAMAGED + suffix)
