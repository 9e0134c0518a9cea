# SPDX-License-Identifier: Apache-2.0
"""Between messages and values, field by field and to the last bit."""

from __future__ import annotations

import array
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id import msg as messages
from robot_dyn_id.actuators.actuator_set import FORMAT_VERSION as ACTUATORS_VERSION
from robot_dyn_id.actuators.actuator_set import ActuatorSet
from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.data.trajectory_rows import NANOSECONDS, TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Finding
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from robot_dyn_id.msg import Finding as FindingMsg
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.runtime.decoding import find_most_bytes
from robot_dyn_id.parameters import FORMAT_VERSION, ParameterSet

MOST_POINTS = 100_000
"""Largest number of points of a trajectory in a message; files have no such limit."""


def find_most_points(joint_names: Sequence[str]) -> int:
    """Greatest number of points of a JointTrajectory of these joints that nodes of this package follow.

    Each point has positions, velocities and accelerations, as the excitation has.
    """
    head = 64 + sum(len(name.encode()) + 8 for name in joint_names)  # header; length, end and padding of each name
    point = 40 + 3 * 8 * len(joint_names)  # time, and the lengths of four arrays with their padding
    return min(MOST_POINTS, (find_most_bytes(JointTrajectory) - head) // point)


def make_parameter_set_message(parameters: ParameterSet) -> ParameterSetMsg:
    """The message of a parameter set; its header is left for the node to fill."""
    return ParameterSetMsg(format_version=FORMAT_VERSION, **_plain_parts(parameters.parts))


def make_actuator_set_message(identified: ActuatorSet) -> ActuatorSetMsg:
    """The message of identified actuators; its header is left for the node to fill."""
    return ActuatorSetMsg(format_version=ACTUATORS_VERSION, **_plain_parts(identified.parts))


def _plain_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(part) for name, part in parts.items()}


def _plain(value: Any, code: str = "d") -> Any:
    """A value as a message has it: a part is the message of its name, and a matrix is flat, row by row.

    Args:
        value: value of a field.
        code: type code of the numbers of the message, if it has an array.
    """
    if is_dataclass(value):
        empty = getattr(messages, type(value).__name__)()
        for item in fields(value):
            code = getattr(getattr(empty, item.name), "typecode", "d")
            setattr(empty, item.name, _plain(getattr(value, item.name), code))
        return empty
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return array.array(code, value.astype(code).tobytes())
    return value


def make_finding_message(finding: Finding) -> FindingMsg:
    """The message of a finding."""
    return FindingMsg(
        code=finding.code,
        severity=finding.severity,
        joints=list(finding.joints),
        message=finding.message,
        action=finding.action,
    )


def read_trajectory_points(
    message: JointTrajectory, joint_names: Sequence[str], rest: Array | None = None
) -> TrajectoryPoints:
    """The points of a joint trajectory in the robot's order of joints.

    Args:
        message: the trajectory.
        joint_names: joint names of the robot, shape (n,).
        rest: positions of the joints that it leaves out, shape (n,); None if it must name all.

    Raises:
        InputError: a trajectory that no robot with these joints can follow.
    """
    points = message.points
    if len(points) > MOST_POINTS:
        raise InputError(f"it has {len(points)} points, at most {MOST_POINTS} are followed: send it in pieces")
    rows = TrajectoryRows(
        tuple(message.joint_names),
        tuple(NANOSECONDS * point.time_from_start.sec + point.time_from_start.nanosec for point in points),
        tuple(point.positions for point in points),
        tuple(point.velocities for point in points),
        tuple(point.accelerations for point in points),
        tuple(point.effort for point in points),
    )
    return TrajectoryPoints.from_rows(joint_names, rows, rest)
