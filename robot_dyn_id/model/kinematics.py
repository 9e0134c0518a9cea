# SPDX-License-Identifier: Apache-2.0
"""Where the bodies of a robot are at many postures at once, and how a point of them moves with the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import InputError, ModelError
from robot_dyn_id.kernels.tree import Tree, build_tree
from robot_dyn_id.model.robot import RobotModel, parse_with_pinocchio, reduce_pinocchio

BASE = -1
"""Index of the base, which carries the links that do not move."""


@dataclass(frozen=True)
class Placement:
    """Where something is fixed to a body.

    Attributes:
        body: index of the moving body, `BASE` for the base.
        rotation: to the body's frame, shape (3, 3).
        position: position of the frame in the body frame [m], shape (3,).
    """

    body: int
    rotation: Array
    position: Array


def link_placements(model: RobotModel) -> dict[str, Placement]:
    """Where each link of the URDF is fixed: held joints stand where the model holds them.

    Raises:
        ModelError: Pinocchio does not read the model's URDF.
    """
    full = parse_with_pinocchio(model.urdf, "robot description", model.gravity)
    reduced = reduce_pinocchio(full, model.body_names, model.held)
    return {
        frame.name: Placement(frame.parentJoint - 1, np.array(frame.placement.rotation), frame.placement.translation)
        for frame in reduced.frames
        if frame.type.name == "BODY"
    }


@dataclass(frozen=True)
class Poses:
    """The bodies of a robot at N postures, in the base frame.

    Attributes:
        model: the robot, with b bodies and n independent joints.
        rotation: rotations of the body frames, shape (N, b + 1, 3, 3); the last one is the base's, the identity.
        position: origins of the body frames [m], shape (N, b + 1, 3); the last one is the base's, zero.
    """

    model: RobotModel
    rotation: Array
    position: Array

    @cached_property
    def screws(self) -> Array:
        """Velocity (linear of the point at the base's origin, then angular) per joint velocity, shape (N, b, 6)."""
        axis = np.einsum("nbij,bj->nbi", self.rotation[:, :-1], self.model.axis)
        slides = self.model.prismatic[:, None]
        linear = np.where(slides, axis, np.cross(self.position[:, :-1], axis))
        return np.concatenate([linear, np.where(slides, 0.0, axis)], axis=-1)

    def points(self, body: Integers, local: Array) -> Array:
        """Points fixed to bodies, in the base frame [m], shape (N, m, 3).

        Args:
            body: body of each point, `BASE` for the base, shape (m,).
            local: coordinates in the body frame [m], shape (m, 3).
        """
        return np.asarray(np.einsum("nmij,mj->nmi", self.rotation[:, body], local) + self.position[:, body])

    def along(self, sample: Integers, body: Integers, line: Array) -> Array:
        """Velocity of bodies along lines for unit velocities of the independent joints, shape (m, n).

        Args:
            sample: number of the posture, shape (m,).
            body: shape (m,).
            line: unit direction f and moment x cross f of the line through x, in the base frame, shape (m, 6).
        """
        rates = np.einsum("mbc,mc->mb", self.screws[sample], line)
        return np.asarray((rates * self._carried[body]) @ self.model.coupling)

    def jacobian(self, at: Placement, sample: int = 0) -> Array:
        """Velocity of a frame along its own axes, (linear of its origin; angular), per joint velocity, shape (6, n).

        Its transpose maps a wrench (force; moment) on the origin, along the axes of the frame, to joint torques.

        Args:
            at: where the frame is fixed.
            sample: number of the posture.
        """
        turn = self.rotation[sample, at.body] @ at.rotation
        origin = self.rotation[sample, at.body] @ at.position + self.position[sample, at.body]
        linear, angular = np.split(self.screws[sample], 2, axis=-1)
        rows = np.concatenate([(linear + np.cross(angular, origin)) @ turn, angular @ turn], axis=1)
        return np.asarray((rows * self._carried[at.body][:, None]).T @ self.model.coupling)

    @cached_property
    def _carried(self) -> Array:
        """1 where a body (row; the last one is the base) is carried by a joint (column), shape (b + 1, b)."""
        parent = self.model.parent
        carried = np.zeros((len(parent) + 1, len(parent)))
        for body, above in enumerate(parent):
            carried[body] = carried[above]
            carried[body, body] = 1.0
        return carried


@dataclass(frozen=True)
class Kinematics:
    """Forward kinematics of a robot.

    Attributes:
        model: the robot.
    """

    model: RobotModel

    @cached_property
    def _tree(self) -> Tree:
        m = self.model
        return build_tree(m.parent, m.rotation, m.translation, m.axis, m.prismatic, m.leader, m.multiplier, m.gravity)

    def poses(self, q: Array) -> Poses:
        """The bodies at postures `q` of the independent joints [rad or m], shape (n, N)."""
        full = (self.model.coupling @ q).T + self.model.offset
        bodies = full.shape[1]
        tree, cosine, sine = self._tree, np.cos(full)[..., None, None], np.sin(full)[..., None, None]
        turn = tree.turn[:, 0] + cosine * tree.turn[:, 1] + sine * tree.turn[:, 2]
        shift = tree.shift[:, 0] + full[..., None] * tree.shift[:, 1]
        rotation = np.empty((len(full), bodies + 1, 3, 3))
        position = np.empty((len(full), bodies + 1, 3))
        rotation[:, BASE], position[:, BASE] = np.eye(3), 0.0
        for body, parent in enumerate(self.model.parent):
            above = rotation[:, parent]
            rotation[:, body] = above @ turn[:, body]
            position[:, body] = position[:, parent] + (above @ shift[:, body, :, None])[..., 0]
        return Poses(self.model, rotation, position)


def link_at_the_end(model: RobotModel) -> str:
    """Name of the link that the last joint moves.

    Raises:
        ModelError: Pinocchio does not read the model's URDF.
    """
    last = len(model.body_names) - 1
    distances = {
        name: float(np.linalg.norm(at.position))
        for name, at in link_placements(model).items()
        if at.body == last and np.allclose(at.rotation, np.eye(3))
    }
    return min(distances, key=lambda name: distances[name])


def find_placement_of(model: RobotModel, link: str) -> Placement:
    """Where a link is fixed.

    Raises:
        ModelError: the URDF has no link of that name.
    """
    placements = link_placements(model)
    if link not in placements:
        raise ModelError(f"{model.name}: no link is called {link}; its links are {', '.join(placements)}")
    return placements[link]


def trace_link(
    model: RobotModel, link: str, joint_names: list[str], positions: Sequence[Sequence[float]] | Array
) -> Array:
    """Positions of the origin of a link along a motion, in the base frame.

    Args:
        model: the robot; its joints that are not in the motion are at 0.
        link: name of the link; empty: the one that the last joint moves.
        joint_names: joints of the motion.
        positions: positions [rad or m], shape (points, joints).

    Returns:
        Positions [m], shape (points, 3).

    Raises:
        InputError: the robot lacks a joint of the motion, or a point has not one position per joint.
        ModelError: the robot has no such link.
    """
    if not joint_names or any(len(row) != len(joint_names) for row in positions):
        raise InputError(
            f"preview: every point needs positions of its {len(joint_names)} joints; publish a complete preview"
        )
    rows = np.array(positions, dtype=float)
    if not np.isfinite(rows).all():
        raise InputError("preview: a position is NaN or infinite; publish a complete preview")
    strangers = [name for name in joint_names if name not in model.joint_names]
    if strangers:
        raise InputError(
            f"preview: {model.name} has no joint {', '.join(strangers)}; publish the preview of this robot"
        )
    q = np.zeros((len(model.joint_names), len(rows)))
    for name, values in zip(joint_names, rows.T, strict=True):
        q[model.joint_names.index(name)] = values
    at = find_placement_of(model, link or link_at_the_end(model))
    poses = Kinematics(model).poses(q)
    return np.asarray(poses.position[:, at.body] + poses.rotation[:, at.body] @ at.position)
