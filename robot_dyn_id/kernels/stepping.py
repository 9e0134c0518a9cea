# SPDX-License-Identifier: Apache-2.0
"""Forward simulation of one robot: Runge-Kutta steps of a tree with friction, many steps in one call.

Dry friction is stiff: the slope of smoothed Coulomb friction, and the stiffness of a Dahl element of 0.3 mrad, over the
inertia of a wrist are far beyond what an explicit method takes at 1 kHz. So the dry friction of a step is one constant
torque, found implicitly: the one that the friction laws have at the velocity with which the step ends, with the Dahl
states that this velocity leads to. That is backward Euler for friction alone: it sticks, it never chatters or gains
energy, and it is exact in sliding, where dry friction is constant. Everything else, viscous friction included, goes
through the classical fourth-order method; only what of viscous friction would make that unstable is treated like dry
friction. Laws that saturate (powers below 1, arctan) are dry up to the speed below which their slope would be unstable,
and viscous above. A sign that fades with the speed (Stribeck friction) is dry with its strength at the start of the
step, so that breakaway holds a joint until it is exceeded; where the step resolves the fall, the fourth-order method
follows it within the step. Powers of 1 and more are viscous, springs part of the smooth dynamics.
"""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.kernels.compiled import compiled
from robot_dyn_id.kernels.dynamics import dynamics_single

SIGN, DAHL, POWER, ARCTAN, RISING = 0.0, 1.0, 2.0, 3.0, 4.0
"""Shapes of friction laws over the velocity v: tanh(v / c), with c = 0 the hard sign; the state z of a Dahl element
with the breakaway displacement c; sign(v) |v|^c with c in (0, 1); arctan(v / c); sign(v) |v|^c with c of 1 or more."""

SHAPE, CONSTANT, SIDE, FIXED, LOADED, FADING = 0, 1, 2, 3, 4, 5
"""Columns of `laws`: shape and its constant c; 0 for both directions, 1 or -1 for velocities of this sign only; torque
per shape, [N m or N]; the same per load [-]; f of the factor exp(-(v / f)^2) of a sign, infinite without one."""

STEEPEST = 0.86
"""Largest slope of exp(-x^2) over x: sqrt(2 / e)."""

WEIGHTS, STARTS, LAWS = 14, 16, 17
"""Indices of these among the first arguments of `advance` and `motor_effort`."""

STABLE = 2.5
"""Greatest step times decay rate that the fourth-order method damps (its limit is 2.78)."""

SWEEPS = 100
"""Most rounds over the coordinates in search of the friction torques; five are usual."""

CONVERGED = 1e-9
"""Change of the friction torques, as a share of the largest, at which they are found."""

NEWTON = 60
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
def slide(weights, starts, laws, moved, slip):  # type: ignore[no-untyped-def]
    """Advance the states of Dahl elements, in place: z' = dy / c (1 - z sign dy), exact for a displacement dy.

    weights, starts, laws: see `advance`.
    moved: displacements of the joints [rad or m], shape (n,).
    slip: states [-], shape (m,); those of other laws stay 0.
    """
    for i in range(weights.shape[0]):
        along = 0.0
        for j in range(weights.shape[1]):
            along += weights[i, j] * moved[j]
        toward = np.sign(along)
        for k in range(starts[i], starts[i + 1]):
            if laws[k, SHAPE] == DAHL:
                slip[k] = toward - (toward - slip[k]) * math.exp(-abs(along) / laws[k, CONSTANT])


@compiled
def _growth(shape, constant, speed):  # type: ignore[no-untyped-def]
    """Value of a memoryless law at a speed >= 0, and its slope (infinite for powers at rest)."""
    if shape == SIGN:
        if constant == 0.0:
            return (1.0 if speed > 0.0 else 0.0), 0.0
        value = math.tanh(speed / constant)
        return value, (1.0 - value * value) / constant
    if shape in {POWER, RISING}:
        value = speed**constant
        return value, (constant * value / speed if speed > 0.0 else np.inf)
    ratio = speed / constant
    return math.atan(ratio), 1.0 / (constant * (1.0 + ratio * ratio))


