# SPDX-License-Identifier: Apache-2.0
"""Writes rosbag2 folders: messages as they were received, on disk within half a second."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.bag_files import METADATA
from robot_dyn_id.recordings.joint_states import TYPE_NAME, Stamps, encode
from robot_dyn_id.recordings.reading import MSG_LANGUAGE

_CHUNK = 256 * 1024  # [bytes] messages are handed to the operating system after this many
_PERIOD = 0.25  # [s] or after this time, whichever comes first
_NO_CHUNK = 2**62  # [bytes] no chunk ends but by a flush, so that what is counted is what was handed over
_REFRESH = 2.0  # [s] metadata.yaml is written again after this time: a killed recorder leaves a folder that opens
_VERSION = 9  # of metadata.yaml: ROS 2 Jazzy and later
_NO_TIME = 2**63 - 1  # what rosbag2 writes as the start of an empty bag
_BATCH = 1024  # samples encoded at once
_ENCODING = "cdr"  # of messages

QosProfile = Mapping[str, object]
"""Offered QoS as rosbag2 writes it: history, depth, reliability, durability, deadline, lifespan, liveliness,
liveliness_lease_duration (each time with sec and nsec), avoid_ros_namespace_conventions."""


@dataclass
class _Topic:
    """Entry of a topic in metadata.yaml."""

    channel: int
    type_name: str
    type_hash: str
    offered_qos: list[dict[str, object]]
    count: int = 0
    stored: int = 0


class _NotOnDisk(OSError):
    """The file is not the one that was written."""


class _File(io.FileIO):
    """A new file that notices before each write if others have removed, replaced or changed the size of it.

    The system itself reports nothing: a removed file can be written to, and one that was truncated gets a hole.
    """

    def __init__(self, path: Path) -> None:
        """Create the file."""
        super().__init__(path, "xb")
        self._path, self._size = path, 0

    def write(self, data: Any) -> int:
        """Write at the end.

        Raises:
            OSError: the disk refuses, or the file is not what was written.
        """
        self.check()
        count = super().write(data)
        self._size += count
        return count

    def check(self) -> None:
        """Compare the file that is found under the path with what was written.

        Raises:
            _NotOnDisk: it was removed, replaced, or has another size.
        """
        mine = os.fstat(self.fileno())
        try:
            found = os.stat(self._path)
        except OSError:
            raise _NotOnDisk("was removed or renamed") from None
        if not os.path.samestat(mine, found):
            raise _NotOnDisk("was replaced by another file")
        if found.st_size != self._size:
            raise _NotOnDisk(f"has {found.st_size} of {self._size} bytes: another program has changed it")


class BagWriter:
    """A new bag, to be used as a context manager.

    A process that is killed loses what was written since the last `flush`, and the indexes at the end of the file;
    metadata.yaml then describes the bag as it was at most 2 s before. `recovery` completes such a bag.

    Attributes:
        folder: the bag's folder.
        path: the file in it.
        failure: why the bag is incomplete, set before the numbers of stored messages fall; None if it is not.
    """

    def __init__(self, folder: str | Path, name: str | None = None) -> None:
        """Create the folder, the file in it and metadata.yaml.

        Args:
            folder: the bag's folder.
            name: name that the file is made of; by default that of the folder.

        Raises:
            InputError: the folder exists or cannot be created, or the library `mcap` is not installed.
        """
        try:
            from mcap.writer import CompressionType, Writer  # packages of a distribution do not bring it
        except ImportError as error:
            raise InputError(
                f"{folder}: writing it needs the package {error.name}: install it with `python3 -m pip install mcap`, "
                "or record with `ros2 bag record --storage sqlite3`"
            ) from None
        self.folder = Path(folder)
        self._topics: dict[str, _Topic] = {}
        self._schemas: dict[str, int] = {}
        self._first, self._last = _NO_TIME, 0
        self._due = self._refresh_due = 0.0
        self.failure: str | None = None
        self._pending = 0
        self.path = self.folder / f"{name or self.folder.name}_0.mcap"
        try:
            self.folder.mkdir(parents=True)
            self._raw = _File(self.path)
        except FileExistsError:
            raise InputError(f"{folder}: exists, and nothing is overwritten; choose another folder") from None
        except OSError as error:
            raise InputError(f"{folder}: cannot be created ({error.strerror or error})") from None
        self._file = io.BufferedWriter(self._raw)
        # Uncompressed, so that no single write has to pack a whole chunk.
        self._writer = Writer(self._file, chunk_size=_NO_CHUNK, compression=CompressionType.NONE)
        self._writer.start(profile="ros2")
        with self._writing():
            self._writer.flush()
            self._write_metadata()

    def __enter__(self) -> BagWriter:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; what was written stays, also after an error."""
        self.close()

    def add_topic(
        self,
        topic: str,
        type_name: str,
        schema: str | None = None,
        type_hash: str = "",
        offered_qos: Sequence[QosProfile] = (),
        schema_encoding: str = MSG_LANGUAGE,
    ) -> None:
        """Announce a topic; `write` does it automatically for common types if the QoS is of no interest.

        Args:
            topic: its name.
            type_name: such as `sensor_msgs/msg/JointState`.
            schema: the type's .msg text with those of its parts; None for the types of a ROS 2 distribution.
            type_hash: RIHS01 hash of the type, where `schema` is given.
            offered_qos: profiles that its publishers offer.
            schema_encoding: language of `schema`: `ros2msg` or `ros2idl`.

        Raises:
            InputError: the type is unknown and has no `schema`, or the disk refuses.
        """
        if schema is None:
            schema, type_hash = definition(type_name)
        profiles = [dict(profile) for profile in offered_qos]
        metadata = {
            "offered_qos_profiles": yaml.safe_dump(profiles, sort_keys=False) if profiles else "",
            "topic_type_hash": type_hash,
        }
        with self._writing():
            if type_name not in self._schemas:
                number = self._writer.register_schema(type_name, schema_encoding, schema.encode())
                self._schemas[type_name] = number
            number = self._schemas[type_name]
            channel = self._writer.register_channel(topic, _ENCODING, number, metadata)
        self._topics[topic] = _Topic(channel, type_name, type_hash, profiles)

    def write(self, topic: str, type_name: str, log_time: int, message: bytes, publish_time: int | None = None) -> None:
        """Write one message.

        Args:
            topic: name of its topic.
            type_name: its type; only looked at when the topic is new.
            log_time: when it arrived [ns].
            message: CDR bytes, kept as they are.
            publish_time: when it was sent [ns]; by default `log_time`.

        Raises:
            InputError: the topic is new and its type unknown, or the disk refuses, now or earlier.
        """
        if topic not in self._topics:
            self.add_topic(topic, type_name)
        entry = self._topics[topic]
        with self._writing():
            self._writer.add_message(
                entry.channel, log_time, message, log_time if publish_time is None else publish_time
            )
            entry.count += 1
            self._pending += len(message)
            self._first = min(self._first, log_time)
            self._last = max(self._last, log_time)
            if self._pending >= _CHUNK or time.monotonic() >= self._due:
                self._flush()

    def stored(self, topic: str) -> int:
        """Number of messages of a topic that are in the file on the disk; 0 after others have changed the file."""
        return self._topics[topic].stored if topic in self._topics else 0

    def flush(self) -> None:
        """Hand everything to the operating system; to be called by a timer, as messages may cease to come.

        Raises:
            InputError: the disk refuses, now or earlier.
        """
        with self._writing():
            self._flush()

    def close(self) -> None:
        """Finish the file and write metadata.yaml; after a refusal of the disk there is nothing left to do.

        Raises:
            InputError: the disk refuses.
        """
        if self._file.closed:
            return
        with self._writing():
            self._writer.add_metadata("rosbag2", {"serialized_metadata": _yaml(self._information())})
            self._writer.finish()
            self._file.flush()
            self._account()
            self._file.close()
            self._write_metadata()

    def remove(self) -> None:
        """Remove the finished bag: its two files, and the folder if it holds nothing else."""
        for file in (self.path, self.folder / METADATA):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _flush(self) -> None:
        self._writer.flush()
        self._account()
        now = time.monotonic()
        self._due = now + _PERIOD
        if now >= self._refresh_due:
            self._refresh_due = now + _REFRESH
            self._write_metadata()

    def _account(self) -> None:
        """Count what was handed to the operating system, if it is in the file."""
        self._raw.check()
        self._pending = 0
        for topic in self._topics.values():
            topic.stored = topic.count

    def _write_metadata(self) -> None:
        """Write metadata.yaml as a whole: readers of the folder see the old one or the new one."""
        part = self.folder / f".{METADATA}.part"
        try:
            part.write_text(_yaml({"rosbag2_bagfile_information": self._information()}), encoding="utf-8")
            part.replace(self.folder / METADATA)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn what the disk refuses into an `InputError`, now and later: the file may end amid a record."""
        if self.failure is not None:
            raise InputError(self.failure)
        try:
            yield
        except OSError as error:
            self.failure = self._explained(error)
            if isinstance(error, _NotOnDisk):
                for topic in self._topics.values():
                    topic.stored = 0
            with suppress(OSError):
                self._raw.close()
            raise InputError(self.failure) from None

    def _explained(self, error: OSError) -> str:
        """The failure in words; what was written before is lost only if others have changed the file."""
        if not isinstance(error, _NotOnDisk):
            reason = error.strerror or str(error)
            return f"{self.folder}: cannot be written ({reason}); what was written before stays"
        lost = sum(topic.count for topic in self._topics.values())
        what = f"{self.path}: {error} while it was recorded; {lost} messages are lost"
        rest = f", except for what `robot-dyn-id recover {self.folder}` finds" if self.path.is_file() else ""
        return f"{what}{rest}"

    def _information(self) -> dict[str, object]:
        """Content of metadata.yaml."""
        count = sum(topic.count for topic in self._topics.values())
        extent = {
            "starting_time": {"nanoseconds_since_epoch": self._first},
            "duration": {"nanoseconds": max(0, self._last - self._first)},
            "message_count": count,
        }
        topics = [
            {
                "topic_metadata": {
                    "name": name,
                    "type": topic.type_name,
                    "serialization_format": _ENCODING,
                    "offered_qos_profiles": topic.offered_qos,
                    "type_description_hash": topic.type_hash,
                },
                "message_count": topic.count,
            }
            for name, topic in self._topics.items()
        ]
        return {
            "version": _VERSION,
            "storage_identifier": "mcap",
            **deepcopy(extent),  # or YAML would write references
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [self.path.name],
            "files": [{"path": self.path.name, **extent}],
            "custom_data": None,
            "ros_distro": os.environ.get("ROS_DISTRO", ""),
        }


@dataclass(frozen=True)
class StampedSamples:
    """Samples of joints with message stamps.

    Attributes:
        stamps: message stamps [ns], shape (n,).
        q: positions [rad or m], shape (n, joints).
        dq: velocities [rad/s or m/s], same shape; None leaves the field empty.
        tau: efforts [N m or N], same shape; None leaves the field empty.
    """

    stamps: Stamps
    q: Array
    dq: Array | None = None
    tau: Array | None = None


def write_joint_state_bag(folder: str | Path, topic: str, joint_names: Sequence[str], samples: StampedSamples) -> None:
    """Write samples as a bag of JointState messages, arriving at the times of their stamps.

    Args:
        folder: the bag's folder; must not exist.
        topic: name of the topic.
        joint_names: names of the joints, one per column.
        samples: samples and their stamps.

    Raises:
        InputError: the folder exists or cannot be written.
    """
    with BagWriter(folder) as writer:
        writer.add_topic(topic, TYPE_NAME)
        for start in range(0, len(samples.stamps), _BATCH):
            part = slice(start, start + _BATCH)
            velocities, efforts = (None if values is None else values[part] for values in (samples.dq, samples.tau))
            messages = encode(joint_names, samples.stamps[part], samples.q[part], velocities, efforts)
            for stamp, message in zip(samples.stamps[part], messages, strict=True):
                writer.write(topic, TYPE_NAME, max(0, int(stamp)), message)


def _yaml(content: dict[str, object]) -> str:
    """YAML text; by libyaml where PyYAML has it, as this is written while messages arrive."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(content, Dumper=dumper, sort_keys=False))


@cache
def _known_types() -> Any:
    """Type store of `rosbags`.

    Raises:
        ImportError: it is not installed.
    """
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


_SEPARATOR = "=" * 80
JOINT_STATE_DEFINITION = (
    "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n"
    f"{_SEPARATOR}\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    f"{_SEPARATOR}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
)
JOINT_STATE_HASH = "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"


def definition(type_name: str) -> tuple[str, str]:
    """Definition (.msg text) and RIHS01 hash of a message type of ROS 2.

    That of joint states is built in; others are looked up in the optional package `rosbags`.

    Raises:
        InputError: the type is unknown, or `rosbags` is not installed.
    """
    if type_name == TYPE_NAME:
        return JOINT_STATE_DEFINITION, JOINT_STATE_HASH
    try:
        types = _known_types()
    except ImportError:
        raise InputError(
            f"{type_name}: unknown message type; install rosbags, or give its definition with the topic"
        ) from None
    if type_name not in types.fielddefs:
        raise InputError(f"{type_name}: unknown message type; give its definition with the topic")
    return types.generate_msgdef(type_name, ros_version=2)[0], types.hash_rihs01(type_name)
