# SPDX-License-Identifier: Apache-2.0
"""Live joint states of any type that can be read from bags, as JointState messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sensor_msgs.msg import JointState

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.nodes.messages.message_types import find_message_class, make_definition
from robot_dyn_id.nodes.runtime.decoding import check_size
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter
from robot_dyn_id.recordings.definitions import COMMON, parse_definition
from robot_dyn_id.recordings.joint_states import NANOSECONDS, TYPE_NAME, Decoder, StreamDecoder
from robot_dyn_id.recordings.types import JOINT_TYPES

CHANNELS = {"q": "position", "dq": "velocity", "tau": "effort"}
"""Fields of a JointState by channel."""


def type_parameter() -> Any:
    """The ROS parameter `joint_states_type`."""
    return ros_parameter(
        TYPE_NAME,
        "Type of the messages on joint_states; the package of a driver's type must be installed",
        choices=tuple(JOINT_TYPES),
    )


def names_parameter() -> Any:
    """The ROS parameter `recorded_joints`."""
    return ros_parameter(
        (), "Names of the joints where the messages have none, in the order of their arrays; empty: those of the type"
    )


def find_joint_state_class(type_name: str) -> Any:
    """The class of a type of joint states.

    Raises:
        UsageError: its package is not installed.
    """
    try:
        return find_message_class(type_name)
    except InputError as error:
        raise UsageError(f"parameter joint_states_type: {error}") from None


def subscribe(node: RobotNode, callback: Callable[[Any], None]) -> Any:
    """The subscription of `joint_states` of the type that the parameters of a node name.

    Args:
        node: node with the parameters `joint_states_type` and `recorded_joints`.
        callback: receives JointState messages.

    Raises:
        UsageError: the package of the type is not installed.
    """
    settings = node.settings
    if settings.joint_states_type == TYPE_NAME:
        return node.subscription("joint_states", callback)
    read = make_reader(settings.joint_states_type, settings.recorded_joints)
    kind = find_joint_state_class(settings.joint_states_type)
    return node.subscription("joint_states", lambda message: callback(read(message)), kind, raw=True)


def make_reader(type_name: str, names: Sequence[str] = ()) -> Callable[[bytes], Any]:
    """A function that turns serialized messages of a type into JointState messages.

    Args:
        type_name: the type, a key of `JOINT_TYPES`.
        names: names of the joints where the messages have none; empty: those of the type.

    Raises:
        UsageError: the package of the type is not installed.
    """
    kind = find_joint_state_class(type_name)
    definitions = {**COMMON, **parse_definition(type_name, make_definition(kind))}
    stream = StreamDecoder(Decoder(JOINT_TYPES[type_name], definitions, tuple(names)))

    def read(message: bytes) -> Any:
        check_size(message, kind)
        try:
            stamp, states = stream.read(message)
        except ValueError as error:
            raise InputError(f"joint_states: not a {type_name} ({error})") from None
        if not states.usable:
            raise InputError(f"joint_states: the arrays of a {type_name} do not fit the joint names")
        out = JointState(name=list(states.names))
        out.header.stamp.sec, out.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
        for channel, field in CHANNELS.items():
            if channel in states.channels:
                setattr(out, field, states.channels[channel][0].tolist())
        return out

    return read
