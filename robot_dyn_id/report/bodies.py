# SPDX-License-Identifier: Apache-2.0
"""Links as bodies in the 3D view of the report: ellipsoids of uniform density with their inertia."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dyn_id.dynamics.link_body import LinkBody
from robot_dyn_id.identification.validation.explanation.links import LinkExplanation
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.model.quaternions import convert_to_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.turned import turn_profile

IDENTIFIED, URDF = (217, 72, 15), (25, 113, 194)
"""Colors of the bodies that were identified and of those of the URDF."""

LATITUDES = 9
"""Rings of an ellipsoid from pole to pole."""


def make_bodies_scene(model: RobotModel, parameters: ParameterSet, links: Sequence[LinkExplanation]) -> dict[str, Any]:
    """Content of the 3D view: the robot in the middle of its trained ranges with its links as bodies.

    Keys as in `preview.make_scene`; `poses`: one position and quaternion per body; shapes also have `kind`,
    `identified` or `urdf`, and `link`.
    """
    posture = 0.5 * (parameters.ranges.q_min + parameters.ranges.q_max)
    poses = Kinematics(model).poses(posture[:, None])
    rotation, position = poses.rotation[0, :-1], poses.position[0, :-1]
    shapes = [
        _shape(body, model.body_names.index(link.joint), kind, link.name, color)
        for link in links
        for kind, body, color in (("identified", link.identified, IDENTIFIED), ("urdf", link.urdf, URDF))
        if body is not None and np.isfinite(body.semi_axes).all()
    ]
    corners = [
        np.reshape(shape["vertices"], (-1, 3)) @ rotation[shape["body"]].T + position[shape["body"]] for shape in shapes
    ]
    occupied = np.concatenate([position, np.zeros((1, 3)), *corners])
    low, high = occupied.min(axis=0), occupied.max(axis=0)
    return {
        "parents": model.parent.tolist(),
        "poses": np.round(np.concatenate([position, convert_to_quaternions(rotation)], axis=-1), 6).tolist(),
        "shapes": shapes,
        "planes": [{"normal": [0.0, 0.0, 1.0], "height": 0.0, "solid": False}],
        "center": np.round((low + high) / 2.0, 4).tolist(),
        "radius": max(0.05, round(0.5 * float(np.linalg.norm(high - low)), 4)),
    }


def _shape(body: LinkBody, number: int, kind: str, link: str, color: tuple[int, int, int]) -> dict[str, Any]:
    """Ellipsoid of a body in the frame of its joint."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, LATITUDES)
    corners, faces = turn_profile(np.cos(angles), np.sin(angles))
    placed = body.center + (corners * body.semi_axes) @ body.axes.T
    return {
        "body": number,
        "vertices": np.round(placed, 4).reshape(-1).tolist(),
        "faces": faces,
        "closed": True,
        "color": color,
        "opacity": 0.5 if kind == "identified" else 0.25,
        "kind": kind,
        "link": link,
    }
