# SPDX-License-Identifier: Apache-2.0
"""Writes a bag in a thread of its own, so that a disk that is slow for a moment costs no message."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.bag_writer import BagWriter, QosProfile
from robot_dyn_id.recordings.joint_states import read_header_stamps
from robot_dyn_id.recordings.stream_statistics import StreamStatistics

PERIOD = 0.1
"""Time between two looks at what has arrived [s]: messages are written in batches, and none wakes the thread."""

BACKLOG = 256 * 2**20
"""Largest size of the data that wait for the disk [bytes]: minutes of joint states."""


@dataclass
class Stream:
    """One topic on its way into a bag.

    Attributes:
        topic: its name.
        type_name: such as `sensor_msgs/msg/JointState`.
        schema: the type's .msg text with those of its parts.
        type_hash: RIHS01 hash of the type.
        offered_qos: profiles that its publishers offer.
        stamped: whether the type begins with a std_msgs/Header.
        statistics: statistics of the messages written so far.
    """

    topic: str
    type_name: str
    schema: str
    type_hash: str
    offered_qos: Sequence[QosProfile]
    stamped: bool
    statistics: StreamStatistics = field(default_factory=StreamStatistics)


class BackgroundWriter:
    """A new bag whose file is only touched by a thread of its own; everything else may be called from one other.

    After a failure the thread ends and what comes later is dropped. A bag that was given no message is removed.

    Attributes:
        folder: the bag's folder.
    """

    def __init__(self, folder: str | Path, backlog: int = BACKLOG) -> None:
        """Create the bag and start the thread.

        Args:
            folder: the bag's folder.
            backlog: what may wait in memory for the disk [bytes].

        Raises:
            InputError: the folder exists, or cannot be created.
        """
        self._bag = BagWriter(folder)
        self.folder = self._bag.folder
        self._backlog = backlog
        self._announced: deque[Stream] = deque()
        self._queue: deque[tuple[Stream, int, bytes | None]] = deque()  # no bytes: an interruption
        self._given, self._taken = 0, 0  # [bytes] each counted by one thread
        self._end = threading.Event()
        self._failure: str | None = None
        # A daemon: a disk that hangs for ever must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="bag writer", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why the bag is not what it should be; None if all is well."""
        failure = self._failure or self._bag.failure
        if failure is None and not self._thread.is_alive() and not self._end.is_set():
            return f"{self.folder}: the writing thread ended; what was written before stays"
        return failure

    def stored(self, topic: str) -> int:
        """Number of messages of a topic that are in the file on the disk.

        It is 0 after others have changed the file, which `failure` then reports already.
        """
        return self._bag.stored(topic)

    def announce(self, stream: Stream) -> None:
        """Take up a topic; to be called before its first message."""
        self._announced.append(stream)

    def add(self, stream: Stream, arrival: int, message: bytes) -> None:
        """Give a message of an announced topic; returns at once.

        Args:
            stream: its topic.
            arrival: when it arrived [ns].
            message: CDR bytes, kept as they are.
        """
        if self._end.is_set():
            return
        self._given += len(message)
        self._queue.append((stream, arrival, message))
        if self._given - self._taken > self._backlog:
            waiting = f"{self._backlog / 1e6:.3g} MB wait for it"
            self._failure = f"{self.folder}: the disk is too slow ({waiting}); what came before stays"
            self._end.set()

    def interrupt(self, stream: Stream) -> None:
        """Announce a break between the latest and the next message of `stream`."""
        self._queue.append((stream, 0, None))

    def end(self) -> None:
        """Begin to write what waits and to finish the bag; later messages are dropped."""
        self._end.set()

    def ended(self, timeout: float = 0.0) -> bool:
        """Whether the bag is finished, or has failed, at most `timeout` seconds from now."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._end.wait(PERIOD):
                self._write()
            self._write()
            self._bag.close()
            if not self._given:  # a start that came to nothing leaves nothing behind
                self._bag.remove()
        except InputError as error:
            self._failure = str(error)
            self._end.set()

    def _write(self) -> None:
        """Write what has arrived.

        Raises:
            InputError: the disk refuses.
        """
        count = len(self._queue)  # looked at before the announcements: a message comes behind its topic's
        while self._announced:
            stream = self._announced.popleft()
            self._bag.add_topic(stream.topic, stream.type_name, stream.schema, stream.type_hash, stream.offered_qos)
        if not count:
            self._bag.flush()
        batches: dict[str, tuple[Stream, list[tuple[int, bytes]]]] = {}
        for _ in range(count):
            stream, arrival, message = self._queue.popleft()
            _, batch = batches.setdefault(stream.topic, (stream, []))
            if message is None:
                _count(stream, batch)
                stream.statistics = stream.statistics.interrupted()
                batch.clear()
                continue
            self._bag.write(stream.topic, stream.type_name, arrival, message)
            self._taken += len(message)
            batch.append((arrival, message))
        for stream, batch in batches.values():
            _count(stream, batch)


def _count(stream: Stream, batch: Sequence[tuple[int, bytes]]) -> None:
    """Take a batch that was written into the statistics of its topic."""
    if batch:
        arrivals = np.array([arrival for arrival, _ in batch], dtype=np.int64)
        stamps = read_header_stamps([message for _, message in batch]) if stream.stamped else None
        stream.statistics = stream.statistics.after(arrivals, stamps)
