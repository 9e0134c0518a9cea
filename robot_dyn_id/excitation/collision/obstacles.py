# SPDX-License-Identifier: Apache-2.0
"""Obstacles around a robot: boxes and half spaces fixed in its base frame."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.shapes import make_rotation_of


@dataclass(frozen=True)
class Box:
    """A solid box.

    Attributes:
        name: name of the obstacle.
        size: edge lengths [m], shape (3,).
        position: center in the base frame [m], shape (3,).
        rotation: rotation from the box frame to the base frame, shape (3, 3).
    """

    name: str
    size: Array
    position: Array
    rotation: Array

    def distance_from_base(self) -> float:
        """Distance of the solid from the base's origin [m]; 0 inside."""
        beyond = np.abs(self.rotation.T @ self.position) - 0.5 * self.size
        return float(np.linalg.norm(np.maximum(beyond, 0.0)))


@dataclass(frozen=True)
class HalfSpace:
    """Half space bounded by a plane: ground, wall or ceiling.

    Attributes:
        name: name of the obstacle.
        normal: unit vector from the solid side to the free side, in the base frame, shape (3,).
        height: distance of the plane from the base's origin along the normal [m].
    """

    name: str
    normal: Array
    height: float

    def distance_from_base(self) -> float:
        """Distance of the solid from the base's origin [m]; 0 inside."""
        return max(-self.height, 0.0)


Obstacle = Box | HalfSpace

GROUND = "ground"
"""Name of the ground; an obstacle with this name replaces it."""

KEYS = {"box": ("name", "box", "position", "rpy"), "height": ("name", "height", "normal")}
"""Keys of each kind of obstacle; the presence of the first key determines the kind."""


def parse_obstacles(entries: Sequence[Mapping[str, Any]]) -> tuple[Obstacle, ...]:
    """Parse obstacles of a file.

    A box: `{name: table, box: [1.0, 0.6, 0.05], position: [0.5, 0.0, -0.1], rpy: [0, 0, 0]}`; edges and center in m,
    roll, pitch and yaw in rad, 0 by default. A half space: `{name: ground, height: 0.0, normal: [0, 0, 1]}`; the
    normal points to the free side, +z by default.

    Args:
        entries: one mapping per obstacle.

    Raises:
        UsageError: an entry is invalid; names the obstacle.
    """
    if isinstance(entries, (str, Mapping)) or not all(isinstance(entry, Mapping) for entry in entries):
        raise UsageError("obstacles must be a list of entries such as {name: ground, height: 0.0}")
    made = tuple(_obstacle(entry, f"obstacle {entry.get('name', i + 1)}") for i, entry in enumerate(entries))
    names = [obstacle.name for obstacle in made]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"obstacle {name}: the name is used twice; use unique names")
    return made


DEFAULT_CLEARANCE_M = 0.02
"""Default minimum distance between links and to obstacles in designed motions [m]."""


@dataclass(frozen=True)
class Scene:
    """Obstacles and allowed contacts for the collision check.

    Attributes:
        obstacles: obstacles in the base frame.
        allowed: pairs of names of links or obstacles that may touch.
        ground: whether there is ground, or its height [m]; an obstacle named `ground` replaces it.
        margin: minimum distance that motions are designed for [m]; stand-ins are fitted so that it can be kept.
    """

    obstacles: tuple[Obstacle, ...] = ()
    allowed: tuple[tuple[str, str], ...] = ()
    ground: bool | float = True
    margin: float = 0.0


@dataclass(frozen=True)
class Surroundings:
    """Surroundings of a robot as given in files.

    Attributes:
        ground: whether the ground at the base's origin is an obstacle, or its height [m].
        entries: entries of the obstacles, see `parse_obstacles`.
        pairs: pairs of names of links or obstacles that may touch.
        clearance: minimum distance of the design [m].
    """

    ground: bool | float = True
    entries: tuple[Any, ...] = ()
    pairs: tuple[Any, ...] = ()
    clearance: float = DEFAULT_CLEARANCE_M

    def __post_init__(self) -> None:
        """Check all entries.

        Raises:
            UsageError: the ground, an obstacle, a pair or the minimum distance is invalid; names it.
        """
        if not isinstance(self.ground, (bool, int, float)) or not math.isfinite(self.ground):
            raise UsageError(f"ground: must be true, false or a height in the base frame [m], not {self.ground!r}")
        if not (isinstance(self.clearance, (int, float)) and 0.0 <= self.clearance < math.inf):
            raise UsageError(f"clearance: must be 0 or a positive distance [m], not {self.clearance!r}")
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in self.pairs):
            raise UsageError(f"allowed: must be pairs of names such as [link1, table], not {list(self.pairs)}")
        parse_obstacles(self.entries)

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Parsed obstacles, without the ground."""
        return parse_obstacles(self.entries)

    @property
    def allowed(self) -> tuple[tuple[str, str], ...]:
        """Pairs of names of links or obstacles that may touch."""
        return tuple((str(first), str(second)) for first, second in self.pairs)

    def scene(self) -> Scene:
        """Scene for the collision check."""
        return Scene(self.obstacles, self.allowed, self.ground, self.clearance)


def make_ground_at(height: float) -> HalfSpace:
    """Ground: the half space below a height on the z axis of the base frame [m]."""
    return HalfSpace(GROUND, np.array([0.0, 0.0, 1.0]), height)


def _obstacle(entry: Mapping[str, Any], label: str) -> Obstacle:
    kind = next((key for key in KEYS if key in entry), None)
    if kind is None:
        raise UsageError(f"{label}: needs `box` (edge lengths [m]) or `height` (height of the plane [m])")
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
            raise UsageError(f"{label}: box {size.tolist()} must have three positive edge lengths [m]")
        position = _vector(entry.get("position"), f"{label}: position")
        return Box(name, size, position, make_rotation_of(_vector(entry.get("rpy", (0, 0, 0)), f"{label}: rpy")))
    normal = _vector(entry.get("normal", (0, 0, 1)), f"{label}: normal")
    if not np.linalg.norm(normal) > 0.0:
        raise UsageError(f"{label}: normal {normal.tolist()} must not be zero")
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
