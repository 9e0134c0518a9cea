# SPDX-License-Identifier: Apache-2.0
"""Definitions of message types: from the text that a bag keeps, from `.msg` files, and of the common packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.reading import reading

NUMBERS: Mapping[str, str] = {
    **{"bool": "u1", "byte": "u1", "char": "u1", "int8": "i1", "uint8": "u1"},
    **{f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (2, 4, 8)},
    **{"float32": "f4", "float64": "f8"},
}
"""NumPy's codes of the numbers of a `.msg` file."""

TEXT = "string"

LONGEST_DEFINITION = 2**20
"""Longest text of a definition [characters]."""

_FIELD = re.compile(r"([A-Za-z][\w/]*)(<=\d+)?(\[(<=)?(\d*)\])?\s+([A-Za-z]\w*)(\s*=)?", re.ASCII)
_PART = re.compile(r"^=+\s*\nMSG:\s*(\S+)[^\n]*\n", re.MULTILINE)
_NAME = re.compile(r"([A-Za-z]\w*)/(?:msg/)?([A-Za-z]\w*)", re.ASCII)


@dataclass(frozen=True)
class Field:
    """A field of a message.

    Attributes:
        name: its name.
        kind: a key of `NUMBERS`, `TEXT`, or a type such as `std_msgs/Header`.
        length: number of items of a fixed array; 0: a sequence, whose count precedes it; None: a single item.
    """

    name: str
    kind: str
    length: int | None = None


Definitions = Mapping[str, tuple[Field, ...]]
"""Fields of types by name without `/msg`, such as `std_msgs/Header`."""

_COMMON_TEXT = """
builtin_interfaces/Time: int32 sec, uint32 nanosec
builtin_interfaces/Duration: int32 sec, uint32 nanosec
std_msgs/Header: builtin_interfaces/Time stamp, string frame_id
std_msgs/MultiArrayDimension: string label, uint32 size, uint32 stride
std_msgs/MultiArrayLayout: MultiArrayDimension[] dim, uint32 data_offset
std_msgs/Float64MultiArray: MultiArrayLayout layout, float64[] data
std_msgs/Float32MultiArray: MultiArrayLayout layout, float32[] data
geometry_msgs/Vector3: float64 x, float64 y, float64 z
geometry_msgs/Point: float64 x, float64 y, float64 z
geometry_msgs/Quaternion: float64 x, float64 y, float64 z, float64 w
geometry_msgs/Pose: Point position, Quaternion orientation
geometry_msgs/PoseStamped: std_msgs/Header header, Pose pose
geometry_msgs/Transform: Vector3 translation, Quaternion rotation
geometry_msgs/Twist: Vector3 linear, Vector3 angular
geometry_msgs/TwistStamped: std_msgs/Header header, Twist twist
geometry_msgs/Accel: Vector3 linear, Vector3 angular
geometry_msgs/AccelStamped: std_msgs/Header header, Accel accel
geometry_msgs/Wrench: Vector3 force, Vector3 torque
geometry_msgs/WrenchStamped: std_msgs/Header header, Wrench wrench
geometry_msgs/Inertia: float64 m, Vector3 com, float64 ixx, float64 ixy, float64 ixz, float64 iyy, float64 iyz, float64 izz
geometry_msgs/InertiaStamped: std_msgs/Header header, Inertia inertia
sensor_msgs/JointState: std_msgs/Header header, string[] name, float64[] position, float64[] velocity, float64[] effort
sensor_msgs/Temperature: std_msgs/Header header, float64 temperature, float64 variance
trajectory_msgs/JointTrajectoryPoint: float64[] positions, float64[] velocities, float64[] accelerations, float64[] effort, builtin_interfaces/Duration time_from_start
trajectory_msgs/MultiDOFJointTrajectoryPoint: geometry_msgs/Transform[] transforms, geometry_msgs/Twist[] velocities, geometry_msgs/Twist[] accelerations, builtin_interfaces/Duration time_from_start
"""  # noqa: E501


