# SPDX-License-Identifier: Apache-2.0
"""Steps of the recursions along a tree, one body at a time, for the states of one tile.

The bodies' vectors are taken along the axes of the base, about the origin of each body's own frame: composite bodies
and the wrenches of the columns of the mass matrix then move towards the base without being turned.

The compiler vectorizes the loops over states only if it can distinguish one row of the workspace `work`, shape (bodies,
ROWS, states), from another: bodies i, p, a are unsigned numbers (a signed one might count from the end) and rows are
compile-time constants. `n` is the number of states; `turns` is 1 for a revolute joint and 0 for a prismatic one,
`slides` the opposite. The base is a body at rest.
"""

from __future__ import annotations

from robot_dyn_id.kernels.angles import cos_sin
from robot_dyn_id.kernels.compiled import inlined, samples, shifted

# rows of a body
ROTATION = 0  # rotation of the body's frame to the base's (9)
OMEGA, OMEGA_DOT = 9, 12  # angular velocity and acceleration (3 each)
ACCEL = 15  # acceleration of the origin less gravity (3)
ARM, AXIS = 18, 21  # from the parent's origin to this body's; direction of the joint (3 each)
MOMENT, FORCE = 24, 27  # wrench that the motion of this body, and of all that it carries, needs (3 each)
FIRST_MOMENT = 30  # of the body, then of all that it carries (3)
INERTIA = 33  # of the same: xx xy yy xz yz zz (6)
EFFECT = 39  # moment (3) and force (3) that a unit acceleration of the joint needs
COS, SIN, POSITION, VELOCITY, ACCELERATION = 45, 46, 47, 48, 49  # the joint's own
STANDARD = 50  # standard parameters of the body, in its own frame (10)
MASS = 60  # mass of the body and all that it carries
ROWS = 61


@inlined
def read_joint(n, start, i, j, scale, offset, slides, q, dq, ddq, work):  # type: ignore[no-untyped-def]
    """Motion of the joint of body i, led by joint j."""
    for k in samples(n):
        work[i, POSITION, k] = scale * q[j, shifted(start, k)] + offset
        work[i, VELOCITY, k] = scale * dq[j, shifted(start, k)]
        work[i, ACCELERATION, k] = scale * ddq[j, shifted(start, k)]
    if not slides:
        for k in samples(n):
            c, s = cos_sin(work[i, POSITION, k])
            work[i, COS, k] = c
            work[i, SIN, k] = s


@inlined
def rotate(n, p, i, turn, work):  # type: ignore[no-untyped-def]
    """Orientation of body i from that of its parent p."""
    for k in samples(n):
        c, s = work[i, COS, k], work[i, SIN, k]
        p00, p01, p02 = work[p, ROTATION, k], work[p, ROTATION + 1, k], work[p, ROTATION + 2, k]
        p10, p11, p12 = work[p, ROTATION + 3, k], work[p, ROTATION + 4, k], work[p, ROTATION + 5, k]
        p20, p21, p22 = work[p, ROTATION + 6, k], work[p, ROTATION + 7, k], work[p, ROTATION + 8, k]
        x = turn[i, 0, 0, 0] + c * turn[i, 1, 0, 0] + s * turn[i, 2, 0, 0]
        y = turn[i, 0, 1, 0] + c * turn[i, 1, 1, 0] + s * turn[i, 2, 1, 0]
        z = turn[i, 0, 2, 0] + c * turn[i, 1, 2, 0] + s * turn[i, 2, 2, 0]
        work[i, ROTATION, k] = p00 * x + p01 * y + p02 * z
        work[i, ROTATION + 3, k] = p10 * x + p11 * y + p12 * z
        work[i, ROTATION + 6, k] = p20 * x + p21 * y + p22 * z
        x = turn[i, 0, 0, 1] + c * turn[i, 1, 0, 1] + s * turn[i, 2, 0, 1]
        y = turn[i, 0, 1, 1] + c * turn[i, 1, 1, 1] + s * turn[i, 2, 1, 1]
        z = turn[i, 0, 2, 1] + c * turn[i, 1, 2, 1] + s * turn[i, 2, 2, 1]
        work[i, ROTATION + 1, k] = p00 * x + p01 * y + p02 * z
        work[i, ROTATION + 4, k] = p10 * x + p11 * y + p12 * z
        work[i, ROTATION + 7, k] = p20 * x + p21 * y + p22 * z
        x = turn[i, 0, 0, 2] + c * turn[i, 1, 0, 2] + s * turn[i, 2, 0, 2]
        y = turn[i, 0, 1, 2] + c * turn[i, 1, 1, 2] + s * turn[i, 2, 1, 2]
        z = turn[i, 0, 2, 2] + c * turn[i, 1, 2, 2] + s * turn[i, 2, 2, 2]
        work[i, ROTATION + 2, k] = p00 * x + p01 * y + p02 * z
        work[i, ROTATION + 5, k] = p10 * x + p11 * y + p12 * z
        work[i, ROTATION + 8, k] = p20 * x + p21 * y + p22 * z


