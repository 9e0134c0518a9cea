# SPDX-License-Identifier: Apache-2.0
"""Geometry of the links of a URDF: primitives and meshes fixed to the moving bodies."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, ModelError
from robot_dyn_id.excitation.collision.meshes import Triangles, find_mesh, list_folders_searched, read_mesh
from robot_dyn_id.model.kinematics import Placement, link_placements
from robot_dyn_id.model.robot import RobotModel

SIZES = {"box": 3, "cylinder": 2, "capsule": 2, "sphere": 1}
"""Number of dimensions of each primitive: edge lengths; radius and length (without the caps of a capsule); radius."""

NO_GEOMETRY = "no collision geometry; it has no shape"
"""End of the note on a link without geometry."""

Kind = Literal["collision", "visual"]


@dataclass(frozen=True)
class Shape:
    """A shape fixed to a body.

    Attributes:
        link: name of the link.
        kind: a key of `SIZES`, or `mesh`.
        size: dimensions of a primitive [m], empty for a mesh. The axis of cylinders and capsules is z.
        placement: placement of the shape's frame on the body.
        vertices: vertices of a mesh [m], shape (v, 3).
        triangles: vertex indices of a mesh's triangles, shape (t, 3).
        stand_in: whether the shape approximates one that is missing in the URDF.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    placement: Placement
    vertices: Array | None = None
    triangles: Triangles | None = None
    stand_in: bool = False


@dataclass(frozen=True)
class LinkGeometry:
    """Geometry of all links.

    Attributes:
        shapes: shapes of all links.
        notes: one line for each link whose geometry is missing or replaced.
        incomplete: links with a missing mesh that is not replaced by other geometry of the link.
        lacking: links that need a shape but have none; determined together with the stand-ins.
    """

    shapes: tuple[Shape, ...]
    notes: tuple[str, ...]
    incomplete: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """Names of the links that have stand-ins."""
        return tuple(dict.fromkeys(shape.link for shape in self.shapes if shape.stand_in))


def read_collision_geometry(model: RobotModel, folders: Sequence[str | Path] = ()) -> LinkGeometry:
    """Read the collision geometry of all links.

    If a mesh is missing or broken, the remaining collision geometry of the link is used, or its visual geometry;
    replacements and links without any geometry are noted.

    Args:
        model: robot model.
        folders: folders in which meshes with `package://` or relative names are searched.

    Raises:
        ModelError: an invalid origin or size.
    """
    return _geometry(model, folders, ("collision", "visual"))


def read_visual_geometry(model: RobotModel, folders: Sequence[str | Path] = ()) -> LinkGeometry:
    """Read the visual geometry of all links, or else their collision geometry; see `read_collision_geometry`."""
    return _geometry(model, folders, ("visual", "collision"))


def _geometry(model: RobotModel, folders: Sequence[str | Path], kinds: tuple[Kind, Kind]) -> LinkGeometry:
    shapes: list[Shape] = []
    notes: list[str] = []
    incomplete: list[str] = []
    placements = link_placements(model)
    for link in ElementTree.fromstring(model.urdf).findall("link"):
        name = link.get("name", "")
        found, missing = _shapes_of(link, kinds[0], placements[name], folders)
        absent = list(missing)
        if not found and link.find(kinds[1]) is not None:
            found, more = _shapes_of(link, kinds[1], placements[name], folders)
            absent += [file for file in more if file not in absent]
            if found:
                reason = _not_found(absent, folders) if absent else f"no {kinds[0]} geometry"
                notes.append(f"link {name}: {reason}; its {kinds[1]} geometry is used")
            missing = more if found else absent
        elif found and missing:
            reason = _not_found(missing, folders)
            notes.append(f"link {name}: {reason}; the rest of its {kinds[0]} geometry is used")
        if not found and missing:
            notes.append(f"link {name}: {_not_found(missing, folders)}; it has no shape")
        elif not found and link.find("inertial") is not None:
            notes.append(f"link {name}: {NO_GEOMETRY if kinds[0] == 'collision' else 'no visual geometry'}")
        if missing:
            incomplete.append(name)
        shapes += found
    return LinkGeometry(tuple(shapes), tuple(notes), tuple(incomplete))


