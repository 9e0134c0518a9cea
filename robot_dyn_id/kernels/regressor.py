"""The rigid-body torque regressor of N samples.

For every body i and every joint a that moves it, the combined screw (s_w, s_v) of joint a is carried to the frame of
body i; the ten columns of body i in row a are then s' W_i, where W_i is the 6 x 10 map from the body's inertial
parameters to the wrench that its motion needs:

    f = m a + A h,                   A = [dw]x + [w]x [w]x
    n = I dw + w x (I w) + h x a

with h the first moment, a the acceleration of the frame's origin less gravity, all in the body's own frame. Mimic
joints and trees need nothing more: followers add to the screw of the joint that leads them (G' Y).

Samples are worked on in tiles. All loops over a tile read and write one small array, `now`, whose rows are compile-time
constants: only then can the compiler prove that stores do not overlap loads, and vectorise.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.kernels.compiled import compiled, inlined, samples, shifted

TILE = 128  # samples worked on together: 64 to 256 keep the working set of an arm in the first two caches
WIDTH = TILE + 8  # rows a power of two apart would compete for the same few cache lines

# rows of `now`: the parent's motion, this body's motion, the screw, the ten columns
PARENT, MOTION = 0, 18  # A (9), w, dw, a (3 each)
TURN = 36  # R (9), p (3)
SCREW = 48  # s_w, s_v
COLUMNS = 54
ROWS = 64


@inlined
def _place(i, start, n, turn, shift, cos, sin, q, now):  # type: ignore[no-untyped-def]
    """Rotation and position of body i in its parent's frame."""
    for k in samples(n):
        j = shifted(start, k)
        c, s, x = cos[i, j], sin[i, j], q[i, j]
        now[TURN + 0, k] = turn[i, 0, 0, 0] + c * turn[i, 1, 0, 0] + s * turn[i, 2, 0, 0]
        now[TURN + 1, k] = turn[i, 0, 0, 1] + c * turn[i, 1, 0, 1] + s * turn[i, 2, 0, 1]
        now[TURN + 2, k] = turn[i, 0, 0, 2] + c * turn[i, 1, 0, 2] + s * turn[i, 2, 0, 2]
        now[TURN + 3, k] = turn[i, 0, 1, 0] + c * turn[i, 1, 1, 0] + s * turn[i, 2, 1, 0]
        now[TURN + 4, k] = turn[i, 0, 1, 1] + c * turn[i, 1, 1, 1] + s * turn[i, 2, 1, 1]
        now[TURN + 5, k] = turn[i, 0, 1, 2] + c * turn[i, 1, 1, 2] + s * turn[i, 2, 1, 2]
        now[TURN + 6, k] = turn[i, 0, 2, 0] + c * turn[i, 1, 2, 0] + s * turn[i, 2, 2, 0]
        now[TURN + 7, k] = turn[i, 0, 2, 1] + c * turn[i, 1, 2, 1] + s * turn[i, 2, 2, 1]
        now[TURN + 8, k] = turn[i, 0, 2, 2] + c * turn[i, 1, 2, 2] + s * turn[i, 2, 2, 2]
        now[TURN + 9, k] = shift[i, 0, 0] + x * shift[i, 1, 0]
        now[TURN + 10, k] = shift[i, 0, 1] + x * shift[i, 1, 1]
        now[TURN + 11, k] = shift[i, 0, 2] + x * shift[i, 1, 2]


