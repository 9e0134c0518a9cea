# SPDX-License-Identifier: Apache-2.0
"""Reverse mode of the regressor: the gradient of a number with respect to the motion, from that to the entries.

Let D be the number's derivatives by the entries (its cotangent), d_ij the ten of body i in the row of joint j. They act
as inertial parameters: the entries' part of the number is the sum over all blocks of s_ij . F_ij, with s_ij the twist
of the joint and F_ij the wrench that a body with the parameters d_ij needs in the motion of body i. So it is a sum of
powers of Newton-Euler wrenches, and has the derivatives of inverse dynamics (Singh, Russell, Wensing, Efficient
analytical derivatives of rigid-body dynamics using spatial vector algebra, 2022), taken along axes that move with the
bodies. A joint with the twist S carries everything behind it, and sees what is before it turn by -S x. With V and A
the velocity and acceleration of the body before it (gravity included), psi_dot = V x S and
psi_ddot = A x S + V x psi_dot,

    by ddq:  S . a                               a: sum of A' over all bodies that it carries
    by dq:   S . v + 2 psi_dot . a               v: sum of V' + V_i x* A' over them
    by q:    psi_dot . v + psi_ddot . a - S . k  k: sum of s_ij x* F_ij over their blocks and of joints before it

where V' and A' are the cotangents of a body's own velocity and acceleration, sums over its blocks. All are spatial
vectors along the axes of the base about its origin. v is a pure couple: the regressor depends on linear velocities only
by way of accelerations. k is collected over all joints; what belongs to a joint and those behind it is taken out again
as the bodies add up towards the base, where every joint's wrenches are added up too. The rows of a, v and k in the
workspace are `BY_SPATIAL_ACCEL`, `BY_SPATIAL_VELOCITY` and `CROSS_WRENCH`.

It costs two to two and a half times the regressor. For the form of the loops see `kernels.regressor`.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.kernels.adjoints import (
    ALL_ROWS,
    BY_DDQ,
    BY_DQ,
    BY_OMEGA,
    BY_Q,
    BY_SPATIAL_ACCEL,
    CARRIED,
    CROSS_WRENCH,
    KEEP,
    KEPT,
    LINEAR,
    WRENCH,
    add_cross_wrench,
    add_motion_cotangents,
    differentiate_joint,
    differentiate_motion,
    find_block_wrench,
    find_parent_motion,
    sum_cotangents,
)
from robot_dyn_id.kernels.compiled import compiled, samples, shifted
from robot_dyn_id.kernels.regressor import (
    COLUMNS,
    JOINT_TWIST,
    STATE,
    TWIST,
    add_follower_twist,
    copy_rows,
    find_twists,
    propagate,
    recall_parent,
)

TILE = 64  # samples worked on together: what is kept of all bodies and blocks stays in the second cache
WIDTH = TILE + 8  # rows a power of two apart would compete for the same few cache lines


@compiled
def _add_rows(rows, n, source, source_row, target, target_row):  # type: ignore[no-untyped-def]
    """Add rows of a tile."""
    for r in range(rows):
        for k in samples(n):
            target[target_row + r, k] = target[target_row + r, k] + source[source_row + r, k]


@compiled
def _read_cotangent(p, n, start, slot, cotangent, now):  # type: ignore[no-untyped-def]
    """The cotangent of pair p; where there is none it is zero."""
    for r in range(10):
        row = slot[p, r]
        if row >= 0:
            for k in samples(n):
                now[COLUMNS + r, k] = cotangent[row, shifted(start, k)]
        else:
            for k in samples(n):
                now[COLUMNS + r, k] = 0.0


@compiled
def _write_derivatives(i, n, start, now, by_q, by_dq, by_ddq):  # type: ignore[no-untyped-def]
    """Write the derivatives by the motion of body i's joint."""
    for row, target in ((BY_Q, by_q), (BY_DQ, by_dq), (BY_DDQ, by_ddq)):
        for k in samples(n):
            target[i, shifted(start, k)] = now[row, k]


