# SPDX-License-Identifier: Apache-2.0
"""Forward simulation of one robot: Runge-Kutta steps of a tree with friction, many steps in one call.

Smoothed Coulomb friction is stiff (its slope fc / width over a wrist's inertia is far beyond what an explicit method
takes at 1 kHz), so the dry friction of a step is one constant torque, found implicitly: the one that the friction law
has at the velocity with which the step ends. That is backward Euler for friction alone: it sticks, it never chatters or
gains energy, and it is exact in sliding, where Coulomb friction is constant. Everything else, viscous friction
included, goes through the classical fourth-order method; only what of viscous friction would make that unstable is
treated like dry friction.
"""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.kernels.compiled import compiled
from robot_dyn_id.kernels.dynamics import dynamics_single

STABLE = 2.5
"""Greatest step times decay rate that the fourth-order method damps (its limit is 2.78)."""

SWEEPS = 100
"""Most rounds over the coordinates in search of the friction torques; five are usual."""

CONVERGED = 1e-9
"""Change of the friction torques, as a share of the largest, at which they are found."""

NEWTON = 30
"""Most iterations for one coordinate's velocity; four are usual."""


@compiled
def _invert(joints, packed, factor, inverse):  # type: ignore[no-untyped-def]
    """Inverse of a symmetric positive definite matrix from its packed lower triangle, by Cholesky factors."""
    for i in range(joints):
        for j in range(i + 1):
            total = packed[i * (i + 1) // 2 + j, 0]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = math.sqrt(total) if i == j else total / factor[j, j]
    for column in range(joints):
        for i in range(joints):
            total = 1.0 if i == column else 0.0
            for k in range(column, i):
                total -= factor[i, k] * inverse[k, column]
            inverse[i, column] = total / factor[i, i] if i >= column else 0.0
        for back in range(joints):
            i = joints - 1 - back
            total = inverse[i, column]
            for k in range(i + 1, joints):
                total -= factor[k, i] * inverse[k, column]
            inverse[i, column] = total / factor[i, i]


@compiled
def _product(left, right, out):  # type: ignore[no-untyped-def]
    """Matrix product: np.dot would bring BLAS threads for a handful of numbers."""
    for i in range(left.shape[0]):
        for j in range(right.shape[1]):
            out[i, j] = 0.0
            for k in range(right.shape[0]):
                out[i, j] += left[i, k] * right[k, j]


@compiled
def _end_velocity(free, gain, viscous, coulomb, width, start):  # type: ignore[no-untyped-def]
    """The velocity y with y + gain (coulomb tanh(y / width) + viscous y) = free; width 0 is the hard sign.

    Args:
        free: velocity at the end without this friction.
        gain: what a unit of friction torque takes from the velocity.
        viscous: not negative.
        coulomb: where it is negative, no real friction, it is taken at the velocity `start`.
        width: see `terms.Coulomb`.
        start: velocity at the start.
    """
    slope, drop, size = 1.0 + gain * viscous, gain * coulomb, abs(free)
    if drop < 0.0:
        known = math.tanh(start / width) if width > 0.0 else np.sign(start)
        return (free - drop * known) / slope
    sliding = (size - drop) / slope
    if width == 0.0:
        return math.copysign(max(sliding, 0.0), free)
    y = max(sliding, size / (slope + drop / width))  # the left side is concave: from here Newton only climbs
    for _ in range(NEWTON):
        bent = math.tanh(y / width)
        change = (size - slope * y - drop * bent) / (slope + drop / width * (1.0 - bent * bent))
        y += change
        if abs(change) <= 1e-12 * (y + width):
            break
    return math.copysign(y, free)


@compiled
def _dry_friction(step, free, response, viscous, coulomb, width, start, dry):  # type: ignore[no-untyped-def]
    """Friction torques of all coordinates, coupled by the inertia, by Gauss-Seidel; `dry` is the first guess.

    Every coordinate in turn takes the torque that the law has at its velocity, the others' held. The torques are the
    minimum of a convex function, which this descends.
    """
    for _ in range(SWEEPS):
        change, largest = 0.0, 0.0
        for i in range(len(dry)):
            gain = step * response[i, i]
            if gain <= 0.0 or (coulomb[i] == 0.0 and viscous[i] == 0.0):
                dry[i] = 0.0
                continue
            unhindered = free[i]
            for j in range(len(dry)):
                if j != i:
                    unhindered -= step * response[i, j] * dry[j]
            y = _end_velocity(unhindered, gain, viscous[i], coulomb[i], width[i], start[i])
            torque = (unhindered - y) / gain
            change, largest = max(change, abs(torque - dry[i])), max(largest, abs(torque))
            dry[i] = torque
        if change <= CONVERGED * largest:
            break


@compiled
def advance(  # type: ignore[no-untyped-def]
    parent,
    leader,
    multiplier,
    offset,
    turn,
    shift,
    axis,
    slides,
    gravity,
    parameters,
    slots,
    added,
    constant,
    weights,
    viscous,
    coulomb,
    width,
    effort,
    step,
    count,
    q,
    dq,
    dry,
):
    """Advance one state by some steps. Its arguments, with b bodies, n joints and g friction coordinates.

    parent ... parameters: those of the kernels in `kernels.dynamics`.
    slots, added: rotor inertias: entries of the packed lower triangle of M, shape (r,), and values, (r, 1).
    constant: torque offsets, shape (n,).
    weights: velocities of the friction coordinates = weights @ dq, shape (g, n).
    viscous, coulomb, width: friction laws of the coordinates, shape (g,).
    effort: torques of the motors, constant all along, shape (n,).
    step, count: length [s] and number of the steps.
    q, dq: the state, changed in place, shape (n,).
    dry: dry friction torques, first guess and result, shape (g,).

    It returns the least excess of a pivot of M over rounding: 0 or less where M was not positive definite.
    """
    n, g = len(q), len(dry)
    position, velocity, drive, rest = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, 1)), np.zeros((n, 1))
    acceleration, mass, none = np.empty((n, 1)), np.empty((n * (n + 1) // 2, 1)), np.empty((0, 1))
    excess, factor, inverse = np.empty(1), np.zeros((n, n)), np.zeros((n, n))
    spread, response, free, start, implicit = np.empty((g, n)), np.empty((g, g)), np.empty(g), np.empty(g), np.empty(g)
    moved, gained, held, least = np.empty(n), np.empty(n), np.empty(n), np.inf
    for _ in range(count):
        for j in range(n):  # in loops: checked assignments of slices take half of the compile time
            position[j, 0], velocity[j, 0], drive[j, 0] = q[j], dq[j], effort[j] - constant[j]
        dynamics_single(
            parent,
            leader,
            multiplier,
            offset,
            turn,
            shift,
            axis,
            slides,
            gravity,
            parameters,
            position,
            velocity,
            rest,
            slots,
            added,
            drive,
            none,
            mass,
            acceleration,
            excess,
        )
        least = min(least, excess[0])
        if not excess[0] > 0.0:
            break
        _invert(n, mass, factor, inverse)
        _product(weights, inverse, spread)
        rate = 0.0
        for i in range(g):
            start[i] = 0.0
            for j in range(n):
                start[i] += weights[i, j] * dq[j]
        _product(spread, weights.T, response)
        for i in range(g):
            rate += max(viscous[i], 0.0) * response[i, i]  # the trace bounds the fastest decay
        for i in range(g):
            most = STABLE / (g * step * response[i, i])
            implicit[i] = max(viscous[i] - most, 0.0) if step * rate > STABLE else 0.0
        for i in range(g):
            free[i] = start[i]
            for j in range(n):
                free[i] += step * weights[i, j] * acceleration[j, 0]
            for k in range(g):
                free[i] -= step * response[i, k] * (viscous[k] - implicit[k]) * start[k]
        _dry_friction(step, free, response, implicit, coulomb, width, start, dry)
        for j in range(n):
            held[j] = effort[j] - constant[j]
            for i in range(g):
                held[j] -= weights[i, j] * dry[i]
                acceleration[j, 0] -= spread[i, j] * (dry[i] + (viscous[i] - implicit[i]) * start[i])
        for j in range(n):
            moved[j], gained[j] = dq[j], acceleration[j, 0]
        for stage in range(3):
            share = step if stage == 2 else 0.5 * step
            for j in range(n):
                position[j, 0] = q[j] + share * velocity[j, 0]
            for j in range(n):
                velocity[j, 0] = dq[j] + share * acceleration[j, 0]
                drive[j, 0] = held[j]
            for i in range(g):
                speed = 0.0
                for j in range(n):
                    speed += weights[i, j] * velocity[j, 0]
                for j in range(n):
                    drive[j, 0] -= weights[i, j] * (viscous[i] - implicit[i]) * speed
            dynamics_single(
                parent,
                leader,
                multiplier,
                offset,
                turn,
                shift,
                axis,
                slides,
                gravity,
                parameters,
                position,
                velocity,
                rest,
                slots,
                added,
                drive,
                none,
                none,
                acceleration,
                excess,
            )
            least = min(least, excess[0])
            weight = 1.0 if stage == 2 else 2.0
            for j in range(n):
                moved[j] += weight * velocity[j, 0]
                gained[j] += weight * acceleration[j, 0]
        for j in range(n):
            q[j] += step / 6.0 * moved[j]
            dq[j] += step / 6.0 * gained[j]
    return least


@compiled
def motor_effort(  # type: ignore[no-untyped-def]
    parent,
    leader,
    multiplier,
    offset,
    turn,
    shift,
    axis,
    slides,
    gravity,
    parameters,
    slots,
    added,
    constant,
    weights,
    viscous,
    coulomb,
    width,
    q,
    dq,
    ddq,
    sliding,
):
    """Torques that give one state the accelerations `ddq`; friction is that of the velocities `sliding`, shape (n,).

    The other arguments are those of `advance`. Returns the torques, shape (n,).
    """
    n = len(q)
    torque, none, excess, result = np.empty((n, 1)), np.empty((0, 1)), np.empty(1), np.empty(n)
    dynamics_single(
        parent,
        leader,
        multiplier,
        offset,
        turn,
        shift,
        axis,
        slides,
        gravity,
        parameters,
        q.reshape(n, 1),
        dq.reshape(n, 1),
        ddq.reshape(n, 1),
        slots,
        added,
        none,
        torque,
        none,
        none,
        excess,
    )
    for j in range(n):
        result[j] = torque[j, 0] + constant[j]
    for r in range(len(slots)):
        high = int((math.sqrt(8.0 * slots[r] + 1.0) - 1.0) / 2.0)
        low = slots[r] - high * (high + 1) // 2
        result[high] += added[r, 0] * ddq[low]
        if high != low:
            result[low] += added[r, 0] * ddq[high]
    for i in range(len(viscous)):
        speed = 0.0
        for j in range(n):
            speed += weights[i, j] * sliding[j]
        bent = math.tanh(speed / width[i]) if width[i] > 0.0 else np.sign(speed)
        for j in range(n):
            result[j] += weights[i, j] * (viscous[i] * speed + coulomb[i] * bent)
    return result
