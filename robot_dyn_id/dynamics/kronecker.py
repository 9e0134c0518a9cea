# SPDX-License-Identifier: Apache-2.0
"""The literal block-matrix and Kronecker form of the torque regressor and of the mass matrix, as a reference.

Wang et al., Sensors 2025, 25(18), 5749, with its symbols, carried over from a planar chain to any tree of
revolute and prismatic joints. For b bodies with one spatial vector each (6 b rows):

    V = Gamma A dq,  dV = B = Gamma (A ddq - ad(dq xi) V + W0 dV0),  D = V
    Acal = A' Gamma',  C = -Acal blkdiag(ad(V_i)')
    tau = Acal G B + C G D,   G = blkdiag(G_i),   vec(G_i) = K lambda_i
    y_ij = (B_j' kron Acal_ij + D_j' kron C_ij) K
    M = Acal G Acal',   row (i, z) of vec(M), block j: (Acal_ij kron Acal_zj) K    (eq. 26)

Mimic joints, q_full = G q + offset, are the same equations with Acal and C multiplied by G' from the left.
Nothing is shared with the compiled loops: this says what they must give. It is meant to be read, and takes
one sample at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.model.screw import (
    Mechanism,
    adjoint,
    bracket,
    compute_body_transforms,
    compute_joint_screws,
    inverse,
    skew,
)
from robot_dyn_id.parameters import INERTIAL_SYMBOLS

PAPER_SYMBOLS = ("Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz", "mx", "my", "mz", "m")
"""The paper's order of lambda; frames and reference points are those of `INERTIAL_SYMBOLS`."""

PAPER_ORDER = tuple(INERTIAL_SYMBOLS.index(symbol) for symbol in PAPER_SYMBOLS)
"""The permutation: entry k of the paper's lambda is entry PAPER_ORDER[k] of ours."""


def spatial_inertia(parameters: Array) -> Array:
    """G = [[I, [mc]], [-[mc], m 1]] of shape (6, 6), about the frame's origin.

    Args:
        parameters: the paper's lambda of one body, shape (10,).
    """
    xx, yy, zz, xy, yz, xz = parameters[:6]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    first = skew(parameters[6:9])
    return np.block([[inertia, first], [-first, parameters[9] * np.eye(3)]])


def duplication() -> Array:
    """K of shape (36, 10): vec(G) = K lambda, where vec stacks columns; its 24 entries are -1 or 1."""
    return np.column_stack([spatial_inertia(unit).flatten(order="F") for unit in np.eye(10)])


@dataclass(frozen=True)
class BlockForm:
    """The block matrices at one state of b bodies moved by n independent joints.

    Attributes:
        acal: G' A' Gamma', shape (n, b, 6); block ij is zero unless joint i moves body j.
        c: G' C, shape (n, b, 6).
        b: accelerations less gravity of the bodies in their own frames, shape (b, 6).
        d: velocities, shape (b, 6).
    """

    acal: Array
    c: Array
    b: Array
    d: Array


def block_form(mechanism: Mechanism, q: Array, dq: Array, ddq: Array) -> BlockForm:
    """The block matrices at one state q, dq, ddq of the n independent joints, shape (n,) each."""
    coupling = mechanism.coupling
    bodies = len(mechanism.parent)
    velocities = coupling @ dq
    accelerations = coupling @ ddq
    placed = compute_body_transforms(mechanism, coupling @ q + mechanism.offset)
    gamma = np.zeros((6 * bodies, 6 * bodies))
    a = np.zeros((6 * bodies, bodies))
    rates = np.zeros((6 * bodies, 6 * bodies))
    base = np.zeros(6 * bodies)
    upward = np.concatenate([np.zeros(3), -mechanism.gravity])  # dV0: a base that accelerates against gravity
    for i, screw in enumerate(compute_joint_screws(mechanism)):
        own = slice(6 * i, 6 * i + 6)
        a[own, i] = screw
        rates[own, own] = bracket(velocities[i] * screw)
        if mechanism.parent[i] < 0:
            base[own] = adjoint(inverse(placed[i])) @ upward
        j = i
        while j >= 0:  # Gamma_ij = Ad(T_ji^-1) for the body itself and all before it
            gamma[own, 6 * j : 6 * j + 6] = adjoint(inverse(placed[i]) @ placed[j])
            j = int(mechanism.parent[j])
    d = gamma @ a @ velocities
    b = gamma @ (a @ accelerations - rates @ d + base)
    acal = coupling.T @ a.T @ gamma.T
    d = d.reshape(bodies, 6)
    b = b.reshape(bodies, 6)
    acal = acal.reshape(-1, bodies, 6)
    c = np.stack([-acal[:, j] @ bracket(d[j]).T for j in range(bodies)], axis=1)
    return BlockForm(acal, c, b, d)


def torque_regressor(mechanism: Mechanism, q: Array, dq: Array, ddq: Array) -> Array:
    """Y of shape (n, 10 b) at one state, columns ordered m mx my mz Ixx Ixy Iyy Ixz Iyz Izz body by body.

    Args:
        mechanism: tree of b bodies with n independent joints.
        q: positions [rad or m], shape (n,).
        dq: velocities, shape (n,).
        ddq: accelerations, shape (n,).
    """
    blocks = block_form(mechanism, q, dq, ddq)
    k = duplication()
    joints, bodies = blocks.acal.shape[:2]
    y = np.zeros((joints, bodies, 10))
    for i, j in np.argwhere(np.any(blocks.acal != 0.0, axis=2)):
        in_vec = np.kron(blocks.b[j], blocks.acal[i, j]) + np.kron(blocks.d[j], blocks.c[i, j])
        y[i, j, PAPER_ORDER] = in_vec @ k
    return y.reshape(joints, 10 * bodies)


def mass_regressor(mechanism: Mechanism, q: Array) -> Array:
    """Z of shape (n, n, 10 b) at one configuration: M = Z pi, columns as in `torque_regressor`.

    Args:
        mechanism: tree of b bodies with n independent joints.
        q: positions [rad or m], shape (n,).
    """
    still = np.zeros_like(q)
    acal = block_form(mechanism, q, still, still).acal
    k = duplication()
    joints, bodies = acal.shape[:2]
    z = np.zeros((joints, joints, bodies, 10))
    for body in range(bodies):
        joints_before = np.flatnonzero(np.any(acal[:, body] != 0.0, axis=1))
        for i in joints_before:
            for other in joints_before:
                z[i, other, body, PAPER_ORDER] = np.kron(acal[i, body], acal[other, body]) @ k
    return z.reshape(joints, joints, 10 * bodies)
