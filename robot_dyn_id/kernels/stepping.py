# SPDX-License-Identifier: Apache-2.0
"""Forward simulation of one robot or of many: Runge-Kutta steps of a tree with friction, many steps in one call.

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

Many robots of the same tree and the same terms, each with its own parameters, are lanes: the last axis of all arrays.
The compiler vectorizes what all lanes have in common; the search for the dry friction runs lane by lane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.kernels.compiled import compiled, compiled_part, inserted
from robot_dyn_id.kernels.dynamics import BodyTree, dynamics_single, dynamics_tiles

SIGN, DAHL, POWER, ARCTAN, RISING = 0.0, 1.0, 2.0, 3.0, 4.0
"""Shapes of friction laws over the velocity v: tanh(v / c), with c = 0 the hard sign; the state z of a Dahl element
with the breakaway displacement c; sign(v) |v|^c with c in (0, 1); arctan(v / c); sign(v) |v|^c with c of 1 or more."""

SHAPE, CONSTANT, SIDE, FIXED, LOADED, FADING = 0, 1, 2, 3, 4, 5
"""Columns of `laws`: shape and its constant c; 0 for both directions, 1 or -1 for velocities of this sign only; torque
per shape, [N m or N]; the same per load [-]; f of the factor exp(-(v / f)^2) of a sign, infinite without one."""

STEEPEST = 0.86
"""Largest slope of exp(-x^2) over x: sqrt(2 / e)."""

STABLE = 2.5
"""Greatest step times decay rate that the fourth-order method damps (its limit is 2.78)."""

JOINT_NEWTON = 8
"""Most iterations for the velocities of all coordinates together; three are usual."""

SWEEPS = 100
"""Most rounds over the coordinates in search of the friction torques; five are usual."""

CONVERGED = 1e-9
"""Change of the friction torques, as a share of the largest, at which they are found."""

NEWTON = 60
"""Most iterations for one coordinate's velocity; four are usual."""


class Robots(NamedTuple):
    """L robots of the same tree and the same terms: b bodies, n joints, g friction coordinates and m laws.

    Attributes:
        tree: tree of the bodies.
        parameters: standard parameters, shape (b, 10, L).
        slots, added: rotor inertias: entries of the packed lower triangle of M, shape (r,), and values, (r, L).
        constant: torque offsets, shape (n, L).
        stiffness: torque of the springs over the positions, shape (n, n, L), or (0, 0, L) without any.
        waves: torques that repeat along coordinates: weights of each coordinate, then frequency [1/rad or 1/m] and
            phase [rad] of its sine, shape (w, n + 2).
        amplitudes: their amplitudes, shape (w, L).
        weights: velocities of the friction coordinates = weights @ dq, shape (g, n).
        viscous: viscous friction of the coordinates forward and backward, shape (g, 2, L).
        starts: first law of each coordinate, and their number at the end, shape (g + 1,).
        laws: the other friction laws, a sum for each coordinate, shape (m, 6); see `SHAPE` and below. Their torques are
            not read.
        loads: standard parameters of which the load of the joints is computed, shape (b, 10, 1), or (0, 10, 1) for no
            load.
        shares: torque per shape of each law, and the same per load, shape (m, 2, L).
    """

    tree: BodyTree
    parameters: Array
    slots: Integers
    added: Array
    constant: Array
    stiffness: Array
    waves: Array
    amplitudes: Array
    weights: Array
    viscous: Array
    starts: Integers
    laws: Array
    loads: Array
    shares: Array


class State(NamedTuple):
    """State of the L robots, changed in place; of one robot without the last axis.

    Attributes:
        q: positions [rad or m], shape (n, L).
        dq: velocities, shape (n, L).
        dry: dry friction torques, first guess and result, shape (g, L).
        slip: states of the Dahl elements, shape (m, L); 0 for the other laws.
    """

    q: Array
    dq: Array
    dry: Array
    slip: Array