def parse_definition(type_name: str, text: str) -> dict[str, tuple[Field, ...]]:
    """Types of a definition as a bag keeps it: the text of the type, then those of its parts behind lines of `=`.

    Args:
        type_name: such as `control_msgs/msg/DynamicJointState`.
        text: text in the language of `.msg` files.

    Raises:
        ValueError: not such a text.
    """
    if len(text) > LONGEST_DEFINITION:
        raise ValueError("the definition is too long")
    first, *others = _PART.split(text)
    found = {shorten_type(type_name): _fields(first, shorten_type(type_name))}
    for name, part in zip(others[::2], others[1::2], strict=True):
        found[shorten_type(name)] = _fields(part, shorten_type(name))
    return found


def read_definitions(folder: Path, type_name: str) -> dict[str, tuple[Field, ...]]:
    """Types of `.msg` files: that of a type and, where they are there, of its parts.

    Args:
        folder: holds `PACKAGE/msg/NAME.msg`, as the `share` folder of a distribution and a workspace's source do, or
            `PACKAGE/NAME.msg`, or `NAME.msg`.
        type_name: such as `control_msgs/msg/DynamicJointState`.

    Raises:
        InputError: a file that cannot be read or is not a definition; the type is not there.
    """
    found: dict[str, tuple[Field, ...]] = {}
    missing: set[str] = {shorten_type(type_name)}
    while missing:
        name = missing.pop()
        path = _file_of(folder, name)
        if path is None:
            found[name] = ()
            continue
        with reading(path):
            text = path.read_text(encoding="utf-8", errors="replace")
        try:
            found.update(parse_definition(name, text))
        except ValueError as error:
            raise InputError(f"{path}: not a definition of a message type ({error})") from None
        parts = {field.kind for field in found[name]} - NUMBERS.keys() - {TEXT} - COMMON.keys()
        missing |= parts - found.keys()
    absent = [name for name, fields in found.items() if not fields]
    if absent:
        raise InputError(f"{folder}: no file {absent[0].replace('/', '/msg/')}.msg in it, which {type_name} needs")
    return found


def shorten_type(type_name: str) -> str:
    """The name of a type without `/msg`: `control_msgs/DynamicJointState`."""
    found = _NAME.fullmatch(type_name)
    return f"{found[1]}/{found[2]}" if found else type_name


def _file_of(folder: Path, name: str) -> Path | None:
    """The file of a type, or None."""
    package, _, plain = name.partition("/")
    places = (f"{package}/msg/{plain}.msg", f"{package}/{plain}.msg", f"msg/{plain}.msg", f"{plain}.msg")
    return next((folder / place for place in places if (folder / place).is_file()), None)


def _fields(text: str, type_name: str) -> tuple[Field, ...]:
    """Fields of one type, in order.

    Raises:
        ValueError: a line that is neither a field nor a constant nor a comment.
    """
    fields = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        found = _FIELD.match(line)
        if found is None:
            raise ValueError(f"line {line[:80]!r}")
        kind, _, array, bound, length, name, constant = found.groups()
        if constant is None:
            fixed = int(length) if length and not bound else 0
            fields.append(Field(name, _kind(kind, type_name), None if array is None else fixed))
    return tuple(fields)


def _kind(kind: str, type_name: str) -> str:
    """Full name of the type of a field: names without a package are of the same package."""
    if kind in NUMBERS or kind == TEXT:
        return kind
    if kind == "Header":
        return "std_msgs/Header"
    return shorten_type(kind) if "/" in kind else f"{type_name.partition('/')[0]}/{kind}"


def _common() -> dict[str, tuple[Field, ...]]:
    lines = [line.partition(": ") for line in _COMMON_TEXT.strip().splitlines()]
    return {name: _fields(fields.replace(", ", "\n"), name) for name, _, fields in lines}


COMMON: Definitions = _common()
"""Types of ROS's own packages, as all distributions have them: old bags and drivers' definitions lack them."""
