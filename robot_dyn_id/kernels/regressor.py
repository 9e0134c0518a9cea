# SPDX-License-Identifier: Apache-2.0
"""The rigid-body torque regressor of N samples.

The twist (s_w, s_v) of every joint, about the origin of the base, is turned into the frame of every body i that it
moves; the ten columns of body i in the joint's row are then s' W_i. W_i is the 6 x 10 map from the inertial parameters
of the body to the wrench that its motion needs:

    f = m a + A h,                   A = [dw]x + [w]x [w]x
    n = I dw + w x (I w) + h x a

with h the first moment, a the acceleration of the frame's origin less gravity, all in the body's own frame. Mimics
and trees need nothing more: followers add to the twist of the joint that leads them (G' Y).

Samples are worked on in tiles. All loops over a tile read and write one small array, `now`, whose rows are known at
compile time: only then can the compiler prove that stores do not overlap loads, and vectorize. Functions of more than a
few rows are therefore inlined where the array is made. What is constant over a
tile is read before the loop for the same reason. `now` holds one body at a time; its state is that of the body before,
which is the parent along a chain and costs no copy.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.kernels.angles import cos_sin
from robot_dyn_id.kernels.compiled import compiled, compiled_part, inlined, samples, shifted

TILE = 128  # samples worked on together: the rows of one body stay in the second cache, runs of `out` are long
WIDTH = TILE + 8  # rows a power of two apart would compete for the same few cache lines

# rows of `now`: the state of a body along the axes of the base, three each but for R
ROTATION, ORIGIN = 0, 9  # R (9), origin of its frame
OMEGA, OMEGA_DOT, ACCEL = 12, 15, 18  # w, dw, acceleration of the origin less gravity
STATE = 21  # number of rows
# the same body's motion along its own axes
A_MATRIX, BODY_OMEGA, BODY_OMEGA_DOT, BODY_ACCEL = 21, 30, 33, 36  # A (9), w, dw, a
# its joint
ANGLE, POSITION, VELOCITY, ACCELERATION, COS, SIN = 39, 40, 41, 42, 43, 44
JOINT_TWIST = 45  # about the origin of the base (6)
# one block of the regressor
TWIST, COLUMNS = 51, 57  # of the block's joint (6), the ten columns
ROWS = 67


@inlined
def _find_cosine(n, now):  # type: ignore[no-untyped-def]
    """Cosine and sine of the joint's angle."""
    for k in samples(n):
        c, s = cos_sin(now[ANGLE, k])
        now[COS, k] = c
        now[SIN, k] = s


@inlined
def _shift_origin(i, n, shift, now):  # type: ignore[no-untyped-def]
    """From the origin of the parent's frame to that of body i, still moving with the parent."""
    s0, s1, s2 = shift[i, 0, 0], shift[i, 0, 1], shift[i, 0, 2]
    m0, m1, m2 = shift[i, 1, 0], shift[i, 1, 1], shift[i, 1, 2]
    for k in samples(n):
        q = now[POSITION, k]
        x, y, z = s0 + q * m0, s1 + q * m1, s2 + q * m2
        px = now[ROTATION, k] * x + now[ROTATION + 1, k] * y + now[ROTATION + 2, k] * z
        py = now[ROTATION + 3, k] * x + now[ROTATION + 4, k] * y + now[ROTATION + 5, k] * z
        pz = now[ROTATION + 6, k] * x + now[ROTATION + 7, k] * y + now[ROTATION + 8, k] * z
        wx, wy, wz = now[OMEGA, k], now[OMEGA + 1, k], now[OMEGA + 2, k]
        ex, ey, ez = now[OMEGA_DOT, k], now[OMEGA_DOT + 1, k], now[OMEGA_DOT + 2, k]
        vx, vy, vz = wy * pz - wz * py, wz * px - wx * pz, wx * py - wy * px
        now[ORIGIN, k] = now[ORIGIN, k] + px
        now[ORIGIN + 1, k] = now[ORIGIN + 1, k] + py
        now[ORIGIN + 2, k] = now[ORIGIN + 2, k] + pz
        now[ACCEL, k] = now[ACCEL, k] + ey * pz - ez * py + wy * vz - wz * vy
        now[ACCEL + 1, k] = now[ACCEL + 1, k] + ez * px - ex * pz + wz * vx - wx * vz
        now[ACCEL + 2, k] = now[ACCEL + 2, k] + ex * py - ey * px + wx * vy - wy * vx


