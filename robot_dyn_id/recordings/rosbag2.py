# SPDX-License-Identifier: Apache-2.0
"""Joint states of a ROS 2 bag as a recording."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import find_columns_of
from robot_dyn_id.errors import InputError, MissingDefinitionError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.recordings.bag_files import Bag, open_bag
from robot_dyn_id.recordings.definitions import (
    COMMON,
    Definitions,
    parse_definition,
    read_definitions,
    shorten_type,
)
from robot_dyn_id.recordings.joint_states import NANOSECONDS, TYPE_NAME, Decoder
from robot_dyn_id.recordings.reading import RawMessage, Warn, rechunk, report_dropped, report_unused
from robot_dyn_id.recordings.topic_inventory import TopicInventory, decode_batches, inspect_topic
from robot_dyn_id.recordings.types import JOINT_TYPES
from robot_dyn_id.recordings.types.contract import CHANNELS, CURRENT, TEMPERATURE, MessageType, Q
from robot_dyn_id.recordings.types.joint_state import JOINT_STATE

FILE_DAMAGED = Definition(
    "file_damaged",
    Section.DATA,
    "warning",
    "A bag was not closed, or a part of it is broken; everything that can be read is used.",
    "recover the bag, or copy it again",
)

STAMPS_CONSTANT = Definition(
    "stamps_constant",
    Section.DATA,
    "info",
    "The publisher does not fill in time stamps; arrival times, which jitter, are used instead.",
    "correct the publisher of the joint states",
    check="clock",
)

TOPIC_CHOSEN = Definition(
    "topic_chosen",
    Section.DATA,
    "info",
    "A bag has several topics of joint states with the same joints; the one called joint_states is read.",
    "name the topic with `topic` in the configuration",
)

_USUAL = "joint_states"
_ENDED = "its recorder was ended before the first message; record it again"


@dataclass(frozen=True)
class BagRecording:
    """The joint states of one topic of a bag.

    Samples come in storage order with the stamps of the messages. What is missing in a message is NaN.

    Attributes:
        source: the path that the user gave.
        joint_names: joints of all usable messages, in order of first appearance.
        epoch: first stamp [ns].
        topic: name of the topic.
        bag: the files.
        decoder: reader of the messages.
        inventory: messages that are used and left out, determined when the bag was opened.
        effort_is_torque: whether the type of the messages states that efforts are in N m or N; JointState does not.
        chunk_size: samples per chunk.
        others: joints of the other topics of this type, by topic; empty where the topic was named.
    """

    source: str
    joint_names: tuple[str, ...]
    epoch: int
    topic: str
    bag: Bag = field(repr=False)
    decoder: Decoder = field(repr=False)
    inventory: TopicInventory = field(repr=False)
    effort_is_torque: bool = False
    chunk_size: int = 8192
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Stream the samples that hold all of `joints`; see `Recording.chunks`.

        Raises:
            InputError: a joint that the topic does not hold, joints that never come in one message, or a file
                that cannot be read (any more).
        """
        find_columns_of(self.joint_names, joints, self.source)
        if not self.inventory.of(joints).usable:
            reasons = "; ".join(self.inventory.describe(joints))
            wanted = ", ".join(joints)
            what = f"no usable message on {self.topic} holds all of {wanted}"
            raise InputError(f"{self.source}: {what}; {reasons}")
        yield from rechunk(self._pieces(joints), self.chunk_size)

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of messages about `joints` that are left out, by reason."""
        return self.inventory.dropped(joints)

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about the messages of `joints`."""
        source = f"{self.source}: {self.topic}"
        again = f"copy the bag again; if that does not help, `robot-dyn-id recover {self.source}` makes it whole"
        damage = [FILE_DAMAGED.found(f"{self.source}: {text}", action=again) for text in self.inventory.damage]
        if self.inventory.clock.log_times:
            message = f"{source}: all messages have the same time stamp; arrival times are used instead"
            damage.append(STAMPS_CONSTANT.found(message))
        unused = report_unused(source, "interfaces", self.inventory.unused)
        same = [topic for topic, names in self.others.items() if set(names) & set(joints)]
        if same:
            message = f"{self.source}: {self.topic} is read, and not {', '.join(same)}, with joints of the same names"
            action = f"set `topic: {same[0]}` in the configuration if that is the robot"
            damage.append(TOPIC_CHOSEN.found(message, action=action))
        return (*damage, *unused, *report_dropped(source, self.dropped(joints), "message"))

    def _pieces(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """One chunk per decoded batch."""
        clock = self.inventory.clock
        whole = self.inventory.of(joints)
        previous = clock.start
        for batch, log_times in decode_batches(
            _messages(self.bag, self.topic, self.decoder, lambda _: None), self.decoder
        ):
            missing, previous = clock.unstamped(batch, previous)
            present = [channel for channel in CHANNELS if channel == Q or whole.has(channel, joints)]
            values = {channel: np.full((len(batch.stamps), len(joints)), np.nan) for channel in present}
            keep = np.zeros(len(batch.stamps), dtype=bool)
            for group in batch.groups:
                if group.usable and set(group.names).issuperset(joints):
                    keep[group.rows] = True
                    columns = find_columns_of(group.names, joints, self.source)
                    for channel in group.channels.keys() & values.keys():
                        values[channel][group.rows] = group.channels[channel][:, columns]
            keep &= ~missing
            if not keep.any():
                continue
            stamps = log_times if clock.log_times else batch.stamps
            yield Chunk(
                t=(stamps[keep] - self.epoch) / NANOSECONDS,
                **{channel: array[keep] for channel, array in values.items()},
            )


def open_recording(path: Path, topic: str | None, reading: MessageReading | None = None) -> BagRecording:
    """Open the joint states of a bag; see `open_parts`."""
    return open_parts([path], topic, reading)


def open_parts(paths: Sequence[Path], topic: str | None, reading: MessageReading | None = None) -> BagRecording:
    """Open the joint states of bags that follow one another as one recording.

    Args:
        paths: bag folders or storage files.
        topic: name of the topic; None: the only one with joint states, or the one called joint_states. A topic of
            JointState takes precedence.
        reading: how messages are read where the bag does not say so.

    Raises:
        InputError: no readable bag, no such topic, more than one that could be meant, no usable message.
        MissingDefinitionError: no definition of the type of the topic.
    """
    reading = reading or MessageReading()
    parts = [open_bag(path) for path in paths]
    bag = Bag(", ".join(part.source for part in parts), tuple(file for part in parts for file in part.files))
    topics = bag.topics()
    if not topics:
        _refuse_empty(bag)
    chosen = find_topic_of(topics, topic, reading.types, bag.source)
    decoder = reading.decoder(bag, chosen, topics[chosen])
    found = inspect_topic(lambda warn: _messages(bag, chosen, decoder, warn), decoder)
    if not found.joint_names:
        reasons = "; ".join(found.describe(())) or f"there is none, {_ENDED}"
        raise InputError(f"{bag.source}: no usable {found.word} message on {chosen}: {reasons}")
    torque = decoder.kind.effort_is_torque
    others = _list_others(bag, chosen, decoder) if topic is None else {}
    return BagRecording(bag.source, found.joint_names, found.epoch, chosen, bag, decoder, found, torque, others=others)


def _refuse_empty(bag: Bag) -> None:
    """Refuse a bag in which no topic can be read, with what is damaged.

    Raises:
        InputError: the bag.
    """
    damage: list[str] = []
    for _ in bag.messages((), damage.append):
        pass
    lost = [text for text in damage if " is damaged" in text or "left out" in text]
    if lost:
        raise InputError(
            f"{bag.source}: no topic can be read: {'; '.join(lost)}; copy the bag again, or record it again"
        )
    raise InputError(f"{bag.source}: holds no topic at all, {_ENDED}")


def _list_others(bag: Bag, chosen: str, decoder: Decoder) -> dict[str, tuple[str, ...]]:
    """Joints of the first message of each other topic of the same type, by topic."""
    joints: dict[str, tuple[str, ...]] = {}
    for topic, kind in bag.topics().items():
        if topic == chosen or kind != decoder.kind.name:
            continue
        first = islice(_messages(bag, topic, decoder, lambda _: None), 1)
        joints[topic] = tuple(
            name for batch, _ in decode_batches(first, decoder) for group in batch.groups for name in group.names
        )
    return joints


@dataclass(frozen=True)
class MessageReading:
    """Settings for the messages of a topic, as far as the bag does not state them.

    Attributes:
        definitions: folder with `.msg` files of types whose definition a bag lacks; None: there is none.
        names: names of the joints where the messages have none, in the order of their arrays; empty: those that are
            usual for the type.
        channel: the only channel to read, as positions; empty: all channels.
        types: types that are read, by name.
    """

    definitions: Path | None = None
    names: tuple[str, ...] = ()
    channel: str = ""
    types: Mapping[str, MessageType] = field(default_factory=lambda: JOINT_TYPES, repr=False)

    @classmethod
    def given(cls, definitions: str | Path | None, names: Sequence[str]) -> MessageReading:
        """Settings from a folder of definitions and names of joints, as a user gives them."""
        return cls(None if definitions is None else Path(definitions), tuple(names))

    def decoder(self, bag: Bag, topic: str, type_name: str) -> Decoder:
        """The reader of the messages of a topic.

        Raises:
            InputError: the definition of its type cannot be read.
            MissingDefinitionError: there is none.
        """
        kind = self.types[type_name]
        if kind is JOINT_STATE and self.channel in (CURRENT, TEMPERATURE):
            raise InputError(
                f"{bag.source}: {topic} is a {kind.word}, which has no {self.channel}: name the field that holds it, "
                f"{topic}:position, {topic}:velocity or {topic}:effort"
            )
        return Decoder(kind, self._definitions(bag, topic, type_name), self.names, self.channel)

    def _definitions(self, bag: Bag, topic: str, type_name: str) -> Definitions:
        if shorten_type(type_name) in COMMON:
            return COMMON
        text = bag.definitions().get(type_name)
        if text:
            try:
                return {**COMMON, **parse_definition(type_name, text)}
            except ValueError as error:
                if self.definitions is None:
                    raise InputError(f"{bag.source}: its definition of {type_name} makes no sense ({error})") from None
        if self.definitions is not None:
            return {**COMMON, **read_definitions(self.definitions, type_name)}
        raise MissingDefinitionError(
            f"{bag.source}: topic {topic} is of the type {type_name}, whose definition the bag does not have: give a "
            f"folder with {shorten_type(type_name).replace('/', '/msg/')}.msg",
            "give a folder with the .msg files of the type, such as the share folder of a distribution that has it",
        )


def _messages(bag: Bag, topic: str, decoder: Decoder, warn: Warn) -> Iterator[RawMessage]:
    return (message for message in bag.messages((topic,), warn) if message[1] == decoder.kind.name)


def find_topic_of(topics: Mapping[str, str], topic: str | None, types: Collection[str], source: str) -> str:
    """Name of the topic to read.

    Args:
        topics: type name of each topic.
        topic: name that the user gave; None: the only one that could be meant.
        types: names of the types that can be read.
        source: name of the bag.

    Raises:
        InputError: there is none, or more than one that could be meant.
    """
    fitting = [name for name, kind in topics.items() if kind in types]
    if not topics:
        raise InputError(f"{source}: holds no topic at all, {_ENDED}")
    if not fitting:
        held = ", ".join(f"{name} ({kind})" for name, kind in topics.items())
        raise InputError(f"{source}: no topic of type {' or '.join(types)}; it holds {held}")
    if topic is not None:
        for name in (topic, f"/{topic}"):
            if name in fitting:
                return name
        held = ", ".join(f"{name} ({topics[name]})" for name in fitting)
        raise InputError(f"{source}: no topic {topic} of joint states; it holds {held}")
    fitting = [name for name in fitting if topics[name] == TYPE_NAME] or fitting
    called = [name for name in fitting if name.split("/")[-1] == _USUAL]
    for candidates in (fitting, [name for name in called if name == "/" + _USUAL], called):
        if len(candidates) == 1:
            return candidates[0]
    kinds = " and ".join(sorted({topics[name].rpartition("/")[2] for name in fitting}))
    raise InputError(f"{source}: several {kinds} topics; choose one of {', '.join(fitting)}")
