# SPDX-License-Identifier: Apache-2.0
"""`trajectory.yaml`: an excitation of one robot as text for people to read, equal to the last bit when read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, RobotDynIdError, suggestion
from robot_dyn_id.excitation.collision.clearance import CHECKS, NOT_CHECKED
from robot_dyn_id.excitation.collision.obstacles import CLEARANCE, Surroundings
from robot_dyn_id.excitation.forms.registry import FORMS, Form
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Scaled, check_excitation, check_limits
from robot_dyn_id.findings import Finding, make_finding
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import Row, read_yaml, yaml_text

FORMAT = "robot_dyn_id trajectory 1"

KEYS = (
    *("format", "about", "robot_name", "urdf_sha256", "joint_names", "form", "periods", "motion", "limits"),
    *("collision_check", "surroundings"),
)

LATER = {"collision_check": NOT_CHECKED, "surroundings": {}}
"""Keys that older files do not have, and what that means: a file that says nothing was not checked."""

OPEN = Surroundings()
"""Ground, and nothing else."""

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class StoredExcitation:
    """What a file holds: a motion, the robot it was made for, and the limits it was made within.

    Attributes:
        about: how it was designed; any text.
        robot_name, urdf_sha256: the robot.
        joint_names: of the n joints, in the order of the motion's rows.
        cycle: the motion.
        periods: how many times.
        limits: that were kept.
        collision_check: what the motion was compared with, one of `CHECKS`.
        surroundings: what stood around the robot then.
    """

    about: str
    robot_name: str
    urdf_sha256: str
    joint_names: tuple[str, ...]
    cycle: Form
    periods: int
    limits: MotionLimits
    collision_check: str = NOT_CHECKED
    surroundings: Surroundings = OPEN

    def __post_init__(self) -> None:
        """Check that it can be executed.

        Raises:
            InputError: another number of joints in the motion or the limits, no period, or an unknown
                `collision_check`.
            MotionError: it does not rest at both ends, moves nothing, or is repeated though it does not close.
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

    @staticmethod
    def of(
        model: RobotModel,
        limits: MotionLimits,
        excitation: Form | Repeated,
        about: str,
        collision_check: str = NOT_CHECKED,
        surroundings: Surroundings = OPEN,
    ) -> StoredExcitation:
        """What is to be stored of an excitation of a robot.

        Raises:
            RobotDynIdError: it cannot be executed.
        """
        cycle: Any = excitation.cycle if isinstance(excitation, Repeated) else excitation
        periods = excitation.periods if isinstance(excitation, Repeated) else 1
        hashed = urdf_hash(model.urdf)
        return StoredExcitation(
            about, model.name, hashed, model.joint_names, cycle, periods, limits, collision_check, surroundings
        )

    @property
    def excitation(self) -> Excitation:
        """The whole motion."""
        return Repeated(self.cycle, self.periods) if self.periods > 1 else self.cycle

    def matched(
        self, model: RobotModel, limits: MotionLimits, speed: float = 1.0, amplitude: float = 1.0
    ) -> tuple[Finding, ...]:
        """Whether a robot is the one that the motion was made for.

        Args:
            model: the robot.
            limits: that are to be kept.
            speed: with which the motion is to be made, see `Scaled`.
            amplitude: likewise.

        Returns:
            Findings about what is different though the motion fits.

        Raises:
            InputError: another robot, which is named.
            MotionError: the motion leaves the limits of this robot, though its URDF is that of the file.
        """
        if self.joint_names != model.joint_names:
            raise InputError(
                f"the trajectory is for the robot {self.robot_name} with the joints {', '.join(self.joint_names)}, not "
                f"for {model.name} with {', '.join(model.joint_names)}: design one for it, or choose its joints"
            )
        same = urdf_hash(model.urdf) == self.urdf_sha256
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
        return (make_finding("trajectory_of_other_urdf", message),)


def write_trajectory(path: str | Path, stored: StoredExcitation) -> None:
    """Write an excitation.

    Raises:
        InputError: the file cannot be written.
    """
    head = {name: getattr(stored, name) for name in ("about", "robot_name", "urdf_sha256")}
    content = {
        "format": FORMAT,
        **head,
        "joint_names": Row(stored.joint_names),
        "form": stored.cycle.name,
        "periods": stored.periods,
        "motion": {item.name: _plain(getattr(stored.cycle, item.name)) for item in fields(stored.cycle)},  # type: ignore[arg-type]
        "limits": {name: _plain(values) for name, values in vars(stored.limits).items() if name != "joint_names"},
        "collision_check": stored.collision_check,
        "surroundings": {
            "ground": stored.surroundings.ground,
            "obstacles": [dict(entry) for entry in stored.surroundings.entries],
            "allowed": [list(pair) for pair in stored.surroundings.allowed],
            "clearance": stored.surroundings.clearance,
        },
    }
    write_atomically(Path(path), f"# q_j(t) = {stored.cycle.FORMULA}\n{yaml_text(content)}")


