# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for links without shapes: capsules along the links, from the kinematics and masses of a URDF.

The line of a link runs from its joint along the joint's axis, across the common normal of the two axes, and along the
axis of the next joint to that joint (Denavit and Hartenberg). Capsules along this line have a radius that follows from
mass and length, see `find_capsule_radius`. Parts of a link further from the line are not covered: a stand-in is an
estimate, and true collision geometry is always better.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.collision.shapes import LinkGeometry, Shape, list_corners_of, read_pose_of
from robot_dyn_id.model.kinematics import BASE, Placement, link_placements
from robot_dyn_id.model.robot import RobotModel

DENSITY_KG_M3 = 500.0
"""Density of a capsule; it is low as links are largely hollow [kg/m^3]."""

SKIN_M = 0.03
"""Addition to the radius that follows from the mass, for light covers and connectors [m]."""

MIN_RADIUS_RATIO = 0.05
"""Smallest radius relative to the reach, which bounds the effect of placeholder masses [-]."""

MAX_RADIUS_RATIO = 0.15
"""Largest radius relative to the reach, which bounds the effect of placeholder masses [-]."""

MASSLESS_RADIUS_RATIO = 0.1
"""Radius of a link without mass relative to the reach [-]."""

LIGHT_LINK_KG = 0.2
"""Mass below which a fixed link, such as a sensor, needs no capsule inside the capsules of its body [kg]."""

MIN_THINNING_RATIO = 0.4
"""Smallest radius of a thinned capsule relative to its original radius [-]."""

PARALLEL_SINE = 0.05
"""Sine of the angle between two axes below which they count as parallel [-]."""

SHORT_OFFSET_M = 0.02
"""Length below which offsets of a line are ignored [m]."""

SHARED_RATIO = 0.5
"""Fraction of the parent's line along a joint's axis that is also covered by the link behind the joint [-]."""

SAME_POINT_M = 1e-6
"""Distance below which points are identical [m]."""

Line = tuple[Array, Array]
"""The two ends of a capsule's axis in the frame of its link [m], shape (3,) each; equal for a sphere."""


@dataclass(frozen=True)
class _Link:
    """One link, in its own frame.

    Attributes:
        name: name of the link.
        at: placement of the link on its body.
        axis: axis of the moving joint that carries it, shape (3,); None if it is fixed to its parent.
        behind: last segment of the parent's line if it is along that axis, as a vector [m], shape (3,).
        children: origin [m] and axis of each joint on the link; the axis of a fixed joint is None.
        mass: mass [kg]; 0 if the URDF has no mass.
        center: center of mass [m], shape (3,).
    """

    name: str
    at: Placement
    axis: Array | None
    behind: Array
    children: tuple[tuple[Array, Array | None], ...]
    mass: float
    center: Array


def add_stand_ins(model: RobotModel, geometry: LinkGeometry) -> LinkGeometry:
    """Add capsules for links with missing geometry.

    A link gets a stand-in if one of its meshes is missing, if it has mass but no shape, or if no link of its moving
    body has a shape. Links without shape inside the shapes of links fixed to them are left out.

    Args:
        model: robot model.
        geometry: geometry of its links, as read.

    Returns:
        The geometry with stand-ins; `lacking` contains the links whose size follows neither from the kinematics nor
        from a mass.
    """
    links = _links(model)
    needed = list(list_lacking_links(geometry, links))
    if needed and not any(links[name].at.body == BASE for name in needed):
        needed += _pedestal(geometry, links)
    reach = reach_of(model, links)
    added: list[Shape] = []
    lacking: list[str] = []
    for name in sorted(needed, key=lambda name: -links[name].mass):  # light links last, as they may already be covered
        link = links[name]
        lines = link_lines(link)
        radius = find_capsule_radius(link.mass, sum(math.dist(*line) for line in lines), reach)
        if not radius > 0.0:
            lacking += [name] if link.at.body != BASE else []
        elif link.mass > LIGHT_LINK_KG or link.axis is not None or not _inside(link, lines, added):
            added += [_capsule(link, line, radius) for line in lines]
    order = list(links)
    added.sort(key=lambda shape: order.index(shape.link))
    return replace(geometry, shapes=(*geometry.shapes, *added), lacking=tuple(lacking))


