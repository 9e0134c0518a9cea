# SPDX-License-Identifier: Apache-2.0
"""Between messages and values, field by field and to the last bit."""

from __future__ import annotations

import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import MOST_POINTS, TrajectoryPoints
from robot_dyn_id.data.trajectory_rows import NANOSECONDS, TrajectoryRows
from robot_dyn_id.errors import InputError, RobotDynIdError, UnsafeDataError, storable
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.msg import Finding as FindingMsg
from robot_dyn_id.msg import IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.runtime.decoding import most_bytes
from robot_dyn_id.parameters import LONGEST_LINE, FitFor, ParameterSet, TermState, check_format_version, message_fields

FLATTENED = ("states", "fit_for")
"""Fields of a parameter set that are several flat arrays in the message."""

MATRICES = ("covariance", "mapping")
"""Fields of a parameter set that are flat, row by row, in the message."""


def most_points(joint_names: Sequence[str]) -> int:
    """Greatest number of points of a JointTrajectory of these joints that nodes of this package follow.

    Each point has positions, velocities and accelerations, as the excitation has.
    """
    head = 64 + sum(len(name.encode()) + 8 for name in joint_names)  # header; length, end and padding of each name
    point = 40 + 3 * 8 * len(joint_names)  # time, and the lengths of four arrays with their padding
    return min(MOST_POINTS, (most_bytes(JointTrajectory) - head) // point)


def parameter_set_message(parameters: ParameterSet) -> ParameterSetMsg:
    """The message of a parameter set; its header is left for the node to fill."""
    message = ParameterSetMsg()
    _fill_states(message, parameters.states)
    _fill_fit_for(message, parameters.fit_for)
    for item in message_fields():
        if item.name in FLATTENED:
            continue
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
        InputError: another format version, or fields that do not fit together.
    """
    check_format_version(message.format_version)
    values: dict[str, Any] = {"states": _states(message), "fit_for": _fit_for(message)}
    for item in message_fields():
        if item.name in FLATTENED:
            continue
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


def _fill_states(message: ParameterSetMsg, states: Sequence[TermState]) -> None:
    message.state_names = [state.name for state in states]
    message.state_joints = [state.joint for state in states]
    message.state_counts = [len(state.initial_values) for state in states]
    message.state_initial_values = [value for state in states for value in state.initial_values]
    message.state_parameter_counts = [len(state.parameter_names) for state in states]
    message.state_parameter_names = [name for state in states for name in state.parameter_names]
    message.state_parameter_values = [value for state in states for value in state.parameter_values]


def _states(message: ParameterSetMsg) -> tuple[TermState, ...]:
    initial = _split(message, "state_initial_values", "state_counts")
    names = _split(message, "state_parameter_names", "state_parameter_counts")
    values = _split(message, "state_parameter_values", "state_parameter_counts")
    counts = ("state_counts", "state_parameter_counts")
    state_names, joints, *_ = _of_one_length(message, "state_names", "state_joints", *counts)
    return tuple(map(TermState, state_names, joints, initial, names, values))


def _fill_fit_for(message: ParameterSetMsg, entries: Sequence[FitFor]) -> None:
    message.fit_for_uses = [entry.use for entry in entries]
    message.fit_for_answers = [entry.answer for entry in entries]
    message.fit_for_figures = [entry.figure for entry in entries]
    message.fit_for_units = [entry.unit for entry in entries]
    message.fit_for_thresholds = [entry.threshold for entry in entries]
    message.fit_for_because_counts = [len(entry.because) for entry in entries]
    message.fit_for_because = [code for entry in entries for code in entry.because]
    message.fit_for_joint_counts = [len(entry.joints) for entry in entries]
    message.fit_for_joints = [joint for entry in entries for joint in entry.joints]


def _fit_for(message: ParameterSetMsg) -> tuple[FitFor, ...]:
    names = ("fit_for_uses", "fit_for_answers", "fit_for_figures", "fit_for_units", "fit_for_thresholds")
    counts = ("fit_for_because_counts", "fit_for_joint_counts")
    columns = _of_one_length(message, *names, *counts)[: len(names)]
    because = _split(message, "fit_for_because", "fit_for_because_counts")
    joints = _split(message, "fit_for_joints", "fit_for_joint_counts")
    return tuple(map(FitFor, *columns, because, joints))


def _of_one_length(message: ParameterSetMsg, *names: str) -> list[list[Any]]:
    """Arrays of a message that have one entry each for the same things.

    Raises:
        InputError: another number of entries than the first of them has.
    """
    arrays = [list(getattr(message, name)) for name in names]
    for name, entries in zip(names, arrays, strict=True):
        if len(entries) != len(arrays[0]):
            raise InputError(f"parameter set: {name} has {len(entries)} entries, expected {len(arrays[0])}")
    return arrays


def _split(message: ParameterSetMsg, name: str, counts: str) -> list[tuple[Any, ...]]:
    """Parts of a flat array, whose lengths another array gives.

    Raises:
        InputError: lengths that do not sum to that of the array.
    """
    entries, ends = list(getattr(message, name)), list(accumulate(getattr(message, counts)))
    if len(entries) != (ends[-1] if ends else 0):
        raise InputError(f"parameter set: {name} has {len(entries)} entries, {counts} needs {ends[-1] if ends else 0}")
    return [tuple(entries[first:last]) for first, last in pairwise([0, *ends])]


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


def waypoints(message: JointTrajectory, joint_names: Sequence[str], rest: Array | None = None) -> TrajectoryPoints:
    """The points of a joint trajectory in the robot's order of joints.

    Args:
        message: the trajectory.
        joint_names: joint names of the robot, shape (n,).
        rest: positions of the joints that it leaves out, shape (n,); None if it must name all.

    Raises:
        InputError: a trajectory that no robot with these joints can follow.
    """
    points = message.points
    rows = TrajectoryRows(
        tuple(message.joint_names),
        tuple(NANOSECONDS * point.time_from_start.sec + point.time_from_start.nanosec for point in points),
        tuple(point.positions for point in points),
        tuple(point.velocities for point in points),
        tuple(point.accelerations for point in points),
        tuple(point.effort for point in points),
    )
    return TrajectoryPoints.from_rows(joint_names, rows, rest)