@inlined
def _rotate(i, n, turn, now):  # type: ignore[no-untyped-def]
    """Turn the parent's axes into those of body i."""
    a00, a01, a02 = turn[i, 0, 0, 0], turn[i, 0, 0, 1], turn[i, 0, 0, 2]
    a10, a11, a12 = turn[i, 0, 1, 0], turn[i, 0, 1, 1], turn[i, 0, 1, 2]
    a20, a21, a22 = turn[i, 0, 2, 0], turn[i, 0, 2, 1], turn[i, 0, 2, 2]
    c00, c01, c02 = turn[i, 1, 0, 0], turn[i, 1, 0, 1], turn[i, 1, 0, 2]
    c10, c11, c12 = turn[i, 1, 1, 0], turn[i, 1, 1, 1], turn[i, 1, 1, 2]
    c20, c21, c22 = turn[i, 1, 2, 0], turn[i, 1, 2, 1], turn[i, 1, 2, 2]
    s00, s01, s02 = turn[i, 2, 0, 0], turn[i, 2, 0, 1], turn[i, 2, 0, 2]
    s10, s11, s12 = turn[i, 2, 1, 0], turn[i, 2, 1, 1], turn[i, 2, 1, 2]
    s20, s21, s22 = turn[i, 2, 2, 0], turn[i, 2, 2, 1], turn[i, 2, 2, 2]
    for k in samples(n):
        c, s = now[COS, k], now[SIN, k]
        p00, p01, p02 = now[ROTATION, k], now[ROTATION + 1, k], now[ROTATION + 2, k]
        p10, p11, p12 = now[ROTATION + 3, k], now[ROTATION + 4, k], now[ROTATION + 5, k]
        p20, p21, p22 = now[ROTATION + 6, k], now[ROTATION + 7, k], now[ROTATION + 8, k]
        x, y, z = a00 + c * c00 + s * s00, a10 + c * c10 + s * s10, a20 + c * c20 + s * s20
        x1, y1, z1 = a01 + c * c01 + s * s01, a11 + c * c11 + s * s11, a21 + c * c21 + s * s21
        x2, y2, z2 = a02 + c * c02 + s * s02, a12 + c * c12 + s * s12, a22 + c * c22 + s * s22
        # three at a time: without numba p00 is a view of what the first of them overwrites
        u, v, w = p00 * x + p01 * y + p02 * z, p00 * x1 + p01 * y1 + p02 * z1, p00 * x2 + p01 * y2 + p02 * z2
        now[ROTATION, k] = u
        now[ROTATION + 1, k] = v
        now[ROTATION + 2, k] = w
        u, v, w = p10 * x + p11 * y + p12 * z, p10 * x1 + p11 * y1 + p12 * z1, p10 * x2 + p11 * y2 + p12 * z2
        now[ROTATION + 3, k] = u
        now[ROTATION + 4, k] = v
        now[ROTATION + 5, k] = w
        u, v, w = p20 * x + p21 * y + p22 * z, p20 * x1 + p21 * y1 + p22 * z1, p20 * x2 + p21 * y2 + p22 * z2
        now[ROTATION + 6, k] = u
        now[ROTATION + 7, k] = v
        now[ROTATION + 8, k] = w