def thin_shape(shape: Shape, deficit: float, near: Array) -> tuple[Shape, ...]:
    """Make a stand-in thinner near its joint.

    If a stand-in is too close to an obstacle in every configuration, the link must be thinner at its joint, whose
    distance does not depend on the configuration. At distances above the radius from the joint the capsule does not
    change.

    Args:
        shape: a capsule or sphere.
        deficit: missing distance in the best configuration [m].
        near: origin of the joint in the body frame [m], shape (3,).

    Returns:
        Thinner capsules; the shape itself if less than `MIN_THINNING_RATIO` of the radius would be left.
    """
    radius = shape.size[0]
    thin = radius - deficit
    if thin < MIN_THINNING_RATIO * radius:
        return (shape,)
    if shape.kind == "sphere":
        return (replace(shape, size=(thin,)),)
    length = shape.size[1]
    slender = replace(shape, size=(thin, length))
    if length <= radius:
        return (slender,)
    direction, center = shape.placement.rotation[:, 2], shape.placement.position
    first = center - direction * length / 2.0
    away = direction if math.dist(first, near) < math.dist(center + direction * length / 2.0, near) else -direction
    placement = replace(shape.placement, position=center + away * radius / 2.0)
    return slender, replace(shape, size=(radius, length - radius), placement=placement)


def _inside(link: _Link, lines: Sequence[Line], capsules: Sequence[Shape]) -> bool:
    """Whether the lines of a link are inside capsules on the same body."""
    points = [link.at.rotation @ end + link.at.position for line in lines for end in line]
    around = [capsule for capsule in capsules if capsule.placement.body == link.at.body]
    return all(any(_depth(point, capsule) >= 0.0 for capsule in around) for point in points)


def _depth(point: Array, capsule: Shape) -> float:
    """Depth of a point inside a capsule or sphere [m]; negative outside."""
    half = capsule.size[1] / 2.0 if capsule.kind == "capsule" else 0.0
    z, center = capsule.placement.rotation[:, 2], capsule.placement.position
    along = float(np.clip((point - center) @ z, -half, half))
    return float(capsule.size[0] - math.dist(point, center + along * z))


def remove_stand_ins(model: RobotModel, geometry: LinkGeometry) -> LinkGeometry:
    """Geometry without stand-ins; `lacking` contains the links whose geometry is missing or incomplete."""
    return replace(geometry, lacking=list_lacking_links(geometry, _links(model)))


def list_lacking_links(geometry: LinkGeometry, links: Mapping[str, _Link]) -> tuple[str, ...]:
    """Names of the links that need a shape but whose geometry is missing or incomplete."""
    shapes: dict[int, list[Array]] = {}
    for shape in geometry.shapes:
        shapes.setdefault(shape.placement.body, []).append(list_corners_of(shape))
    shaped = {shape.link for shape in geometry.shapes}
    found = [
        link.name
        for link in links.values()
        if link.name in geometry.incomplete
        or (link.mass > 0.0 and link.name not in shaped and not _within(link, shapes.get(link.at.body, [])))
    ]
    occupied = {*shapes, *(links[name].at.body for name in found)}
    found += [link.name for link in links.values() if link.axis is not None and link.at.body not in occupied]
    return tuple(name for name in links if name in found)


def _pedestal(geometry: LinkGeometry, links: Mapping[str, _Link]) -> list[str]:
    """Links of a base without mass and shape that carry joints at a distance."""
    if any(shape.placement.body == BASE for shape in geometry.shapes):
        return []
    return [
        link.name
        for link in links.values()
        if link.at.body == BASE
        and not link.mass > 0.0
        and any(axis is not None and math.hypot(*origin) > SHORT_OFFSET_M for origin, axis in link.children)
    ]


