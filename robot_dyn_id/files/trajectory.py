# SPDX-License-Identifier: Apache-2.0
"""`trajectory.yaml`: an excitation of one robot as readable text, equal to the last bit when read back."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.excitation.collision.clearance import CHECKS, NOT_CHECKED
from robot_dyn_id.excitation.collision.obstacles import Surroundings
from robot_dyn_id.excitation.forms.registry import FORMS, Form
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Scaled, check_excitation, check_limits
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.values import choice, file_errors, read_dataclass, read_mapping
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.model.description import hash_description
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.text.yaml import Row

TRAJECTORY_OF_OTHER_URDF = Definition(
    "trajectory_of_other_urdf",
    Section.PREDICTION,
    "info",
    "The trajectory was designed for a URDF with the same joints and other content.",
    "design the trajectory for this URDF",
)

FORMAT = FileFormat("trajectory", 2, "design the trajectory again with this version of robot_dyn_id")

OPEN_GROUND = Surroundings()
"""Ground at the base, and no obstacle."""


@dataclass(frozen=True)
class StoredExcitation:
    """Content of a trajectory file: a motion, the robot it was made for, and the limits it was made within.

    Attributes:
        about: any text about how the motion was designed.
        robot_name: name of the robot in its URDF.
        urdf_sha256: hash of the content of the URDF, collision geometry included, see `hash_description`.
        joint_names: names of the n joints, in the order of the motion's rows.
        cycle: one cycle of the motion.
        periods: number of cycles.
        limits: limits that the motion keeps.
        collision_check: kind of collision check that the motion has passed, one of `CHECKS`.
        surroundings: ground and obstacles of that check.
    """

    about: str
    robot_name: str
    urdf_sha256: str
    joint_names: tuple[str, ...]
    cycle: Form
    periods: int
    limits: MotionLimits
    collision_check: str = NOT_CHECKED
    surroundings: Surroundings = OPEN_GROUND

    def __post_init__(self) -> None:
        """Check that the motion can be executed.

        Raises:
            InputError: another number of joints in the motion or the limits, no period, or an unknown
                `collision_check`.
            MotionError: a motion that is not at rest at both ends, moves no joint, or is repeated though it is open.
        """
        n = len(self.joint_names)
        arrays = [values for name, values in vars(self.limits).items() if name != "joint_names"]
        if len(self.cycle.center) != n or any(values.shape != (n,) for values in arrays):
            raise InputError(f"motion and limits must have one row for each of the {n} joint_names")
        if self.periods < 1:
            raise InputError(f"periods must be at least 1, not {self.periods}")
        if self.collision_check not in CHECKS:
            raise InputError(f"collision_check: must be one of {', '.join(CHECKS)}, not {self.collision_check!r}")
        check_excitation(self.cycle, self.periods, self.joint_names)

    @classmethod
    def from_excitation(
        cls,
        model: RobotModel,
        limits: MotionLimits,
        excitation: Form | Repeated,
        about: str,
        collision_check: str = NOT_CHECKED,
        surroundings: Surroundings = OPEN_GROUND,
    ) -> StoredExcitation:
        """Content of the file of an excitation.

        Args:
            model: the robot.
            limits: limits that the motion keeps.
            excitation: the motion, repeated or not.
            about: any text about how it was designed.
            collision_check: kind of collision check that it has passed, one of `CHECKS`.
            surroundings: ground and obstacles of that check.

        Raises:
            RobotDynIdError: a motion that cannot be executed.
        """
        cycle: Any = excitation.cycle if isinstance(excitation, Repeated) else excitation
        return cls(
            about=about,
            robot_name=model.name,
            urdf_sha256=hash_description(model.urdf, collisions=True),
            joint_names=model.joint_names,
            cycle=cycle,
            periods=excitation.periods if isinstance(excitation, Repeated) else 1,
            limits=limits,
            collision_check=collision_check,
            surroundings=surroundings,
        )

    @property
    def excitation(self) -> Excitation:
        """The whole motion."""
        return Repeated(self.cycle, self.periods) if self.periods > 1 else self.cycle

    def check_robot(
        self, model: RobotModel, limits: MotionLimits, speed: float = 1.0, amplitude: float = 1.0
    ) -> tuple[Finding, ...]:
        """Check that the motion fits a robot.

        Args:
            model: the robot.
            limits: limits that the motion must keep.
            speed: factor of the speed, see `Scaled`.
            amplitude: factor of the amplitude, see `Scaled`.

        Returns:
            A finding about the difference between the robots where the motion fits nevertheless.

        Raises:
            InputError: another robot, which is named.
            MotionError: the motion leaves the limits of this robot, though its URDF is that of the file.
        """
        if self.joint_names != model.joint_names:
            raise InputError(
                f"the trajectory is for the robot {self.robot_name} with the joints {', '.join(self.joint_names)}, not "
                f"for {model.name} with {', '.join(model.joint_names)}: design one for it, or choose its joints"
            )
        same = hash_description(model.urdf, collisions=True) == self.urdf_sha256
        try:
            check_limits(Scaled(self.cycle, speed, amplitude), limits)
        except RobotDynIdError as error:
            if same:
                raise
            raise InputError(
                f"the trajectory is for another URDF of {self.robot_name} and does not fit this one: {error}"
            ) from None
        if same:
            return ()
        message = (
            f"the trajectory was made for another URDF of {self.robot_name} (SHA-256 {self.urdf_sha256[:12]}...); its "
            f"joint names and limits fit {model.name}, but nothing else has been compared"
        )
        return (TRAJECTORY_OF_OTHER_URDF.found(message),)


def write_trajectory(path: str | Path, stored: StoredExcitation) -> None:
    """Write an excitation.

    Raises:
        InputError: the file cannot be written.
    """
    cycle = {item.name: getattr(stored.cycle, item.name) for item in fields(stored.cycle)}  # type: ignore[arg-type]
    limits = {name: values for name, values in vars(stored.limits).items() if name != "joint_names"}
    content = {
        "about": stored.about,
        "robot_name": stored.robot_name,
        "urdf_sha256": stored.urdf_sha256,
        "joint_names": Row(stored.joint_names),
        "form": stored.cycle.name,
        "periods": stored.periods,
        "motion": {name: _plain(value) for name, value in cycle.items()},
        "limits": {name: _plain(values) for name, values in limits.items()},
        "collision_check": stored.collision_check,
        "surroundings": {
            "ground": stored.surroundings.ground,
            "obstacles": [dict(entry) for entry in stored.surroundings.entries],
            "allowed": [list(pair) for pair in stored.surroundings.pairs],
            "clearance": stored.surroundings.clearance,
        },
    }
    FORMAT.write(path, content, comment=f"# q_j(t) = {stored.cycle.FORMULA}\n")


def is_designed(path: str | Path) -> bool:
    """Whether a file begins like a designed trajectory of any version."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return f"format: {FORMAT.line}" in file.read(4096)
    except OSError:  # reported by the reader
        return False