@inlined
def _add_joint_motion(i, n, axis, now):  # type: ignore[no-untyped-def]
    """Add the motion of the joint of body i, and find its twist for a unit speed."""
    ax, ay, az = axis[i, 0], axis[i, 1], axis[i, 2]
    lx, ly, lz = axis[i, 3], axis[i, 4], axis[i, 5]
    for k in samples(n):
        r00, r01, r02 = now[ROTATION, k], now[ROTATION + 1, k], now[ROTATION + 2, k]
        r10, r11, r12 = now[ROTATION + 3, k], now[ROTATION + 4, k], now[ROTATION + 5, k]
        r20, r21, r22 = now[ROTATION + 6, k], now[ROTATION + 7, k], now[ROTATION + 8, k]
        zx, zy, zz = r00 * ax + r01 * ay + r02 * az, r10 * ax + r11 * ay + r12 * az, r20 * ax + r21 * ay + r22 * az
        dx, dy, dz = r00 * lx + r01 * ly + r02 * lz, r10 * lx + r11 * ly + r12 * lz, r20 * lx + r21 * ly + r22 * lz
        wx, wy, wz = now[OMEGA, k], now[OMEGA + 1, k], now[OMEGA + 2, k]
        px, py, pz = now[ORIGIN, k], now[ORIGIN + 1, k], now[ORIGIN + 2, k]
        v, a = now[VELOCITY, k], now[ACCELERATION, k]
        v2 = 2.0 * v
        now[ACCEL, k] = now[ACCEL, k] + a * dx + v2 * (wy * dz - wz * dy)
        now[ACCEL + 1, k] = now[ACCEL + 1, k] + a * dy + v2 * (wz * dx - wx * dz)
        now[ACCEL + 2, k] = now[ACCEL + 2, k] + a * dz + v2 * (wx * dy - wy * dx)
        now[OMEGA_DOT, k] = now[OMEGA_DOT, k] + a * zx + v * (wy * zz - wz * zy)
        now[OMEGA_DOT + 1, k] = now[OMEGA_DOT + 1, k] + a * zy + v * (wz * zx - wx * zz)
        now[OMEGA_DOT + 2, k] = now[OMEGA_DOT + 2, k] + a * zz + v * (wx * zy - wy * zx)
        now[OMEGA, k] = wx + v * zx
        now[OMEGA + 1, k] = wy + v * zy
        now[OMEGA + 2, k] = wz + v * zz
        now[JOINT_TWIST, k] = zx
        now[JOINT_TWIST + 1, k] = zy
        now[JOINT_TWIST + 2, k] = zz
        now[JOINT_TWIST + 3, k] = dx + py * zz - pz * zy
        now[JOINT_TWIST + 4, k] = dy + pz * zx - px * zz
        now[JOINT_TWIST + 5, k] = dz + px * zy - py * zx


@inlined
def _find_body_motion(n, now):  # type: ignore[no-untyped-def]
    """The body's motion along its own axes."""
    for k in samples(n):
        r00, r01, r02 = now[ROTATION, k], now[ROTATION + 1, k], now[ROTATION + 2, k]
        r10, r11, r12 = now[ROTATION + 3, k], now[ROTATION + 4, k], now[ROTATION + 5, k]
        r20, r21, r22 = now[ROTATION + 6, k], now[ROTATION + 7, k], now[ROTATION + 8, k]
        ux, uy, uz = now[ACCEL, k], now[ACCEL + 1, k], now[ACCEL + 2, k]
        now[BODY_ACCEL, k] = r00 * ux + r10 * uy + r20 * uz
        now[BODY_ACCEL + 1, k] = r01 * ux + r11 * uy + r21 * uz
        now[BODY_ACCEL + 2, k] = r02 * ux + r12 * uy + r22 * uz
        ux, uy, uz = now[OMEGA, k], now[OMEGA + 1, k], now[OMEGA + 2, k]
        wx, wy, wz = r00 * ux + r10 * uy + r20 * uz, r01 * ux + r11 * uy + r21 * uz, r02 * ux + r12 * uy + r22 * uz
        ux, uy, uz = now[OMEGA_DOT, k], now[OMEGA_DOT + 1, k], now[OMEGA_DOT + 2, k]
        ex, ey, ez = r00 * ux + r10 * uy + r20 * uz, r01 * ux + r11 * uy + r21 * uz, r02 * ux + r12 * uy + r22 * uz
        now[BODY_OMEGA, k] = wx
        now[BODY_OMEGA + 1, k] = wy
        now[BODY_OMEGA + 2, k] = wz
        now[BODY_OMEGA_DOT, k] = ex
        now[BODY_OMEGA_DOT + 1, k] = ey
        now[BODY_OMEGA_DOT + 2, k] = ez
        now[A_MATRIX, k] = -wy * wy - wz * wz
        now[A_MATRIX + 1, k] = wx * wy - ez
        now[A_MATRIX + 2, k] = wx * wz + ey
        now[A_MATRIX + 3, k] = wx * wy + ez
        now[A_MATRIX + 4, k] = -wx * wx - wz * wz
        now[A_MATRIX + 5, k] = wy * wz - ex
        now[A_MATRIX + 6, k] = wx * wz - ey
        now[A_MATRIX + 7, k] = wy * wz + ex
        now[A_MATRIX + 8, k] = -wx * wx - wy * wy