@inlined
def _move(i, start, n, axis, dq, ddq, now):  # type: ignore[no-untyped-def]
    """Motion of body i in its own frame from its parent's: A, w, dw, a."""
    zx, zy, zz = axis[i, 0], axis[i, 1], axis[i, 2]
    lx, ly, lz = axis[i, 3], axis[i, 4], axis[i, 5]
    for k in samples(n):
        r00, r01, r02 = now[TURN, k], now[TURN + 1, k], now[TURN + 2, k]
        r10, r11, r12 = now[TURN + 3, k], now[TURN + 4, k], now[TURN + 5, k]
        r20, r21, r22 = now[TURN + 6, k], now[TURN + 7, k], now[TURN + 8, k]
        px, py, pz = now[TURN + 9, k], now[TURN + 10, k], now[TURN + 11, k]
        v, a = dq[i, shifted(start, k)], ddq[i, shifted(start, k)]
        ux, uy, uz = now[PARENT + 9, k], now[PARENT + 10, k], now[PARENT + 11, k]
        wx = r00 * ux + r10 * uy + r20 * uz + zx * v
        wy = r01 * ux + r11 * uy + r21 * uz + zy * v
        wz = r02 * ux + r12 * uy + r22 * uz + zz * v
        ux, uy, uz = now[PARENT + 12, k], now[PARENT + 13, k], now[PARENT + 14, k]
        ex = r00 * ux + r10 * uy + r20 * uz + zx * a + (wy * zz - wz * zy) * v
        ey = r01 * ux + r11 * uy + r21 * uz + zy * a + (wz * zx - wx * zz) * v
        ez = r02 * ux + r12 * uy + r22 * uz + zz * a + (wx * zy - wy * zx) * v
        # the parent's a + A p is the acceleration of the point where this frame's origin is
        ux = now[PARENT + 15, k] + now[PARENT, k] * px + now[PARENT + 1, k] * py + now[PARENT + 2, k] * pz
        uy = now[PARENT + 16, k] + now[PARENT + 3, k] * px + now[PARENT + 4, k] * py + now[PARENT + 5, k] * pz
        uz = now[PARENT + 17, k] + now[PARENT + 6, k] * px + now[PARENT + 7, k] * py + now[PARENT + 8, k] * pz
        v2 = 2.0 * v
        now[MOTION, k] = -wy * wy - wz * wz
        now[MOTION + 1, k] = wx * wy - ez
        now[MOTION + 2, k] = wx * wz + ey
        now[MOTION + 3, k] = wx * wy + ez
        now[MOTION + 4, k] = -wx * wx - wz * wz
        now[MOTION + 5, k] = wy * wz - ex
        now[MOTION + 6, k] = wx * wz - ey
        now[MOTION + 7, k] = wy * wz + ex
        now[MOTION + 8, k] = -wx * wx - wy * wy
        now[MOTION + 9, k] = wx
        now[MOTION + 10, k] = wy
        now[MOTION + 11, k] = wz
        now[MOTION + 12, k] = ex
        now[MOTION + 13, k] = ey
        now[MOTION + 14, k] = ez
        now[MOTION + 15, k] = r00 * ux + r10 * uy + r20 * uz + lx * a + (wy * lz - wz * ly) * v2
        now[MOTION + 16, k] = r01 * ux + r11 * uy + r21 * uz + ly * a + (wz * lx - wx * lz) * v2
        now[MOTION + 17, k] = r02 * ux + r12 * uy + r22 * uz + lz * a + (wx * ly - wy * lx) * v2


