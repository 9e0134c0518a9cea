# SPDX-License-Identifier: Apache-2.0
"""Steps of the reverse mode of the regressor, for one body or one of its blocks; see `kernels.regressor_gradient`.

They work on a tile as those of the regressor do, in rows of `now` behind theirs.
"""

from __future__ import annotations

from robot_dyn_id.kernels.compiled import inlined, samples
from robot_dyn_id.kernels.regressor import (
    A_MATRIX,
    ACCEL,
    BODY_ACCEL,
    BODY_OMEGA,
    BODY_OMEGA_DOT,
    COLUMNS,
    JOINT_TWIST,
    OMEGA,
    OMEGA_DOT,
    ORIGIN,
    ROTATION,
    ROWS,
    TWIST,
    VELOCITY,
)

# rows of `now`, after those of the regressor's; three each unless noted
LINEAR = ROWS  # velocity of what passes the origin of the base
PARENT_OMEGA, PARENT_OMEGA_DOT = ROWS + 3, ROWS + 6  # the parent's motion about the origin of the base
PARENT_LINEAR, PARENT_ACCEL = ROWS + 9, ROWS + 12
BY_OMEGA, BY_OMEGA_DOT, BY_ACCEL = ROWS + 15, ROWS + 18, ROWS + 21  # cotangents of the body's motion, along its axes
WRENCH = ROWS + 24  # of one block (6)
BY_Q, BY_DQ, BY_DDQ = ROWS + 30, ROWS + 31, ROWS + 32  # derivatives by the joint's motion (1 each)
KEPT = ROWS + 33  # what is kept of every body for the way back
PSI_DOT, PSI_DDOT = KEPT, KEPT + 6  # derivatives of the joint's twist (6 each)
BY_SPATIAL_ACCEL, BY_SPATIAL_VELOCITY, CROSS_WRENCH = KEPT + 12, KEPT + 18, KEPT + 21  # sums over bodies (6), (3), (6)
CARRIED = 15  # the rows BY_SPATIAL_ACCEL, BY_SPATIAL_VELOCITY, CROSS_WRENCH
KEEP = 27
ALL_ROWS = KEPT + KEEP


@inlined
def find_parent_motion(n, now):  # type: ignore[no-untyped-def]
    """The parent's motion about the origin of the base."""
    for k in samples(n):
        px, py, pz = now[ORIGIN, k], now[ORIGIN + 1, k], now[ORIGIN + 2, k]
        wx, wy, wz = now[OMEGA, k], now[OMEGA + 1, k], now[OMEGA + 2, k]
        ex, ey, ez = now[OMEGA_DOT, k], now[OMEGA_DOT + 1, k], now[OMEGA_DOT + 2, k]
        lx, ly, lz = now[LINEAR, k], now[LINEAR + 1, k], now[LINEAR + 2, k]
        vx, vy, vz = lx + wy * pz - wz * py, ly + wz * px - wx * pz, lz + wx * py - wy * px
        now[PARENT_OMEGA, k] = wx
        now[PARENT_OMEGA + 1, k] = wy
        now[PARENT_OMEGA + 2, k] = wz
        now[PARENT_OMEGA_DOT, k] = ex
        now[PARENT_OMEGA_DOT + 1, k] = ey
        now[PARENT_OMEGA_DOT + 2, k] = ez
        now[PARENT_LINEAR, k] = lx
        now[PARENT_LINEAR + 1, k] = ly
        now[PARENT_LINEAR + 2, k] = lz
        now[PARENT_ACCEL, k] = now[ACCEL, k] - wy * vz + wz * vy - ey * pz + ez * py
        now[PARENT_ACCEL + 1, k] = now[ACCEL + 1, k] - wz * vx + wx * vz - ez * px + ex * pz
        now[PARENT_ACCEL + 2, k] = now[ACCEL + 2, k] - wx * vy + wy * vx - ex * py + ey * px