@inlined
def _project(n, now):  # type: ignore[no-untyped-def]
    """Project the body on a twist."""
    for k in samples(n):
        r00, r01, r02 = now[ROTATION, k], now[ROTATION + 1, k], now[ROTATION + 2, k]
        r10, r11, r12 = now[ROTATION + 3, k], now[ROTATION + 4, k], now[ROTATION + 5, k]
        r20, r21, r22 = now[ROTATION + 6, k], now[ROTATION + 7, k], now[ROTATION + 8, k]
        px, py, pz = now[ORIGIN, k], now[ORIGIN + 1, k], now[ORIGIN + 2, k]
        ux, uy, uz = now[TWIST, k], now[TWIST + 1, k], now[TWIST + 2, k]
        vx = now[TWIST + 3, k] + uy * pz - uz * py
        vy = now[TWIST + 4, k] + uz * px - ux * pz
        vz = now[TWIST + 5, k] + ux * py - uy * px
        x, y, z = r00 * ux + r10 * uy + r20 * uz, r01 * ux + r11 * uy + r21 * uz, r02 * ux + r12 * uy + r22 * uz
        ux, uy, uz = r00 * vx + r10 * vy + r20 * vz, r01 * vx + r11 * vy + r21 * vz, r02 * vx + r12 * vy + r22 * vz
        ax, ay, az = now[BODY_ACCEL, k], now[BODY_ACCEL + 1, k], now[BODY_ACCEL + 2, k]
        now[COLUMNS, k] = ux * ax + uy * ay + uz * az
        now[COLUMNS + 1, k] = (
            now[A_MATRIX, k] * ux + now[A_MATRIX + 3, k] * uy + now[A_MATRIX + 6, k] * uz + ay * z - az * y
        )
        now[COLUMNS + 2, k] = (
            now[A_MATRIX + 1, k] * ux + now[A_MATRIX + 4, k] * uy + now[A_MATRIX + 7, k] * uz + az * x - ax * z
        )
        now[COLUMNS + 3, k] = (
            now[A_MATRIX + 2, k] * ux + now[A_MATRIX + 5, k] * uy + now[A_MATRIX + 8, k] * uz + ax * y - ay * x
        )
        # s_w . (I dw + w x I w) = s_w' I dw + (s_w x w)' I w
        wx, wy, wz = now[BODY_OMEGA, k], now[BODY_OMEGA + 1, k], now[BODY_OMEGA + 2, k]
        ex, ey, ez = now[BODY_OMEGA_DOT, k], now[BODY_OMEGA_DOT + 1, k], now[BODY_OMEGA_DOT + 2, k]
        ux, uy, uz = y * wz - z * wy, z * wx - x * wz, x * wy - y * wx
        now[COLUMNS + 4, k] = x * ex + ux * wx
        now[COLUMNS + 5, k] = x * ey + y * ex + ux * wy + uy * wx
        now[COLUMNS + 6, k] = y * ey + uy * wy
        now[COLUMNS + 7, k] = x * ez + z * ex + ux * wz + uz * wx
        now[COLUMNS + 8, k] = y * ez + z * ey + uy * wz + uz * wy
        now[COLUMNS + 9, k] = z * ez + uz * wz


@inlined
def add_follower_twist(n, gain, now):  # type: ignore[no-untyped-def]
    """Add the body's own joint to the twist of the joint that leads it."""
    for r in range(6):
        for k in samples(n):
            now[TWIST + r, k] = now[TWIST + r, k] + gain * now[JOINT_TWIST + r, k]


