# SPDX-License-Identifier: Apache-2.0
"""`actuators.yaml`: identified actuators of a robot under position commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.actuators.actuator_set import (
    FORMAT_REMEDY,
    FORMAT_VERSION,
    ActuatedRobot,
    ActuatorJudgment,
    ActuatorSet,
)
from robot_dyn_id.actuators.model import ABSENT, ActuatorModel
from robot_dyn_id.actuators.uncertainty import ActuatorUncertainty
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.link_body import SYMBOLS
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.values import file_errors, read_dataclass, read_value
from robot_dyn_id.kernels.actuators import KINDS
from robot_dyn_id.text.yaml import Row

FORMAT = FileFormat("actuators", FORMAT_VERSION, FORMAT_REMEDY)

USE = "simulation_under_position_commands"
"""Use of actuators that files judge."""

COMMENT = """\
# Actuators of a robot under position commands, in SI units:
#   effort = saturation(kp (reference(t - delay) - q) - kd dq), each reference held until the next
#   effort = torque of the links + armature ddq + viscous dq + (coulomb + load_coulomb |load|) s + offset
# load: torque of the links without acceleration; s: sign(dq), or with a breakaway displacement the state of a Dahl
# element, ds = (dq / breakaway_displacement) (1 - s sign(dq)) dt. Both are missing where joints have no such friction.
# interval: 95 %; between: standard deviation of the values of single recordings. Values without interval were given.
# parameter: row of the correlation of the estimates; values with the same number are equal.
# Joints are stopped at lower_stop and upper_stop; beyond lower_reference and upper_reference drives follow these.
# links: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the joint frame, where they are not those of the robot description.
# Limits, stops and ends of references that are missing are not known.
"""


@dataclass(frozen=True)
class _Value:
    """A value of a joint in the file; those with the same number of the parameter are equal."""

    value: float
    interval: tuple[float, float] = (np.nan, np.nan)
    between: float = np.nan
    parameter: int = -1


def summarize_actuators(actuators: ActuatorModel, uncertainty: ActuatorUncertainty) -> list[dict[str, Any]]:
    """Values of each joint with their intervals, as keys and values."""
    joints = []
    for number, name in enumerate(actuators.joint_names):
        entry: dict[str, Any] = {"name": name}
        for kind, key in enumerate(KINDS):
            value = float(actuators.values[kind, number])
            if value == ABSENT.get(key) and not uncertainty.estimated[kind, number]:
                continue
            entry[key] = {"value": value}
            if uncertainty.estimated[kind, number]:
                low, high, between = (
                    float(matrix[kind, number]) for matrix in (uncertainty.low, uncertainty.high, uncertainty.between)
                )
                entry[key]["interval"] = [low, high]
                if np.isfinite(between):
                    entry[key]["between"] = between
        joints.append(entry)
    return joints


def summarize_links(robot: ActuatedRobot) -> dict[str, list[float]]:
    """Standard parameters of the links by name; empty where they are those of the robot description."""
    bodies = robot.standard_parameters.reshape(-1, SYMBOLS).tolist()
    return dict(zip(robot.body_names, bodies, strict=True))


def write_actuators(path: str | Path, identified: ActuatorSet, **entries: Any) -> None:
    """Write identified actuators.

    Args:
        path: the file.
        identified: the actuators.
        entries: further entries.

    Raises:
        InputError: the file cannot be written.
    """
    robot, index = identified.robot, identified.uncertainty.index
    joints = summarize_actuators(identified.actuators, identified.uncertainty)
    for number, joint in enumerate(joints):
        for kind, key in enumerate(KINDS):
            if index[kind, number] >= 0:
                joint[key] |= {"interval": Row(joint[key]["interval"]), "parameter": int(index[kind, number])}
    content = {
        "robot_name": robot.name,
        "urdf_sha256": robot.urdf_sha256,
        "gravity": Row(robot.gravity.tolist()),
        "held": dict(zip(robot.held_joint_names, robot.held_joint_positions.tolist(), strict=True)),
        "verdict": identified.judgment.verdict,
        "reasons": list(identified.judgment.reasons),
        "fit_for": {USE: identified.judgment.fit_for_simulation},
        "joints": joints,
        "correlation": [Row(row) for row in identified.uncertainty.correlation.tolist()],
    }
    links = {name: Row(body) for name, body in summarize_links(robot).items()}
    FORMAT.write(path, {**content, **({"links": links} if links else {}), **entries}, COMMENT)


def read_actuators(path: str | Path) -> ActuatorSet:
    """Read identified actuators.

    Raises:
        InputError: not readable, another format, an entry that is missing or of the wrong type.
    """
    content = FORMAT.read(path)
    with file_errors(path, InputError):
        hints: dict[str, Any] = {
            "robot_name": str,
            "urdf_sha256": str,
            "gravity": Array,
            "held": dict[str, float],
            "verdict": str,
            "reasons": tuple[str, ...],
            "fit_for": dict[str, str],
            "joints": tuple[dict[str, Any], ...],
            "correlation": Array,
        }
        missing = [key for key in hints if key not in content]
        if missing:
            raise InputError(f"{missing[0]} is missing")
        name, sha, gravity, held, verdict, reasons, fit_for, joints, correlation = (
            read_value(hint, content[key], key) for key, hint in hints.items()
        )
        links = read_value(dict[str, tuple[float, ...]], content.get("links", {}), "links")
        for body, values in links.items():
            if len(values) != SYMBOLS:
                raise InputError(f"links.{body} has {len(values)} numbers, expected {SYMBOLS}")
        if USE not in fit_for:
            raise InputError(f"fit_for.{USE} is missing")
        positions, bodies = (np.array(list(each.values()), dtype=np.float64).ravel() for each in (held, links))
        robot = ActuatedRobot(name, sha, tuple(held), positions, gravity, tuple(links), bodies)
        actuators, uncertainty = _read_joints(joints, correlation)
        return ActuatorSet(robot, actuators, uncertainty, ActuatorJudgment(verdict, reasons, fit_for[USE]))


def _read_joints(joints: Sequence[dict[str, Any]], correlation: Array) -> tuple[ActuatorModel, ActuatorUncertainty]:
    """Values and uncertainty of the joints.

    Raises:
        RobotDynIdError: an entry that is missing or of the wrong type.
    """
    shape, names = (len(KINDS), len(joints)), []
    values, low, high, between = np.zeros(shape), *np.full((3, *shape), np.nan)
    index = np.full(shape, -1, dtype=np.int64)
    for number, joint in enumerate(joints):
        if not isinstance(joint.get("name"), str):
            raise InputError(f"joints[{number}] has no name")
        names.append(joint["name"])
        for kind, key in enumerate(KINDS):
            place, at = f"joints[{number}].{key}", (kind, number)
            if key in ABSENT and key not in joint:
                values[at] = ABSENT[key]
                continue
            if key not in joint:
                raise InputError(f"{place} is missing")
            entry = read_dataclass(_Value, joint[key], place)
            values[at], between[at] = entry.value, entry.between
            if entry.parameter >= 0:
                index[at], (low[at], high[at]) = entry.parameter, entry.interval
    return ActuatorModel.from_values(names, values), ActuatorUncertainty(index, low, high, between, correlation)
