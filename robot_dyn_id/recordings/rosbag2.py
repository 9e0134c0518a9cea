# SPDX-License-Identifier: Apache-2.0
"""Joint states of a ROS 2 bag as a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import columns_of
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Finding, make_finding
from robot_dyn_id.recordings.bag_files import Bag, open_bag
from robot_dyn_id.recordings.joint_states import NANOSECONDS, TYPE_NAME
from robot_dyn_id.recordings.reading import RawMessage, Warn, rechunk, report_dropped
from robot_dyn_id.recordings.topic_inventory import TopicInventory, decode_batches, inspect_topic

_USUAL = "joint_states"
_ENDED = "its recorder was ended before the first message; record it again"


@dataclass(frozen=True)
class BagRecording:
    """The JointState messages of one topic of a bag.

    Samples come in storage order with the stamps of the messages. What is missing in a message is NaN.

    Attributes:
        source: the path that the user gave.
        joint_names: joints of all usable messages, in order of first appearance.
        epoch: first stamp [ns].
        topic: name of the topic.
        bag: the files.
        inventory: messages that are used and left out, determined when the bag was opened.
        effort_is_torque: False, since the unit of `effort` is not known in a bag.
        chunk_size: samples per chunk.
    """

    source: str
    joint_names: tuple[str, ...]
    epoch: int
    topic: str
    bag: Bag = field(repr=False)
    inventory: TopicInventory = field(repr=False)
    effort_is_torque: bool = False
    chunk_size: int = 8192

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Stream the samples that hold all of `joints`; see `Recording.chunks`.

        Raises:
            InputError: a joint that the topic does not hold, joints that never come in one message, or a file
                that cannot be read (any more).
        """
        columns_of(self.joint_names, joints, self.source)
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
        damage = [make_finding("file_damaged", f"{self.source}: {text}") for text in self.inventory.damage]
        if self.inventory.clock.log_times:
            message = f"{source}: all messages have the same time stamp; arrival times are used instead"
            damage.append(make_finding("stamps_constant", message))
        return (*damage, *report_dropped(source, self.dropped(joints), "message"))

    def _pieces(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """One chunk per decoded batch."""
        clock = self.inventory.clock
        whole = self.inventory.of(joints)
        previous = clock.start
        for batch, log_times in decode_batches(_messages(self.bag, self.topic, lambda _: None)):
            missing, previous = clock.unstamped(batch, previous)
            q, dq, tau = (np.full((len(batch.stamps), len(joints)), np.nan) for _ in range(3))
            keep = np.zeros(len(batch.stamps), dtype=bool)
            for group in batch.groups:
                if group.usable and set(group.names).issuperset(joints):
                    keep[group.rows] = True
                    columns = columns_of(group.names, joints, self.source)
                    for target, values in ((q, group.q), (dq, group.dq), (tau, group.tau)):
                        if values is not None:
                            target[group.rows] = values[:, columns]
            keep &= ~missing
            if not keep.any():
                continue
            yield Chunk(
                t=((log_times if clock.log_times else batch.stamps)[keep] - self.epoch) / NANOSECONDS,
                q=q[keep],
                dq=dq[keep] if whole.velocities else None,
                tau=tau[keep] if whole.efforts else None,
            )


def open_recording(path: Path, topic: str | None) -> BagRecording:
    """Open the joint states of a bag; see `open_parts`."""
    return open_parts([path], topic)


def open_parts(paths: Sequence[Path], topic: str | None) -> BagRecording:
    """Open the joint states of bags that follow one another as one recording.

    Args:
        paths: bag folders or storage files.
        topic: name of the topic; None: the only one with JointState messages, or the one called joint_states.

    Raises:
        InputError: no readable bag, no such topic, more than one that could be meant, no usable message.
    """
    parts = [open_bag(path) for path in paths]
    bag = Bag(", ".join(part.source for part in parts), tuple(file for part in parts for file in part.files))
    chosen = _choose(bag.topics(), topic, bag.source)
    found = inspect_topic(lambda warn: _messages(bag, chosen, warn))
    if not found.joint_names:
        reasons = "; ".join(found.describe(())) or f"there is none, {_ENDED}"
        raise InputError(f"{bag.source}: no usable JointState message on {chosen}: {reasons}")
    return BagRecording(bag.source, found.joint_names, found.epoch, chosen, bag, found)


def _messages(bag: Bag, topic: str, warn: Warn) -> Iterator[RawMessage]:
    return (message for message in bag.messages((topic,), warn) if message[1] == TYPE_NAME)


def _choose(topics: Mapping[str, str], topic: str | None, source: str) -> str:
    """Name of the topic to read.

    Raises:
        InputError: there is none, or more than one that could be meant.
    """
    fitting = [name for name, kind in topics.items() if kind == TYPE_NAME]
    if not topics:
        raise InputError(f"{source}: holds no topic at all, {_ENDED}")
    if not fitting:
        held = ", ".join(f"{name} ({kind})" for name, kind in topics.items())
        raise InputError(f"{source}: no topic of type {TYPE_NAME}; it holds {held}")
    if topic is not None:
        for name in (topic, f"/{topic}"):
            if name in fitting:
                return name
        raise InputError(f"{source}: no JointState topic {topic}; it holds {', '.join(fitting)}")
    called = [name for name in fitting if name.split("/")[-1] == _USUAL]
    for candidates in (fitting, [name for name in called if name == "/" + _USUAL], called):
        if len(candidates) == 1:
            return candidates[0]
    raise InputError(f"{source}: several JointState topics; choose one of {', '.join(fitting)}")
