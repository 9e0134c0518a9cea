# SPDX-License-Identifier: Apache-2.0
"""Chains of bodies: motion of the bodies, and wrenches in their hinges.

In a frame in the center of mass along the principal axes a body has only m, Ixx, Iyy, Izz: the form in quaternions of
multibody programs, whose Euler equation S diag(J) = M is the moment of `wrench`. Unlike joint torques, hinge
wrenches identify each body separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import permutations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.loads.wrench import FrameMotion, compute_frame_motion, cross, wrench_regressor
from robot_dyn_id.model.kinematics import Kinematics, Placement, Poses
from robot_dyn_id.model.robot import RobotModel

ALL = tuple(range(10))
CENTROIDAL = (0, 4, 6, 9)
"""The parameters that a body has in a frame along its principal axes in its center of mass: m, Ixx, Iyy, Izz."""

VANISHING_PRODUCT = 1e-9
"""Products of inertia below this share of the trace are rounding: the axes of the frame are principal."""


@dataclass(frozen=True)
class ChainBody:
    """One body of a chain, N samples, everything along the axes of the world.

    Attributes:
        rotation: rotation from the body's frame to the world, shape (3, 3, N).
        position: origin of that frame [m], shape (3, N).
        acceleration: acceleration of the origin, without gravity [m/s^2], shape (3, N).
        rate: angular velocity along the axes of the body's frame [rad/s], shape (3, N).
        rate_change: angular acceleration along the same axes [rad/s^2], shape (3, N).
        hinge: reference point of the wrench of the inner hinge [m], shape (3, N).
        wrench: (moment; force) that the inner neighbor exerts on the body at that point, along the axes of the world
            [N m, N], shape (6, N).
    """

    rotation: Array
    position: Array
    acceleration: Array
    rate: Array
    rate_change: Array
    hinge: Array
    wrench: Array

    def __post_init__(self) -> None:
        """Check the samples.

        Raises:
            InputError: a field of another shape, or with values that are not finite.
        """
        samples = self.wrench.shape[-1]
        for item in fields(self):
            values = getattr(self, item.name)
            shape = {"rotation": (3, 3), "wrench": (6,)}.get(item.name, (3,))
            if values.shape != (*shape, samples):
                raise InputError(f"{item.name} of a body: its shape is {values.shape}, not {(*shape, samples)}")
            if not (finite := np.isfinite(values.reshape(-1, samples)).all(axis=0)).all():
                raise InputError(
                    f"{item.name} of a body: not finite at sample {int(np.argmin(finite)) + 1} of {samples}; leave "
                    "such samples out of all bodies"
                )

    def motion(self, gravity: Sequence[float]) -> FrameMotion:
        """Motion of the body's frame."""
        specific_force = self.acceleration - np.asarray(gravity)[:, None]
        return FrameMotion(np.einsum("jin,jn->in", self.rotation, specific_force), self.rate, self.rate_change)


def find_centroidal_frames(model: RobotModel) -> tuple[Placement, ...]:
    """A frame in the center of mass of every body, along its principal axes.

    Principal axes are those of the eigenvectors of the central inertia, ordered and signed to be as near as possible to
    the axes of the joint's frame; a body whose products of inertia vanish has exactly the latter.

    Raises:
        InputError: a body without mass.
    """
    frames = []
    for body, inertia in enumerate(model.inertial_parameters.reshape(-1, 10)):
        if not inertia[0] > 0.0:
            raise InputError(f"{model.name}: the body of {model.body_names[body]} has no mass: give it one in the URDF")
        _, center, central_inertia = convert_to_central(inertia)
        frames.append(Placement(body, _principal_axes(central_inertia), center))
    return tuple(frames)


def _principal_axes(inertia: Array) -> Array:
    """Rotation from the principal axes to the frame of a central inertia, shape (3, 3)."""
    if np.abs(inertia - np.diag(np.diag(inertia))).max() <= VANISHING_PRODUCT * np.trace(inertia):
        return np.eye(3)
    axes = np.linalg.eigh(inertia)[1]
    ordered = [axes[:, order] for order in permutations(range(3))]
    nearest = max(ordered, key=lambda columns: float(np.abs(np.diag(columns)).sum()))
    turned = nearest * np.where(np.diag(nearest) < 0.0, -1.0, 1.0)
    if np.linalg.det(turned) < 0.0:  # a reflection: the axis that is least aligned turns around
        turned[:, np.argmin(np.abs(np.diag(turned)))] *= -1.0
    return np.asarray(turned)


