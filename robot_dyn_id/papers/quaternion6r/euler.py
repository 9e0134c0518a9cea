# SPDX-License-Identifier: Apache-2.0
"""Euler angles, the alternative to quaternions that the paper argues against.

Yaw, pitch and roll, R = Rz(psi) Ry(theta) Rx(phi), have a singular posture at a pitch of 90 degrees, where yaw and roll
turn about the same axis: their rates are infinite there, and large nearby.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array

SINGULAR_COSINE = 1e-12
"""Cosine of the pitch below which a posture is singular."""


def rate_angles(rotation: Array, rate: Array, rate_change: Array) -> tuple[Array, Array, Array]:
    """Roll, pitch and yaw, and their derivatives, of a body.

    Args:
        rotation: rotation from the body to the world, shape (3, 3, N).
        rate: angular velocity along the axes of the body [rad/s], shape (3, N).
        rate_change: angular acceleration along the same axes [rad/s^2], shape (3, N).

    Returns:
        Angles [rad], first and second derivatives, shape (3, N) each; NaN in singular postures.
    """
    cosine = np.hypot(rotation[2, 1], rotation[2, 2])
    regular = np.where(cosine > SINGULAR_COSINE, 1.0, np.nan)
    pitch = np.arctan2(-rotation[2, 0], cosine)
    roll, yaw = np.arctan2(rotation[2, 1], rotation[2, 2]), np.arctan2(rotation[1, 0], rotation[0, 0])
    angles = np.array([roll, pitch, yaw]) * regular
    first = _inverse(angles, rate)
    second = _inverse(angles, rate_change - _quadratic(angles, first))
    return angles, first, second


def compute_angle_rates(angles: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Rotation, angular velocity and acceleration along the axes of the body: the inverse of `rate_angles`."""
    (s1, s2, s3), (c1, c2, c3) = np.sin(angles), np.cos(angles)
    rotation = np.array(
        [
            [c2 * c3, s1 * s2 * c3 - c1 * s3, c1 * s2 * c3 + s1 * s3],
            [c2 * s3, s1 * s2 * s3 + c1 * c3, c1 * s2 * s3 - s1 * c3],
            [-s2, s1 * c2, c1 * c2],
        ]
    )
    return rotation, _forward(angles, first), _forward(angles, second) + _quadratic(angles, first)


def _forward(angles: Array, first: Array) -> Array:
    """Body rates of the derivatives of roll, pitch and yaw."""
    (s1, s2, _), (c1, c2, _) = np.sin(angles), np.cos(angles)
    roll, pitch, yaw = first
    return np.array([roll - yaw * s2, pitch * c1 + yaw * c2 * s1, yaw * c2 * c1 - pitch * s1])


def _inverse(angles: Array, rate: Array) -> Array:
    """Derivatives of roll, pitch and yaw of body rates."""
    (s1, s2, _), (c1, c2, _) = np.sin(angles), np.cos(angles)
    p, q, r = rate
    yaw = (q * s1 + r * c1) / c2
    return np.array([p + s2 * yaw, q * c1 - r * s1, yaw])


def _quadratic(angles: Array, first: Array) -> Array:
    """Part of the angular acceleration that is quadratic in the rates."""
    (s1, s2, _), (c1, c2, _) = np.sin(angles), np.cos(angles)
    roll, pitch, yaw = first
    return np.array(
        [
            -yaw * pitch * c2,
            -pitch * roll * s1 - yaw * pitch * s2 * s1 + yaw * roll * c2 * c1,
            -pitch * roll * c1 - yaw * pitch * s2 * c1 - yaw * roll * c2 * s1,
        ]
    )
