# SPDX-License-Identifier: Apache-2.0
"""Inventory of the joint states of a bag, made in one pass: clock, channels, drops. Later passes rely on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from robot_dyn_id.arrays import Integers, Mask
from robot_dyn_id.recordings.joint_states import NANOSECONDS, Batch, Decoder, Stamps
from robot_dyn_id.recordings.reading import RawMessage, Warn, format_dropped
from robot_dyn_id.recordings.types.contract import CURRENT, REFERENCE, TEMPERATURE

BATCH = 1024  # messages decoded at once
NEAR_ZERO = NANOSECONDS  # [ns] the stamps of a clock that starts at zero (simulation) may be zero
SELDOM = 0.01  # fewer new stamps per message than this: the publisher does not fill them in

Arrivals = Integers
"""Some arrival (log) times and stamps of a topic [ns], shape (k, 2), in storage order."""

ARRIVALS_PER_BATCH = 32

WHOLE = (CURRENT, TEMPERATURE, REFERENCE)
"""Channels that are of no use for a set of joints unless all of these have values."""

MALFORMED = "arrays do not fit the joint names"
PARTIAL = "only some of the joints"
UNSTAMPED = "stamp missing (zero)"


@dataclass
class Tally:
    """Counts of the messages that hold one set of joints.

    Attributes:
        usable: messages that are used.
        unstamped: those without a stamp.
        malformed: those whose arrays do not fit the names.
        channels: messages that hold a channel.
        values: messages with a value of a channel of `WHOLE` for a joint.
    """

    usable: int = 0
    unstamped: int = 0
    malformed: int = 0
    channels: Counter[str] = field(default_factory=Counter)
    values: Counter[tuple[str, str]] = field(default_factory=Counter)

    def has(self, channel: str, joints: Sequence[str]) -> bool:
        """Whether there are values of a channel for the joints."""
        if channel in WHOLE:
            return all(self.values[channel, joint] for joint in joints)
        return bool(self.channels[channel])


@dataclass(frozen=True)
class Clock:
    """Source of the time of a message.

    Attributes:
        log_times: True if the log times replace the stamps.
        start: first stamp that is not zero [ns]; determines whether zeros before it are valid.
    """

    log_times: bool
    start: int

    def unstamped(self, batch: Batch, previous: int) -> tuple[Mask, int]:
        """Find messages without a stamp.

        A zero is a valid stamp if the clock is close to zero, and a missing one among larger stamps.

        Args:
            batch: consecutive messages.
            previous: last stamp that was not zero before them [ns]; `start` at the beginning.

        Returns:
            Mask of shape (n,), and `previous` for the next batch.
        """
        if self.log_times:
            return np.zeros(len(batch.stamps), dtype=bool), previous
        places = np.where(batch.stamps != 0, np.arange(len(batch.stamps)), -1)
        latest = np.maximum.accumulate(places)
        before = np.where(latest < 0, previous, batch.stamps[latest])
        missing = batch.decodable & (batch.stamps == 0) & (np.abs(before) > NEAR_ZERO)
        return missing, int(before[-1])


@dataclass(frozen=True)
class TopicInventory:
    """Inventory of the messages of one topic.

    Attributes:
        joint_names: joints in order of first appearance.
        clock: source of the sample times.
        epoch: first valid stamp [ns].
        tallies: counts by set of joints.
        undecodable: number of messages that are not of the topic's type.
        word: name of that type without its package.
        unused: what the messages have besides the channels.
        damage: damage of the storage files, one phrase each.
        arrivals: see `Arrivals`; the times of arrival twice if they replace the stamps.
        period: median distance of the messages [s]; 0 if there is one at most.
        longest_gap: longest distance of two messages [s].
    """

    joint_names: tuple[str, ...]
    clock: Clock
    epoch: int
    tallies: dict[frozenset[str], Tally] = field(repr=False)
    undecodable: int
    word: str
    unused: tuple[str, ...]
    damage: tuple[str, ...]
    arrivals: Arrivals = field(repr=False)
    period: float
    longest_gap: float

    def of(self, joints: Sequence[str]) -> Tally:
        """Counts of the messages that hold all of `joints`."""
        total = Tally()
        for names, tally in self.tallies.items():
            if names.issuperset(joints):
                for name, count in vars(tally).items():
                    setattr(total, name, getattr(total, name) + count)
        return total

    def describe(self, joints: Sequence[str]) -> tuple[str, ...]:
        """Damage, and the messages about `joints` that are left out, as text."""
        return (*self.damage, *format_dropped(self.dropped(joints), "message"))

    def dropped(self, joints: Sequence[str]) -> dict[str, int]:
        """Number of messages about `joints` that are left out, by reason."""
        whole = self.of(joints)
        partial = sum(
            tally.usable + tally.unstamped + tally.malformed
            for names, tally in self.tallies.items()
            if names.intersection(joints) and not names.issuperset(joints)
        )
        counts = {
            f"not a {self.word} in CDR": self.undecodable,
            MALFORMED: whole.malformed,
            PARTIAL: partial,
            UNSTAMPED: whole.unstamped,
        }
        return {reason: count for reason, count in counts.items() if count}


def decode_batches(messages: Iterable[RawMessage], decoder: Decoder) -> Iterator[tuple[Batch, Stamps]]:
    """Batches of decoded messages with their log times [ns]."""
    iterator = iter(messages)
    while batch := list(islice(iterator, BATCH)):
        log_times = np.array([log_time for _, _, log_time, _ in batch], dtype=np.int64)
        yield decoder.decode([data for _, _, _, data in batch]), log_times


def inspect_topic(open_messages: Callable[[Warn], Iterable[RawMessage]], decoder: Decoder) -> TopicInventory:
    """Make the inventory of one topic in two passes: up to the first stamp, then over all messages.

    Args:
        open_messages: starts a pass; its argument receives descriptions of damage.
        decoder: reader of its messages.
    """
    start = _first_stamp(open_messages(lambda _: None), decoder)
    damage: list[str] = []
    count = _Count(Clock(log_times=False, start=start))
    for batch, log_times in decode_batches(open_messages(damage.append), decoder):
        count.add(batch, log_times)
    return count.inventory(decoder.kind.word, damage)


def _first_stamp(messages: Iterable[RawMessage], decoder: Decoder) -> int:
    for batch, _ in decode_batches(messages, decoder):
        stamps = batch.stamps[batch.stamps != 0]
        if len(stamps):
            return int(stamps[0])
    return 0


class _Count:
    """Running counts of a pass."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._previous = clock.start
        self._tallies: dict[frozenset[str], Tally] = defaultdict(Tally)
        self._names: dict[str, None] = {}
        self._unused: dict[str, None] = {}
        self._decodable = self._undecodable = self._changes = 0
        self._first: tuple[int, int] | None = None
        self._arrivals: list[Arrivals] = []
        self._steps: list[Integers] = []  # longest and median distance of stamps, and of arrivals, by batch
        self._last: Arrivals = np.empty((0, 2), dtype=np.int64)

    def add(self, batch: Batch, log_times: Stamps) -> None:
        """Count a batch."""
        stamps = batch.stamps[batch.stamps != 0]
        self._changes += int(np.count_nonzero(np.diff(stamps, prepend=self._previous)))
        missing, self._previous = self._clock.unstamped(batch, self._previous)
        self._decodable += int(batch.decodable.sum())
        self._undecodable += int((~batch.decodable).sum())
        valid = np.flatnonzero(batch.decodable & ~missing)
        if self._first is None and len(valid):
            self._first = int(batch.stamps[valid[0]]), int(log_times[valid[0]])
        if len(valid):
            times = np.stack([log_times[valid], batch.stamps[valid]], axis=1)
            self._arrivals.append(times[:: -(-len(times) // ARRIVALS_PER_BATCH)])
            steps = np.diff(np.concatenate([self._last, times]), axis=0)
            if len(steps):
                self._steps.append(np.concatenate([steps.max(axis=0), np.median(steps, axis=0).astype(np.int64)]))
            self._last = times[-1:]
        for group in batch.groups:
            tally = self._tallies[frozenset(group.names)]
            if not group.usable:
                tally.malformed += len(group.rows)
                continue
            self._names.update(dict.fromkeys(group.names))
            self._unused.update(dict.fromkeys(group.unused))
            unstamped = int(missing[group.rows].sum())
            tally.unstamped += unstamped
            tally.usable += len(group.rows) - unstamped
            tally.channels.update(dict.fromkeys(group.channels, len(group.rows)))
            for channel in group.channels.keys() & set(WHOLE):
                counts = np.isfinite(group.channels[channel]).sum(axis=0)
                tally.values.update({(channel, name): int(n) for name, n in zip(group.names, counts, strict=True)})

    def inventory(self, word: str, damage: Sequence[str]) -> TopicInventory:
        """The inventory after the pass."""
        stamp, log_time = self._first or (0, 0)
        log_times = self._decodable > 1 and self._changes <= SELDOM * self._decodable
        if log_times:
            for tally in self._tallies.values():
                tally.usable += tally.unstamped
                tally.unstamped = 0
        arrivals = np.concatenate(self._arrivals or [np.empty((0, 2), dtype=np.int64)])
        if log_times:
            arrivals = arrivals[:, [0, 0]]
        steps = np.array(self._steps or [np.zeros(4, dtype=np.int64)])[:, 0 if log_times else 1 :: 2] / NANOSECONDS
        return TopicInventory(
            arrivals=arrivals,
            longest_gap=float(steps[:, 0].max()),
            period=float(np.median(steps[:, 1])),
            joint_names=tuple(self._names),
            clock=Clock(log_times, self._clock.start),
            epoch=log_time if log_times else stamp,
            tallies=dict(self._tallies),
            undecodable=self._undecodable,
            word=word,
            unused=tuple(self._unused),
            damage=tuple(damage),
        )
