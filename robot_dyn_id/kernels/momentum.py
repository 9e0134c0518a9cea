# SPDX-License-Identifier: Apache-2.0
"""Columns of the generalized momentum of a tree and of its drift, linear in the standard parameters.

The momentum is p = M(q) dq. Without friction and with the torque tau of motors and environment

    dp/dt = tau + dT/dq - g(q),   dT/dq = C(q, dq)' dq,

where T is the kinetic energy, C a matrix of Coriolis terms with dM/dt = C + C', and g the gravity torque (De Luca and
Mattone 2005). With the spatial velocity v_i and the momentum h_i = I_i v_i of body i and the screw s_j of joint j

    p_j = sum over the bodies i that j carries of s_j . h_i,    (dT/dq)_j = sum of (v_j x s_j) . h_i,

as turning joint j turns the motion of everything it carries. Both need positions and velocities only.
"""

from __future__ import annotations

import math

from robot_dyn_id.kernels.compiled import compiled


@compiled
def _pair(gain, twist, velocity, start, row, out):  # type: ignore[no-untyped-def]
    """Add the ten columns of `twist . momentum` of a body; both twists (angular, linear) are in its frame."""
    a, b, c, x, y, z = twist[0], twist[1], twist[2], twist[3], twist[4], twist[5]
    p, q, r, u, v, w = velocity[0], velocity[1], velocity[2], velocity[3], velocity[4], velocity[5]
    out[start, row] += gain * (x * u + y * v + z * w)
    out[start + 1, row] += gain * (y * r - z * q + v * c - w * b)
    out[start + 2, row] += gain * (z * p - x * r + w * a - u * c)
    out[start + 3, row] += gain * (x * q - y * p + u * b - v * a)
    out[start + 4, row] += gain * a * p
    out[start + 5, row] += gain * (a * q + b * p)
    out[start + 6, row] += gain * b * q
    out[start + 7, row] += gain * (a * r + c * p)
    out[start + 8, row] += gain * (b * r + c * q)
    out[start + 9, row] += gain * c * r


@compiled
def _carry(turn, shift, twist, out):  # type: ignore[no-untyped-def]
    """Express a twist (angular, linear) of the parent's frame in a body's frame."""
    u = twist[3] + twist[1] * shift[2] - twist[2] * shift[1]
    v = twist[4] + twist[2] * shift[0] - twist[0] * shift[2]
    w = twist[5] + twist[0] * shift[1] - twist[1] * shift[0]
    for k in range(3):
        out[k] = turn[0, k] * twist[0] + turn[1, k] * twist[1] + turn[2, k] * twist[2]
        out[3 + k] = turn[0, k] * u + turn[1, k] * v + turn[2, k] * w


@compiled
def fill_momentum_columns(  # type: ignore[no-untyped-def]
    parent, leader, multiplier, offset, turn, shift, axis, gravity, q, dq, screws, pulls, momentum, drift
):
    """Fill the columns of momentum and drift, dT/dq - g, of the rigid bodies.

    With b bodies and n joints; the first arguments are those of `kernels.tree.Tree`.

    Args:
        parent: parent body, -1 for the base, shape (b,).
        leader: joint that moves each body, shape (b,).
        multiplier: mimic multiplier of each body, shape (b,).
        offset: mimic offset of each body, shape (b,).
        turn: shape (b, 3, 3, 3).
        shift: shape (b, 2, 3).
        axis: shape (b, 6).
        gravity: gravity in the base frame [m/s^2], shape (3,).
        q: positions [rad or m], shape (n,).
        dq: velocities, shape (n,).
        screws: workspace, shape (2 b + 1, b, 6).
        pulls: workspace, shape (b, 3).
        momentum: result, shape (10 b or more, n) [SI]; rows of what is not a rigid body are zero.
        drift: result, same shape.
    """
    bodies = len(parent)
    velocity = screws[2 * bodies]
    momentum[:] = 0.0
    drift[:] = 0.0
    for i in range(bodies):
        y = multiplier[i] * q[leader[i]] + offset[i]
        dy = multiplier[i] * dq[leader[i]]
        cosine, sine = math.cos(y), math.sin(y)
        rotation = turn[i, 0] + cosine * turn[i, 1] + sine * turn[i, 2]
        reach = shift[i, 0] + y * shift[i, 1]
        above = parent[i]
        own = velocity[i]
        pull = pulls[above] if above >= 0 else gravity
        for k in range(3):
            pulls[i, k] = rotation[0, k] * pull[0] + rotation[1, k] * pull[1] + rotation[2, k] * pull[2]
        if above >= 0:
            _carry(rotation, reach, velocity[above], own)
            k = above
            while k >= 0:
                _carry(rotation, reach, screws[above, k], screws[i, k])
                _carry(rotation, reach, screws[bodies + above, k], screws[bodies + i, k])
                k = parent[k]
        else:
            own[:] = 0.0
        own += dy * axis[i]
        screw, changed = screws[i, i], screws[bodies + i, i]
        screw[:] = axis[i]
        for k in range(3):
            u, v = (k + 1) % 3, (k + 2) % 3
            changed[k] = own[u] * screw[v] - own[v] * screw[u]
            changed[3 + k] = own[u] * screw[3 + v] - own[v] * screw[3 + u]
            changed[3 + k] += own[3 + u] * screw[v] - own[3 + v] * screw[u]
        k = i
        while k >= 0:
            row, gain = leader[k], multiplier[k]
            _pair(gain, screws[i, k], own, 10 * i, row, momentum)
            _pair(gain, screws[bodies + i, k], own, 10 * i, row, drift)
            a, b, c = screws[i, k, 0], screws[i, k, 1], screws[i, k, 2]
            x, y, z = pulls[i]
            drift[10 * i, row] += gain * (screws[i, k, 3] * x + screws[i, k, 4] * y + screws[i, k, 5] * z)
            drift[10 * i + 1, row] += gain * (y * c - z * b)
            drift[10 * i + 2, row] += gain * (z * a - x * c)
            drift[10 * i + 3, row] += gain * (x * b - y * a)
            k = parent[k]


@compiled
def fill_momentum_along(  # type: ignore[no-untyped-def]
    parent, leader, multiplier, offset, turn, shift, axis, gravity, q, dq, screws, pulls, momentum, drift
):
    """Fill the columns of `fill_momentum_columns` at N states.

    q and dq have the shape (N, n), momentum and drift (N, 10 b or more, n); the other arguments are the same.
    """
    for state in range(len(q)):
        fill_momentum_columns(
            parent,
            leader,
            multiplier,
            offset,
            turn,
            shift,
            axis,
            gravity,
            q[state],
            dq[state],
            screws,
            pulls,
            momentum[state],
            drift[state],
        )
