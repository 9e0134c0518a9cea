# SPDX-License-Identifier: Apache-2.0
"""Steps of the reverse mode of the regressor, for one body or one of its blocks; see `kernels.regressor_gradient`.

They work on a tile as those of the regressor do, in rows of `now` behind theirs.
"""

from __future__ import annotations

from robot_dyn_id.kernels.compiled import inlined, samples
from robot_dyn_id.kernels.regressor import (
    COLUMNS,
    DRAG,
    OWN_PULL,
    OWN_RATE,
    OWN_SPIN,
    OWN_TWIST,
    POINT,
    PULL,
    RATE,
    ROWS,
    SPEED,
    SPIN,
    TURN,
    TWIST,
)

# rows of `now`, after those of the regressor's; three each unless noted
LINEAR = ROWS  # velocity of what passes the origin of the base
BEFORE_RATE, BEFORE_SPIN = ROWS + 3, ROWS + 6  # the parent's motion about the origin of the base
BEFORE_LINEAR, BEFORE_PULL = ROWS + 9, ROWS + 12
TO_RATE, TO_SPIN, TO_PULL = ROWS + 15, ROWS + 18, ROWS + 21  # cotangents of OWN_RATE, OWN_SPIN, OWN_PULL
WRENCH = ROWS + 24  # of one block (6)
BY_Q, BY_DQ, BY_DDQ = ROWS + 30, ROWS + 31, ROWS + 32  # derivatives by the joint's motion (1 each)
KEPT = ROWS + 33  # what is kept of every body for the way back
U, B, P, Q, K = KEPT, KEPT + 6, KEPT + 12, KEPT + 18, KEPT + 21  # (6), (6), (6), (3), (6)
CARRIED = 15  # the rows P, Q, K
KEEP = 27
ALL_ROWS = KEPT + KEEP


@inlined
def before(n, now):  # type: ignore[no-untyped-def]
    """The parent's motion about the origin of the base."""
    for k in samples(n):
        px, py, pz = now[POINT, k], now[POINT + 1, k], now[POINT + 2, k]
        wx, wy, wz = now[RATE, k], now[RATE + 1, k], now[RATE + 2, k]
        ex, ey, ez = now[SPIN, k], now[SPIN + 1, k], now[SPIN + 2, k]
        lx, ly, lz = now[LINEAR, k], now[LINEAR + 1, k], now[LINEAR + 2, k]
        vx, vy, vz = lx + wy * pz - wz * py, ly + wz * px - wx * pz, lz + wx * py - wy * px
        now[BEFORE_RATE, k] = wx
        now[BEFORE_RATE + 1, k] = wy
        now[BEFORE_RATE + 2, k] = wz
        now[BEFORE_SPIN, k] = ex
        now[BEFORE_SPIN + 1, k] = ey
        now[BEFORE_SPIN + 2, k] = ez
        now[BEFORE_LINEAR, k] = lx
        now[BEFORE_LINEAR + 1, k] = ly
        now[BEFORE_LINEAR + 2, k] = lz
        now[BEFORE_PULL, k] = now[PULL, k] - wy * vz + wz * vy - ey * pz + ez * py
        now[BEFORE_PULL + 1, k] = now[PULL + 1, k] - wz * vx + wx * vz - ez * px + ex * pz
        now[BEFORE_PULL + 2, k] = now[PULL + 2, k] - wx * vy + wy * vx - ex * py + ey * px


