# SPDX-License-Identifier: Apache-2.0
"""Between messages and values, field by field and to the last bit."""

from __future__ import annotations

import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import InputError, RobotDynIdError, UnsafeDataError, storable
from robot_dyn_id.files.parameters import MATRICES
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.pipeline import Identification
from robot_dyn_id.msg import Finding as FindingMsg
from robot_dyn_id.msg import IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.parameters import LONGEST_LINE, ParameterSet, stored_fields
from robot_dyn_id.simulation.trajectory_tracking import MOST_POINTS, Waypoints

MOST_BYTES = {ParameterSetMsg: 2**26, JointTrajectory: 2**23}
"""Greatest sizes of messages that are read [bytes]. Reading a JointTrajectory of that size halts a node for 1 s."""


def most_points(joint_names: Sequence[str]) -> int:
    """Greatest number of points of a JointTrajectory of these joints that nodes of this package follow.

    Each point has positions, velocities and accelerations, as the excitation has.
    """
    head = 64 + sum(len(name.encode()) + 8 for name in joint_names)  # header; length, end and padding of each name
    point = 40 + 3 * 8 * len(joint_names)  # time, and the lengths of four arrays with their padding
    return min(MOST_POINTS, (MOST_BYTES[JointTrajectory] - head) // point)


def read_bounded(data: bytes, message_type: Any) -> Any:
    """Read a serialized message, unless it is larger than any that is meant.

    Args:
        data: what a subscription with `raw=True` receives.
        message_type: one of `MOST_BYTES`.

    Raises:
        InputError: it is too large.
    """
    if len(data) > MOST_BYTES[message_type]:
        raise InputError(f"a message of {len(data)} bytes is larger than the {MOST_BYTES[message_type]} that are read")
    return deserialize_message(data, message_type)


def parameter_set_message(parameters: ParameterSet) -> ParameterSetMsg:
    """The message of a parameter set; its header is left for the node to fill."""
    message = ParameterSetMsg()
    for item in stored_fields():
        value = getattr(parameters, item.name)
        if isinstance(value, np.ndarray) and item.name != "gravity":  # gravity is a fixed-size array: numpy in rclpy
            code = "I" if value.dtype == np.uint32 else "d"
            value = array.array(code, np.ascontiguousarray(value).tobytes())
        elif isinstance(value, tuple):
            value = list(value)
        setattr(message, item.name, value)
    return message


def parameter_set(message: ParameterSetMsg) -> ParameterSet:
    """The parameter set of a message.

    Raises:
        InputError: fields that do not fit together.
    """
    values = {}
    for item in stored_fields():
        value = getattr(message, item.name)
        if isinstance(value, array.array):
            value = np.frombuffer(value, dtype=np.uint32 if value.typecode == "I" else np.float64)
        elif isinstance(value, list):
            value = tuple(value)
        values[item.name] = value
    shape = len(values["names"]), len(values["column_names"])
    for name, columns in zip(MATRICES, (shape[0], shape[1]), strict=True):
        if values[name].size != shape[0] * columns:
            raise InputError(f"parameter set: {name} has {values[name].size} numbers, expected {shape[0] * columns}")
        values[name] = values[name].reshape(shape[0], columns)
    return ParameterSet(**values)


def finding_message(finding: Finding) -> FindingMsg:
    """The message of a finding."""
    return FindingMsg(
        code=finding.code,
        severity=finding.severity,
        joints=list(finding.joints),
        message=finding.message,
        action=finding.action,
    )


def identification_report(outcome: Identification | RobotDynIdError, folder: Path) -> IdentificationReport:
    """The message about an identification, or about why there is none; its header is left for the node to fill."""
    message = IdentificationReport()
    if isinstance(outcome, RobotDynIdError):
        message.verdict, message.reasons = "failed", [str(outcome)]
        if isinstance(outcome, UnsafeDataError):
            message.findings = [finding_message(finding) for finding in outcome.findings]
        return message
    evaluation, parameters = outcome.evaluation, outcome.parameters
    message.verdict = evaluation.verdict.word
    message.reasons = list(evaluation.verdict.reasons)
    message.warnings = list(evaluation.warnings)
    message.findings = [finding_message(finding) for finding in evaluation.findings]
    message.joint_names = list(parameters.joint_names)
    message.held_out_nrmse = parameters.held_out_nrmse.tolist()
    message.held_out_all_joints_nrmse = parameters.held_out_all_joints_nrmse
    message.condition_number = parameters.condition_number
    message.cross_check_max_difference = evaluation.cross_check.max_difference
    message.cross_check_rank = evaluation.cross_check.rank_ours
    message.cross_check_rank_pinocchio = evaluation.cross_check.rank_pinocchio
    message.rows_used, message.rows_dropped = outcome.rows
    message.data_sources = list(parameters.data_sources)
    message.folder = storable(str(folder), LONGEST_LINE)
    return message


def waypoints(message: JointTrajectory, joint_names: Sequence[str]) -> Waypoints:
    """The points of a joint trajectory in the robot's order of joints.

    Raises:
        InputError: a trajectory that no robot with these joints can follow.
    """
    points = message.points
    return Waypoints.from_rows(
        joint_names,
        message.joint_names,
        [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points],
        [point.positions for point in points],
        [point.velocities for point in points],
        [point.accelerations for point in points],
    )
