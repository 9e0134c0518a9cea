# SPDX-License-Identifier: Apache-2.0
"""Serial chains from the screws of their joints, as the text of a URDF.

Frames by Rodrigues' formula, as in Wang et al., Sensors 2025, 25(18), 5749, eq. 5 and 6: the z axis of joint i's frame
is the joint axis, and the frame at configuration 0 is the base frame turned by the shortest rotation that takes z to
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.screw import exponential, inverse, transform

PARALLEL = 1e-12
"""Sine of the angle to z below which an axis is parallel to it."""

UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Rows and columns of the entries of an inertia that a URDF has."""


def compute_frame_of_axis(axis: Array, origin: Array) -> Array:
    """Frame of a joint in the base frame at configuration 0, shape (4, 4); its z axis is the joint axis.

    An axis opposite to z is turned by half a turn about x, as no rotation is the shortest one.

    Args:
        axis: unit vector along the joint axis in the base frame, shape (3,).
        origin: point on the axis in the base frame [m], shape (3,).
    """
    across = np.cross([0.0, 0.0, 1.0], axis)
    sine = float(np.linalg.norm(across))
    if sine < PARALLEL:
        rotation = np.eye(3) if axis[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    else:
        turn = np.concatenate([across / sine, np.zeros(3)])
        rotation = exponential(turn, float(np.arctan2(sine, axis[2])))[:3, :3]
    return transform(rotation, origin)


@dataclass(frozen=True)
class Screw:
    """A joint of a serial chain and the link that it moves, in the base frame at configuration 0.

    Attributes:
        axis: direction of the joint axis, of any length above 0, shape (3,).
        point: point on the axis [m], shape (3,): the origin of the joint's frame.
        joint: name of the joint.
        link: name of the link.
        slides: whether the joint is prismatic.
        range: lowest and highest position [rad or m]; None: unlimited, for revolute joints only.
        velocity: velocity limit [rad/s or m/s]; 0: unknown.
        effort: effort limit [N m or N]; 0: unknown.
        mass: mass of the link [kg].
        center_of_mass: center of mass of the link [m], shape (3,).
        inertia: inertia about the center of mass, axes parallel to those of the base frame [kg m^2], shape (3, 3).
    """

    axis: Array
    point: Array
    joint: str
    link: str
    slides: bool = False
    range: tuple[float, float] | None = None
    velocity: float = 0.0
    effort: float = 0.0
    mass: float = 0.0
    center_of_mass: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    @property
    def frame(self) -> Array:
        """Frame of the joint in the base frame at configuration 0, shape (4, 4)."""
        direction = self.axis / np.abs(self.axis).max()  # its square can neither overflow nor vanish
        return compute_frame_of_axis(direction / np.linalg.norm(direction), self.point)


def make_screws(axes: Sequence[Sequence[float]], origins: Sequence[Sequence[float]]) -> tuple[Screw, ...]:
    """Revolute joints joint1, joint2, ... from their axes, without limits and with massless links.

    Args:
        axes: joint axes in the base frame at configuration 0, shape (n, 3), of any length above 0.
        origins: a point on each axis in the base frame [m], shape (n, 3).

    Raises:
        UsageError: another shape, or an axis without a direction.
    """
    directions, points = np.array(axes, dtype=np.float64), np.array(origins, dtype=np.float64)
    if directions.ndim != 2 or directions.shape[1] != 3 or directions.shape != points.shape or not len(directions):
        raise UsageError("screw axes: give one axis and one point of three numbers for each joint")
    if not (np.isfinite(directions).all() and np.isfinite(points).all() and directions.any(axis=1).all()):
        raise UsageError("screw axes: axes and points must be finite, and axes longer than 0")
    pairs = enumerate(zip(directions, points, strict=True), 1)
    return tuple(Screw(axis, point, f"joint{number}", f"link{number}") for number, (axis, point) in pairs)


def make_chain_urdf(screws: Sequence[Screw], name: str = "chain", base: str = "base") -> str:
    """URDF of a serial chain whose joints have the axis z in their own frames.

    Args:
        screws: joints and links from the base on, with different names.
        name: name of the robot.
        base: name of the link that does not move.
    """
    root = ElementTree.Element("robot", name=name)
    ElementTree.SubElement(root, "link", name=base)
    parent, before = base, np.eye(4)
    for screw in screws:
        frame = screw.frame
        relative = inverse(before) @ frame
        _add_link(root, screw, frame)
        kind = "prismatic" if screw.slides else "revolute" if screw.range else "continuous"
        joint = ElementTree.SubElement(root, "joint", name=screw.joint, type=kind)
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=screw.link)
        ElementTree.SubElement(
            joint, "origin", xyz=_numbers(relative[:3, 3]), rpy=_numbers(convert_to_roll_pitch_yaw(relative))
        )
        ElementTree.SubElement(joint, "axis", xyz="0 0 1")
        _add_limit(joint, screw)
        parent, before = screw.link, frame
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _add_link(root: ElementTree.Element, screw: Screw, frame: Array) -> None:
    link = ElementTree.SubElement(root, "link", name=screw.link)
    if not screw.mass:
        return
    turn = frame[:3, :3].T
    moments = turn @ screw.inertia @ turn.T
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_numbers(turn @ (screw.center_of_mass - frame[:3, 3])))
    ElementTree.SubElement(inertial, "mass", value=repr(screw.mass))
    attributes = {f"i{'xyz'[row]}{'xyz'[column]}": repr(float(moments[row, column])) for row, column in UPPER}
    ElementTree.SubElement(inertial, "inertia", attributes)


def _add_limit(joint: ElementTree.Element, screw: Screw) -> None:
    if not (screw.range or screw.velocity or screw.effort):
        return
    limit = {"effort": repr(screw.effort), "velocity": repr(screw.velocity)}
    if screw.range:
        limit |= {"lower": repr(screw.range[0]), "upper": repr(screw.range[1])}
    ElementTree.SubElement(joint, "limit", limit)


def convert_to_roll_pitch_yaw(matrix: Array) -> Array:
    """Fixed-axis angles of a rotation as in a URDF [rad], shape (3,); the yaw is 0 where only a sum is determined.

    Args:
        matrix: rotation, shape (3, 3), or transform, shape (4, 4).
    """
    level = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    pitch = np.arctan2(-matrix[2, 0], level)
    if level < PARALLEL:
        return np.array([np.arctan2(-matrix[1, 2], matrix[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(matrix[2, 1], matrix[2, 2]), pitch, np.arctan2(matrix[1, 0], matrix[0, 0])])


def _numbers(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)
