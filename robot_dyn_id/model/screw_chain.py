# SPDX-License-Identifier: Apache-2.0
"""Serial chains of revolute joints from screw axes, as the text of a URDF.

Frames by Rodrigues' formula, as in Wang et al., Sensors 2025, 25(18), 5749, eq. 5 and 6: the z axis of joint i's frame
is the joint axis, and the frame at configuration 0 is the base frame turned by the shortest rotation that takes z to
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.screw import exponential, inverse, transform

PARALLEL = 1e-12
"""Sine of the angle to z below which an axis is parallel to it."""


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


def make_chain_urdf(axes: Sequence[Sequence[float]], origins: Sequence[Sequence[float]]) -> str:
    """URDF of a serial chain without inertias: joints joint1, joint2, ... with the axis z in their own frames.

    Args:
        axes: joint axes in the base frame at configuration 0, shape (n, 3), of any length above 0.
        origins: a point on each axis in the base frame [m], shape (n, 3).

    Raises:
        UsageError: another shape, or an axis without a direction.
    """
    directions, points = np.array(axes, dtype=np.float64), np.array(origins, dtype=np.float64)
    if directions.ndim != 2 or directions.shape[1] != 3 or directions.shape != points.shape or not len(directions):
        raise UsageError("screw axes: give one axis and one point of three numbers for each joint")
    lengths = np.linalg.norm(directions, axis=1)
    if not (np.isfinite(directions).all() and np.isfinite(points).all() and (lengths > 0.0).all()):
        raise UsageError("screw axes: axes and points must be finite, and axes longer than 0")
    root = ElementTree.Element("robot", name="chain")
    ElementTree.SubElement(root, "link", name="base")
    parent, before = "base", np.eye(4)
    for number, (axis, point) in enumerate(zip(directions / lengths[:, None], points, strict=True), 1):
        placed = compute_frame_of_axis(axis, point)
        relative = inverse(before) @ placed
        ElementTree.SubElement(root, "link", name=f"link{number}")
        joint = ElementTree.SubElement(root, "joint", name=f"joint{number}", type="continuous")
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=f"link{number}")
        ElementTree.SubElement(
            joint, "origin", xyz=_numbers(relative[:3, 3]), rpy=_numbers(convert_to_roll_pitch_yaw(relative))
        )
        ElementTree.SubElement(joint, "axis", xyz="0 0 1")
        parent, before = f"link{number}", placed
    return ElementTree.tostring(root, encoding="unicode")


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