@inlined
def place_joint(n, p, i, shift, axis, work):  # type: ignore[no-untyped-def]
    """Direction of the joint of body i, and the way to it from the origin of its parent p."""
    ax, ay, az = axis[i, 0] + axis[i, 3], axis[i, 1] + axis[i, 4], axis[i, 2] + axis[i, 5]
    for k in samples(n):
        q = work[i, POSITION, k]
        x = shift[i, 0, 0] + q * shift[i, 1, 0]
        y = shift[i, 0, 1] + q * shift[i, 1, 1]
        z = shift[i, 0, 2] + q * shift[i, 1, 2]
        work[i, ARM, k] = work[p, ROTATION, k] * x + work[p, ROTATION + 1, k] * y + work[p, ROTATION + 2, k] * z
        work[i, ARM + 1, k] = work[p, ROTATION + 3, k] * x + work[p, ROTATION + 4, k] * y + work[p, ROTATION + 5, k] * z
        work[i, ARM + 2, k] = work[p, ROTATION + 6, k] * x + work[p, ROTATION + 7, k] * y + work[p, ROTATION + 8, k] * z
        work[i, AXIS, k] = work[i, ROTATION, k] * ax + work[i, ROTATION + 1, k] * ay + work[i, ROTATION + 2, k] * az
        work[i, AXIS + 1, k] = (
            work[i, ROTATION + 3, k] * ax + work[i, ROTATION + 4, k] * ay + work[i, ROTATION + 5, k] * az
        )
        work[i, AXIS + 2, k] = (
            work[i, ROTATION + 6, k] * ax + work[i, ROTATION + 7, k] * ay + work[i, ROTATION + 8, k] * az
        )


@inlined
def propagate(n, p, i, turns, slides, work):  # type: ignore[no-untyped-def]
    """Velocity and acceleration of body i from those of its parent p."""
    for k in samples(n):
        px, py, pz = work[i, ARM, k], work[i, ARM + 1, k], work[i, ARM + 2, k]
        zx, zy, zz = work[i, AXIS, k], work[i, AXIS + 1, k], work[i, AXIS + 2, k]
        wx, wy, wz = work[p, OMEGA, k], work[p, OMEGA + 1, k], work[p, OMEGA + 2, k]
        ex, ey, ez = work[p, OMEGA_DOT, k], work[p, OMEGA_DOT + 1, k], work[p, OMEGA_DOT + 2, k]
        v, a = work[i, VELOCITY, k], work[i, ACCELERATION, k]
        ux, uy, uz = wy * zz - wz * zy, wz * zx - wx * zz, wx * zy - wy * zx
        vx, vy, vz = wy * pz - wz * py, wz * px - wx * pz, wx * py - wy * px
        g, d = slides * a, 2.0 * slides * v
        work[i, ACCEL, k] = work[p, ACCEL, k] + ey * pz - ez * py + wy * vz - wz * vy + g * zx + d * ux
        work[i, ACCEL + 1, k] = work[p, ACCEL + 1, k] + ez * px - ex * pz + wz * vx - wx * vz + g * zy + d * uy
        work[i, ACCEL + 2, k] = work[p, ACCEL + 2, k] + ex * py - ey * px + wx * vy - wy * vx + g * zz + d * uz
        g, d = turns * a, turns * v
        work[i, OMEGA, k] = wx + d * zx
        work[i, OMEGA + 1, k] = wy + d * zy
        work[i, OMEGA + 2, k] = wz + d * zz
        work[i, OMEGA_DOT, k] = ex + g * zx + d * ux
        work[i, OMEGA_DOT + 1, k] = ey + g * zy + d * uy
        work[i, OMEGA_DOT + 2, k] = ez + g * zz + d * uz


