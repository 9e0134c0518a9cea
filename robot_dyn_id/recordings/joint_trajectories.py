# SPDX-License-Identifier: Apache-2.0
"""Trajectories of a bag: trajectory_msgs/msg/JointTrajectory in CDR."""

from __future__ import annotations

import struct
from pathlib import Path

from robot_dyn_id.data.trajectory_rows import NANOSECONDS, TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.bag_files import open_bag
from robot_dyn_id.recordings.reading import Unreadable, reading

TYPE_NAME = "trajectory_msgs/msg/JointTrajectory"

MOST = 10_000_000
"""Largest number of items of a sequence."""


def read_joint_trajectory_message(
    path: str | Path, topic: str | None = None, number: int | None = None
) -> TrajectoryRows:
    """Read a trajectory from a bag.

    Args:
        path: bag folder or storage file.
        topic: topic of the type JointTrajectory; None: the only one.
        number: number of the message on it, from 0; None: the only one.

    Raises:
        InputError: nothing readable, no such topic or message, or several.
    """
    with reading(path):
        bag = open_bag(Path(path))
        fitting = [name for name, kind in bag.topics().items() if kind == TYPE_NAME]
        wanted = [name for name in fitting if topic is None or name in (topic, f"/{topic}")]
        if len(wanted) != 1:
            held = ", ".join(fitting) or "none"
            raise InputError(f"{path}: {topic or 'one topic'} of type {TYPE_NAME} is needed; it holds {held}")
        messages = [data for _, _, _, data in bag.messages(wanted, lambda _: None)]
        if not messages or (number is None and len(messages) > 1) or (number is not None and number >= len(messages)):
            which = "one message" if number is None else f"message {number}"
            raise InputError(f"{path}: {which} on {wanted[0]} is needed; it holds {len(messages)}, numbered from 0")
        return decode_joint_trajectory(messages[number or 0])


def decode_joint_trajectory(message: bytes) -> TrajectoryRows:
    """Decode a message.

    Raises:
        Unreadable: the bytes are not such a message.
    """
    try:
        return _decode(_Cursor(message))
    except (struct.error, UnicodeDecodeError, OverflowError):
        raise Unreadable(f"a message is not a {TYPE_NAME}") from None


def _decode(cursor: _Cursor) -> TrajectoryRows:
    stamp = cursor.time()
    frame_id = cursor.text()
    joint_names = tuple(cursor.text() for _ in range(cursor.count()))
    rows, times = [], []
    for _ in range(cursor.count()):
        rows.append([cursor.numbers() for _ in range(4)])
        times.append(cursor.time())
    positions, velocities, accelerations, efforts = (tuple(row[index] for row in rows) for index in range(4))
    channels = (positions, velocities, accelerations, efforts)
    return TrajectoryRows(joint_names, tuple(times), *channels, frame_id, stamp)


class _Cursor:
    """Position in a message; numbers are aligned to their size, from behind the encapsulation."""

    def __init__(self, message: bytes) -> None:
        """Begin behind the encapsulation."""
        self._data, self._at = message, 4
        self._order = "<" if message[1:2] == b"\x01" else ">"

    def _read(self, code: str, count: int = 1) -> tuple[float, ...]:
        size = struct.calcsize(code)
        if count:
            self._at += -(self._at - 4) % size
        values = struct.unpack_from(f"{self._order}{count}{code}", self._data, self._at)
        self._at += count * size
        return values

    def count(self) -> int:
        """Length of a sequence."""
        found = int(self._read("I")[0])
        if found > MOST:
            raise struct.error
        return found

    def text(self) -> str:
        """A string."""
        length = self.count()
        text = self._data[self._at : self._at + length]
        if len(text) < length:
            raise struct.error
        self._at += length
        return text.rstrip(b"\x00").decode()

    def numbers(self) -> tuple[float, ...]:
        """A sequence of double."""
        return self._read("d", self.count())

    def time(self) -> int:
        """A Time or Duration [ns]."""
        seconds, nanoseconds = int(self._read("i")[0]), int(self._read("I")[0])
        return seconds * NANOSECONDS + nanoseconds
