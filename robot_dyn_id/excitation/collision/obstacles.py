# SPDX-License-Identifier: Apache-2.0
"""What stands around a robot: boxes and half spaces, fixed in its base frame."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.shapes import rotation_of


@dataclass(frozen=True)
class Box:
    """A solid box.

    Attributes:
        name: for messages.
        size: its edges [m], shape (3,).
        position: of its center in the base frame [m], shape (3,).
        rotation: of its frame to the base frame, shape (3, 3).
    """

    name: str
    size: Array
    position: Array
    rotation: Array


@dataclass(frozen=True)
class HalfSpace:
    """Everything on one side of a plane: ground, wall or ceiling.

    Attributes:
        name: for messages.
        normal: unit vector from the solid side to the free side, in the base frame, shape (3,).
        height: distance of the plane from the base's origin along the normal [m].
    """

    name: str
    normal: Array
    height: float


Obstacle = Box | HalfSpace

GROUND = "ground"
"""Name of the ground; an obstacle of that name takes its place."""

KEYS = {"box": ("name", "box", "position", "rpy"), "height": ("name", "height", "normal")}
"""What each kind of obstacle is told by; the first word that is there tells the kind."""


def obstacles_of(entries: Sequence[Mapping[str, Any]]) -> tuple[Obstacle, ...]:
    """Obstacles as a file tells them.

    A box: `{name: table, box: [1.0, 0.6, 0.05], position: [0.5, 0.0, -0.1], rpy: [0, 0, 0]}`; edges and center in m,
    roll, pitch and yaw in rad, 0 where left out. A half space: `{name: ground, height: 0.0, normal: [0, 0, 1]}`; the
    normal points to the free side and is +z where left out.

    Raises:
        UsageError: names the obstacle and what is wrong with it.
    """
    if isinstance(entries, (str, Mapping)) or not all(isinstance(entry, Mapping) for entry in entries):
        raise UsageError("obstacles must be a list of entries such as {name: ground, height: 0.0}")
    made = tuple(_obstacle(entry, f"obstacle {entry.get('name', i + 1)}") for i, entry in enumerate(entries))
    names = [obstacle.name for obstacle in made]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"obstacle {name}: there are two of that name, give each its own")
    return made


CLEARANCE = 0.02
"""Default distance that a designed motion keeps from the robot itself and from obstacles [m]."""


@dataclass(frozen=True)
class Surroundings:
    """What stands around a robot, as files say it.

    Attributes:
        ground: true for ground at the base's origin, false for none, or its height [m].
        entries: of the obstacles, see `obstacles_of`.
        pairs: names of two links or obstacles each that may touch.
        clearance: distance that the motion was designed to keep [m]: stand-ins are made so that it can.
    """

    ground: bool | float = True
    entries: tuple[Any, ...] = ()
    pairs: tuple[Any, ...] = ()
    clearance: float = CLEARANCE

    def __post_init__(self) -> None:
        """Check all entries.

        Raises:
            UsageError: names the ground, the obstacle or the pair and what is wrong with it.
        """
        if not isinstance(self.ground, (bool, int, float)) or not math.isfinite(self.ground):
            raise UsageError(f"ground: must be true, false or a height in the base frame [m], not {self.ground!r}")
        if not (isinstance(self.clearance, (int, float)) and 0.0 <= self.clearance < math.inf):
            raise UsageError(f"clearance: must be 0 or a positive distance [m], not {self.clearance!r}")
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in self.pairs):
            raise UsageError(f"allowed: must be pairs of names such as [link1, table], not {list(self.pairs)}")
        obstacles_of(self.entries)

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """The obstacles, without the ground."""
        return obstacles_of(self.entries)

    @property
    def allowed(self) -> tuple[tuple[str, str], ...]:
        """Pairs that may touch."""
        return tuple((str(first), str(second)) for first, second in self.pairs)


def ground_at(height: float) -> HalfSpace:
    """The ground: everything below a plane across the z axis of the base at a height [m]."""
    return HalfSpace(GROUND, np.array([0.0, 0.0, 1.0]), height)


def _obstacle(entry: Mapping[str, Any], label: str) -> Obstacle:
    kind = next((key for key in KEYS if key in entry), None)
    if kind is None:
        raise UsageError(f"{label}: neither `box` (its edges [m]) nor `height` (of the plane below the free side [m])")
    for key in entry:
        if key not in KEYS[kind]:
            near = difflib.get_close_matches(str(key), KEYS[kind], 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(KEYS[kind])}"
            raise UsageError(f"{label}: unknown key {key}; {hint}")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{label}: `name` is missing")
    if kind == "box":
        size = _vector(entry["box"], f"{label}: box")
        if not size.min() > 0.0:
            raise UsageError(f"{label}: box {size.tolist()} must have three positive edges [m]")
        position = _vector(entry.get("position"), f"{label}: position")
        return Box(name, size, position, rotation_of(_vector(entry.get("rpy", (0, 0, 0)), f"{label}: rpy")))
    normal = _vector(entry.get("normal", (0, 0, 1)), f"{label}: normal")
    if not np.linalg.norm(normal) > 0.0:
        raise UsageError(f"{label}: normal {normal.tolist()} has no direction")
    (height,) = _numbers([entry["height"]], 1, f"{label}: height")
    return HalfSpace(name, normal / np.linalg.norm(normal), float(height))


def _vector(value: Any, label: str) -> Array:
    return _numbers(value, 3, label)


def _numbers(value: Any, count: int, label: str) -> Array:
    good = isinstance(value, (list, tuple, np.ndarray)) and len(value) == count
    if not good or not all(_is_number(entry) for entry in value):
        raise UsageError(f"{label} must be {'a number' if count == 1 else f'{count} numbers'}, not {value}")
    return np.array(value, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)
