# SPDX-License-Identifier: Apache-2.0
"""Attitude in quaternions, scalar first, with derivatives: no posture is singular."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array


def compute_quaternion_rates(quaternion: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Rotation, angular velocity and angular acceleration of a body from its quaternion L (scalar first).

    w = 2 R*(L) dL and dw = 2 R*(L) ddL along the axes of the body; L turns them into the world's.

    Args:
        quaternion: unit quaternions, shape (4, N).
        first: its derivative [1/s], shape (4, N).
        second: its second derivative [1/s^2], shape (4, N).

    Returns:
        Rotation body to world (3, 3, N), angular velocity (3, N) [rad/s], angular acceleration (3, N) [rad/s^2].
    """
    l0, l1, l2, l3 = quaternion
    inner = _inner(quaternion)
    outer = np.array([[-l1, l0, -l3, l2], [-l2, l3, l0, -l1], [-l3, -l2, l1, l0]])
    rotation = np.einsum("ikn,jkn->ijn", outer, inner)
    return rotation, *(2.0 * np.einsum("ikn,kn->in", inner, rate) for rate in (first, second))


def rate_quaternions(rotation: Array, rate: Array, rate_change: Array) -> tuple[Array, Array, Array]:
    """Quaternion of a body and its two derivatives, the inverse of `compute_quaternion_rates`; no posture is singular.

    dL = R*(L)^T w / 2 and ddL = R*(L)^T dw / 2 - |w|^2 L / 4.

    Args:
        rotation: body to world, shape (3, 3, N).
        rate: angular velocity along the axes of the body [rad/s], shape (3, N).
        rate_change: angular acceleration along them [rad/s^2], shape (3, N).

    Returns:
        The quaternion, scalar first and not negative, and its derivatives [1/s, 1/s^2], shape (4, N) each.
    """
    quaternion = convert_to_quaternions(np.moveaxis(rotation, -1, 0)).T[[3, 0, 1, 2]]
    quaternion = np.where(quaternion[0] < 0.0, -quaternion, quaternion)
    first, half = (0.5 * np.einsum("ikn,in->kn", _inner(quaternion), x) for x in (rate, rate_change))
    return quaternion, first, half - 0.25 * (rate**2).sum(axis=0) * quaternion


def convert_to_quaternions(rotation: Array) -> Array:
    """Quaternions x y z w of rotations, by the largest component (Shepperd 1978), shape (..., 3, 3) -> (..., 4).

    The largest component is positive. `scipy.spatial` has the same, and takes 0.1 s to import.
    """
    trace = np.trace(rotation, axis1=-2, axis2=-1)[..., None]
    diagonal = np.diagonal(rotation, axis1=-2, axis2=-1)
    # 4 q q^T: every row is the quaternion times four times one of its components
    products = np.empty((*rotation.shape[:-2], 4, 4))
    products[..., :3, :3] = rotation + np.swapaxes(rotation, -1, -2)
    products[..., range(3), range(3)] = 1.0 - trace + 2.0 * diagonal
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        products[..., i, 3] = products[..., 3, i] = rotation[..., k, j] - rotation[..., j, k]
    products[..., 3, 3] = 1.0 + trace[..., 0]
    largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    picked = np.take_along_axis(products, largest[..., None, None], axis=-2)[..., 0, :]
    return np.asarray(picked / np.linalg.norm(picked, axis=-1, keepdims=True))


def _inner(quaternion: Array) -> Array:
    """R*(L), shape (3, 4, N)."""
    l0, l1, l2, l3 = quaternion
    return np.array([[-l1, l0, l3, -l2], [-l2, -l3, l0, l1], [-l3, l2, -l1, l0]])