class _Division(NamedTuple):
    """Division of the friction of one step into the part that the fourth-order method takes and the rest.

    Attributes:
        explicit, implicit: viscous friction that the fourth-order method takes, and the rest, shape (g, 2, L).
        torque: torque per shape of each law, shape (m, L).
        held: the same, faded as at the start, shape (m, L).
        knee: speed above which a law is not dry, shape (m, L).
        fallen: share of a law at the start where the step resolves how it fades, else -1, shape (m, L).
        known: friction that is taken as at the start, shape (g, L).
        busy: whether a coordinate has laws that are neither dry nor viscous in any lane, shape (g,).
    """

    explicit: Array
    implicit: Array
    torque: Array
    held: Array
    knee: Array
    fallen: Array
    known: Array
    busy: Mask


@compiled_part
def _invert(packed, factor, inverse):  # type: ignore[no-untyped-def]
    """Inverses (n, n, L) of symmetric positive definite matrices from packed lower triangles, by Cholesky factors."""
    joints, lanes = inverse.shape[0], inverse.shape[2]
    total = np.empty(lanes)
    for i in range(joints):
        for j in range(i + 1):
            for a in range(lanes):
                total[a] = packed[i * (i + 1) // 2 + j, a]
            for k in range(j):
                for a in range(lanes):
                    total[a] -= factor[i, k, a] * factor[j, k, a]
            for a in range(lanes):
                factor[i, j, a] = math.sqrt(total[a]) if i == j else total[a] / factor[j, j, a]
    for column in range(joints):
        for i in range(column, joints):
            for a in range(lanes):
                total[a] = 1.0 if i == column else 0.0
            for k in range(column, i):
                for a in range(lanes):
                    total[a] -= factor[i, k, a] * inverse[k, column, a]
            for a in range(lanes):
                inverse[i, column, a] = total[a] / factor[i, i, a]
        for back in range(joints - column):  # the inverse is symmetric: its lower triangle is enough
            i = joints - 1 - back
            for a in range(lanes):
                total[a] = inverse[i, column, a]
            for k in range(i + 1, joints):
                for a in range(lanes):
                    total[a] -= factor[k, i, a] * inverse[k, column, a]
            for a in range(lanes):
                inverse[i, column, a] = total[a] / factor[i, i, a]
                inverse[column, i, a] = inverse[i, column, a]


@compiled_part
def _combine(weights, matrix, out):  # type: ignore[no-untyped-def]
    """Products weights @ matrix of all lanes, shape (g, c, L), with `weights` of shape (g, n), mostly zeros."""
    for i in range(weights.shape[0]):
        for j in range(matrix.shape[1]):
            for a in range(matrix.shape[2]):
                out[i, j, a] = 0.0
        for k in range(weights.shape[1]):
            weight = weights[i, k]
            if weight != 0.0:
                for j in range(matrix.shape[1]):
                    for a in range(matrix.shape[2]):
                        out[i, j, a] += weight * matrix[k, j, a]


@compiled_part
def slid(z, along, constant):  # type: ignore[no-untyped-def]
    """State of a Dahl element after a displacement."""
    toward = np.sign(along)
    return toward - (toward - z) * math.exp(-abs(along) / constant)


@compiled
def slide(robot, moved, slip):  # type: ignore[no-untyped-def]
    """Advance the states of Dahl elements, in place: z' = dy / c (1 - z sign dy), exact for a displacement dy.

    moved: displacements of the joints [rad or m], shape (n,).
    slip: states [-], shape (m,); those of other laws stay 0.
    """
    weights, starts, laws = robot.weights, robot.starts, robot.laws
    for i in range(weights.shape[0]):
        along = 0.0
        for j in range(weights.shape[1]):
            along += weights[i, j] * moved[j]
        for k in range(starts[i], starts[i + 1]):
            if laws[k, SHAPE] == DAHL:
                slip[k] = slid(slip[k], along, laws[k, CONSTANT])


@compiled_part
def _growth(shape, constant, speed):  # type: ignore[no-untyped-def]
    """Value of a memoryless law at a speed >= 0, and its slope (infinite for powers at rest)."""
    if shape == SIGN:
        if constant == 0.0:
            return (1.0 if speed > 0.0 else 0.0), 0.0
        value = math.tanh(speed / constant)
        return value, (1.0 - value * value) / constant
    if shape != ARCTAN:
        value = speed**constant
        return value, (constant * value / speed if speed > 0.0 else np.inf)
    ratio = speed / constant
    return math.atan(ratio), 1.0 / (constant * (1.0 + ratio * ratio))


@compiled_part
def _law(law, z, speed):  # type: ignore[no-untyped-def]
    """Value of a law at a velocity, a Dahl element with the state z."""
    if law[SHAPE] == DAHL:
        return z
    if speed * law[SIDE] < 0.0:
        return 0.0
    return math.copysign(_growth(law[SHAPE], law[CONSTANT], abs(speed))[0] * _share(law, speed), speed)


@compiled_part
def _share(law, speed):  # type: ignore[no-untyped-def]
    """Remaining share of a law that fades, at a velocity; 1 for the others."""
    if law[FADING] == np.inf:
        return 1.0
    ratio = speed / law[FADING]
    return math.exp(-ratio * ratio)


@compiled_part
def _knee(law, slope):  # type: ignore[no-untyped-def]
    """Speed above which the slope of a saturating law is below a limit; 0 if it rises, infinite for the other laws."""
    if law[SHAPE] == RISING:
        return 0.0
    if law[SHAPE] == POWER:
        return (law[CONSTANT] / slope) ** (1.0 / (1.0 - law[CONSTANT]))
    if law[SHAPE] == ARCTAN:
        return law[CONSTANT] * math.sqrt(max(1.0 / (law[CONSTANT] * slope) - 1.0, 0.0))
    return np.inf


@compiled_part
def _beyond(law, knee, speed):  # type: ignore[no-untyped-def]
    """Value of a law at a velocity less that at the same direction's knee; 0 below the knee."""
    if not abs(speed) > knee or speed * law[SIDE] < 0.0:
        return 0.0
    above = _growth(law[SHAPE], law[CONSTANT], abs(speed))[0]
    return math.copysign(above - _growth(law[SHAPE], law[CONSTANT], knee)[0], speed)


@compiled_part
def _end_velocity(free, gain, step, viscous, first, last, laws, torque, knee, slip):  # type: ignore[no-untyped-def]
    """The velocity y with y + gain F(y) = free, with the dry friction F(y) at the end of a step of velocity y.

    Every law grows with y, in each direction ever more slowly: the root is unique, and Newton's method climbs to it
    from below.

    free: velocity at the end without this friction.
    gain: what a unit of friction torque takes from the velocity.
    step: length of the step [s].
    viscous: viscous friction forward and backward, not negative, shape (2,).
    first, last: range of the coordinate's laws.
    laws, slip: see `Robots` and `State`.
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


@compiled_part
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


@compiled_part
def _resistance(y, step, viscous, first, last, laws, torque, knee, slip):  # type: ignore[no-untyped-def]
    """Dry friction of a coordinate at the end of a step of velocity y, and its slope; see `_end_velocity`."""
    speed, slope = abs(y), (viscous[0] if y > 0.0 else viscous[1])
    value = slope * y
    for k in range(first, last):
        if torque[k] <= 0.0 or y * laws[k, SIDE] < 0.0 or knee[k] == 0.0:
            continue
        if laws[k, SHAPE] == DAHL:
            toward = 1.0 if y > 0.0 else -1.0
            left = (1.0 - toward * slip[k]) * math.exp(-step * speed / laws[k, CONSTANT])
            value += torque[k] * toward * (1.0 - left)
            slope += torque[k] * left * step / laws[k, CONSTANT]
        else:
            grown, steeper = _growth(laws[k, SHAPE], laws[k, CONSTANT], min(speed, knee[k]))
            value += torque[k] * math.copysign(grown, y)
            slope += torque[k] * steeper if speed < knee[k] else 0.0
    return value, slope


@compiled_part
def _converge(step, free, response, viscous, starts, laws, torque, knee, slip, dry):  # type: ignore[no-untyped-def]
    """Newton's method for the velocities of all coordinates, y + step R F(y) = free; arguments as in `dry_friction`.

    Its steps solve (1 + step R S) dy = step R (found - F(y)) with the slopes S of F, by the Cholesky factor of
    1 + s step R s, where s = sqrt(S). Returns whether it converged: the friction that leads to y is F(y). `dry` is
    changed only then. Laws with an infinite slope are not tried.
    """
    g = len(dry)
    for k in range(len(laws)):
        endless = laws[k, SHAPE] == POWER or (laws[k, SHAPE] == SIGN and laws[k, CONSTANT] == 0.0)
        if endless and torque[k] > 0.0:
            return False
    y, found, value, slope = np.empty(g), dry.copy(), np.empty(g), np.empty(g)
    residual, factor, solution = np.empty(g), np.empty((g, g)), np.empty(g)
    for _ in range(JOINT_NEWTON):
        change, largest = 0.0, 0.0
        for i in range(g):
            y[i] = free[i]
            for j in range(g):
                y[i] -= step * response[i, j] * found[j]
        for i in range(g):
            value[i], slope[i] = _resistance(y[i], step, viscous[i], starts[i], starts[i + 1], laws, torque, knee, slip)
            residual[i] = value[i] - found[i]
            change, largest = max(change, abs(residual[i])), max(largest, abs(value[i]))
        if change <= CONVERGED * largest:
            for i in range(g):
                dry[i] = found[i]
            return True
        for i in range(g):
            total = 0.0
            for j in range(g):
                total -= step * response[i, j] * residual[j]
            root = math.sqrt(slope[i])
            total *= root
            for j in range(i + 1):
                entry = step * root * response[i, j] * math.sqrt(slope[j])
                for k in range(j):
                    entry -= factor[i, k] * factor[j, k]
                if i == j:
                    factor[i, i] = math.sqrt(1.0 + entry)
                else:
                    factor[i, j] = entry / factor[j, j]
                    total -= factor[i, j] * solution[j]
            solution[i] = total / factor[i, i]
        for back in range(g):
            i = g - 1 - back
            for k in range(i + 1, g):
                solution[i] -= factor[k, i] * solution[k]
            solution[i] /= factor[i, i]
        for i in range(g):
            found[i] = value[i] + math.sqrt(slope[i]) * solution[i]
    return False


@compiled
def dry_friction(step, free, response, viscous, starts, laws, torque, knee, slip, dry):  # type: ignore[no-untyped-def]
    """Dry friction torques of all coordinates, coupled by the inertia; `dry` is the first guess.

    Newton's method for all together, where it converges, else Gauss-Seidel:
    Every coordinate in turn takes the torque that the laws have at its velocity, the others' held. The torques are the
    minimum of a convex function, which this descends.
    """
    if _converge(step, free, response, viscous, starts, laws, torque, knee, slip, dry):
        return
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


@compiled_part
def _speeds(weights, dq, out):  # type: ignore[no-untyped-def]
    """Velocities of the coordinates, shape (g, L), from those of the joints, (n, L)."""
    for i in range(weights.shape[0]):
        for a in range(dq.shape[1]):
            out[i, a] = 0.0
        for j in range(weights.shape[1]):
            if weights[i, j] != 0.0:
                for a in range(dq.shape[1]):
                    out[i, a] += weights[i, j] * dq[j, a]


@compiled_part
def _strengths(robots, load, torque):  # type: ignore[no-untyped-def]
    """Torque per shape of each law, shape (m, L), under the loads of the joints, (n, L)."""
    weights, starts, shares = robots.weights, robots.starts, robots.shares
    for i in range(weights.shape[0]):
        square = 0.0
        for j in range(weights.shape[1]):
            square += weights[i, j] * weights[i, j]
        for k in range(starts[i], starts[i + 1]):
            for a in range(load.shape[1]):
                along = 0.0
                for j in range(weights.shape[1]):
                    along += weights[i, j] * load[j, a]
                torque[k, a] = shares[k, 0, a] + shares[k, 1, a] * abs(along) / square


@compiled_part
def _risen(speed, lane, first, last, laws, torque, knee, fallen):  # type: ignore[no-untyped-def]
    """Friction of one coordinate that is neither dry nor viscous: saturating laws beyond their knees, rising friction.

    Where the step resolves how a law fades, also what it has faded since the start; see `fallen` of `_Division`.
    """
    friction = 0.0
    for k in range(first, last):
        if knee[k, lane] < np.inf and (torque[k, lane] > 0.0 or laws[k, SHAPE] == RISING):
            friction += torque[k, lane] * _beyond(laws[k], knee[k, lane], speed)
        left = fallen[k, lane]
        if left >= 0.0 and speed * laws[k, SIDE] >= 0.0:
            grown = _growth(laws[k, SHAPE], laws[k, CONSTANT], abs(speed))[0]
            friction += torque[k, lane] * (_share(laws[k], speed) - left) * math.copysign(grown, speed)
    return friction


@compiled_part
def _oppose(robots, division, velocity, speed, friction):  # type: ignore[no-untyped-def]
    """Friction of the coordinates that is not dry, shape (g, L), at velocities of the joints, (n, L).

    speed: velocities of the coordinates, shape (g, L), filled.
    """
    weights, starts, laws, viscous, busy = robots.weights, robots.starts, robots.laws, division.explicit, division.busy
    torque, knee, fallen = division.torque, division.knee, division.fallen
    _speeds(weights, velocity, speed)
    for i in range(weights.shape[0]):
        for a in range(velocity.shape[1]):
            friction[i, a] = (viscous[i, 0, a] if speed[i, a] > 0.0 else viscous[i, 1, a]) * speed[i, a]
        if busy[i]:
            for a in range(velocity.shape[1]):
                friction[i, a] += _risen(speed[i, a], a, starts[i], starts[i + 1], laws, torque, knee, fallen)


@compiled_part
def _divide(lane, step, robots, response, start, slip, division):  # type: ignore[no-untyped-def]
    """Divide the friction of one lane for one step: fill `division` but for its torques.

    response: velocity of a coordinate per impulse on another one, shape (g, g, L).
    start: velocities of the coordinates at the start, shape (g, L).
    slip: see `State`.

    Returns whether the lane has any friction to be found implicitly.
    """
    viscous, starts, laws = robots.viscous, robots.starts, robots.laws
    explicit, implicit, torque, held, knee, fallen, known, busy = division
    g, rate, dry, any_saturating = len(start), 0.0, False, False
    for k in range(len(laws)):
        any_saturating = any_saturating or laws[k, SHAPE] == POWER or laws[k, SHAPE] == ARCTAN
    stable = 0.5 * STABLE if any_saturating else STABLE  # half of it for the saturating laws
    for i in range(g):
        rate += max(viscous[i, 0, lane], viscous[i, 1, lane], 0.0) * response[i, i, lane]  # bounds the fastest decay
    for i in range(g):
        most = stable / (g * step * response[i, i, lane])
        for side in range(2):
            beyond = max(viscous[i, side, lane] - most, 0.0) if step * rate > stable else 0.0
            implicit[i, side, lane], explicit[i, side, lane] = beyond, viscous[i, side, lane] - beyond
            dry = dry or beyond > 0.0
        known[i, lane], saturating = 0.0, 0.0
        for k in range(starts[i], starts[i + 1]):
            saturating += laws[k, SHAPE] == POWER or laws[k, SHAPE] == ARCTAN
        for k in range(starts[i], starts[i + 1]):
            strength, left = torque[k, lane], _share(laws[k], start[i, lane])
            held[k, lane], fallen[k, lane], knee[k, lane] = strength * left, -1.0, np.inf
            if laws[k, SHAPE] == RISING:
                knee[k, lane] = 0.0
                busy[i] = True
            elif strength < 0.0:  # no real friction: taken at the velocity at the start
                known[i, lane] += strength * _law(laws[k], slip[k, lane], start[i, lane])
            elif strength > 0.0:
                dry = True
                if saturating > 0.0:
                    knee[k, lane] = _knee(laws[k], most / (saturating * strength))
                    busy[i] = busy[i] or knee[k, lane] < np.inf
                if g * step * response[i, i, lane] * strength * STEEPEST <= laws[k, FADING] < np.inf:
                    fallen[k, lane] = left
                    busy[i] = True
    return dry


@compiled_part
def _stick(lane, step, robots, free, response, division, slip, dry):  # type: ignore[no-untyped-def]
    """Find the dry friction torques of one lane; arguments as in `dry_friction`, with the lanes as last axis."""
    starts, laws, implicit, held, knee = robots.starts, robots.laws, division.implicit, division.held, division.knee
    g, m = len(free), len(laws)
    unhindered, guess, couplings, viscous = np.empty(g), np.empty(g), np.empty((g, g)), np.empty((g, 2))
    torque, knees, states = np.empty(m), np.empty(m), np.empty(m)
    for i in range(g):
        unhindered[i], guess[i] = free[i, lane], dry[i, lane]
        viscous[i, 0], viscous[i, 1] = implicit[i, 0, lane], implicit[i, 1, lane]
        for j in range(g):
            couplings[i, j] = response[i, j, lane]
    for k in range(m):
        torque[k], knees[k], states[k] = held[k, lane], knee[k, lane], slip[k, lane]
    dry_friction(step, unhindered, couplings, viscous, starts, laws, torque, knees, states, guess)
    for i in range(g):
        dry[i, lane] = guess[i]


@inserted
def _evaluate(robots, parameters, q, dq, ddq, effort, torque, mass, acceleration, excess):  # type: ignore[no-untyped-def]
    """Evaluate the kernel of `kernels.dynamics` that suits the number of lanes."""
    tree, slots, added = robots.tree, robots.slots, robots.added
    if q.shape[1] == 1:
        dynamics_single(tree, parameters, q, dq, ddq, slots, added, effort, torque, mass, acceleration, excess)
    else:
        dynamics_tiles(tree, parameters, q, dq, ddq, slots, added, effort, torque, mass, acceleration, excess)


@compiled
def _subtract_waves(waves, amplitudes, q, drive):  # type: ignore[no-untyped-def]
    """Subtract the torques that repeat along coordinates from those of the motors, (n, L), at positions q, (n, L)."""
    n = len(q)
    for k in range(len(waves)):
        for a in range(q.shape[1]):
            along = 0.0
            for j in range(n):
                along += waves[k, j] * q[j, a]
            torque = amplitudes[k, a] * math.sin(waves[k, n] * along + waves[k, n + 1])
            for j in range(n):
                drive[j, a] -= waves[k, j] * torque


@compiled
def advance_lanes(robots, effort, step, count, state, least):  # type: ignore[no-untyped-def]
    """Advance the state of L robots by some steps, in place.

    effort: torques of the motors, constant all along, shape (n, L).
    step, count: length [s] and number of the steps.
    least: filled with the least excess of a pivot of M over rounding, shape (L,): 0 or less where M was not positive
        definite. The states of such a lane are not valid; no other lane depends on them.

    The load is that at the beginning of each step.
    """
    constant, stiffness, weights, loads = robots.constant, robots.stiffness, robots.weights, robots.loads
    starts, laws = robots.starts, robots.laws
    q, dq, dry, slip = state
    n, lanes, g, m = q.shape[0], q.shape[1], len(weights), len(laws)
    position, velocity, drive, rest = np.empty_like(q), np.empty_like(q), np.empty_like(q), np.zeros_like(q)
    acceleration, mass, none = np.empty_like(q), np.empty((n * (n + 1) // 2, lanes)), np.empty((0, lanes))
    excess, factor, inverse = np.empty(lanes), np.zeros((n, n, lanes)), np.zeros((n, n, lanes))
    spread, response = np.empty((g, n, lanes)), np.empty((g, g, lanes))
    turned = np.empty((n, g, lanes))
    free, start, passed, known = np.empty((g, lanes)), np.empty((g, lanes)), np.empty((g, lanes)), np.empty((g, lanes))
    explicit, implicit = np.empty((g, 2, lanes)), np.empty((g, 2, lanes))
    torque, held, knee, fallen = np.empty((m, lanes)), np.empty((m, lanes)), np.empty((m, lanes)), np.empty((m, lanes))
    moved, gained, remaining, load = np.empty_like(q), np.empty_like(q), np.empty_like(q), np.zeros_like(q)
    busy, sprung, sliding = np.zeros(g, dtype=np.bool_), False, False
    division = _Division(explicit, implicit, torque, held, knee, fallen, known, busy)
    sticks = np.zeros(lanes, dtype=np.bool_)
    for j in range(stiffness.shape[0]):
        for k in range(stiffness.shape[1]):
            for a in range(stiffness.shape[2]):
                sprung = sprung or stiffness[j, k, a] != 0.0
    for k in range(m):
        sliding = sliding or laws[k, SHAPE] == DAHL
    for a in range(lanes):
        least[a] = np.inf
    for _ in range(count):
        for j in range(n):  # in loops, without sets and reductions: each of NumPy's takes a second to compile
            for a in range(lanes):
                position[j, a], velocity[j, a], drive[j, a] = q[j, a], dq[j, a], effort[j, a] - constant[j, a]
            if sprung:
                for k in range(n):
                    for a in range(lanes):
                        drive[j, a] -= stiffness[j, k, a] * q[k, a]
        _subtract_waves(robots.waves, robots.amplitudes, q, drive)
        if len(loads) > 0:
            _evaluate(robots, loads, position, velocity, rest, none, load, none, none, excess)
        _evaluate(robots, robots.parameters, position, velocity, rest, drive, none, mass, acceleration, excess)
        valid = False
        for a in range(lanes):
            least[a] = min(least[a], excess[a]) if excess[a] > 0.0 else 0.0
            valid = valid or least[a] > 0.0
        if not valid:
            break
        _strengths(robots, load, torque)
        _invert(mass, factor, inverse)
        _combine(weights, inverse, spread)
        for i in range(g):
            for j in range(n):
                for a in range(lanes):
                    turned[j, i, a] = spread[i, j, a]
        _combine(weights, turned, response)
        _speeds(weights, dq, start)
        for i in range(g):
            busy[i] = False
        for a in range(lanes):
            sticks[a] = least[a] > 0.0 and _divide(a, step, robots, response, start, slip, division)
        _oppose(robots, division, dq, start, passed)
        for i in range(g):
            for a in range(lanes):
                passed[i, a] += known[i, a]
                free[i, a] = start[i, a]
        for i in range(g):
            for j in range(n):
                if weights[i, j] != 0.0:
                    for a in range(lanes):
                        free[i, a] += step * weights[i, j] * acceleration[j, a]
            for k in range(g):
                for a in range(lanes):
                    free[i, a] -= step * response[i, k, a] * passed[k, a]
        for a in range(lanes):
            if sticks[a]:
                _stick(a, step, robots, free, response, division, slip, dry)
            else:
                for i in range(g):
                    dry[i, a] = 0.0
        for j in range(n):
            for a in range(lanes):
                remaining[j, a] = effort[j, a] - constant[j, a]
            for i in range(g):
                weight = weights[i, j]
                for a in range(lanes):
                    if weight != 0.0:
                        remaining[j, a] -= weight * (dry[i, a] + known[i, a])
                    acceleration[j, a] -= spread[i, j, a] * (dry[i, a] + passed[i, a])
            for a in range(lanes):
                moved[j, a], gained[j, a] = dq[j, a], acceleration[j, a]
        for stage in range(3):
            share, weight = (step, 1.0) if stage == 2 else (0.5 * step, 2.0)
            for j in range(n):
                for a in range(lanes):
                    position[j, a] = q[j, a] + share * velocity[j, a]
                    velocity[j, a] = dq[j, a] + share * acceleration[j, a]
                    drive[j, a] = remaining[j, a]
            if sprung:
                for j in range(n):
                    for k in range(n):
                        for a in range(lanes):
                            drive[j, a] -= stiffness[j, k, a] * position[k, a]
            _subtract_waves(robots.waves, robots.amplitudes, position, drive)
            _oppose(robots, division, velocity, start, passed)
            for i in range(g):
                for j in range(n):
                    if weights[i, j] != 0.0:
                        for a in range(lanes):
                            drive[j, a] -= weights[i, j] * passed[i, a]
            _evaluate(robots, robots.parameters, position, velocity, rest, drive, none, none, acceleration, excess)
            for a in range(lanes):
                least[a] = min(least[a], excess[a]) if excess[a] > 0.0 else 0.0
            for j in range(n):
                for a in range(lanes):
                    moved[j, a] += weight * velocity[j, a]
                    gained[j, a] += weight * acceleration[j, a]
        for j in range(n):
            for a in range(lanes):
                moved[j, a] *= step / 6.0
                q[j, a] += moved[j, a]
                dq[j, a] += step / 6.0 * gained[j, a]
        if sliding:
            _speeds(weights, moved, start)
            for i in range(g):
                for k in range(starts[i], starts[i + 1]):
                    if laws[k, SHAPE] == DAHL:
                        for a in range(lanes):
                            slip[k, a] = slid(slip[k, a], start[i, a], laws[k, CONSTANT])


@compiled
def advance(robot, effort, step, count, state):  # type: ignore[no-untyped-def]
    """Advance the state of one robot by some steps: `advance_lanes` with one lane.

    robot: `Robots` with L = 1; the other arguments have no axis for the lanes.

    Returns the least excess of a pivot of M over rounding: 0 or less where M was not positive definite.
    """
    n, g, m, least = len(state.q), len(state.dry), len(state.slip), np.empty(1)
    q, dq, dry, slip = state.q.reshape(n, 1), state.dq.reshape(n, 1), state.dry.reshape(g, 1), state.slip.reshape(m, 1)
    advance_lanes(robot, effort.reshape(n, 1), step, count, State(q, dq, dry, slip), least)
    return least[0]


@compiled
def compute_motor_effort(robot, q, dq, ddq, sliding, slip):  # type: ignore[no-untyped-def]
    """Torques that give one state the accelerations `ddq`; friction is that of the velocities `sliding`, shape (n,).

    robot: `Robots` with L = 1.
    slip: states of the Dahl elements, shape (m,), not changed.

    Returns the torques, shape (n,).
    """
    slots, added, weights, viscous = robot.slots, robot.added, robot.weights, robot.viscous
    starts, laws, loads = robot.starts, robot.laws, robot.loads
    n = len(q)
    torque, none, excess, result = np.empty((n, 1)), np.empty((0, 1)), np.empty(1), np.empty(n)
    load, strength, speeds = np.zeros((n, 1)), np.empty((len(slip), 1)), np.empty((len(weights), 1))
    at, along, rest = q.reshape(n, 1), sliding.reshape(n, 1), np.zeros((n, 1))
    dynamics_single(
        robot.tree,
        robot.parameters,
        at,
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
        dynamics_single(robot.tree, loads, at, along, rest, slots, added, none, load, none, none, excess)
    wave = np.zeros((n, 1))
    _subtract_waves(robot.waves, robot.amplitudes, at, wave)
    for j in range(n):
        result[j] = torque[j, 0] + robot.constant[j, 0] - wave[j, 0]
        for k in range(n):
            result[j] += robot.stiffness[j, k, 0] * q[k]
    for r in range(len(slots)):
        high = int((math.sqrt(8.0 * slots[r] + 1.0) - 1.0) / 2.0)
        low = slots[r] - high * (high + 1) // 2
        result[high] += added[r, 0] * ddq[low]
        if high != low:
            result[low] += added[r, 0] * ddq[high]
    _strengths(robot, load, strength)
    _speeds(weights, along, speeds)
    for i in range(len(weights)):
        speed = speeds[i, 0]
        friction = (viscous[i, 0, 0] if speed > 0.0 else viscous[i, 1, 0]) * speed
        for k in range(starts[i], starts[i + 1]):
            friction += strength[k, 0] * _law(laws[k], slip[k], speed)
        for j in range(n):
            result[j] += weights[i, j] * friction
    return result


@compiled
def advance_blocks(robots, effort, step, count, state, least, first, last):  # type: ignore[no-untyped-def]
    """Call `advance_lanes` for blocks of lanes, from the block `first` to the one before `last`.

    The blocks are the first axis of all arguments that have an axis for the lanes, except `loads`. What a block
    contains does not depend on which call, hence on which core, it is part of.
    """
    for block in range(first, last):
        advance_lanes(
            Robots(
                robots.tree,
                robots.parameters[block],
                robots.slots,
                robots.added[block],
                robots.constant[block],
                robots.stiffness[block],
                robots.waves,
                robots.amplitudes[block],
                robots.weights,
                robots.viscous[block],
                robots.starts,
                robots.laws,
                robots.loads,
                robots.shares[block],
            ),
            effort[block],
            step,
            count,
            State(state.q[block], state.dq[block], state.dry[block], state.slip[block]),
            least[block],
        )