@compiled
def fill_regressor_gradient_tiles(  # type: ignore[no-untyped-def]
    parent,
    turn,
    shift,
    axis,
    pair_start,
    pair_from,
    pair_gain,
    gravity,
    angle,
    q,
    dq,
    ddq,
    slot,
    cotangent,
    by_q,
    by_dq,
    by_ddq,
):
    """Gradient with respect to the motion of every body's joint, followers of mimic joints included.

    The arguments up to `cotangent` are those of `fill_regressor_tiles`, with `cotangent`, shape (slots, N), in place of
    `out`: the derivatives by the entries. It fills `by_q`, `by_dq` and `by_ddq`, shape (b, N) each.
    """
    bodies, pairs = parent.shape[0], pair_from.shape[0]
    now = np.empty((ALL_ROWS, WIDTH))
    states = np.empty((bodies * STATE, WIDTH))
    linear = np.empty((bodies * 3, WIDTH))
    own = np.empty((bodies * 6, WIDTH))
    kept = np.empty((bodies * KEEP, WIDTH))
    twists = np.empty((pairs * 6 + 6, WIDTH))
    twists[pairs * 6 :] = 0.0
    wrenches = np.empty((pairs * 6 + 6, WIDTH))
    wrenches[pairs * 6 :] = 0.0  # the last takes what reaches the base
    twist, carried = np.arange(pairs + 1), np.zeros(pairs, dtype=np.int64)
    find_twists(pair_from, pair_gain, twist, carried)
    for start in range(0, q.shape[1], TILE):
        n = min(TILE, q.shape[1] - start)
        for i in range(bodies):
            recall_parent(i, n, parent, gravity, states, now)
            if parent[i] < 0:
                now[LINEAR : LINEAR + 3] = 0.0
            elif parent[i] != i - 1:
                copy_rows(3, n, linear, 3 * parent[i], now, LINEAR)
            find_parent_motion(n, now)
            propagate(i, n, start, turn, shift, axis, angle, q, dq, ddq, states, now)
            differentiate_joint(n, now)
            now[BY_OMEGA : BY_OMEGA + 9] = 0.0
            now[CROSS_WRENCH : CROSS_WRENCH + 6] = 0.0
            for p in range(pair_start[i], pair_start[i + 1]):
                copy_rows(6, n, twists, 6 * carried[p], now, TWIST)
                if pair_gain[p] != 0.0:
                    add_follower_twist(n, pair_gain[p], now)
                    copy_rows(6, n, now, TWIST, twists, 6 * p)
                _read_cotangent(p, n, start, slot, cotangent, now)
                find_block_wrench(n, now)
                add_cross_wrench(n, 1.0, TWIST, now)
                add_motion_cotangents(n, now)
                copy_rows(6, n, now, WRENCH, wrenches, 6 * p)
            sum_cotangents(n, now)
            copy_rows(3, n, now, LINEAR, linear, 3 * i)
            copy_rows(6, n, now, JOINT_TWIST, own, 6 * i)
            copy_rows(KEEP, n, now, KEPT, kept, KEEP * i)
        for reverse in range(bodies):
            i = bodies - 1 - reverse
            copy_rows(6, n, own, 6 * i, now, JOINT_TWIST)
            copy_rows(KEEP, n, kept, KEEP * i, now, KEPT)
            for p in range(pair_start[i], pair_start[i + 1]):
                if pair_gain[p] != 0.0:
                    copy_rows(6, n, wrenches, 6 * p, now, WRENCH)
                    add_cross_wrench(n, -pair_gain[p], JOINT_TWIST, now)
                _add_rows(6, n, wrenches, 6 * p, wrenches, 6 * pair_from[p])
            differentiate_motion(n, now)
            _write_derivatives(i, n, start, now, by_q, by_dq, by_ddq)
            if parent[i] >= 0:
                _add_rows(CARRIED, n, now, BY_SPATIAL_ACCEL, kept, KEEP * parent[i] + BY_SPATIAL_ACCEL - KEPT)