@inlined
def bend(n, now):  # type: ignore[no-untyped-def]
    """U and B of the body's joint, and the body's own velocity at the origin of the base."""
    for k in samples(n):
        zx, zy, zz = now[OWN_TWIST, k], now[OWN_TWIST + 1, k], now[OWN_TWIST + 2, k]
        sx, sy, sz = now[OWN_TWIST + 3, k], now[OWN_TWIST + 4, k], now[OWN_TWIST + 5, k]
        wx, wy, wz = now[BEFORE_RATE, k], now[BEFORE_RATE + 1, k], now[BEFORE_RATE + 2, k]
        ex, ey, ez = now[BEFORE_SPIN, k], now[BEFORE_SPIN + 1, k], now[BEFORE_SPIN + 2, k]
        lx, ly, lz = now[BEFORE_LINEAR, k], now[BEFORE_LINEAR + 1, k], now[BEFORE_LINEAR + 2, k]
        ax, ay, az = now[BEFORE_PULL, k], now[BEFORE_PULL + 1, k], now[BEFORE_PULL + 2, k]
        ux, uy, uz = wy * zz - wz * zy, wz * zx - wx * zz, wx * zy - wy * zx
        tx = wy * sz - wz * sy + ly * zz - lz * zy
        ty = wz * sx - wx * sz + lz * zx - lx * zz
        tz = wx * sy - wy * sx + lx * zy - ly * zx
        now[U, k] = ux
        now[U + 1, k] = uy
        now[U + 2, k] = uz
        now[U + 3, k] = tx
        now[U + 4, k] = ty
        now[U + 5, k] = tz
        now[B, k] = ey * zz - ez * zy + wy * uz - wz * uy
        now[B + 1, k] = ez * zx - ex * zz + wz * ux - wx * uz
        now[B + 2, k] = ex * zy - ey * zx + wx * uy - wy * ux
        now[B + 3, k] = ey * sz - ez * sy + ay * zz - az * zy + wy * tz - wz * ty + ly * uz - lz * uy
        now[B + 4, k] = ez * sx - ex * sz + az * zx - ax * zz + wz * tx - wx * tz + lz * ux - lx * uz
        now[B + 5, k] = ex * sy - ey * sx + ax * zy - ay * zx + wx * ty - wy * tx + lx * uy - ly * ux
        v = now[SPEED, k]
        now[LINEAR, k] = lx + v * sx
        now[LINEAR + 1, k] = ly + v * sy
        now[LINEAR + 2, k] = lz + v * sz


@inlined
def need(n, now):  # type: ignore[no-untyped-def]
    """Wrench F of a block about the origin of the base, and s x* F."""
    for k in samples(n):
        m, hx, hy, hz = now[COLUMNS, k], now[COLUMNS + 1, k], now[COLUMNS + 2, k], now[COLUMNS + 3, k]
        ax, ay, az = now[OWN_PULL, k], now[OWN_PULL + 1, k], now[OWN_PULL + 2, k]
        fx = m * ax + now[DRAG, k] * hx + now[DRAG + 1, k] * hy + now[DRAG + 2, k] * hz
        fy = m * ay + now[DRAG + 3, k] * hx + now[DRAG + 4, k] * hy + now[DRAG + 5, k] * hz
        fz = m * az + now[DRAG + 6, k] * hx + now[DRAG + 7, k] * hy + now[DRAG + 8, k] * hz
        ixx, ixy, iyy = now[COLUMNS + 4, k], now[COLUMNS + 5, k], now[COLUMNS + 6, k]
        ixz, iyz, izz = now[COLUMNS + 7, k], now[COLUMNS + 8, k], now[COLUMNS + 9, k]
        wx, wy, wz = now[OWN_RATE, k], now[OWN_RATE + 1, k], now[OWN_RATE + 2, k]
        ex, ey, ez = now[OWN_SPIN, k], now[OWN_SPIN + 1, k], now[OWN_SPIN + 2, k]
        x, y, z = ixx * wx + ixy * wy + ixz * wz, ixy * wx + iyy * wy + iyz * wz, ixz * wx + iyz * wy + izz * wz
        nx = ixx * ex + ixy * ey + ixz * ez + wy * z - wz * y + hy * az - hz * ay
        ny = ixy * ex + iyy * ey + iyz * ez + wz * x - wx * z + hz * ax - hx * az
        nz = ixz * ex + iyz * ey + izz * ez + wx * y - wy * x + hx * ay - hy * ax
        r00, r01, r02 = now[TURN, k], now[TURN + 1, k], now[TURN + 2, k]
        r10, r11, r12 = now[TURN + 3, k], now[TURN + 4, k], now[TURN + 5, k]
        r20, r21, r22 = now[TURN + 6, k], now[TURN + 7, k], now[TURN + 8, k]
        px, py, pz = now[POINT, k], now[POINT + 1, k], now[POINT + 2, k]
        x, y, z = r00 * fx + r01 * fy + r02 * fz, r10 * fx + r11 * fy + r12 * fz, r20 * fx + r21 * fy + r22 * fz
        fx = r00 * nx + r01 * ny + r02 * nz + py * z - pz * y
        fy = r10 * nx + r11 * ny + r12 * nz + pz * x - px * z
        fz = r20 * nx + r21 * ny + r22 * nz + px * y - py * x
        now[WRENCH, k] = fx
        now[WRENCH + 1, k] = fy
        now[WRENCH + 2, k] = fz
        now[WRENCH + 3, k] = x
        now[WRENCH + 4, k] = y
        now[WRENCH + 5, k] = z


