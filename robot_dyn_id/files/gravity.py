# SPDX-License-Identifier: Apache-2.0
"""`gravity.yaml`: gravity of an arm in the unit of its drives, all that a controller needs in addition to the URDF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.values import file_errors, read_value
from robot_dyn_id.loads.gravity import BODY_COLUMNS, DriveQuality, GravityCalibration, compute_gravity_effort
from robot_dyn_id.model.description import hash_description
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.text.files import read_text
from robot_dyn_id.text.yaml import YAML_LIMIT, Row, parse_yaml

FORMAT = FileFormat("gravity", 1, "calibrate gravity again with this version of robot_dyn_id")

COMMENT = """\
# Gravity of an arm in the unit of its drives, as recorded (ampere, raw counts, PWM).
# Effort of joint j against gravity: sum over bodies i of
#   effort_per_mass_and_moment[j][4 i ... 4 i + 3] . (derivatives of tau_j by m_i, mx_i, my_i, mz_i)
# with the torque tau_j of the weight of mass and first moments of the bodies, by the geometry of the
# URDF and the vector gravity.
# friction holds a joint back after an approach; offset is the drive's effort without load. Both in drive units.
# gain: joint torque per drive unit; a negative one belongs to a drive that counts in the other direction.
"""


OTHER_ROBOT = (
    "gravity was calibrated for another robot: another URDF, joints, or gravity vector; calibrate this one, or give "
    "the URDF of the calibration"
)

JOINT_NUMBERS = ("friction", "gravity_rms", "residual_rms", "largest_effort")
"""Numbers of each joint that a controller needs, in the order of `DriveQuality`."""


@dataclass(frozen=True)
class StoredGravity:
    """Content of a gravity file that a controller needs.

    Attributes:
        urdf_sha256: hash of the URDF without collision geometry, see `hash_description`.
        gravity: gravity vector in the base frame [m/s^2], shape (3,).
        joint_names: names of the n joints.
        held: positions of the joints that did not move [rad or m].
        by_joint: see `GravityCalibration`, shape (n, 4 b).
        quality: accuracy of each joint.
    """

    urdf_sha256: str
    gravity: Array
    joint_names: tuple[str, ...]
    held: dict[str, float]
    by_joint: Array
    quality: DriveQuality

    def model(self, urdf: str) -> RobotModel:
        """Model of the calibrated joints of a robot.

        Args:
            urdf: text of its URDF.

        Raises:
            ModelError: a URDF that cannot be read, or without these joints.
            InputError: another robot, see `check_robot`.
        """
        if hash_description(urdf) != self.urdf_sha256:
            raise InputError(OTHER_ROBOT)
        model = RobotModel.from_urdf(urdf, self.joint_names, self.held, tuple(self.gravity.tolist()))
        self.check_robot(model)
        return model

    def effort(self, model: RobotModel, q: Array) -> Array:
        """Effort of the drives against gravity in their unit at configurations `q` [rad or m], both of shape (n, N).

        Raises:
            InputError: see `check_robot`.
        """
        self.check_robot(model)
        return compute_gravity_effort(self.by_joint, model, q)

    def check_robot(self, model: RobotModel) -> None:
        """Check that the calibration is that of a robot.

        Raises:
            InputError: another robot, or rows of another length.
        """
        same = hash_description(model.urdf) == self.urdf_sha256 and model.joint_names == self.joint_names
        if not (same and dict(model.held) == self.held and np.array_equal(model.gravity, self.gravity)):
            raise InputError(OTHER_ROBOT)
        bodies = len(model.body_names)
        if self.by_joint.shape[1] != BODY_COLUMNS * bodies:
            raise InputError(f"effort_per_mass_and_moment must have four numbers for each of {bodies} bodies")


def summarize_gravity(model: RobotModel, found: GravityCalibration) -> dict[str, Any]:
    """Calibration as keys and values; efforts in drive units, gains [N m or N per drive unit], masses [kg], SI."""
    joints = []
    for number, name in enumerate(model.joint_names):
        entry: dict[str, Any] = {
            "name": name,
            "carries_weight": bool(found.carries_weight[number]),
            "friction": float(found.friction[number]),
            "offset": float(found.offsets[number]),
            "gravity_rms": float(found.gravity_rms[number]),
            "residual_rms": float(found.residual_rms[number]),
            "largest_effort": float(found.largest[number]),
        }
        if found.has_scale and found.carries_weight[number]:
            inverse = found.inverse_gains[number]
            entry["gain"] = float(1.0 / inverse)
            entry["gain_standard_deviation"] = float(found.inverse_gain_deviations[number] / inverse**2)
        joints.append(entry)
    content: dict[str, Any] = {
        "robot_name": model.name,
        "urdf_sha256": hash_description(model.urdf),
        "gravity": model.gravity.tolist(),
        "joint_names": list(model.joint_names),
        "held": {name: float(value) for name, value in model.held.items()},
        "poses": int(found.residuals.shape[1]),
        "scale_known": found.has_scale,
        "joints": joints,
    }
    if found.has_scale:
        content["bodies"] = [
            {
                "name": name,
                "mass": float(body[0]),
                "mass_standard_deviation": float(deviation[0]),
                "first_moments": body[1:].tolist(),
                "first_moments_standard_deviations": deviation[1:].tolist(),
            }
            for name, body, deviation in zip(model.body_names, found.bodies, found.body_deviations, strict=True)
        ]
        content["scale_standard_deviation"] = found.scale_deviation
    return content


def write_gravity(path: str | Path, model: RobotModel, found: GravityCalibration, **entries: Any) -> dict[str, Any]:
    """Write a calibration.

    Args:
        path: the file.
        model: the robot.
        found: its calibration.
        entries: further entries of the summary.

    Returns:
        The summary, see `summarize_gravity`, with these entries.

    Raises:
        InputError: the file cannot be written.
    """
    summary = {**summarize_gravity(model, found), **entries}
    rows = [Row(row) for row in found.by_joint.tolist()]
    FORMAT.write(path, {**_in_lines(summary), "effort_per_mass_and_moment": rows}, COMMENT)
    return summary


def read_gravity(path: str | Path) -> StoredGravity:
    """Read what a controller needs of a calibration.

    Raises:
        InputError: not readable, another format, an entry that is missing or of the wrong type or size.
    """
    return parse_gravity(read_text(path, FORMAT.name, YAML_LIMIT, InputError), path)


def parse_gravity(text: str, source: str | Path) -> StoredGravity:
    """Content of a calibration.

    Args:
        text: text of the file.
        source: file or topic, for messages.

    Raises:
        InputError: see `read_gravity`.
    """
    content = parse_yaml(text, str(source))
    content = content if isinstance(content, dict) else {}
    FORMAT.check(content, source)
    with file_errors(source, InputError):
        kinds: dict[str, Any] = {
            "urdf_sha256": str,
            "gravity": tuple[float, ...],
            "joint_names": tuple[str, ...],
            "held": dict[str, float],
            "effort_per_mass_and_moment": tuple[tuple[float, ...], ...],
            "joints": tuple[Any, ...],
        }
        missing = [key for key in kinds if key not in content]
        if missing:
            raise InputError(f"{missing[0]} is missing")
        sha, gravity, names, held, rows, joints = (read_value(kind, content[key], key) for key, kind in kinds.items())
        widths = {len(row) for row in rows}
        if len(rows) != len(names) or len(widths) != 1 or widths.pop() % BODY_COLUMNS or len(gravity) != 3:
            raise InputError("effort_per_mass_and_moment must have one row per joint, four numbers per body")
        values = np.array(rows)
        if not (np.isfinite(values).all() and np.isfinite(gravity).all()):
            raise InputError("effort_per_mass_and_moment and gravity must be finite")
        quality = _quality(joints, len(names))
    return StoredGravity(sha, np.array(gravity), names, dict(held), values, quality)


def _quality(joints: tuple[Any, ...], count: int) -> DriveQuality:
    """Accuracy of each joint, from the entries of the file."""
    if len(joints) != count or not all(isinstance(entry, dict) for entry in joints):
        raise InputError("joints must have one entry per joint")
    columns: list[list[Any]] = []
    for name, kind in (("carries_weight", bool), *((name, float) for name in JOINT_NUMBERS)):
        if not all(name in entry for entry in joints):
            raise InputError(f"joints: {name} is missing")
        columns.append([read_value(kind, entry[name], f"joints[{k}].{name}") for k, entry in enumerate(joints)])
    numbers = np.array(columns[1:], dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("the numbers of joints must be finite")
    return DriveQuality(np.array(columns[0], dtype=bool), *numbers)


def _in_lines(value: Any) -> Any:
    """A value whose lists of numbers are written in one line each."""
    if isinstance(value, dict):
        return {key: _in_lines(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_in_lines(entry) for entry in value] if any(isinstance(e, dict) for e in value) else Row(value)
    return value