@compiled
def _law(law, z, speed):  # type: ignore[no-untyped-def]
    """Value of a law at a velocity, a Dahl element with the state z."""
    if law[SHAPE] == DAHL:
        return z
    if speed * law[SIDE] < 0.0:
        return 0.0
    return math.copysign(_growth(law[SHAPE], law[CONSTANT], abs(speed))[0] * _share(law, speed), speed)


@compiled
def _share(law, speed):  # type: ignore[no-untyped-def]
    """Remaining share of a law that fades, at a velocity; 1 for the others."""
    if law[FADING] == np.inf:
        return 1.0
    ratio = speed / law[FADING]
    return math.exp(-ratio * ratio)


@compiled
def _knee(law, slope):  # type: ignore[no-untyped-def]
    """Speed above which the slope of a saturating law is below a limit; 0 if it rises, infinite for the other laws."""
    if law[SHAPE] == RISING:
        return 0.0
    if law[SHAPE] == POWER:
        return (law[CONSTANT] / slope) ** (1.0 / (1.0 - law[CONSTANT]))
    if law[SHAPE] == ARCTAN:
        return law[CONSTANT] * math.sqrt(max(1.0 / (law[CONSTANT] * slope) - 1.0, 0.0))
    return np.inf


@compiled
def _beyond(law, knee, speed):  # type: ignore[no-untyped-def]
    """Value of a law at a velocity less that at the same direction's knee; 0 below the knee."""
    if not abs(speed) > knee or speed * law[SIDE] < 0.0:
        return 0.0
    above = _growth(law[SHAPE], law[CONSTANT], abs(speed))[0]
    return math.copysign(above - _growth(law[SHAPE], law[CONSTANT], knee)[0], speed)


@compiled
def _end_velocity(free, gain, step, viscous, first, last, laws, torque, knee, slip):  # type: ignore[no-untyped-def]
    """The velocity y with y + gain F(y) = free, with the dry friction F(y) at the end of a step of velocity y.

    Every law grows with y, in each direction ever more slowly: the root is unique, and Newton's method climbs to it
    from below.

    free: velocity at the end without this friction.
    gain: what a unit of friction torque takes from the velocity.
    step: length of the step [s].
    viscous: viscous friction forward and backward, not negative, shape (2,).
    first, last: range of the coordinate's laws.
    laws, slip: see `advance`.
    torque: torque per shape of each law, shape (m,), faded as at the start; negative ones are left out.
    knee: speed up to which each law grows, shape (m,); where it is 0, the law is not dry.
    """
    forward, backward = 0.0, 0.0
    for k in range(first, last):
        if torque[k] <= 0.0:
            continue
        if laws[k, SHAPE] == DAHL:
            free -= gain * torque[k] * slip[k]
        elif laws[k, SHAPE] == SIGN and laws[k, CONSTANT] == 0.0:
            forward += torque[k] * (laws[k, SIDE] >= 0.0)
            backward += torque[k] * (laws[k, SIDE] <= 0.0)
    toward = 1.0 if free > 0.0 else -1.0
    excess = abs(free) - gain * (forward if free > 0.0 else backward)
    if not excess > 0.0:
        return 0.0
    straight = 1.0 + gain * (viscous[0] if free > 0.0 else viscous[1])
    y = _least_root(excess, straight, gain, step, toward, first, last, laws, torque, knee, slip)
    for _ in range(NEWTON):
        value, slope = straight * y - excess, straight
        for k in range(first, last):
            if torque[k] <= 0.0 or toward * laws[k, SIDE] < 0.0 or knee[k] == 0.0:
                continue
            if laws[k, SHAPE] == DAHL:
                left = (1.0 - toward * slip[k]) * math.exp(-step * y / laws[k, CONSTANT])
                value += gain * torque[k] * (1.0 - toward * slip[k] - left)
                slope += gain * torque[k] * left * step / laws[k, CONSTANT]
            elif laws[k, CONSTANT] > 0.0:
                grown, steeper = _growth(laws[k, SHAPE], laws[k, CONSTANT], min(y, knee[k]))
                value += gain * torque[k] * grown
                slope += gain * torque[k] * steeper if y < knee[k] else 0.0
        y -= value / slope
        if abs(value) <= 1e-13 * excess:
            break
    return toward * max(y, 0.0)


