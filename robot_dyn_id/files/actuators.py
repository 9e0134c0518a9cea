# SPDX-License-Identifier: Apache-2.0
"""`actuators.yaml`: identified actuators of a robot under position commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.actuators.identification import ActuatorEstimate
from robot_dyn_id.actuators.model import NEVER_REACHED, ActuatorModel
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.values import file_errors, read_value
from robot_dyn_id.kernels.actuators import KINDS
from robot_dyn_id.model.description import hash_description
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.text.yaml import Row

FORMAT = FileFormat("actuators", 1, "identify the actuators again with this version of robot_dyn_id")

COMMENT = """\
# Actuators of a robot under position commands, in SI units:
#   effort = saturation(kp (reference(t - delay) - q) - kd dq), each reference held until the next
#   effort = torque of the links + armature ddq + viscous dq + coulomb sign(dq) + offset
# interval: 95 %; between: standard deviation of the values of single recordings. Values without interval were given.
# Joints are stopped at lower_stop and upper_stop; beyond lower_reference and upper_reference drives follow these.
# links: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the joint frame, where they are not those of the robot description.
# Limits, stops and ends of references that are missing are not known.
"""


@dataclass(frozen=True)
class StoredActuators:
    """Content of the file that simulations need.

    Attributes:
        urdf_sha256: hash of the robot description, see `hash_description`.
        gravity: gravity vector in the base frame [m/s^2].
        held: positions of the joints that did not move [rad or m].
        actuators: the actuators.
        links: standard parameters of the bodies, by name; empty: those of the robot description.
    """

    urdf_sha256: str
    gravity: tuple[float, ...]
    held: Mapping[str, float]
    actuators: ActuatorModel
    links: Mapping[str, tuple[float, ...]]

    def model(self, urdf: str) -> RobotModel:
        """Model of the robot that the actuators belong to.

        Args:
            urdf: text of its URDF.

        Raises:
            InputError: another robot.
        """
        if hash_description(urdf) != self.urdf_sha256:
            raise InputError(
                "the actuators were identified with another robot description: give that one, or identify again"
            )
        model = RobotModel.from_urdf(urdf, self.actuators.joint_names, self.held, self.gravity)
        if not self.links:
            return model
        bodies = [self.links[name] for name in model.body_names]
        return replace(model, inertial_parameters=np.array(bodies).ravel())


def summarize_actuators(estimate: ActuatorEstimate) -> list[dict[str, Any]]:
    """Values of each joint with their intervals, as keys and values."""
    joints = []
    for number, name in enumerate(estimate.actuators.joint_names):
        entry: dict[str, Any] = {"name": name}
        for kind, key in enumerate(KINDS):
            value = float(estimate.actuators.values[kind, number])
            if not np.isfinite(value):
                continue
            entry[key] = {"value": value}
            if estimate.estimated[kind, number]:
                entry[key]["interval"] = [float(estimate.low[kind, number]), float(estimate.high[kind, number])]
                if np.isfinite(estimate.between[kind, number]):
                    entry[key]["between"] = float(estimate.between[kind, number])
        joints.append(entry)
    return joints


def write_actuators(path: str | Path, model: RobotModel, estimate: ActuatorEstimate, **entries: Any) -> dict[str, Any]:
    """Write identified actuators.

    Args:
        path: the file.
        model: the robot.
        estimate: its actuators.
        entries: further entries.

    Returns:
        The content.

    Raises:
        InputError: the file cannot be written.
    """
    content = {
        "robot_name": model.name,
        "urdf_sha256": hash_description(model.urdf),
        "gravity": model.gravity.tolist(),
        "held": {name: float(value) for name, value in model.held.items()},
        "joints": summarize_actuators(estimate),
        **entries,
    }
    joints = [
        {key: _write_row(value) if isinstance(value, dict) else value for key, value in joint.items()}
        for joint in content["joints"]
    ]
    links = {name: Row(body) for name, body in content.get("links", {}).items()}
    rows = {"gravity": Row(content["gravity"]), "joints": joints, **({"links": links} if links else {})}
    FORMAT.write(path, {**content, **rows}, COMMENT)
    return content


def _write_row(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry whose interval is written in one line."""
    return {key: Row(value) if isinstance(value, list) else value for key, value in entry.items()}


def read_actuators(path: str | Path) -> StoredActuators:
    """Read identified actuators.

    Raises:
        InputError: not readable, another format, an entry that is missing or of the wrong type.
    """
    content = FORMAT.read(path)
    with file_errors(path, InputError):
        kinds: dict[str, Any] = {
            "urdf_sha256": str,
            "gravity": tuple[float, ...],
            "held": dict[str, float],
            "joints": tuple[Any, ...],
        }
        missing = [key for key in kinds if key not in content]
        if missing:
            raise InputError(f"{missing[0]} is missing")
        sha, gravity, held, joints = (read_value(kind, content[key], key) for key, kind in kinds.items())
        if not joints:
            raise InputError("joints is empty: it has no actuators")
        names, values = [], np.zeros((len(KINDS), len(joints)))
        for number, joint in enumerate(joints):
            if not isinstance(joint, dict) or not isinstance(joint.get("name"), str):
                raise InputError(f"joints[{number}] has no name")
            names.append(joint["name"])
            for kind, key in enumerate(KINDS):
                entry = joint.get(key, {})
                if key in NEVER_REACHED and not entry:
                    values[kind, number] = NEVER_REACHED[key]
                    continue
                if not isinstance(entry, dict) or "value" not in entry:
                    raise InputError(f"joints[{number}].{key}.value is missing")
                values[kind, number] = read_value(float, entry["value"], f"joints[{number}].{key}.value")
        actuators = ActuatorModel.from_values(names, values)
        links = read_value(dict[str, tuple[float, ...]], content.get("links", {}), "links")
        wrong = [name for name, body in links.items() if len(body) != 10]
        if wrong:
            raise InputError(f"links.{wrong[0]} has {len(links[wrong[0]])} numbers, expected 10")
    return StoredActuators(sha, gravity, held, actuators, links)