def _within(link: _Link, around: Sequence[Array]) -> bool:
    """Whether the frame and the center of mass of a link are inside a bounding box of the shapes of its body."""
    if not around:
        return False
    corners = np.concatenate(around)
    points = link.at.position + np.array([np.zeros(3), link.center]) @ link.at.rotation.T
    return bool(
        ((points >= corners.min(axis=0) - SHORT_OFFSET_M) & (points <= corners.max(axis=0) + SHORT_OFFSET_M)).all()
    )


def find_capsule_radius(mass: float, length: float, reach: float) -> float:
    """Radius of the capsules of a link [m]; 0 if its size is unknown.

    The capsule has the volume mass / `DENSITY_KG_M3`; `SKIN_M` is added to its radius, and the sum is limited to
    `MIN_RADIUS_RATIO` and `MAX_RADIUS_RATIO` times the reach. Without mass the radius is `MASSLESS_RADIUS_RATIO` times
    the reach.

    Args:
        mass: mass of the link [kg]; 0 if unknown.
        length: length of its line [m].
        reach: reach of the robot [m]; 0 if unknown.
    """
    if not mass > 0.0:
        return MASSLESS_RADIUS_RATIO * reach
    volume, low, high = mass / DENSITY_KG_M3, 0.0, float((0.75 * mass / DENSITY_KG_M3 / math.pi) ** (1.0 / 3.0))
    for _ in range(40):  # bisection; a line of length 0 has the largest radius
        middle = (low + high) / 2.0
        smaller = math.pi * middle**2 * (length + 4.0 / 3.0 * middle) < volume
        low, high = (middle, high) if smaller else (low, middle)
    radius = high + SKIN_M
    return min(max(radius, MIN_RADIUS_RATIO * reach), MAX_RADIUS_RATIO * reach) if reach > 0.0 else radius


def reach_of(model: RobotModel, links: Mapping[str, _Link]) -> float:
    """Length of the longest chain of joints without the height of the first joint, including the last link [m]."""
    longest = np.zeros(len(model.body_names))
    for body, parent in enumerate(model.parent):
        if parent != BASE:
            longest[body] = longest[parent] + np.linalg.norm(model.translation[body])
    tips = np.zeros(len(model.body_names))
    for link in links.values():
        if link.at.body != BASE:
            ends = [np.zeros(3), link.center, *(origin for origin, _ in link.children)]
            points = link.at.position + np.array(ends) @ link.at.rotation.T
            tips[link.at.body] = max(tips[link.at.body], np.linalg.norm(points, axis=1).max())
    return float((longest + tips).max(initial=0.0))


def link_lines(link: _Link) -> list[Line]:
    """Axes of the capsules of a link in its frame."""
    origin = np.zeros(3)
    lines: list[Line] = []
    for end, axis in link.children:
        lines += [line for line in _path(link, end, axis) if not _covered(line, lines)]
    if link.mass > 0.0:
        # a bar that begins at the joint ends at twice the distance to its center of mass
        tip = (1.0 if link.children else 2.0) * link.center
        nearest = _nearest(link.center, lines)
        if math.dist(nearest, link.center) > SHORT_OFFSET_M:
            lines.append((nearest, tip))
    if math.hypot(*link.behind) > SHORT_OFFSET_M:
        lines.append((origin, -SHARED_RATIO * link.behind))
    return lines or [(origin, origin)]


def _path(link: _Link, end: Array, axis: Array | None) -> list[Line]:
    """Line from a link's frame to a joint on the link."""
    own = link.axis
    if math.hypot(*end) < SAME_POINT_M:
        return []
    if own is None and axis is None:
        return _polyline([np.zeros(3), end])
    if own is None or axis is None or np.linalg.norm(np.cross(own, axis)) < PARALLEL_SINE:
        direction = own if own is not None else axis
        assert direction is not None
        along = (end @ direction) * direction
        across = end - along
        if min(math.hypot(*along), math.hypot(*across)) < SHORT_OFFSET_M:
            return _polyline([np.zeros(3), end])
        first, second = _polyline([np.zeros(3), along, end]), _polyline([np.zeros(3), across, end])
        if own is None or axis is None:
            return first if own is not None else second
        if not link.mass > 0.0:
            return first + second  # both of two equivalent paths
        center = link.center
        return min(first, second, key=lambda lines: math.dist(_nearest(center, lines), center))
    feet = _common_normal(own, end, axis)
    return _polyline([np.zeros(3), *feet, end])