@compiled
def _least_root(  # type: ignore[no-untyped-def]
    excess, straight, gain, step, toward, first, last, laws, torque, knee, slip
):
    """A speed that is not above the root of `_end_velocity`: the better of two bounds.

    Where all laws have saturated, the rest is viscous; and a sum of n parts that each are an n-th of the excess at some
    speed does not exceed it at the smallest of these speeds.
    """
    saturated, slope, powers = 0.0, straight, 1
    for k in range(first, last):
        if torque[k] > 0.0 and toward * laws[k, SIDE] >= 0.0 and knee[k] > 0.0:
            constant, strength = laws[k, CONSTANT], gain * torque[k]
            if laws[k, SHAPE] == DAHL:
                saturated += strength * (1.0 - toward * slip[k])
                slope += strength * (1.0 - toward * slip[k]) * step / constant
            elif laws[k, SHAPE] == POWER:
                saturated += strength * min(knee[k], excess / straight) ** constant
                powers += 1
            elif constant > 0.0:
                saturated += strength * _growth(laws[k, SHAPE], constant, min(knee[k], excess / straight))[0]
                slope += strength / constant
    part = excess / powers
    least = part / slope
    for k in range(first, last):
        if laws[k, SHAPE] == POWER and torque[k] > 0.0 and toward * laws[k, SIDE] >= 0.0:
            least = min(least, (part / (gain * torque[k])) ** (1.0 / laws[k, CONSTANT]))
    return max(least, (excess - saturated) / straight)


@compiled
def _dry_friction(step, free, response, viscous, starts, laws, torque, knee, slip, dry):  # type: ignore[no-untyped-def]
    """Dry friction torques of all coordinates, coupled by the inertia, by Gauss-Seidel; `dry` is the first guess.

    Every coordinate in turn takes the torque that the laws have at its velocity, the others' held. The torques are the
    minimum of a convex function, which this descends.
    """
    for _ in range(SWEEPS):
        change, largest = 0.0, 0.0
        for i in range(len(dry)):
            gain = step * response[i, i]
            unhindered = free[i]
            for j in range(len(dry)):
                if j != i:
                    unhindered -= step * response[i, j] * dry[j]
            if gain <= 0.0:
                dry[i] = 0.0
                continue
            y = _end_velocity(unhindered, gain, step, viscous[i], starts[i], starts[i + 1], laws, torque, knee, slip)
            friction = (unhindered - y) / gain
            change, largest = max(change, abs(friction - dry[i])), max(largest, abs(friction))
            dry[i] = friction
        if change <= CONVERGED * largest:
            break


@compiled
def _speeds(weights, dq, out):  # type: ignore[no-untyped-def]
    """Velocities of the coordinates, shape (g,)."""
    for i in range(weights.shape[0]):
        out[i] = 0.0
        for j in range(weights.shape[1]):
            out[i] += weights[i, j] * dq[j]


@compiled
def _strengths(weights, starts, laws, load, torque):  # type: ignore[no-untyped-def]
    """Torque per shape of each law under the loads of the joints, shape (n, 1)."""
    for i in range(weights.shape[0]):
        along, square = 0.0, 0.0
        for j in range(weights.shape[1]):
            along += weights[i, j] * load[j, 0]
            square += weights[i, j] * weights[i, j]
        for k in range(starts[i], starts[i + 1]):
            torque[k] = laws[k, FIXED] + laws[k, LOADED] * abs(along) / square