def _not_found(files: Sequence[str], folders: Sequence[str | Path]) -> str:
    """Message about missing mesh files and the searched folders."""
    searched = list(dict.fromkeys(str(place) for file in files for place in list_folders_searched(file, folders)))
    where = f"searched in {', '.join(searched)}" if searched else "no folder given"
    return f"{', '.join(files)}: not found or broken ({where})"


def _shapes_of(
    link: ElementTree.Element, kind: Kind, at: Placement, folders: Sequence[str | Path]
) -> tuple[list[Shape], list[str]]:
    """Shapes of one kind, and names of the missing mesh files."""
    found: list[Shape] = []
    missing: list[str] = []
    name = link.get("name", "")
    for element in link.findall(kind):
        geometry = element.find("geometry")
        form = next(iter(geometry), None) if geometry is not None else None
        if form is None:
            raise ModelError(f"link {name}: a <{kind}> without geometry")
        origin = read_pose_of(element.find("origin"), f"link {name}")
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
            vertices, triangles = read_mesh(path, _numbers(form.get("scale", "1 1 1"), 3, f"link {name}", "scale"))
        except InputError:
            missing.append(file)
            continue
        found.append(Shape(name, "mesh", (), placement, vertices, triangles))
    return found, missing


def _size(form: ElementTree.Element, link: str) -> tuple[float, ...]:
    if form.tag not in SIZES:
        raise ModelError(f"link {link}: unknown geometry <{form.tag}>; known are {', '.join(SIZES)}, mesh")
    text = " ".join(form.get(key, "") for key in ("size", "radius", "length") if form.get(key) is not None)
    size = tuple(float(value) for value in _numbers(text, SIZES[form.tag], f"link {link}", form.tag))
    if not min(size) > 0.0:
        raise ModelError(f"link {link}: the size {text} of its {form.tag} must be positive")
    return size


def make_rotation_of(rpy: Array) -> Array:
    """Rotation matrix of roll, pitch and yaw about fixed axes [rad], shape (3, 3)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def read_pose_of(origin: ElementTree.Element | None, label: str) -> tuple[Array, Array]:
    """Pose given by an `<origin>` element.

    Args:
        origin: element; the identity if None.
        label: name of the owner, for messages.

    Returns:
        Rotation, shape (3, 3), and position [m], shape (3,).

    Raises:
        ModelError: not 3 numbers each.
    """
    if origin is None:
        return np.eye(3), np.zeros(3)
    rpy = _numbers(origin.get("rpy", "0 0 0"), 3, label, "rpy")
    return make_rotation_of(rpy), _numbers(origin.get("xyz", "0 0 0"), 3, label, "xyz")


def list_corners_of(shape: Shape) -> Array:
    """Points in the body frame whose convex hull contains the shape [m], shape (c, 3)."""
    if shape.vertices is not None:
        local = shape.vertices
    else:
        local = _half_edges(shape) * (np.mgrid[-1:3:2, -1:3:2, -1:3:2].reshape(3, 8).T)
    return np.asarray(local @ shape.placement.rotation.T + shape.placement.position)


def _half_edges(shape: Shape) -> Array:
    """Half edge lengths of the bounding box of a primitive in its frame [m], shape (3,)."""
    size = np.array(shape.size)
    if shape.kind == "box":
        return np.asarray(size / 2.0)
    if shape.kind == "sphere":
        return np.full(3, size[0])
    caps = size[0] if shape.kind == "capsule" else 0.0
    return np.array([size[0], size[0], size[1] / 2.0 + caps])


def _numbers(text: str, count: int, label: str, what: str) -> Array:
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if len(values) != count or not np.isfinite(values).all():
        raise ModelError(f"{label}: {what} {text!r} must be {count} numbers")
    return values
