# SPDX-License-Identifier: Apache-2.0
"""Real recordings for the tests, written by libraries that know nothing of this package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from mcap.writer import CompressionType
from mcap.writer import Writer as McapFile
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Bag
from rosbags.typesys import Stores, get_typestore

from robot_dyn_id.data.chunk import Chunk

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
TOPIC = "/joint_states"
JOINTS = ("shoulder", "elbow", "wrist")
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND + 123_456_789


@cache
def types():
    return get_typestore(Stores.ROS2_JAZZY)


@dataclass(frozen=True)
class Truth:
    stamps: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray

    @property
    def t(self):
        return (self.stamps - self.stamps[0]) / SECOND

    def messages(self, joints=JOINTS):
        """(log time, CDR) of every sample; arrival is late, and never equal to the stamp."""
        return [
            (int(stamp) + 5_000_000 + 1000 * row, joint_state(int(stamp), joints, q, dq, tau))
            for row, (stamp, q, dq, tau) in enumerate(zip(self.stamps, self.q, self.dq, self.tau, strict=True))
        ]


def truth(count=60, joints=3, start=START, seed=0):
    """Samples with jittered stamps."""
    rng = np.random.default_rng(seed)
    stamps = start + np.arange(count) * 2_000_000 + rng.integers(0, 300_000, count)
    stamps[0] = start
    return Truth(stamps, *rng.normal(size=(3, count, joints)))


def joint_state(stamp, names, position, velocity=(), effort=(), frame_id="", little_endian=True):
    t = types().types
    header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](stamp // SECOND, stamp % SECOND), frame_id)
    numbers = (np.array(values, dtype=float) for values in (position, velocity, effort))
    message = t[JOINT_STATE](header, list(names), *numbers)
    return bytes(types().serialize_cdr(message, JOINT_STATE, little_endian=little_endian))


def wrench_messages(stamps, wrench, frames="sensor"):
    """(log time, CDR) of every sample of moments and forces, shape (6, N); one frame for all, or one per sample."""
    t = types().types
    point = t["geometry_msgs/msg/Vector3"]
    named = [frames] * len(stamps) if isinstance(frames, str) else frames
    for stamp, frame, (nx, ny, nz, fx, fy, fz) in zip(stamps, named, wrench.T, strict=True):
        header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](stamp // SECOND, stamp % SECOND), frame)
        value = t["geometry_msgs/msg/Wrench"](force=point(fx, fy, fz), torque=point(nx, ny, nz))
        yield stamp, bytes(types().serialize_cdr(t[WRENCH](header, value), WRENCH))


def text_message(text):
    return bytes(types().serialize_cdr(types().types["std_msgs/msg/String"](text), "std_msgs/msg/String"))


def write_bag(folder, messages, topic=TOPIC, storage="sqlite3", others=()):
    """A bag written by `rosbags`; `others` are (topic, type) without messages, or with them."""
    with Bag(folder, version=9, storage_plugin=StoragePlugin[storage.upper()]) as bag:
        for name, kind, *held in others:
            other = bag.add_connection(name, kind, typestore=types())
            for log_time, data in held[0] if held else ():
                bag.write(other, log_time, data)
        connection = bag.add_connection(topic, JOINT_STATE, typestore=types())
        for log_time, data in messages:
            bag.write(connection, log_time, data)
    return Path(folder)


def write_mcap(path, messages, compression=CompressionType.NONE, chunk_size=2000, **options):
    """An `.mcap` written by the `mcap` library, in small chunks."""
    with open(path, "wb") as file:
        writer = McapFile(file, chunk_size=chunk_size, compression=compression, **options)
        writer.start("ros2")
        text = types().generate_msgdef(JOINT_STATE, ros_version=2)[0].encode()
        channel = writer.register_channel(TOPIC, "cdr", writer.register_schema(JOINT_STATE, "ros2msg", text))
        for log_time, data in messages:
            writer.add_message(channel, log_time, data, log_time)
        writer.finish()
    return Path(path)


def samples(recording, joints=JOINTS):
    return Chunk.join(list(recording.chunks(joints)))


def assert_equal(chunk, expected, rows=slice(None)):
    """Value by value, no tolerance; NaN equals NaN."""
    np.testing.assert_array_equal(chunk.t, expected.t[rows])
    for name in ("q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(chunk, name), getattr(expected, name)[rows], err_msg=name)