@compiled
def _smooth(speed, viscous, first, last, laws, torque, knee, fallen):  # type: ignore[no-untyped-def]
    """Friction of one coordinate that is not dry: viscous and rising friction, saturating laws beyond their knees.

    Where the step resolves how a law fades, also what it has faded since the start; see `fallen` of `advance`.
    """
    friction = (viscous[0] if speed > 0.0 else viscous[1]) * speed
    for k in range(first, last):
        if knee[k] < np.inf and (torque[k] > 0.0 or laws[k, SHAPE] == RISING):
            friction += torque[k] * _beyond(laws[k], knee[k], speed)
        if fallen[k] >= 0.0 and speed * laws[k, SIDE] >= 0.0:
            grown = _growth(laws[k, SHAPE], laws[k, CONSTANT], abs(speed))[0]
            friction += torque[k] * (_share(laws[k], speed) - fallen[k]) * math.copysign(grown, speed)
    return friction


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
    stiffness,
    weights,
    viscous,
    starts,
    laws,
    loads,
    effort,
    step,
    count,
    q,
    dq,
    dry,
    slip,
):
    """Advance one state by some steps. Its arguments, with b bodies, n joints, g friction coordinates and m laws.

    parent ... parameters: those of the kernels in `kernels.dynamics`.
    slots, added: rotor inertias: entries of the packed lower triangle of M, shape (r,), and values, (r, 1).
    constant: torque offsets, shape (n,).
    stiffness: torque of the springs over the positions, shape (n, n).
    weights: velocities of the friction coordinates = weights @ dq, shape (g, n).
    viscous: viscous friction of the coordinates forward and backward, shape (g, 2).
    starts: first law of each coordinate, and their number at the end, shape (g + 1,).
    laws: the other friction laws, a sum for each coordinate, shape (m, 6); see `SHAPE` and below.
    loads: standard parameters of which the load of the joints is computed, shape (b, 10), or (0, 10) for no load.
    effort: torques of the motors, constant all along, shape (n,).
    step, count: length [s] and number of the steps.
    q, dq: the state, changed in place, shape (n,).
    dry: dry friction torques, first guess and result, shape (g,).
    slip: states of the Dahl elements, changed in place, shape (m,); 0 for the other laws.

    The load is that at the beginning of each step. It returns the least excess of a pivot of M over rounding: 0 or less
    where M was not positive definite.
    """
    n, g, m = len(q), len(dry), len(slip)
    position, velocity, drive, rest = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, 1)), np.zeros((n, 1))
    acceleration, mass, none = np.empty((n, 1)), np.empty((n * (n + 1) // 2, 1)), np.empty((0, 1))
    excess, factor, inverse = np.empty(1), np.zeros((n, n)), np.zeros((n, n))
    spread, response, free, start = np.empty((g, n)), np.empty((g, g)), np.empty(g), np.empty(g)
    explicit, implicit, torque, knee = np.empty((g, 2)), np.empty((g, 2)), np.empty(m), np.full(m, np.inf)
    moved, gained, held, least = np.empty(n), np.empty(n), np.empty(n), np.inf
    known, saturating, load, passed = np.empty(g), np.zeros(g), np.zeros((n, 1)), np.empty(g)
    held_torque, fallen = np.empty(m), np.full(m, -1.0)  # strengths at the start; what is left of them there, or -1
    for i in range(g):
        for k in range(starts[i], starts[i + 1]):
            saturating[i] += laws[k, SHAPE] in {POWER, ARCTAN}
            if laws[k, SHAPE] == RISING:
                knee[k] = 0.0
    stable = 0.5 * STABLE if saturating.any() else STABLE  # half of it for the saturating laws
    for _ in range(count):
        for j in range(n):  # in loops: checked assignments of slices take half of the compile time
            position[j, 0], velocity[j, 0], drive[j, 0] = q[j], dq[j], effort[j] - constant[j]
            for k in range(n):
                drive[j, 0] -= stiffness[j, k] * q[k]
        if len(loads) > 0:
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
                loads,
                position,
                velocity,
                rest,
                slots,
                added,
                none,
                load,
                none,
                none,
                excess,
            )
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
        _strengths(weights, starts, laws, load, torque)
        _invert(n, mass, factor, inverse)
        _product(weights, inverse, spread)
        _product(spread, weights.T, response)
        _speeds(weights, dq, start)
        rate = 0.0
        for i in range(g):
            rate += max(viscous[i, 0], viscous[i, 1], 0.0) * response[i, i]  # the trace bounds the fastest decay
        for i in range(g):
            most = stable / (g * step * response[i, i])
            for side in range(2):
                implicit[i, side] = max(viscous[i, side] - most, 0.0) if step * rate > stable else 0.0
                explicit[i, side] = viscous[i, side] - implicit[i, side]
            known[i] = 0.0
            for k in range(starts[i], starts[i + 1]):
                left = _share(laws[k], start[i])
                held_torque[k], fallen[k] = torque[k] * left, -1.0
                if laws[k, SHAPE] == RISING:
                    continue
                if torque[k] < 0.0:  # no real friction: taken at the velocity at the start
                    known[i] += torque[k] * _law(laws[k], slip[k], start[i])
                elif torque[k] > 0.0:
                    knee[k] = _knee(laws[k], most / (saturating[i] * torque[k])) if saturating[i] > 0.0 else np.inf
                    if g * step * response[i, i] * torque[k] * STEEPEST <= laws[k, FADING] < np.inf:
                        fallen[k] = left
            passed[i] = known[i] + _smooth(start[i], explicit[i], starts[i], starts[i + 1], laws, torque, knee, fallen)
        for i in range(g):
            free[i] = start[i]
            for j in range(n):
                free[i] += step * weights[i, j] * acceleration[j, 0]
            for k in range(g):
                free[i] -= step * response[i, k] * passed[k]
        _dry_friction(step, free, response, implicit, starts, laws, held_torque, knee, slip, dry)
        for j in range(n):
            held[j] = effort[j] - constant[j]
            for i in range(g):
                held[j] -= weights[i, j] * (dry[i] + known[i])
                acceleration[j, 0] -= spread[i, j] * (dry[i] + passed[i])
        for j in range(n):
            moved[j], gained[j] = dq[j], acceleration[j, 0]
        for stage in range(3):
            share = step if stage == 2 else 0.5 * step
            for j in range(n):
                position[j, 0] = q[j] + share * velocity[j, 0]
            for j in range(n):
                velocity[j, 0] = dq[j] + share * acceleration[j, 0]
                drive[j, 0] = held[j]
                for k in range(n):
                    drive[j, 0] -= stiffness[j, k] * position[k, 0]
            for i in range(g):
                speed = 0.0
                for j in range(n):
                    speed += weights[i, j] * velocity[j, 0]
                friction = _smooth(speed, explicit[i], starts[i], starts[i + 1], laws, torque, knee, fallen)
                for j in range(n):
                    drive[j, 0] -= weights[i, j] * friction
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
            moved[j] *= step / 6.0
            q[j] += moved[j]
            dq[j] += step / 6.0 * gained[j]
        slide(weights, starts, laws, moved, slip)
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
    stiffness,
    weights,
    viscous,
    starts,
    laws,
    loads,
    q,
    dq,
    ddq,
    sliding,
    slip,
):
    """Torques that give one state the accelerations `ddq`; friction is that of the velocities `sliding`, shape (n,).

    The other arguments are those of `advance`; `slip` is not changed. Returns the torques, shape (n,).
    """
    n = len(q)
    torque, none, excess, result = np.empty((n, 1)), np.empty((0, 1)), np.empty(1), np.empty(n)
    load, strength, speeds = np.zeros((n, 1)), np.empty(len(slip)), np.empty(len(weights))
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
    if len(loads) > 0:
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
            loads,
            q.reshape(n, 1),
            sliding.reshape(n, 1),
            np.zeros((n, 1)),
            slots,
            added,
            none,
            load,
            none,
            none,
            excess,
        )
    for j in range(n):
        result[j] = torque[j, 0] + constant[j]
        for k in range(n):
            result[j] += stiffness[j, k] * q[k]
    for r in range(len(slots)):
        high = int((math.sqrt(8.0 * slots[r] + 1.0) - 1.0) / 2.0)
        low = slots[r] - high * (high + 1) // 2
        result[high] += added[r, 0] * ddq[low]
        if high != low:
            result[low] += added[r, 0] * ddq[high]
    _strengths(weights, starts, laws, load, strength)
    _speeds(weights, sliding, speeds)
    for i in range(len(weights)):
        friction = (viscous[i, 0] if speeds[i] > 0.0 else viscous[i, 1]) * speeds[i]
        for k in range(starts[i], starts[i + 1]):
            friction += strength[k] * _law(laws[k], slip[k], speeds[i])
        for j in range(n):
            result[j] += weights[i, j] * friction
    return result