@inlined
def differentiate_joint(n, now):  # type: ignore[no-untyped-def]
    """Both derivatives of the twist of the body's joint, and the body's own velocity at the origin of the base."""
    for k in samples(n):
        zx, zy, zz = now[JOINT_TWIST, k], now[JOINT_TWIST + 1, k], now[JOINT_TWIST + 2, k]
        sx, sy, sz = now[JOINT_TWIST + 3, k], now[JOINT_TWIST + 4, k], now[JOINT_TWIST + 5, k]
        wx, wy, wz = now[PARENT_OMEGA, k], now[PARENT_OMEGA + 1, k], now[PARENT_OMEGA + 2, k]
        ex, ey, ez = now[PARENT_OMEGA_DOT, k], now[PARENT_OMEGA_DOT + 1, k], now[PARENT_OMEGA_DOT + 2, k]
        lx, ly, lz = now[PARENT_LINEAR, k], now[PARENT_LINEAR + 1, k], now[PARENT_LINEAR + 2, k]
        ax, ay, az = now[PARENT_ACCEL, k], now[PARENT_ACCEL + 1, k], now[PARENT_ACCEL + 2, k]
        ux, uy, uz = wy * zz - wz * zy, wz * zx - wx * zz, wx * zy - wy * zx
        tx = wy * sz - wz * sy + ly * zz - lz * zy
        ty = wz * sx - wx * sz + lz * zx - lx * zz
        tz = wx * sy - wy * sx + lx * zy - ly * zx
        now[PSI_DOT, k] = ux
        now[PSI_DOT + 1, k] = uy
        now[PSI_DOT + 2, k] = uz
        now[PSI_DOT + 3, k] = tx
        now[PSI_DOT + 4, k] = ty
        now[PSI_DOT + 5, k] = tz
        now[PSI_DDOT, k] = ey * zz - ez * zy + wy * uz - wz * uy
        now[PSI_DDOT + 1, k] = ez * zx - ex * zz + wz * ux - wx * uz
        now[PSI_DDOT + 2, k] = ex * zy - ey * zx + wx * uy - wy * ux
        now[PSI_DDOT + 3, k] = ey * sz - ez * sy + ay * zz - az * zy + wy * tz - wz * ty + ly * uz - lz * uy
        now[PSI_DDOT + 4, k] = ez * sx - ex * sz + az * zx - ax * zz + wz * tx - wx * tz + lz * ux - lx * uz
        now[PSI_DDOT + 5, k] = ex * sy - ey * sx + ax * zy - ay * zx + wx * ty - wy * tx + lx * uy - ly * ux
        v = now[VELOCITY, k]
        now[LINEAR, k] = lx + v * sx
        now[LINEAR + 1, k] = ly + v * sy
        now[LINEAR + 2, k] = lz + v * sz


@inlined
def find_block_wrench(n, now):  # type: ignore[no-untyped-def]
    """Wrench F of a block about the origin of the base, and s x* F."""
    for k in samples(n):
        m, hx, hy, hz = now[COLUMNS, k], now[COLUMNS + 1, k], now[COLUMNS + 2, k], now[COLUMNS + 3, k]
        ax, ay, az = now[BODY_ACCEL, k], now[BODY_ACCEL + 1, k], now[BODY_ACCEL + 2, k]
        fx = m * ax + now[A_MATRIX, k] * hx + now[A_MATRIX + 1, k] * hy + now[A_MATRIX + 2, k] * hz
        fy = m * ay + now[A_MATRIX + 3, k] * hx + now[A_MATRIX + 4, k] * hy + now[A_MATRIX + 5, k] * hz
        fz = m * az + now[A_MATRIX + 6, k] * hx + now[A_MATRIX + 7, k] * hy + now[A_MATRIX + 8, k] * hz
        ixx, ixy, iyy = now[COLUMNS + 4, k], now[COLUMNS + 5, k], now[COLUMNS + 6, k]
        ixz, iyz, izz = now[COLUMNS + 7, k], now[COLUMNS + 8, k], now[COLUMNS + 9, k]
        wx, wy, wz = now[BODY_OMEGA, k], now[BODY_OMEGA + 1, k], now[BODY_OMEGA + 2, k]
        ex, ey, ez = now[BODY_OMEGA_DOT, k], now[BODY_OMEGA_DOT + 1, k], now[BODY_OMEGA_DOT + 2, k]
        x, y, z = ixx * wx + ixy * wy + ixz * wz, ixy * wx + iyy * wy + iyz * wz, ixz * wx + iyz * wy + izz * wz
        nx = ixx * ex + ixy * ey + ixz * ez + wy * z - wz * y + hy * az - hz * ay
        ny = ixy * ex + iyy * ey + iyz * ez + wz * x - wx * z + hz * ax - hx * az
        nz = ixz * ex + iyz * ey + izz * ez + wx * y - wy * x + hx * ay - hy * ax
        r00, r01, r02 = now[ROTATION, k], now[ROTATION + 1, k], now[ROTATION + 2, k]
        r10, r11, r12 = now[ROTATION + 3, k], now[ROTATION + 4, k], now[ROTATION + 5, k]
        r20, r21, r22 = now[ROTATION + 6, k], now[ROTATION + 7, k], now[ROTATION + 8, k]
        px, py, pz = now[ORIGIN, k], now[ORIGIN + 1, k], now[ORIGIN + 2, k]
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
def add_cross_wrench(n, sign, twist, now):  # type: ignore[no-untyped-def]
    """Add a twist x* the wrench to the sum of crossed wrenches, or take it away."""
    for k in samples(n):
        zx, zy, zz = sign * now[twist, k], sign * now[twist + 1, k], sign * now[twist + 2, k]
        sx, sy, sz = sign * now[twist + 3, k], sign * now[twist + 4, k], sign * now[twist + 5, k]
        mx, my, mz = now[WRENCH, k], now[WRENCH + 1, k], now[WRENCH + 2, k]
        fx, fy, fz = now[WRENCH + 3, k], now[WRENCH + 4, k], now[WRENCH + 5, k]
        now[CROSS_WRENCH, k] = now[CROSS_WRENCH, k] + zy * mz - zz * my + sy * fz - sz * fy
        now[CROSS_WRENCH + 1, k] = now[CROSS_WRENCH + 1, k] + zz * mx - zx * mz + sz * fx - sx * fz
        now[CROSS_WRENCH + 2, k] = now[CROSS_WRENCH + 2, k] + zx * my - zy * mx + sx * fy - sy * fx
        now[CROSS_WRENCH + 3, k] = now[CROSS_WRENCH + 3, k] + zy * fz - zz * fy
        now[CROSS_WRENCH + 4, k] = now[CROSS_WRENCH + 4, k] + zz * fx - zx * fz
        now[CROSS_WRENCH + 5, k] = now[CROSS_WRENCH + 5, k] + zx * fy - zy * fx