@compiled_part
def copy_rows(rows, n, source, source_row, target, target_row):  # type: ignore[no-untyped-def]
    """Copy rows of a tile."""
    for r in range(rows):
        for k in samples(n):
            target[target_row + r, k] = source[source_row + r, k]


@inlined
def _read_joint(i, n, start, angle, q, dq, ddq, now):  # type: ignore[no-untyped-def]
    """Motion of the joint of body i."""
    for k in samples(n):
        now[ANGLE, k] = angle[i, shifted(start, k)]
        now[POSITION, k] = q[i, shifted(start, k)]
        now[VELOCITY, k] = dq[i, shifted(start, k)]
        now[ACCELERATION, k] = ddq[i, shifted(start, k)]


@compiled_part
def _write_columns(p, n, start, slot, now, out):  # type: ignore[no-untyped-def]
    """The columns of pair p, to the rows that are wanted."""
    for r in range(10):
        row = slot[p, r]
        if row >= 0:
            for k in samples(n):
                out[row, shifted(start, k)] = now[COLUMNS + r, k]


@compiled_part
def recall_parent(i, n, parent, gravity, states, now):  # type: ignore[no-untyped-def]
    """The state of the body that carries body i, if it is not there already."""
    if parent[i] < 0:
        now[:STATE] = 0.0
        for r in range(3):
            now[ROTATION + 4 * r] = 1.0
            now[ACCEL + r] = -gravity[r]
    elif parent[i] != i - 1:
        copy_rows(STATE, n, states, parent[i] * STATE, now, 0)


@inlined
def propagate(i, n, start, turn, shift, axis, angle, q, dq, ddq, states, now):  # type: ignore[no-untyped-def]
    """From the state of its parent to that of body i."""
    _read_joint(i, n, start, angle, q, dq, ddq, now)
    _find_cosine(n, now)
    _shift_origin(i, n, shift, now)
    _rotate(i, n, turn, now)
    _add_joint_motion(i, n, axis, now)
    _find_body_motion(n, now)
    copy_rows(STATE, n, now, 0, states, i * STATE)


@compiled_part
def find_twists(pair_from, pair_gain, twist, carried):  # type: ignore[no-untyped-def]
    """Where the twist of a pair is found, and that of its parent: a joint's is the same for all that it carries.

    They are the pair's own number, or that of one before it, for `twist`, shape (pairs + 1,), and `carried`, (pairs,).
    """
    for p in range(pair_from.shape[0]):
        carried[p] = twist[pair_from[p]]
        if pair_gain[p] == 0.0:
            twist[p] = carried[p]


@compiled
def fill_regressor_tiles(  # type: ignore[no-untyped-def]
    parent, turn, shift, axis, pair_start, pair_from, pair_gain, gravity, angle, q, dq, ddq, slot, out
):
    """Fill the structurally non-zero entries of the regressor.

    The arguments up to `gravity` are those of `Tree`. Then come positions as angles within `REACH`, positions,
    velocities and accelerations of every body, shape (b, N) each; the row of `out` that receives column r of pair p, or
    -1 for none, shape (pairs, 10); and `out`, shape (slots, N).
    """
    bodies, pairs = parent.shape[0], pair_from.shape[0]
    now, states = np.empty((ROWS, WIDTH)), np.empty((bodies * STATE, WIDTH))
    twists = np.empty((pairs * 6 + 6, WIDTH))
    twists[pairs * 6 :] = 0.0  # the last is that of the base, which never moves
    twist, carried = np.arange(pairs + 1), np.zeros(pairs, dtype=np.int64)
    find_twists(pair_from, pair_gain, twist, carried)
    for start in range(0, q.shape[1], TILE):
        n = min(TILE, q.shape[1] - start)
        for i in range(bodies):
            recall_parent(i, n, parent, gravity, states, now)
            propagate(i, n, start, turn, shift, axis, angle, q, dq, ddq, states, now)
            for p in range(pair_start[i], pair_start[i + 1]):
                copy_rows(6, n, twists, 6 * carried[p], now, TWIST)
                if pair_gain[p] != 0.0:
                    add_follower_twist(n, pair_gain[p], now)
                    copy_rows(6, n, now, TWIST, twists, 6 * p)
                _project(n, now)
                _write_columns(p, n, start, slot, now, out)
