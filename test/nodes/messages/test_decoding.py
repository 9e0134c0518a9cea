# SPDX-License-Identifier: Apache-2.0
"""Joint states as rclpy reads and writes them, whatever their names, their frame and their fields."""

import random
import struct

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.runtime.decoding import JointStateDecoder
from robot_dyn_id.recordings.joint_state_frame import JointStateFrame

CHANNELS = ("position", "velocity", "effort")


def draw_message(seed, like=None):
    """A random message; with the names, the frame and the counts of another one, if it is given."""
    draw = random.Random(seed)
    if like is None:
        names = ["".join(draw.choices("abc_é1", k=draw.randint(0, 12))) for _ in range(draw.randint(0, 9))]
        frame, counts = "f" * draw.randint(0, 7), [draw.choice([len(names), 0, draw.randint(0, 9)]) for _ in CHANNELS]
    else:
        names, frame, counts = like.name, like.header.frame_id, [len(getattr(like, name)) for name in CHANNELS]
    message = JointState(name=list(names))
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = draw.randint(-(2**31), 2**31 - 1), draw.getrandbits(32)
    for name, count in zip(CHANNELS, counts, strict=True):
        setattr(message, name, [draw.gauss(0.0, 1.0) for _ in range(count)])
    return message


def frame_of(message):
    counts = [len(getattr(message, name)) for name in CHANNELS]
    return JointStateFrame(message.name, counts, message.header.frame_id)


def find_differences(data, other):
    """Places where messages differ, up to the length of the shorter one."""
    return {place for place, pair in enumerate(zip(data, other, strict=False)) if pair[0] != pair[1]}


def find_padding(message):
    """Places of the bytes of a serialized message that no field has, found without the frame."""
    padding, place = set(), 12

    def align(size):
        nonlocal place
        gap = -(place - 4) % size
        padding.update(range(place, place + gap))
        place += gap

    for text in (message.header.frame_id, None, *message.name):
        align(4)
        place += 4 + (0 if text is None else len(text.encode()) + 1)
    for name in CHANNELS:
        align(4)
        place += 4
        if count := len(getattr(message, name)):
            align(8)
            place += 8 * count
    return padding | {2, 3}, place


@pytest.mark.parametrize("seed", range(100))
def test_messages_are_encoded_like_those_of_rclpy(seed):
    message = draw_message(seed)
    numbers = b"".join(np.array(getattr(message, name)).tobytes() for name in CHANNELS)
    stamp, theirs = message.header.stamp, serialize_message(message)
    ours = frame_of(message).encode(stamp.sec, stamp.nanosec, numbers)
    padding, end = find_padding(message)
    assert len(ours) == end <= len(theirs)
    assert find_differences(ours, theirs) <= padding  # rclpy leaves there what was in memory
    assert deserialize_message(ours, JointState) == message


@pytest.mark.parametrize("seed", range(100))
def test_every_message_is_decoded_like_by_rclpy(seed):
    decode, first, other = JointStateDecoder(), draw_message(seed), draw_message(seed + 1000)
    for message in (first, draw_message(seed + 1, first), draw_message(seed + 2, first), other, first):
        assert decode(serialize_message(message)) == message


def test_damaged_messages_are_refused_after_sound_ones():
    message = JointState(name=["a", "b"], position=[1.0, 2.0])
    decode, data = JointStateDecoder(), serialize_message(message)
    for _ in range(2):
        assert decode(data) == message
        with pytest.raises(InputError, match="JointState"):
            decode(data[:20])
    assert decode(data) == message


def test_a_message_of_the_other_byte_order_is_decoded():
    """Little-endian messages have the same layout, and must not be taken for it."""
    message = JointState()
    message.header.stamp.sec = 1
    decode = JointStateDecoder()
    assert decode(serialize_message(message)).header.stamp.sec == 1
    big = b"\x00\x00\x00\x00" + struct.pack(">iII", 2, 3, 1) + b"\x00\x00\x00\x00" + 4 * struct.pack(">I", 0)
    assert (decode(big).header.stamp.sec, decode(big).header.stamp.nanosec) == (2, 3)
