# SPDX-License-Identifier: Apache-2.0
"""Joint states of a bag together with channels of other topics, which have rates and clocks of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.data.resampling import interpolate_linear
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.recordings.joint_states import NANOSECONDS
from robot_dyn_id.recordings.rosbag2 import BagRecording, MessageReading, open_recording
from robot_dyn_id.recordings.topic_inventory import Arrivals
from robot_dyn_id.recordings.types import JOINT_TYPES, VALUE_TYPES
from robot_dyn_id.recordings.types.contract import CURRENT, TAU, TEMPERATURE

CHANNELS_MERGED = Definition(
    "channels_merged",
    Section.DATA,
    "info",
    "A channel of the joints comes from another topic; it is interpolated at the stamps of the joint states.",
)

CLOCKS_DIFFER = Definition(
    "clocks_differ",
    Section.DATA,
    "warning",
    "Two topics of a bag have clocks that differ by more than 50 ms, by the arrival of their messages.",
    "synchronize the clocks of the publishers, or stamp both topics on the same computer",
    check="clock",
)

CLOCK_TOLERANCE_S = 0.05
"""Largest difference between the clocks of two topics that transport alone explains [s]."""

GAP_STEPS = 5
"""Median periods of a topic without a message that make a gap: nothing is interpolated across it."""

CHANNEL_WORDS: Mapping[str, str] = {"effort": TAU, "current": CURRENT, "temperature": TEMPERATURE}
"""Channels that a topic of their own may have, by their names in a configuration."""

FIELDS: Mapping[str, str] = {"position": "q", "velocity": "dq", **CHANNEL_WORDS}
"""Channels of a topic by the names that a configuration may add to it, `/topic:field`."""

ChannelTopics = Mapping[str, str | Mapping[str, str]]
"""By channel: a topic, `/topic:field`, or one topic per joint."""


@dataclass(frozen=True)
class Source:
    """A topic with a channel of some joints.

    Attributes:
        channel: the channel.
        joint: the one joint that it measures; empty: it has names of its own.
        recording: its values, as positions.
        shift: what its stamps are moved by [s], because its clock differs.
    """

    channel: str
    joint: str
    recording: BagRecording
    shift: float = 0.0

    def columns(self, joints: Sequence[str]) -> list[int]:
        """JointColumns of the joints that it has."""
        held = (self.joint,) if self.joint else self.recording.joint_names
        return [number for number, joint in enumerate(joints) if joint in held]

    def names(self, joints: Sequence[str]) -> list[str]:
        """Names that the recording has for those columns."""
        return list(self.recording.joint_names) if self.joint else [joints[n] for n in self.columns(joints)]


@dataclass(frozen=True)
class Merged(DerivedRecording):
    """A recording with channels from other topics, interpolated linearly at its stamps.

    A temperature is held before the first and behind the last message, and interpolated across gaps. Efforts and
    currents are NaN there: such samples are left out later, and reported.

    Attributes:
        recording: what the robot did.
        sources: the other topics.
        notes: findings about their clocks.
    """

    recording: BagRecording
    sources: tuple[Source, ...]
    notes: tuple[Finding, ...] = field(default=(), repr=False)

    @property
    def effort_is_torque(self) -> bool:
        """Whether the topic of the efforts states that they are in N m or N."""
        efforts = [source.recording for source in self.sources if source.channel == TAU] or [self.recording]
        return all(one.effort_is_torque and one.decoder.channel in ("", TAU) for one in efforts)

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Stream all of them; see `BagRecording.chunks`.

        Raises:
            InputError: a joint that none of the topics of a channel holds.
        """
        for channel in dict.fromkeys(source.channel for source in self.sources):
            held = {n for source in self.sources if source.channel == channel for n in source.columns(joints)}
            missing = [joint for number, joint in enumerate(joints) if number not in held]
            if missing:
                topics = ", ".join(source.recording.topic for source in self.sources if source.channel == channel)
                raise InputError(f"{self.source}: {channel} of {', '.join(missing)} is not on {topics}")
        streams = [(source, _Stream(source, joints, self.epoch)) for source in self.sources]
        for chunk in self.recording.chunks(joints):
            values: dict[str, Array] = {}
            for source, stream in streams:
                target = values.setdefault(source.channel, np.full(chunk.q.shape, np.nan))
                target[:, source.columns(joints)] = stream.at(chunk.t)
            yield replace(chunk, **values)

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of samples of the recording that are left out, by reason."""
        return self.recording.dropped(joints)

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about all topics, each once."""
        found = [*self.recording.findings(joints), *self.notes]
        for source in self.sources:
            found += source.recording.findings(source.names(joints))
        return tuple(dict.fromkeys(found))


class _Stream:
    """The values of a source around the present samples."""

    def __init__(self, source: Source, joints: Sequence[str], epoch: int) -> None:
        self._chunks = source.recording.chunks(source.names(joints))
        self._shift = (source.recording.epoch - epoch) / NANOSECONDS + source.shift
        self._slow = source.channel == TEMPERATURE
        self._longest = GAP_STEPS * source.recording.inventory.period
        self._t, self._values = np.empty(0), np.empty((0, len(source.columns(joints))))

    def at(self, t: Array) -> Array:
        """Values at stamps of the recording, shape (n, columns)."""
        while not (len(self._t) and self._t[-1] >= t.max()) and (more := next(self._chunks, None)) is not None:
            stamps = more.t + self._shift
            before = np.maximum.accumulate(np.append(self._t[-1] if len(self._t) else -np.inf, stamps))[:-1]
            news = (stamps > before) & np.isfinite(more.q).all(axis=1)
            self._t, self._values = np.append(self._t, stamps[news]), np.concatenate([self._values, more.q[news]])
        values = interpolate_linear(t, self._t, self._values, hold_ends=self._slow)
        if not self._slow and len(self._t) > 1:
            after = np.clip(np.searchsorted(self._t, t), 1, len(self._t) - 1)
            values[self._t[after] - self._t[after - 1] > self._longest] = np.nan
        first = max(0, int(np.searchsorted(self._t, t.max())) - 1)
        self._t, self._values = self._t[first:], self._values[first:]
        return values