def _common_normal(own: Array, end: Array, axis: Array) -> tuple[Array, Array]:
    """End points of the common normal of an axis through the origin and one through `end` [m], shape (3,) each."""
    cosine = own @ axis
    s = (end @ own - (end @ axis) * cosine) / (1.0 - cosine**2)
    t = ((end @ own) * cosine - end @ axis) / (1.0 - cosine**2)
    return s * own, end + t * axis


def _polyline(points: Sequence[Array]) -> list[Line]:
    return [(a, b) for a, b in pairwise(points) if math.dist(a, b) > SAME_POINT_M]


def _nearest(point: Array, lines: Sequence[Line]) -> Array:
    """Point of the lines (or the origin) that is nearest to a point [m], shape (3,)."""
    nearest = np.zeros(3)
    for a, b in lines:
        way = b - a
        share = np.clip((point - a) @ way / (way @ way), 0.0, 1.0) if way @ way > 0.0 else 0.0
        candidate = a + share * way
        if math.dist(candidate, point) < math.dist(nearest, point):
            nearest = candidate
    return nearest


def _covered(line: Line, lines: Sequence[Line]) -> bool:
    return all(math.dist(_nearest(end, lines), end) < SHORT_OFFSET_M for end in line)


def _capsule(link: _Link, line: Line, radius: float) -> Shape:
    """Capsule on the body of a link; a sphere if the line has the length 0."""
    a, b = (link.at.rotation @ end + link.at.position for end in line)
    length = math.dist(a, b)
    if length < SAME_POINT_M:
        return Shape(link.name, "sphere", (radius,), Placement(link.at.body, np.eye(3), a), stand_in=True)
    z = (b - a) / length
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    placement = Placement(link.at.body, np.column_stack([x, np.cross(z, x), z]), (a + b) / 2.0)
    return Shape(link.name, "capsule", (radius, length), placement, stand_in=True)


def _links(model: RobotModel) -> dict[str, _Link]:
    """Links by name, with the joints on them."""
    root = ElementTree.fromstring(model.urdf)
    axes: dict[str, Array] = {}
    children: dict[str, list[tuple[Array, Array | None]]] = {}
    parents: dict[str, tuple[str, Array, Array]] = {}
    for joint in root.findall("joint"):
        names = [
            element.get("link", "") if element is not None else "" for element in map(joint.find, ("parent", "child"))
        ]
        rotation, origin = read_pose_of(joint.find("origin"), f"joint {joint.get('name')}")
        axis = None
        if joint.get("name") in model.body_names:
            axes[names[1]] = model.axis[model.body_names.index(joint.get("name", ""))]
            axis = rotation @ axes[names[1]]
        children.setdefault(names[0], []).append((origin, axis))
        parents[names[1]] = names[0], rotation, origin
    placements = link_placements(model)
    links = {}
    for element in root.findall("link"):
        name = element.get("name", "")
        mass, center = _mass_of(element)
        links[name] = _Link(
            name, placements[name], axes.get(name), np.zeros(3), tuple(children.get(name, ())), mass, center
        )
    for name, (parent, rotation, origin) in parents.items():
        link = links[name]
        if link.axis is not None:
            path = _path(links[parent], origin, rotation @ link.axis)
            last = rotation.T @ (path[-1][1] - path[-1][0]) if path else np.zeros(3)
            if np.linalg.norm(np.cross(last, link.axis)) < PARALLEL_SINE * math.hypot(*last):
                links[name] = replace(link, behind=last)
    return links


def _mass_of(link: ElementTree.Element) -> tuple[float, Array]:
    """Mass [kg] and center of mass [m], shape (3,); 0 and the origin if missing."""
    inertial = link.find("inertial")
    mass = inertial.find("mass") if inertial is not None else None
    if inertial is None or mass is None:
        return 0.0, np.zeros(3)
    value = float(mass.get("value", "0"))
    return (value if math.isfinite(value) else 0.0), read_pose_of(inertial.find("origin"), link.get("name", ""))[1]
