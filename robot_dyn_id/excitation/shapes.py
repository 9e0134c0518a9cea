"""The geometry of a URDF's links: primitives and meshes, fixed to the moving bodies."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError, ModelError
from robot_dyn_id.excitation.kinematics import Placement, link_placements
from robot_dyn_id.excitation.meshes import Triangles, find_mesh, read_mesh
from robot_dyn_id.robot import RobotModel

SIZES = {"box": 3, "cylinder": 2, "capsule": 2, "sphere": 1}
"""How many numbers tell the size of a primitive: edges; radius and length (of a capsule: without its caps); radius."""

Kind = Literal["collision", "visual"]


@dataclass(frozen=True)
class Shape:
    """A piece of geometry fixed to a body.

    Attributes:
        link: the link it belongs to.
        kind: a key of `SIZES`, or `mesh`.
        size: of a primitive [m]; empty for a mesh. Cylinders and capsules lie along z.
        placement: of the shape's frame.
        vertices: of a mesh [m], shape (v, 3).
        triangles: of a mesh, shape (t, 3).
    """

    link: str
    kind: str
    size: tuple[float, ...]
    placement: Placement
    vertices: Array | None = None
    triangles: Triangles | None = None


@dataclass(frozen=True)
class LinkGeometry:
    """The geometry of all links, and what of it is missing.

    Attributes:
        shapes: of all links.
        notes: one line for each link that has less than its URDF says, or something else instead.
    """

    shapes: tuple[Shape, ...]
    notes: tuple[str, ...]


def collision_geometry(model: RobotModel, folders: Sequence[str | Path] = ()) -> LinkGeometry:
    """The collision geometry of every link.

    Where a mesh is missing or broken the other collision geometry of the link stands for it, or else its visual
    geometry; notes tell which. A link that has none of them is not there, which a note tells too.

    Args:
        model: the robot.
        folders: where `package://` and relative names of meshes are looked for.

    Raises:
        ModelError: a broken origin or size.
    """
    return _geometry(model, folders, ("collision", "visual"))


def visual_geometry(model: RobotModel, folders: Sequence[str | Path] = ()) -> LinkGeometry:
    """The visual geometry of every link, else its collision geometry; see `collision_geometry`."""
    return _geometry(model, folders, ("visual", "collision"))


def _geometry(model: RobotModel, folders: Sequence[str | Path], kinds: tuple[Kind, Kind]) -> LinkGeometry:
    shapes: list[Shape] = []
    notes: list[str] = []
    placements = link_placements(model)
    for link in ElementTree.fromstring(model.urdf).findall("link"):
        name = link.get("name", "")
        found, missing = _shapes_of(link, kinds[0], placements[name], folders)
        reason = f"{', '.join(missing)}: not found or broken" if missing else f"no {kinds[0]} geometry"
        if not found and link.find(kinds[1]) is not None:
            found, more = _shapes_of(link, kinds[1], placements[name], folders)
            missing += [file for file in more if file not in missing]
            if missing:
                reason = f"{', '.join(missing)}: not found or broken"
            if found:
                notes.append(f"link {name}: {reason}; its {kinds[1]} geometry is taken")
        elif found and missing:
            notes.append(f"link {name}: {reason}; the rest of its {kinds[0]} geometry is taken")
        if not found and (missing or link.find("inertial") is not None):
            notes.append(f"link {name}: {reason}; it has no shape")
        shapes += found
    return LinkGeometry(tuple(shapes), tuple(notes))


def _shapes_of(
    link: ElementTree.Element, kind: Kind, at: Placement, folders: Sequence[str | Path]
) -> tuple[list[Shape], list[str]]:
    """Shapes of one kind, and the names of the mesh files that are missing."""
    found: list[Shape] = []
    missing: list[str] = []
    name = link.get("name", "")
    for element in link.findall(kind):
        geometry = element.find("geometry")
        form = next(iter(geometry), None) if geometry is not None else None
        if form is None:
            raise ModelError(f"link {name}: a <{kind}> without geometry")
        origin = _origin(element.find("origin"), name)
        rotation, position = at.rotation @ origin[0], at.rotation @ origin[1] + at.position
        placement = Placement(at.body, rotation, position)
        if form.tag != "mesh":
            found.append(Shape(name, form.tag, _size(form, name), placement))
            continue
        file = form.get("filename", "")
        try:
            path = find_mesh(file, folders)
            if path is None:
                raise InputError(file)
            vertices, triangles = read_mesh(path, _numbers(form.get("scale", "1 1 1"), 3, name, "scale"))
        except InputError:
            missing.append(file)
            continue
        found.append(Shape(name, "mesh", (), placement, vertices, triangles))
    return found, missing


def _size(form: ElementTree.Element, link: str) -> tuple[float, ...]:
    if form.tag not in SIZES:
        raise ModelError(f"link {link}: geometry <{form.tag}> is none of {', '.join(SIZES)}, mesh")
    text = " ".join(form.get(key, "") for key in ("size", "radius", "length") if form.get(key) is not None)
    size = tuple(float(value) for value in _numbers(text, SIZES[form.tag], link, form.tag))
    if not min(size) > 0.0:
        raise ModelError(f"link {link}: the size of its {form.tag} is {text}, it must be positive")
    return size


def rotation_of(rpy: Array) -> Array:
    """Rotation by roll, pitch and yaw about fixed axes [rad], shape (3, 3)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _origin(origin: ElementTree.Element | None, link: str) -> tuple[Array, Array]:
    if origin is None:
        return np.eye(3), np.zeros(3)
    rpy = _numbers(origin.get("rpy", "0 0 0"), 3, link, "rpy")
    return rotation_of(rpy), _numbers(origin.get("xyz", "0 0 0"), 3, link, "xyz")


def _numbers(text: str, count: int, link: str, what: str) -> Array:
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if len(values) != count or not np.isfinite(values).all():
        raise ModelError(f"link {link}: {what} {text!r} must be {count} numbers")
    return values
