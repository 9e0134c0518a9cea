# SPDX-License-Identifier: Apache-2.0
"""Messages of robots' drivers in bags, defined by test/interfaces and written by `rosbags` and `mcap`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from mcap.writer import Writer as McapFile
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Bag
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from support.recording_files import SECOND

INTERFACES = Path(__file__).resolve().parents[1] / "interfaces"
LATENCY = 3_000_000
"""Time from stamp to arrival [ns]."""


@cache
def types():
    """rosbags' types of Jazzy and those of test/interfaces."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for path in sorted(INTERFACES.glob("*/msg/*.msg")):
        name = f"{path.parts[-3]}/msg/{path.stem}"
        store.register(get_types_from_msg(path.read_text(encoding="utf-8"), name))
    return store


def message(kind, **values):
    """A message of a type such as `control_msgs/msg/DynamicJointState`; fields that are not given are zero or empty."""
    store = types()
    _, fields = store.fielddefs[kind]
    return store.types[kind](**{name: values.get(name, _empty(store, how)) for name, how in fields})


def header(stamp, frame_id=""):
    time = message("builtin_interfaces/msg/Time", sec=int(stamp // SECOND), nanosec=int(stamp % SECOND))
    return message("std_msgs/msg/Header", stamp=time, frame_id=frame_id)


def cdr(content):
    return bytes(types().serialize_cdr(content, content.__msgtype__))


def write_topics(folder, topics, storage="mcap"):
    """A bag that `rosbags` writes: by topic, a type and (arrival [ns], message) in order."""
    with Bag(folder, version=9, storage_plugin=StoragePlugin[storage.upper()]) as bag:
        for name, (kind, messages) in topics.items():
            connection = bag.add_connection(name, kind, typestore=types())
            for arrival, content in messages:
                bag.write(connection, int(arrival), cdr(content))
    return Path(folder)


def write_topics_with_mcap(path, topics):
    """The same by the `mcap` library."""
    with open(path, "wb") as file:
        writer = McapFile(file)
        writer.start("ros2")
        for name, (kind, messages) in topics.items():
            text = types().generate_msgdef(kind, ros_version=2)[0].encode()
            channel = writer.register_channel(name, "cdr", writer.register_schema(kind, "ros2msg", text))
            for arrival, content in messages:
                writer.add_message(channel, int(arrival), cdr(content), int(arrival))
        writer.finish()
    return Path(path)


def stamped(stamps, make, latency=LATENCY):
    """(arrival, message) of the rows, each made of its number and stamp."""
    return [(stamp + latency, make(row, int(stamp))) for row, stamp in enumerate(stamps)]


def _empty(store, how):
    """The zero of a field: rosbags describes it by a node and its details."""
    node, details = int(how[0]), how[1]
    if node == 1:
        return "" if details[0] == "string" else False if details[0] == "bool" else 0
    if node == 2:
        return message(details)
    (inner, inner_details), length = details
    if int(inner) == 1 and inner_details[0] != "string":
        dtype = {"bool": "bool", "byte": "uint8", "char": "uint8"}.get(inner_details[0], inner_details[0])
        return np.zeros(length if node == 3 else 0, dtype=dtype)
    return [_empty(store, (inner, inner_details)) for _ in range(length if node == 3 else 0)]
