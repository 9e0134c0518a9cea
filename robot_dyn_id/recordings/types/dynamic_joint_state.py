# SPDX-License-Identifier: Apache-2.0
"""control_msgs/msg/DynamicJointState: values by joint and interface name, from joint_state_broadcaster."""

from __future__ import annotations

from collections.abc import Mapping

from robot_dyn_id.recordings.cdr import MessageLayout, Numbers
from robot_dyn_id.recordings.types.contract import (
    CURRENT,
    DQ,
    TAU,
    TEMPERATURE,
    JointColumns,
    MessageType,
    Q,
    locate_header_stamp,
)

INTERFACES: Mapping[str, str] = {
    **{"position": Q, "velocity": DQ, "effort": TAU},
    **{"current": CURRENT, "motor_current": CURRENT},
    **{"temperature": TEMPERATURE, "motor_temperature": TEMPERATURE, "joint_temperature": TEMPERATURE},
}
"""Channels by the interface names that drivers use."""


def _columns(layout: MessageLayout) -> JointColumns:
    """Resources without a position are sensors and digital outputs, not joints."""
    joints: dict[str, dict[str, int]] = {}
    unused: dict[str, None] = {}
    code = layout.order + "f8"
    names = layout.texts["joint_names"]
    if layout.counts["interface_values"] != len(names):
        return JointColumns(names, {}, locate_header_stamp(layout))
    for number, joint in enumerate(names):
        interfaces = layout.texts[f"interface_values.{number}.interface_names"]
        offsets = layout.numbers[f"interface_values.{number}.values"].offsets
        if len(interfaces) != len(offsets):
            return JointColumns(names, {}, locate_header_stamp(layout))
        if "position" not in interfaces:
            continue
        for interface, offset in zip(interfaces, offsets, strict=True):
            if interface in INTERFACES:
                joints.setdefault(joint, {}).setdefault(INTERFACES[interface], offset)
            else:
                unused[interface] = None
    present = {channel for values in joints.values() for channel in values}
    return JointColumns(
        names=tuple(name for name in names if name in joints),
        channels={
            channel: Numbers(code, tuple(values.get(channel, -1) for values in joints.values())) for channel in present
        },
        stamp=locate_header_stamp(layout),
        unused=tuple(unused),
    )


DYNAMIC_JOINT_STATE = MessageType("control_msgs/msg/DynamicJointState", _columns)