@inlined
def add_motion_cotangents(n, now):  # type: ignore[no-untyped-def]
    """Add a block's part to the cotangents of the body's motion along its own axes."""
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
        m, hx, hy, hz = now[COLUMNS, k], now[COLUMNS + 1, k], now[COLUMNS + 2, k], now[COLUMNS + 3, k]
        ixx, ixy, iyy = now[COLUMNS + 4, k], now[COLUMNS + 5, k], now[COLUMNS + 6, k]
        ixz, iyz, izz = now[COLUMNS + 7, k], now[COLUMNS + 8, k], now[COLUMNS + 9, k]
        now[BY_ACCEL, k] = now[BY_ACCEL, k] + m * ux + y * hz - z * hy
        now[BY_ACCEL + 1, k] = now[BY_ACCEL + 1, k] + m * uy + z * hx - x * hz
        now[BY_ACCEL + 2, k] = now[BY_ACCEL + 2, k] + m * uz + x * hy - y * hx
        now[BY_OMEGA_DOT, k] = now[BY_OMEGA_DOT, k] + hy * uz - hz * uy + ixx * x + ixy * y + ixz * z
        now[BY_OMEGA_DOT + 1, k] = now[BY_OMEGA_DOT + 1, k] + hz * ux - hx * uz + ixy * x + iyy * y + iyz * z
        now[BY_OMEGA_DOT + 2, k] = now[BY_OMEGA_DOT + 2, k] + hx * uy - hy * ux + ixz * x + iyz * y + izz * z
        # of u . w x (w x h) + s . w x I w: (w.h) u + (u.w) h - 2 (u.h) w + I (s x w) + I w x s
        wx, wy, wz = now[BODY_OMEGA, k], now[BODY_OMEGA + 1, k], now[BODY_OMEGA + 2, k]
        wh, uw = wx * hx + wy * hy + wz * hz, ux * wx + uy * wy + uz * wz
        uh = 2.0 * (ux * hx + uy * hy + uz * hz)
        jx, jy, jz = ixx * wx + ixy * wy + ixz * wz, ixy * wx + iyy * wy + iyz * wz, ixz * wx + iyz * wy + izz * wz
        cx, cy, cz = y * wz - z * wy, z * wx - x * wz, x * wy - y * wx
        tx, ty, tz = jy * z - jz * y, jz * x - jx * z, jx * y - jy * x
        tx = tx + ixx * cx + ixy * cy + ixz * cz
        ty = ty + ixy * cx + iyy * cy + iyz * cz
        tz = tz + ixz * cx + iyz * cy + izz * cz
        now[BY_OMEGA, k] = now[BY_OMEGA, k] + tx + wh * ux + uw * hx - uh * wx
        now[BY_OMEGA + 1, k] = now[BY_OMEGA + 1, k] + ty + wh * uy + uw * hy - uh * wy
        now[BY_OMEGA + 2, k] = now[BY_OMEGA + 2, k] + tz + wh * uz + uw * hz - uh * wz