def read_trajectory(path: str | Path) -> StoredExcitation:
    """Read an excitation.

    Raises:
        InputError: not readable, not such a file, a key that is missing or unknown (the nearest known one is named), a
            value of the wrong kind, or a motion that cannot be executed.
    """
    content = read_yaml(path, "trajectory")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a trajectory file of this tool (it must hold `format: {FORMAT}`)")
    try:
        return _stored(content)
    except RobotDynIdError as error:
        raise InputError(f"{path}: {error}") from None


def _stored(content: dict[str, Any]) -> StoredExcitation:
    content = {**LATER, **content}
    _check_keys(content, KEYS, "the file")
    form, names = content["form"], _typed(tuple[str, ...], content["joint_names"], "joint_names")
    for name in names:
        if not name.isprintable():
            raise InputError(f"joint_names: {name!r} is not the name of a joint")
    if not isinstance(form, str) or form not in FORMS:
        raise InputError(f"form: unknown form of excitation {form!r}; {suggestion(form, tuple(FORMS))}")
    about, robot, sha256 = (_typed(str, content[key], key) for key in ("about", "robot_name", "urdf_sha256"))
    cycle = _value(FORMS[form], content["motion"], "motion")
    limits = _value(MotionLimits, content["limits"], "limits", joint_names=names)
    periods, check = (
        _typed(int, content["periods"], "periods"),
        _typed(str, content["collision_check"], "collision_check"),
    )
    around = _surroundings(content["surroundings"])
    return StoredExcitation(about, robot, sha256, names, cycle, periods, limits, check, around)


def _surroundings(content: Any) -> Surroundings:
    defaults = {"ground": True, "obstacles": [], "allowed": [], "clearance": CLEARANCE}
    given = content if isinstance(content, dict) else {"surroundings": content}
    for key in given:
        if key not in defaults:
            raise InputError(f"surroundings: unknown key {key!r}; {suggestion(str(key), tuple(defaults))}")
    full = {**defaults, **given}
    lists = [_entries(full[key], f"surroundings.{key}") for key in ("obstacles", "allowed")]
    return Surroundings(full["ground"], tuple(lists[0]), tuple(lists[1]), full["clearance"])


def _check_keys(content: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(content, dict):
        raise InputError(f"{where}: must be keys and values, not {content!r}")
    for key in content:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; {suggestion(key, known)}")
    for key in known:
        if key not in content:
            raise InputError(f"{where}: {key} is missing")


def _value(kind: type[Kind], content: Any, where: str, **given: Any) -> Kind:
    """A dataclass of numbers, texts and arrays."""
    hints = get_type_hints(kind)
    names = [item.name for item in fields(kind) if item.name not in given]  # type: ignore[arg-type]
    _check_keys(content, names, where)
    return kind(**{name: _typed(hints[name], content[name], f"{where}.{name}") for name in names}, **given)


def _plain(value: Any) -> Any:
    """A value as YAML has it; a matrix has its rows in a line each."""
    if isinstance(value, np.ndarray):
        return [Row(row) for row in value.tolist()] if value.ndim == 2 else Row(value.tolist())
    return Row(value) if isinstance(value, tuple) else value


def _typed(hint: Any, value: Any, where: str) -> Any:
    """A value of YAML as its field has it."""
    if hint is float and type(value) is int:
        return float(value)
    if hint in (str, int, float):
        if type(value) is not hint:
            raise InputError(f"{where}: must be {WORDS[hint]}, not {value!r}")
        return value
    of_tuple = {tuple[str, ...]: str, tuple[int, ...]: int}
    if hint in of_tuple:
        return tuple(_typed(of_tuple[hint], entry, where) for entry in _entries(value, where))
    rows = [_entries(row, where) if isinstance(row, list) else [row] for row in _entries(value, where)]
    wanted = (bool,) if "bool" in str(hint) else (int, float)
    for entry in (entry for row in rows for entry in row):
        if type(entry) not in wanted:
            raise InputError(f"{where}: must hold {'true or false' if bool in wanted else 'numbers'}, not {entry!r}")
    if len({len(row) if isinstance(given, list) else None for row, given in zip(rows, value, strict=True)}) > 1:
        raise InputError(f"{where}: its rows have different lengths")
    return _array(value, np.bool_ if bool in wanted else np.float64)


WORDS = {str: "a text", int: "a whole number", float: "a number"}


def _entries(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where}: must be a list, not {value!r}")
    return value


def _array(value: Any, kind: Any) -> Array:
    return np.array(value, dtype=kind)