@inlined
def _columns(i, n, gain, axis, now):  # type: ignore[no-untyped-def]
    """Carry a screw from the parent of body i, add the body's own axis times `gain`, and project the body on it."""
    g0, g1, g2 = gain * axis[i, 0], gain * axis[i, 1], gain * axis[i, 2]
    g3, g4, g5 = gain * axis[i, 3], gain * axis[i, 4], gain * axis[i, 5]
    for k in samples(n):
        r00, r01, r02 = now[TURN, k], now[TURN + 1, k], now[TURN + 2, k]
        r10, r11, r12 = now[TURN + 3, k], now[TURN + 4, k], now[TURN + 5, k]
        r20, r21, r22 = now[TURN + 6, k], now[TURN + 7, k], now[TURN + 8, k]
        px, py, pz = now[TURN + 9, k], now[TURN + 10, k], now[TURN + 11, k]
        ux, uy, uz = now[SCREW, k], now[SCREW + 1, k], now[SCREW + 2, k]
        vx = now[SCREW + 3, k] + uy * pz - uz * py
        vy = now[SCREW + 4, k] + uz * px - ux * pz
        vz = now[SCREW + 5, k] + ux * py - uy * px
        x = r00 * ux + r10 * uy + r20 * uz + g0
        y = r01 * ux + r11 * uy + r21 * uz + g1
        z = r02 * ux + r12 * uy + r22 * uz + g2
        ux = r00 * vx + r10 * vy + r20 * vz + g3
        uy = r01 * vx + r11 * vy + r21 * vz + g4
        uz = r02 * vx + r12 * vy + r22 * vz + g5
        now[SCREW + 0, k] = x
        now[SCREW + 1, k] = y
        now[SCREW + 2, k] = z
        now[SCREW + 3, k] = ux
        now[SCREW + 4, k] = uy
        now[SCREW + 5, k] = uz
        ax, ay, az = now[MOTION + 15, k], now[MOTION + 16, k], now[MOTION + 17, k]
        now[COLUMNS, k] = ux * ax + uy * ay + uz * az
        now[COLUMNS + 1, k] = now[MOTION, k] * ux + now[MOTION + 3, k] * uy + now[MOTION + 6, k] * uz + ay * z - az * y
        now[COLUMNS + 2, k] = (
            now[MOTION + 1, k] * ux + now[MOTION + 4, k] * uy + now[MOTION + 7, k] * uz + az * x - ax * z
        )
        now[COLUMNS + 3, k] = (
            now[MOTION + 2, k] * ux + now[MOTION + 5, k] * uy + now[MOTION + 8, k] * uz + ax * y - ay * x
        )
        # s_w . (I dw + w x I w) = s_w' I dw + (s_w x w)' I w
        wx, wy, wz = now[MOTION + 9, k], now[MOTION + 10, k], now[MOTION + 11, k]
        ex, ey, ez = now[MOTION + 12, k], now[MOTION + 13, k], now[MOTION + 14, k]
        ux = y * wz - z * wy
        uy = z * wx - x * wz
        uz = x * wy - y * wx
        now[COLUMNS + 4, k] = x * ex + ux * wx
        now[COLUMNS + 5, k] = x * ey + y * ex + ux * wy + uy * wx
        now[COLUMNS + 6, k] = y * ey + uy * wy
        now[COLUMNS + 7, k] = x * ez + z * ex + ux * wz + uz * wx
        now[COLUMNS + 8, k] = y * ez + z * ey + uy * wz + uz * wy
        now[COLUMNS + 9, k] = z * ez + uz * wz


@inlined
def _copy(rows, n, source, source_row, target, target_row):  # type: ignore[no-untyped-def]
    """Copy rows of a tile between the working array and the store."""
    for r in range(rows):
        for k in samples(n):
            target[target_row + r, k] = source[source_row + r, k]


@compiled
def regressor_tiles(  # type: ignore[no-untyped-def]
    parent, turn, shift, axis, pair_start, pair_from, pair_gain, gravity, cos, sin, q, dq, ddq, slot, out
):
    """Fill the structurally non-zero entries of the regressor.

    The arguments up to `gravity` are those of `Tree`. Then come the cosine and sine of the joint positions, positions,
    velocities and accelerations of every body, shape (b, N) each; the row of `out` that receives column r of pair p, or
    -1 for none, shape (pairs, 10); and `out`, shape (slots, N).
    """
    bodies = parent.shape[0]
    now = np.zeros((ROWS, WIDTH))
    motions = np.zeros((bodies * 18, WIDTH))
    screws = np.zeros((pair_from.shape[0] * 6 + 6, WIDTH))
    for start in range(0, q.shape[1], TILE):
        n = min(TILE, q.shape[1] - start)
        for i in range(bodies):
            if parent[i] < 0:
                now[:18] = 0.0
                for r in range(3):
                    now[PARENT + 15 + r] = -gravity[r]
            else:
                _copy(18, n, motions, parent[i] * 18, now, PARENT)
            _place(i, start, n, turn, shift, cos, sin, q, now)
            _move(i, start, n, axis, dq, ddq, now)
            _copy(18, n, now, MOTION, motions, i * 18)
            for p in range(pair_start[i], pair_start[i + 1]):
                # the last screw is that of the base, which never moves
                _copy(6, n, screws, 6 * pair_from[p], now, SCREW)
                _columns(i, n, pair_gain[p], axis, now)
                _copy(6, n, now, SCREW, screws, 6 * p)
                for r in range(10):
                    if slot[p, r] >= 0:
                        for k in samples(n):
                            out[slot[p, r], shifted(start, k)] = now[COLUMNS + r, k]