@inlined
def sum_cotangents(n, now):  # type: ignore[no-untyped-def]
    """Cotangents of the spatial acceleration and velocity of one body."""
    for k in samples(n):
        r00, r01, r02 = now[ROTATION, k], now[ROTATION + 1, k], now[ROTATION + 2, k]
        r10, r11, r12 = now[ROTATION + 3, k], now[ROTATION + 4, k], now[ROTATION + 5, k]
        r20, r21, r22 = now[ROTATION + 6, k], now[ROTATION + 7, k], now[ROTATION + 8, k]
        px, py, pz = now[ORIGIN, k], now[ORIGIN + 1, k], now[ORIGIN + 2, k]
        x, y, z = now[BY_ACCEL, k], now[BY_ACCEL + 1, k], now[BY_ACCEL + 2, k]
        ax, ay, az = r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z
        x, y, z = now[BY_OMEGA_DOT, k], now[BY_OMEGA_DOT + 1, k], now[BY_OMEGA_DOT + 2, k]
        ex, ey, ez = r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z
        x, y, z = now[BY_OMEGA, k], now[BY_OMEGA + 1, k], now[BY_OMEGA + 2, k]
        wx, wy, wz = now[OMEGA, k], now[OMEGA + 1, k], now[OMEGA + 2, k]
        vx = 2.0 * (now[LINEAR, k] + wy * pz - wz * py)
        vy = 2.0 * (now[LINEAR + 1, k] + wz * px - wx * pz)
        vz = 2.0 * (now[LINEAR + 2, k] + wx * py - wy * px)
        # the acceleration of a point is the spatial one and w x v: V' has (w' + v x a', a' x w), A' (e', a')
        now[BY_SPATIAL_VELOCITY, k] = r00 * x + r01 * y + r02 * z + vy * az - vz * ay + wy * ez - wz * ey
        now[BY_SPATIAL_VELOCITY + 1, k] = r10 * x + r11 * y + r12 * z + vz * ax - vx * az + wz * ex - wx * ez
        now[BY_SPATIAL_VELOCITY + 2, k] = r20 * x + r21 * y + r22 * z + vx * ay - vy * ax + wx * ey - wy * ex
        now[BY_SPATIAL_ACCEL, k] = ex + py * az - pz * ay
        now[BY_SPATIAL_ACCEL + 1, k] = ey + pz * ax - px * az
        now[BY_SPATIAL_ACCEL + 2, k] = ez + px * ay - py * ax
        now[BY_SPATIAL_ACCEL + 3, k] = ax
        now[BY_SPATIAL_ACCEL + 4, k] = ay
        now[BY_SPATIAL_ACCEL + 5, k] = az


@inlined
def differentiate_motion(n, now):  # type: ignore[no-untyped-def]
    """Derivatives by the motion of the body's joint."""
    for k in samples(n):
        zx, zy, zz = now[JOINT_TWIST, k], now[JOINT_TWIST + 1, k], now[JOINT_TWIST + 2, k]
        sx, sy, sz = now[JOINT_TWIST + 3, k], now[JOINT_TWIST + 4, k], now[JOINT_TWIST + 5, k]
        ux, uy, uz = now[PSI_DOT, k], now[PSI_DOT + 1, k], now[PSI_DOT + 2, k]
        tx, ty, tz = now[PSI_DOT + 3, k], now[PSI_DOT + 4, k], now[PSI_DOT + 5, k]
        mx, my, mz = now[BY_SPATIAL_ACCEL, k], now[BY_SPATIAL_ACCEL + 1, k], now[BY_SPATIAL_ACCEL + 2, k]
        fx, fy, fz = now[BY_SPATIAL_ACCEL + 3, k], now[BY_SPATIAL_ACCEL + 4, k], now[BY_SPATIAL_ACCEL + 5, k]
        qx, qy, qz = now[BY_SPATIAL_VELOCITY, k], now[BY_SPATIAL_VELOCITY + 1, k], now[BY_SPATIAL_VELOCITY + 2, k]
        now[BY_DDQ, k] = zx * mx + zy * my + zz * mz + sx * fx + sy * fy + sz * fz
        now[BY_DQ, k] = zx * qx + zy * qy + zz * qz + 2.0 * (ux * mx + uy * my + uz * mz + tx * fx + ty * fy + tz * fz)
        now[BY_Q, k] = (
            ux * qx
            + uy * qy
            + uz * qz
            + now[PSI_DDOT, k] * mx
            + now[PSI_DDOT + 1, k] * my
            + now[PSI_DDOT + 2, k] * mz
            + now[PSI_DDOT + 3, k] * fx
            + now[PSI_DDOT + 4, k] * fy
            + now[PSI_DDOT + 5, k] * fz
            - (zx * now[CROSS_WRENCH, k] + zy * now[CROSS_WRENCH + 1, k] + zz * now[CROSS_WRENCH + 2, k])
            - (sx * now[CROSS_WRENCH + 3, k] + sy * now[CROSS_WRENCH + 4, k] + sz * now[CROSS_WRENCH + 5, k])
        )
