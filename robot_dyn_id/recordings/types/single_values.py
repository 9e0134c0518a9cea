# SPDX-License-Identifier: Apache-2.0
"""Types that hold one channel only: temperatures of one joint, and arrays of numbers without names."""

from __future__ import annotations

from robot_dyn_id.recordings.cdr import MessageLayout
from robot_dyn_id.recordings.types.contract import JointColumns, MessageType, Q, locate_header_stamp


def _temperature(layout: MessageLayout) -> JointColumns:
    return JointColumns((), {Q: layout.numbers["temperature"]}, locate_header_stamp(layout))


def _tool_data(layout: MessageLayout) -> JointColumns:
    return JointColumns((), {Q: layout.numbers["tool_temperature"]})


def _array(layout: MessageLayout) -> JointColumns:
    return JointColumns((), {Q: layout.numbers["data"]})


TEMPERATURE_OF_SENSOR = MessageType("sensor_msgs/msg/Temperature", _temperature, default_channel=Q)
TOOL_DATA = MessageType("ur_msgs/msg/ToolDataMsg", _tool_data, default_channel=Q)
NUMBERS_64 = MessageType("std_msgs/msg/Float64MultiArray", _array, default_channel=Q)
NUMBERS_32 = MessageType("std_msgs/msg/Float32MultiArray", _array, default_channel=Q)