def simulate_chain(
    model: RobotModel, motion: Motion, frames: Sequence[Placement], inertias: Array | None = None
) -> list[ChainBody]:
    """Readings of exact sensors in all hinges of a robot.

    Args:
        model: the robot; every body is connected to the one before it.
        motion: motion of the joints, N samples.
        frames: frame of each body, in which its motion is given.
        inertias: standard parameters (`INERTIAL_SYMBOLS`) of the bodies in those frames, SI, shape (n, 10); default:
            those of the URDF.

    Raises:
        InputError: a tree with branches.
    """
    poses, gravity = Kinematics(model).poses(motion.q), tuple(model.gravity)

    def loaded(bodies: Sequence[ChainBody], inertias: Array) -> Array:
        """Wrenches in the hinges, shape (n, 6, N)."""
        wrenches = np.zeros((len(bodies), 6, len(motion)))
        for number, (body, own) in enumerate(zip(bodies, inertias, strict=True)):
            needed = np.einsum("icn,c->in", wrench_regressor(body.motion(gravity)), own)[:, :, None]
            for hinge, at in enumerate(bodies[: number + 1]):
                wrenches[hinge] += express_at_point(body, needed, at.hinge)[:, 0]
        return wrenches

    bodies = move_chain(model, motion, frames, poses)
    if inertias is None:
        wrenches = loaded(
            move_chain(model, motion, find_joint_frames(model), poses), model.inertial_parameters.reshape(-1, 10)
        )
    else:
        wrenches = loaded(bodies, inertias)
    return [replace(body, wrench=wrench) for body, wrench in zip(bodies, wrenches, strict=True)]


def find_joint_frames(model: RobotModel) -> tuple[Placement, ...]:
    """The frame of every body's joint."""
    return tuple(Placement(body, np.eye(3), np.zeros(3)) for body in range(len(model.body_names)))


def move_chain(
    model: RobotModel, motion: Motion, frames: Sequence[Placement], poses: Poses | None = None
) -> list[ChainBody]:
    """Bodies of a chain along a motion, with zero wrenches; arguments: see `simulate_chain`.

    Raises:
        InputError: a tree with branches.
    """
    if not np.array_equal(model.parent, np.arange(len(model.parent)) - 1):
        raise InputError(f"{model.name}: not a chain, as a body carries two others; fix the joints of a gripper")
    poses = Kinematics(model).poses(motion.q) if poses is None else poses
    return [_move_body(model, motion, frame, poses) for frame in frames]


def _move_body(model: RobotModel, motion: Motion, frame: Placement, poses: Poses) -> ChainBody:
    """A body with zero wrench in its hinge."""
    moving, hinge = compute_frame_motion(model, motion, frame, poses), poses.position[:, frame.body].T
    turned = np.moveaxis(poses.rotation[:, frame.body] @ frame.rotation, 0, -1)
    place = hinge + (poses.rotation[:, frame.body] @ frame.position).T
    acceleration = np.einsum("ijn,jn->in", turned, moving.acceleration) + np.asarray(model.gravity)[:, None]
    wrench = np.zeros((6, len(motion)))
    return ChainBody(turned, place, acceleration, moving.rate, moving.rate_change, hinge, wrench)


def find_joint_motion(model: RobotModel, bodies: Sequence[ChainBody], frames: Sequence[Placement]) -> Motion:
    """Motion of the joints from the rotations of the bodies, each joint from its two bodies.

    Raises:
        InputError: a prismatic joint: its bodies do not rotate relative to each other.
    """
    full, below, turning = (
        np.zeros((3, len(bodies), bodies[0].wrench.shape[1])),
        np.eye(3)[:, :, None],
        np.zeros((2, 3, 1)),
    )
    for number, (body, frame) in enumerate(zip(bodies, frames, strict=True)):
        if model.prismatic[number]:
            raise InputError(f"{model.body_names[number]} is prismatic: give the motion of the joints")
        axis = model.axis[number]
        rotation = np.einsum("ijn,kj->ikn", body.rotation, frame.rotation)
        turned = np.einsum("ji,kjn,kln->iln", model.rotation[number], *np.broadcast_arrays(below, rotation))
        skew = np.array([turned[(k + 2) % 3, (k + 1) % 3] - turned[(k + 1) % 3, (k + 2) % 3] for k in range(3)])
        # 2 sin q, and 2 cos q: the trace is 1 + 2 cos q, and the axis stays where it is
        full[0, number] = np.arctan2(
            axis @ skew, np.einsum("iin->n", turned) - np.einsum("i,ijn,j->n", axis, turned, axis)
        )
        world = np.array([np.einsum("ijn,jn->in", body.rotation, x) for x in (body.rate, body.rate_change)])
        full[1:, number] = np.einsum("ijn,j,din->dn", rotation, axis, world - turning)
        below, turning = rotation, world
    full[0] -= model.offset[:, None]
    q, dq, ddq = (np.asarray(np.linalg.lstsq(model.coupling, values)[0]) for values in full)
    return Motion(q, dq, ddq)


def express_at_point(body: ChainBody, rows: Array, point: Array) -> Array:
    """A body's rows (6, N, r) in its frame as wrenches about a point along the axes of the world, shape (6, r, N)."""
    moment, force = (np.einsum("ijn,jnr->irn", body.rotation, part) for part in (rows[:3], rows[3:]))
    return np.concatenate([moment + cross((body.position - point)[:, None], force), force])
