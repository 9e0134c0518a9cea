# SPDX-License-Identifier: Apache-2.0
"""Decoding of serialized messages: one that is too large, or that cannot be decoded, is refused input.

DDS matches topics by the name of their type: a message of another version of the type arrives as well, and its bytes
do not fit. A subscription of rclpy would drop it without a word, or raise an error in the executor, and it decodes
a message of any size.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.joint_state_frame import JointStateFrame

MOST_BYTES = {"robot_dyn_id/ParameterSet": 2**22, "trajectory_msgs/JointTrajectory": 2**23, "std_msgs/String": 2**22}
"""Greatest sizes of messages that are decoded, by type [bytes]."""

MOST_BYTES_OF_OTHERS = 2**20
"""Greatest size of messages of all other types [bytes]."""


def find_most_bytes(message_type: Any) -> int:
    """Greatest size of messages of a type that are decoded [bytes]."""
    return MOST_BYTES.get(_name(message_type), MOST_BYTES_OF_OTHERS)


def _name(message_type: Any) -> str:
    return f"{message_type.__module__.partition('.')[0]}/{message_type.__name__}"


def check_size(data: bytes, message_type: Any) -> None:
    """Check the size of a serialized message before it is decoded.

    Raises:
        InputError: it is larger than any that is meant.
    """
    if len(data) > find_most_bytes(message_type):
        raise InputError(
            f"a message of {len(data)} bytes is larger than the {find_most_bytes(message_type)} that are read"
        )


def decode(data: bytes, message_type: Any) -> Any:
    """The message of some bytes.

    Args:
        data: what a subscription with `raw=True` receives.
        message_type: class of the message.

    Raises:
        InputError: it is too large, damaged, or a message of another version of the type.
    """
    check_size(data, message_type)
    try:
        return deserialize_message(data, message_type)
    except Exception:  # what the libraries of ROS raise has no common base
        raise InputError(
            f"it is not a {_name(message_type)} of this version: a message of another version of the type, or damaged"
        ) from None


def make_decoder(message_type: Any) -> Callable[[bytes], Any]:
    """Function that decodes the messages of one topic, see `decode`.

    A JointState holds until the next one of the topic is decoded.
    """
    return JointStateDecoder() if message_type is JointState else partial(decode, message_type=message_type)


class JointStateDecoder:
    """Decoder of the JointState messages of a topic: those like the one before only take their numbers.

    At 1 kHz this takes a fifth of the time of rclpy, which makes names and header again for each message.
    """

    def __init__(self) -> None:
        """Begin without a message."""
        self._message = JointState()
        self._frame = JointStateFrame((), (0, 0, 0))

    def __call__(self, data: bytes) -> JointState:
        """The message of some bytes; it holds until the next call.

        Raises:
            InputError: see `decode`.
        """
        message = self._message
        if not self._frame.fits(data):
            self._message = message = decode(data, JointState)
            counts = len(message.position), len(message.velocity), len(message.effort)
            self._frame = JointStateFrame(message.name, counts, message.header.frame_id)
            return message
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec, (position, velocity, effort) = self._frame.read(data)
        message.position, message.velocity = array("d", position), array("d", velocity)
        message.effort = array("d", effort)
        return message