def read_trajectory(path: str | Path) -> StoredExcitation:
    """Read an excitation.

    Raises:
        InputError: not readable, not such a file, of another format version, a key that is missing or unknown (the
            nearest known one is named), a value of the wrong type, or a motion that cannot be executed.
    """
    content = FORMAT.read(path)
    with file_errors(path, InputError):
        return _stored(content)


@dataclass(frozen=True)
class _File:
    """Keys of the file."""

    about: str
    robot_name: str
    urdf_sha256: str
    joint_names: tuple[str, ...]
    form: str
    periods: int
    motion: Any
    limits: Any
    collision_check: str
    surroundings: Any


def _stored(content: dict[str, Any]) -> StoredExcitation:
    form = choice(tuple(FORMS), "unknown form of excitation")
    file = read_dataclass(_File, content, readers={"form": form})
    for name in file.joint_names:
        if not name.isprintable():
            raise InputError(f"joint_names: {name!r} is not the name of a joint")
    return StoredExcitation(
        about=file.about,
        robot_name=file.robot_name,
        urdf_sha256=file.urdf_sha256,
        joint_names=file.joint_names,
        cycle=read_dataclass(FORMS[file.form], file.motion, "motion", complete=True),
        periods=file.periods,
        limits=read_dataclass(MotionLimits, file.limits, "limits", complete=True, joint_names=file.joint_names),
        collision_check=file.collision_check,
        surroundings=_surroundings(file.surroundings),
    )


def _surroundings(content: Any) -> Surroundings:
    key = "surroundings"
    hints = {"ground": bool | float, "obstacles": tuple[Any, ...], "allowed": tuple[Any, ...], "clearance": float}
    values = read_mapping(hints, content, key)
    for name in hints:
        if name not in values:
            raise InputError(f"{key}.{name} is missing")
    return Surroundings(values["ground"], values["obstacles"], values["allowed"], values["clearance"])


def _plain(value: Any) -> Any:
    """A value as YAML has it, with each row of a matrix in a line of its own."""
    if isinstance(value, np.ndarray):
        return [Row(row) for row in value.tolist()] if value.ndim == 2 else Row(value.tolist())
    return Row(value) if isinstance(value, tuple) else value