@inlined
def find_inertia(n, i, work):  # type: ignore[no-untyped-def]
    """First moment and inertia of body i along the axes of the base, h = R h_i, I = R I_i R'."""
    for k in samples(n):
        hx, hy, hz = work[i, STANDARD + 1, k], work[i, STANDARD + 2, k], work[i, STANDARD + 3, k]
        xx, xy, yy = work[i, STANDARD + 4, k], work[i, STANDARD + 5, k], work[i, STANDARD + 6, k]
        xz, yz, zz = work[i, STANDARD + 7, k], work[i, STANDARD + 8, k], work[i, STANDARD + 9, k]
        r00, r01, r02 = work[i, ROTATION, k], work[i, ROTATION + 1, k], work[i, ROTATION + 2, k]
        r10, r11, r12 = work[i, ROTATION + 3, k], work[i, ROTATION + 4, k], work[i, ROTATION + 5, k]
        r20, r21, r22 = work[i, ROTATION + 6, k], work[i, ROTATION + 7, k], work[i, ROTATION + 8, k]
        work[i, FIRST_MOMENT, k] = r00 * hx + r01 * hy + r02 * hz
        work[i, FIRST_MOMENT + 1, k] = r10 * hx + r11 * hy + r12 * hz
        work[i, FIRST_MOMENT + 2, k] = r20 * hx + r21 * hy + r22 * hz
        x, y, z = r00 * xx + r01 * xy + r02 * xz, r00 * xy + r01 * yy + r02 * yz, r00 * xz + r01 * yz + r02 * zz
        work[i, INERTIA, k] = x * r00 + y * r01 + z * r02
        work[i, INERTIA + 1, k] = x * r10 + y * r11 + z * r12
        work[i, INERTIA + 3, k] = x * r20 + y * r21 + z * r22
        x, y, z = r10 * xx + r11 * xy + r12 * xz, r10 * xy + r11 * yy + r12 * yz, r10 * xz + r11 * yz + r12 * zz
        work[i, INERTIA + 2, k] = x * r10 + y * r11 + z * r12
        work[i, INERTIA + 4, k] = x * r20 + y * r21 + z * r22
        x, y, z = r20 * xx + r21 * xy + r22 * xz, r20 * xy + r21 * yy + r22 * yz, r20 * xz + r21 * yz + r22 * zz
        work[i, INERTIA + 5, k] = x * r20 + y * r21 + z * r22


@inlined
def find_wrench(n, i, work):  # type: ignore[no-untyped-def]
    """Wrench that the motion of body i needs: f = m a + dw x h + w x (w x h), n = I dw + w x I w + h x a."""
    for k in samples(n):
        m = work[i, STANDARD, k]
        hx, hy, hz = work[i, FIRST_MOMENT, k], work[i, FIRST_MOMENT + 1, k], work[i, FIRST_MOMENT + 2, k]
        wx, wy, wz = work[i, OMEGA, k], work[i, OMEGA + 1, k], work[i, OMEGA + 2, k]
        ex, ey, ez = work[i, OMEGA_DOT, k], work[i, OMEGA_DOT + 1, k], work[i, OMEGA_DOT + 2, k]
        ax, ay, az = work[i, ACCEL, k], work[i, ACCEL + 1, k], work[i, ACCEL + 2, k]
        x, y, z = wy * hz - wz * hy, wz * hx - wx * hz, wx * hy - wy * hx
        work[i, FORCE, k] = m * ax + ey * hz - ez * hy + wy * z - wz * y
        work[i, FORCE + 1, k] = m * ay + ez * hx - ex * hz + wz * x - wx * z
        work[i, FORCE + 2, k] = m * az + ex * hy - ey * hx + wx * y - wy * x
        ixx, ixy, iyy = work[i, INERTIA, k], work[i, INERTIA + 1, k], work[i, INERTIA + 2, k]
        ixz, iyz, izz = work[i, INERTIA + 3, k], work[i, INERTIA + 4, k], work[i, INERTIA + 5, k]
        x, y, z = ixx * wx + ixy * wy + ixz * wz, ixy * wx + iyy * wy + iyz * wz, ixz * wx + iyz * wy + izz * wz
        work[i, MOMENT, k] = ixx * ex + ixy * ey + ixz * ez + wy * z - wz * y + hy * az - hz * ay
        work[i, MOMENT + 1, k] = ixy * ex + iyy * ey + iyz * ez + wz * x - wx * z + hz * ax - hx * az
        work[i, MOMENT + 2, k] = ixz * ex + iyz * ey + izz * ez + wx * y - wy * x + hx * ay - hy * ax


@inlined
def add_to_parent(n, i, p, work):  # type: ignore[no-untyped-def]
    """Add the wrench of body i to that of its parent p."""
    for k in samples(n):
        px, py, pz = work[i, ARM, k], work[i, ARM + 1, k], work[i, ARM + 2, k]
        fx, fy, fz = work[i, FORCE, k], work[i, FORCE + 1, k], work[i, FORCE + 2, k]
        work[p, FORCE, k] += fx
        work[p, FORCE + 1, k] += fy
        work[p, FORCE + 2, k] += fz
        work[p, MOMENT, k] += work[i, MOMENT, k] + py * fz - pz * fy
        work[p, MOMENT + 1, k] += work[i, MOMENT + 1, k] + pz * fx - px * fz
        work[p, MOMENT + 2, k] += work[i, MOMENT + 2, k] + px * fy - py * fx


