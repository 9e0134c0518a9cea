"""Physical consistency of standard parameters: could a real body have them?

A body's parameters are consistent if and only if its 4 x 4 pseudo-inertia matrix is positive definite (Wensing, Kim and
Slotine 2018).
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.dataset import Array


def pseudo_inertia(parameters: Array) -> Array:
    """Pseudo-inertia matrices of bodies.

    Args:
        parameters: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz of each body about its frame's origin, shape (..., 10).

    Returns:
        [[tr(I)/2 E - I, h], [h', m]], shape (..., 4, 4).
    """
    m, mx, my, mz, ixx, ixy, iyy, ixz, iyz, izz = np.moveaxis(np.asarray(parameters, dtype=np.float64), -1, 0)
    half = 0.5 * (ixx + iyy + izz)
    rows = [
        [half - ixx, -ixy, -ixz, mx],
        [-ixy, half - iyy, -iyz, my],
        [-ixz, -iyz, half - izz, mz],
        [mx, my, mz, m],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def is_consistent(parameters: Array) -> bool:
    """Whether every body of a robot's standard parameters, shape (10 b,), has a positive-definite pseudo-inertia."""
    return bool(np.all(np.linalg.eigvalsh(pseudo_inertia(parameters.reshape(-1, 10))) > 0.0))