@inlined
def across(n, sign, twist, now):  # type: ignore[no-untyped-def]
    """Add a twist x* the wrench to K, or take it away."""
    for k in samples(n):
        zx, zy, zz = sign * now[twist, k], sign * now[twist + 1, k], sign * now[twist + 2, k]
        sx, sy, sz = sign * now[twist + 3, k], sign * now[twist + 4, k], sign * now[twist + 5, k]
        mx, my, mz = now[WRENCH, k], now[WRENCH + 1, k], now[WRENCH + 2, k]
        fx, fy, fz = now[WRENCH + 3, k], now[WRENCH + 4, k], now[WRENCH + 5, k]
        now[K, k] = now[K, k] + zy * mz - zz * my + sy * fz - sz * fy
        now[K + 1, k] = now[K + 1, k] + zz * mx - zx * mz + sz * fx - sx * fz
        now[K + 2, k] = now[K + 2, k] + zx * my - zy * mx + sx * fy - sy * fx
        now[K + 3, k] = now[K + 3, k] + zy * fz - zz * fy
        now[K + 4, k] = now[K + 4, k] + zz * fx - zx * fz
        now[K + 5, k] = now[K + 5, k] + zx * fy - zy * fx


@inlined
def answer(n, now):  # type: ignore[no-untyped-def]
    """Add a block's part to the cotangents of the body's motion along its own axes."""
    for k in samples(n):
        r00, r01, r02 = now[TURN, k], now[TURN + 1, k], now[TURN + 2, k]
        r10, r11, r12 = now[TURN + 3, k], now[TURN + 4, k], now[TURN + 5, k]
        r20, r21, r22 = now[TURN + 6, k], now[TURN + 7, k], now[TURN + 8, k]
        px, py, pz = now[POINT, k], now[POINT + 1, k], now[POINT + 2, k]
        ux, uy, uz = now[TWIST, k], now[TWIST + 1, k], now[TWIST + 2, k]
        vx = now[TWIST + 3, k] + uy * pz - uz * py
        vy = now[TWIST + 4, k] + uz * px - ux * pz
        vz = now[TWIST + 5, k] + ux * py - uy * px
        x, y, z = r00 * ux + r10 * uy + r20 * uz, r01 * ux + r11 * uy + r21 * uz, r02 * ux + r12 * uy + r22 * uz
        ux, uy, uz = r00 * vx + r10 * vy + r20 * vz, r01 * vx + r11 * vy + r21 * vz, r02 * vx + r12 * vy + r22 * vz
        m, hx, hy, hz = now[COLUMNS, k], now[COLUMNS + 1, k], now[COLUMNS + 2, k], now[COLUMNS + 3, k]
        ixx, ixy, iyy = now[COLUMNS + 4, k], now[COLUMNS + 5, k], now[COLUMNS + 6, k]
        ixz, iyz, izz = now[COLUMNS + 7, k], now[COLUMNS + 8, k], now[COLUMNS + 9, k]
        now[TO_PULL, k] = now[TO_PULL, k] + m * ux + y * hz - z * hy
        now[TO_PULL + 1, k] = now[TO_PULL + 1, k] + m * uy + z * hx - x * hz
        now[TO_PULL + 2, k] = now[TO_PULL + 2, k] + m * uz + x * hy - y * hx
        now[TO_SPIN, k] = now[TO_SPIN, k] + hy * uz - hz * uy + ixx * x + ixy * y + ixz * z
        now[TO_SPIN + 1, k] = now[TO_SPIN + 1, k] + hz * ux - hx * uz + ixy * x + iyy * y + iyz * z
        now[TO_SPIN + 2, k] = now[TO_SPIN + 2, k] + hx * uy - hy * ux + ixz * x + iyz * y + izz * z
        # of u . w x (w x h) + s . w x I w: (w.h) u + (u.w) h - 2 (u.h) w + I (s x w) + I w x s
        wx, wy, wz = now[OWN_RATE, k], now[OWN_RATE + 1, k], now[OWN_RATE + 2, k]
        wh, uw = wx * hx + wy * hy + wz * hz, ux * wx + uy * wy + uz * wz
        uh = 2.0 * (ux * hx + uy * hy + uz * hz)
        jx, jy, jz = ixx * wx + ixy * wy + ixz * wz, ixy * wx + iyy * wy + iyz * wz, ixz * wx + iyz * wy + izz * wz
        cx, cy, cz = y * wz - z * wy, z * wx - x * wz, x * wy - y * wx
        tx, ty, tz = jy * z - jz * y, jz * x - jx * z, jx * y - jy * x
        tx = tx + ixx * cx + ixy * cy + ixz * cz
        ty = ty + ixy * cx + iyy * cy + iyz * cz
        tz = tz + ixz * cx + iyz * cy + izz * cz
        now[TO_RATE, k] = now[TO_RATE, k] + tx + wh * ux + uw * hx - uh * wx
        now[TO_RATE + 1, k] = now[TO_RATE + 1, k] + ty + wh * uy + uw * hy - uh * wy
        now[TO_RATE + 2, k] = now[TO_RATE + 2, k] + tz + wh * uz + uw * hz - uh * wz


