# SPDX-License-Identifier: Apache-2.0
"""Wrench that moves a rigid body, as a 6-axis force-torque sensor measures it for the bodies behind it.

A rigid body with mass m, first moment h and inertia I about the origin of its frame, moved with angular velocity w and
with a the acceleration of that origin less gravity, needs along the axes of its frame

    moment n = I dw + w x I w + h x a,    force f = m a + dw x h + w x (w x h),

which is linear in its ten parameters. Wrenches are (moment; force), as in `screw`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.model.kinematics import BASE, Kinematics, Placement, Poses
from robot_dyn_id.model.robot import RobotModel

CHANNELS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")


@dataclass(frozen=True)
class FrameMotion:
    """Motion of a frame along its own axes, N samples, shape (3, N) each.

    Attributes:
        acceleration: acceleration of the origin less gravity [m/s^2].
        rate: angular velocity [rad/s].
        rate_change: angular acceleration [rad/s^2].
    """

    acceleration: Array
    rate: Array
    rate_change: Array


def wrench_regressor(motion: FrameMotion) -> Array:
    """Y with Y phi the wrench (moment; force) about the frame's origin that the body needs, shape (6, 10, N).

    phi are `INERTIAL_SYMBOLS` in the frame. Atkeson, An and Hollerbach 1986.
    """
    a, w, dw = motion.acceleration, motion.rate, motion.rate_change
    rows = np.zeros((6, 10, a.shape[1]))
    rows[3:, 0] = a
    for axis in range(3):
        unit = np.zeros_like(a)
        unit[axis] = 1.0
        rows[:3, 1 + axis] = cross(unit, a)
        rows[3:, 1 + axis] = cross(dw, unit) + cross(w, cross(w, unit))
    for place, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
        inertia = np.zeros((3, 3))
        inertia[i, j] = inertia[j, i] = 1.0
        rows[:3, 4 + place] = inertia @ dw + cross(w, inertia @ w)
    return rows


def compute_frame_motion(model: RobotModel, motion: Motion, at: Placement, poses: Poses | None = None) -> FrameMotion:
    """Motion of a frame that is fixed to a robot.

    Args:
        model: the robot.
        motion: motion of the joints, N samples.
        at: where the frame is fixed; on the base it feels gravity only.
        poses: poses of the bodies along the motion; computed if not given.
    """
    poses = Kinematics(model).poses(motion.q) if poses is None else poses
    dq, ddq = (model.coupling @ x for x in (motion.dq, motion.ddq))
    rate, change = np.zeros((2, 3, len(motion)))
    acceleration = np.repeat(-np.asarray(model.gravity)[:, None], len(motion), axis=1)
    chain, body = [], at.body
    while body != BASE:
        chain.append(body)
        body = int(model.parent[body])
    for body in reversed(chain):
        reach = (poses.position[:, body] - poses.position[:, model.parent[body]]).T
        acceleration = acceleration + cross(change, reach) + cross(rate, cross(rate, reach))
        axis = (poses.rotation[:, body] @ model.axis[body]).T
        if model.prismatic[body]:
            acceleration = acceleration + axis * ddq[body] + 2.0 * cross(rate, axis) * dq[body]
        else:
            change = change + axis * ddq[body] + cross(rate, axis) * dq[body]
            rate = rate + axis * dq[body]
    turned = poses.rotation[:, at.body] @ at.rotation
    reach = (poses.rotation[:, at.body] @ at.position).T
    acceleration = acceleration + cross(change, reach) + cross(rate, cross(rate, reach))
    return FrameMotion(*(np.einsum("nji,jn->in", turned, x) for x in (acceleration, rate, change)))


def cross(first: Array, second: Array) -> Array:
    """Cross products along the first axis, of length 3."""
    return np.cross(first, second, axis=0)