def merge(recording: BagRecording, path: Path, topics: ChannelTopics, reading: MessageReading) -> Merged:
    """A recording with channels from other topics of the same bag.

    Args:
        recording: what the robot did.
        path: the bag.
        topics: the other topics.
        reading: how messages are read.

    Raises:
        UsageError: an unknown channel or field.
        InputError: a topic that cannot be read, or whose clock differs where that matters.
    """
    sources: list[Source] = []
    notes: list[Finding] = []
    for word, given in topics.items():
        if word not in CHANNEL_WORDS:
            raise UsageError(f"channel {word}: it must be one of {', '.join(CHANNEL_WORDS)}")
        for joint, topic in given.items() if isinstance(given, Mapping) else (("", given),):
            other = _open(path, word, topic, joint, reading)
            source = Source(CHANNEL_WORDS[word], joint, other)
            if source.channel == TEMPERATURE:
                shift = estimate_clock_difference(other.inventory.arrivals, recording.inventory.arrivals)
                if abs(shift) > CLOCK_TOLERANCE_S:
                    text = f"{_differs(recording, other, shift)}; the {word} is moved by as much"
                    notes.append(CLOCKS_DIFFER.found(text))
                # Without stamps the arrival times, which are late, replace them.
                if abs(shift) > CLOCK_TOLERANCE_S or other.inventory.clock.log_times:
                    source = replace(source, shift=-shift)
            else:
                check_clock(recording, other, word)
            sources.append(source)
            notes.append(_merged(recording, source, word))
    return Merged(recording, tuple(sources), tuple(notes))


def estimate_clock_difference(one: Arrivals, other: Arrivals) -> float:
    """Lead of the clock of a topic over that of another [s], measured where both arrived at the same time.

    0 if one of them has no stamps. Source: the median of the differences between stamp and arrival.
    """
    if not len(one) or not len(other):
        return 0.0
    origin = int(other[0, 0])
    there, here = ((pairs - origin) / NANOSECONDS for pairs in (other, one))
    order = np.argsort(there[:, 0], kind="stable")
    lag = np.interp(here[:, 0], there[order, 0], (there[:, 1] - there[:, 0])[order])
    return float(np.median(here[:, 1] - here[:, 0] - lag))


def report_clock(recording: BagRecording, wanted: BagRecording) -> tuple[Finding, ...]:
    """Finding about the clock of the commanded positions, if it differs from that of the joint states."""
    shift = estimate_clock_difference(wanted.inventory.arrivals, recording.inventory.arrivals)
    if abs(shift) <= CLOCK_TOLERANCE_S:
        return ()
    return (CLOCKS_DIFFER.found(f"{_differs(recording, wanted, shift)}; the stamps are used as they are"),)


def _differs(recording: BagRecording, other: BagRecording, shift: float) -> str:
    ahead = "ahead of" if shift > 0.0 else "behind"
    clocks = f"the clock of {other.topic} is {abs(shift):.3f} s {ahead} that of {recording.topic}"
    return f"{recording.source}: {clocks}, by the arrival of the messages"


def check_clock(joints: Recording, other: BagRecording, word: str) -> None:
    """Compare the clock of a topic, whose values must fit the motion within milliseconds, with that of the joints.

    Args:
        joints: recording of the joints; one that is not from a bag is taken to have the same clock.
        other: the topic.
        word: name of its values, for the message.

    Raises:
        InputError: the clocks differ, or the topic has no stamps.
    """
    while isinstance(joints, DerivedRecording):
        joints = joints.recording
    if not isinstance(joints, BagRecording):
        return
    if other.inventory.clock.log_times and not joints.inventory.clock.log_times:
        raise InputError(
            f"{joints.source}: {other.topic} has no time stamps: its {word} cannot be merged with the motion, whose "
            "times must fit within milliseconds; publish it with a header"
        )
    shift = estimate_clock_difference(other.inventory.arrivals, joints.inventory.arrivals)
    if abs(shift) > CLOCK_TOLERANCE_S:
        raise InputError(
            f"{_differs(joints, other, shift)}: its {word} cannot be merged with the motion; synchronize the clocks "
            "and record again"
        )


def _merged(recording: BagRecording, source: Source, word: str) -> Finding:
    inventory = source.recording.inventory
    rate = 1.0 / inventory.period if inventory.period else 0.0
    return CHANNELS_MERGED.found(
        f"{recording.source}: {word} from {source.recording.topic} at {rate:.3g} Hz, longest gap "
        f"{inventory.longest_gap:.3g} s, interpolated at the stamps of {recording.topic}",
        (source.joint,) if source.joint else (),
    )


def _open(path: Path, word: str, topic: str, joint: str, reading: MessageReading) -> BagRecording:
    """The values of a channel.

    Raises:
        UsageError: an unknown field, or a type without that channel where no field is named.
        InputError: the topic cannot be read.
    """
    name, _, part = topic.partition(":")
    if part and part not in FIELDS:
        raise UsageError(f"channel {word}: unknown field {part}; use one of {', '.join(FIELDS)}")
    types = {**JOINT_TYPES, **VALUE_TYPES}
    names = (joint,) if joint else reading.names
    whole = replace(reading, types=types, names=names, channel=FIELDS[part] if part else CHANNEL_WORDS[word])
    return open_recording(path, name, whole)