@inlined
def merge_composite(n, i, p, work):  # type: ignore[no-untyped-def]
    """Add the composite body i to its parent p."""
    for k in samples(n):
        m = work[i, MASS, k]
        px, py, pz = work[i, ARM, k], work[i, ARM + 1, k], work[i, ARM + 2, k]
        hx, hy, hz = work[i, FIRST_MOMENT, k], work[i, FIRST_MOMENT + 1, k], work[i, FIRST_MOMENT + 2, k]
        gx, gy, gz = hx + m * px, hy + m * py, hz + m * pz
        work[p, MASS, k] += m
        work[p, FIRST_MOMENT, k] += gx
        work[p, FIRST_MOMENT + 1, k] += gy
        work[p, FIRST_MOMENT + 2, k] += gz
        # I + (p.h + p.g) 1 - p h' - g p', where g is the first moment about the parent's origin
        x, y, z = px * (hx + gx), py * (hy + gy), pz * (hz + gz)
        work[p, INERTIA, k] += work[i, INERTIA, k] + y + z
        work[p, INERTIA + 1, k] += work[i, INERTIA + 1, k] - px * hy - gx * py
        work[p, INERTIA + 2, k] += work[i, INERTIA + 2, k] + x + z
        work[p, INERTIA + 3, k] += work[i, INERTIA + 3, k] - px * hz - gx * pz
        work[p, INERTIA + 4, k] += work[i, INERTIA + 4, k] - py * hz - gy * pz
        work[p, INERTIA + 5, k] += work[i, INERTIA + 5, k] + x + y


@inlined
def find_effect(n, i, turns, slides, work):  # type: ignore[no-untyped-def]
    """Wrench that a unit acceleration of the joint of composite body i needs."""
    for k in samples(n):
        m = work[i, MASS, k]
        hx, hy, hz = work[i, FIRST_MOMENT, k], work[i, FIRST_MOMENT + 1, k], work[i, FIRST_MOMENT + 2, k]
        zx, zy, zz = work[i, AXIS, k], work[i, AXIS + 1, k], work[i, AXIS + 2, k]
        x, y, z = zy * hz - zz * hy, zz * hx - zx * hz, zx * hy - zy * hx
        ixx, ixy, iyy = work[i, INERTIA, k], work[i, INERTIA + 1, k], work[i, INERTIA + 2, k]
        ixz, iyz, izz = work[i, INERTIA + 3, k], work[i, INERTIA + 4, k], work[i, INERTIA + 5, k]
        work[i, EFFECT, k] = turns * (ixx * zx + ixy * zy + ixz * zz) - slides * x
        work[i, EFFECT + 1, k] = turns * (ixy * zx + iyy * zy + iyz * zz) - slides * y
        work[i, EFFECT + 2, k] = turns * (ixz * zx + iyz * zy + izz * zz) - slides * z
        work[i, EFFECT + 3, k] = turns * x + slides * m * zx
        work[i, EFFECT + 4, k] = turns * y + slides * m * zy
        work[i, EFFECT + 5, k] = turns * z + slides * m * zz


@inlined
def shift_effect(n, i, a, work):  # type: ignore[no-untyped-def]
    """Take the effect of joint i from the origin of its ancestor a to that of a's parent."""
    for k in samples(n):
        px, py, pz = work[a, ARM, k], work[a, ARM + 1, k], work[a, ARM + 2, k]
        fx, fy, fz = work[i, EFFECT + 3, k], work[i, EFFECT + 4, k], work[i, EFFECT + 5, k]
        work[i, EFFECT, k] += py * fz - pz * fy
        work[i, EFFECT + 1, k] += pz * fx - px * fz
        work[i, EFFECT + 2, k] += px * fy - py * fx


@inlined
def project(n, a, i, wrench, gain, row, work, sums):  # type: ignore[no-untyped-def]
    """Add what joint a feels of a vector of body i, times `gain`."""
    for k in samples(n):
        sums[row, k] += gain * (
            work[a, AXIS, k] * work[i, wrench, k]
            + work[a, AXIS + 1, k] * work[i, wrench + 1, k]
            + work[a, AXIS + 2, k] * work[i, wrench + 2, k]
        )