@inlined
def gather(n, now):  # type: ignore[no-untyped-def]
    """P and Q of one body."""
    for k in samples(n):
        r00, r01, r02 = now[TURN, k], now[TURN + 1, k], now[TURN + 2, k]
        r10, r11, r12 = now[TURN + 3, k], now[TURN + 4, k], now[TURN + 5, k]
        r20, r21, r22 = now[TURN + 6, k], now[TURN + 7, k], now[TURN + 8, k]
        px, py, pz = now[POINT, k], now[POINT + 1, k], now[POINT + 2, k]
        x, y, z = now[TO_PULL, k], now[TO_PULL + 1, k], now[TO_PULL + 2, k]
        ax, ay, az = r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z
        x, y, z = now[TO_SPIN, k], now[TO_SPIN + 1, k], now[TO_SPIN + 2, k]
        ex, ey, ez = r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z
        x, y, z = now[TO_RATE, k], now[TO_RATE + 1, k], now[TO_RATE + 2, k]
        wx, wy, wz = now[RATE, k], now[RATE + 1, k], now[RATE + 2, k]
        vx = 2.0 * (now[LINEAR, k] + wy * pz - wz * py)
        vy = 2.0 * (now[LINEAR + 1, k] + wz * px - wx * pz)
        vz = 2.0 * (now[LINEAR + 2, k] + wx * py - wy * px)
        # the acceleration of a point is the spatial one and w x v: V' has (w' + v x a', a' x w), A' (e', a')
        now[Q, k] = r00 * x + r01 * y + r02 * z + vy * az - vz * ay + wy * ez - wz * ey
        now[Q + 1, k] = r10 * x + r11 * y + r12 * z + vz * ax - vx * az + wz * ex - wx * ez
        now[Q + 2, k] = r20 * x + r21 * y + r22 * z + vx * ay - vy * ax + wx * ey - wy * ex
        now[P, k] = ex + py * az - pz * ay
        now[P + 1, k] = ey + pz * ax - px * az
        now[P + 2, k] = ez + px * ay - py * ax
        now[P + 3, k] = ax
        now[P + 4, k] = ay
        now[P + 5, k] = az


@inlined
def settle(n, now):  # type: ignore[no-untyped-def]
    """Derivatives by the motion of the body's joint."""
    for k in samples(n):
        zx, zy, zz = now[OWN_TWIST, k], now[OWN_TWIST + 1, k], now[OWN_TWIST + 2, k]
        sx, sy, sz = now[OWN_TWIST + 3, k], now[OWN_TWIST + 4, k], now[OWN_TWIST + 5, k]
        ux, uy, uz = now[U, k], now[U + 1, k], now[U + 2, k]
        tx, ty, tz = now[U + 3, k], now[U + 4, k], now[U + 5, k]
        mx, my, mz = now[P, k], now[P + 1, k], now[P + 2, k]
        fx, fy, fz = now[P + 3, k], now[P + 4, k], now[P + 5, k]
        qx, qy, qz = now[Q, k], now[Q + 1, k], now[Q + 2, k]
        now[BY_DDQ, k] = zx * mx + zy * my + zz * mz + sx * fx + sy * fy + sz * fz
        now[BY_DQ, k] = zx * qx + zy * qy + zz * qz + 2.0 * (ux * mx + uy * my + uz * mz + tx * fx + ty * fy + tz * fz)
        now[BY_Q, k] = (
            ux * qx
            + uy * qy
            + uz * qz
            + now[B, k] * mx
            + now[B + 1, k] * my
            + now[B + 2, k] * mz
            + now[B + 3, k] * fx
            + now[B + 4, k] * fy
            + now[B + 5, k] * fz
            - (zx * now[K, k] + zy * now[K + 1, k] + zz * now[K + 2, k])
            - (sx * now[K + 3, k] + sy * now[K + 4, k] + sz * now[K + 5, k])
        )
