# SPDX-License-Identifier: Apache-2.0
"""Bags of ROS 1 (`.bag`, format 2.0), as raw messages in the serialization of ROS 2."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from robot_dyn_id.recordings.reading import RawMessage, Salvage, StoredMessage, Unreadable, Warn, join_lines

SUFFIX = ".bag"


def topics(path: Path) -> dict[str, str]:
    """Type name of each topic, as ROS 2 writes it: `sensor_msgs/msg/JointState`.

    Raises:
        Unreadable: not a bag of ROS 1, or one without an index.
    """
    with _open(path) as bag:
        return {connection.topic: connection.msgtype for connection in bag.connections}


def definitions(path: Path) -> dict[str, str]:
    """Nothing: definitions of ROS 1 differ from those of ROS 2, and only types of the common packages are converted."""
    return {}


def messages(path: Path, topics: Collection[str], warn: Warn) -> Iterator[RawMessage]:
    """Messages of `topics` in the order of their arrival; of a damaged bag, those in front of the damage.

    Raises:
        Unreadable: not a bag of ROS 1, or one without an index.
    """
    from rosbags.typesys import Stores, get_typestore

    types = get_typestore(Stores.ROS2_JAZZY)  # of what it converts to: the headers of ROS 1 have a field more
    with _open(path) as bag:
        wanted = [one for one in bag.connections if one.topic in topics and one.msgtype in types.types]
        count = 0
        try:
            for connection, log_time, data in bag.messages(connections=wanted) if wanted else ():
                converted = bytes(types.ros1_to_cdr(data, connection.msgtype))
                yield connection.topic, connection.msgtype, log_time, converted
                count += 1
        except _broken() as error:
            warn(f"damaged behind message {count} ({join_lines(error)}); what follows could not be read")


def salvage(path: Path, found: Salvage) -> Iterator[StoredMessage]:
    """Refuse: bags of ROS 1 are repaired by the tools of ROS 1.

    Raises:
        Unreadable: always.
    """
    raise Unreadable("a bag of ROS 1, which this package does not write; repair it with `rosbag reindex`")


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Reader of a bag.

    Raises:
        Unreadable: not a bag of ROS 1, one without an index, or the library that reads it is not installed.
    """
    try:
        from rosbags.rosbag1 import Reader
    except ImportError:
        raise Unreadable("bags of ROS 1 need the package rosbags; install it: python3 -m pip install rosbags") from None
    try:
        reader = Reader(path)
        reader.open()
    except OSError:
        raise
    except _broken() as error:
        raise Unreadable(
            f"not a whole bag of ROS 1 ({join_lines(error)}); repair it with `rosbag reindex`, or copy it again"
        ) from None
    try:
        yield reader
    finally:
        reader.close()


def _broken() -> tuple[type[Exception], ...]:
    """Exceptions of the library on files that are damaged or hold something else."""
    import struct

    from rosbags.rosbag1 import ReaderError
    from rosbags.serde import SerdeError

    of_python = (ValueError, KeyError, IndexError, TypeError, AssertionError, EOFError)
    return (ReaderError, SerdeError, struct.error, *of_python)
