# SPDX-License-Identifier: Apache-2.0
"""Motion of a robot under position commands, and its derivatives by the parameters of the actuators.

One step of length h from (q, v) to (q', v') solves

    ID(q_m, v_m, a) + armature a + viscous u + F(v') + offset = effort,  a = (v' - v) / h,  u = (v + v') / 2

with the effort kp (r - q - h u / 2) - kd u of the drive, or its limit. r is the mean of the delayed reference, which is
held from one sample to the next, with triangular weights around the middle of the step: its derivative by the delay has
no jumps. The inverse dynamics ID of the links is taken in the middle of the
step, q_m = q + h v / 2, with the extrapolated velocity v_m = (3 v - v_before) / 2. F is the Coulomb friction that the
velocity at the end of the step leads to (see `kernels.stepping`). A joint that reverses within a step has the friction
of its old direction up to that time: F is its mean then, s (1 - 2 w) for the new sign s after a share w of the step.
A joint with a breakaway displacement d has presliding friction instead, a Dahl element (see `kernels.presliding`): F is
the Coulomb friction times its state after half of the way h u of the step. Coulomb friction is a constant and a share
of the load of the joint, |ID(q_m, v_m, 0)| (as the term `load_coulomb`). All of this is of second order in h.

The drive does not follow a reference beyond the range of its references: it follows the end of the range. A joint that
would go beyond a stop in a step is at the stop at its end, at rest (an inelastic impact, or the stop that carries what
the drive pushes); its velocity is zero in the equations of the others.

The derivatives are those of these equations, step by step. Left out is only what other joints and the configuration
change of the time of a reversal or of an impact within its step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.kernels.compiled import compiled, compiled_part
from robot_dyn_id.kernels.dynamics import dynamics_single
from robot_dyn_id.kernels.stepping import CONSTANT, DAHL, FADING, SHAPE, dry_friction, slid

KINDS = (
    *("armature", "viscous", "coulomb", "load_coulomb", "breakaway_displacement"),
    *("offset", "delay", "kp", "kd", "limit"),
    *("lower_stop", "upper_stop", "lower_reference", "upper_reference"),
)
"""Parameters of an actuator; column number n kind + joint is the derivative by one of them."""

ARMATURE, VISCOUS, COULOMB, LOAD_COULOMB, BREAKAWAY, OFFSET, DELAY, KP, KD, LIMIT = range(10)

LOWER_STOP, UPPER_STOP, LOWER_REFERENCE, UPPER_REFERENCE = range(10, 14)

BREAKDOWN = 1e6
"""Speed at which a simulation has diverged [rad/s or m/s]."""

STICK_TOLERANCE = 1e-9
"""Friction below the Coulomb friction by more than this share of it holds the joint."""


class Actuators(NamedTuple):
    """Parameters of the actuators of n joints.

    Attributes:
        values: rows in the order of `KINDS`, shape (14, n); limits, stops and ends of references may be infinite.
    """

    values: Array


class HeldCommands(NamedTuple):
    """Commanded positions of a motion of N samples; of the M, the first may be from before it.

    Attributes:
        t: times of the motion [s], shape (N,), increasing.
        at: times of the commands [s], shape (M,), increasing.
        reference: commanded positions [rad or m], shape (M, n), each held until the next.
    """

    t: Array
    at: Array
    reference: Array


class Steps(NamedTuple):
    """Steps of a simulation, S in number, as its derivatives need them.

    Attributes:
        q, v, end: position and velocity at the start, velocity at the end, shape (S, n).
        middle, speed: position and velocity of the inverse dynamics, shape (S, n).
        mean, by_delay: reference of the step, and its derivative by the delay, shape (S, n).
        below, above: shares of the reference of the step that are ends of its range, the lower and the upper one, shape
            (S, n).
        load: torque of the links without acceleration, shape (S, n).
        slip: states of the Dahl elements at the start, 0 for joints without one, shape (S, n).
        mass: packed lower triangle of the mass matrix of the links, shape (S, n (n + 1) / 2).
        limited: -1 or 1 at a limit of the effort, else 0, shape (S, n).
        stopped: -1 or 1 at the lower or the upper stop, else 0, shape (S, n).
        sliding: -1 or 1, the direction, or 0 for a joint that sticks or is stopped, shape (S, n).
        reversal: share of the step after which the joint reverses; 0 where it does not, shape (S, n).
        response: velocity per impulse of each joint, shape (S, n).
    """

    q: Array
    v: Array
    end: Array
    middle: Array
    speed: Array
    mean: Array
    by_delay: Array
    below: Array
    above: Array
    load: Array
    slip: Array
    mass: Array
    limited: Array
    stopped: Array
    sliding: Array
    reversal: Array
    response: Array


@compiled_part
def _average(commands, j, lower, upper, first, step, place):  # type: ignore[no-untyped-def]
    """Mean reference of a joint within a range, with triangular weights over two steps from `first` on.

    Returns this, its derivative by a delay, the shares of both ends of the range in it, and the number of the sample
    that is held at first; `place` is a number before it.
    """
    at, last = commands.at, len(commands.at) - 1
    while place < last and at[place + 1] <= first:
        place += 1
    mean, slope, passed, weight, below, above, k = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, place
    while True:
        inside = k < last and at[k + 1] < first + 2.0 * step
        until, next_weight = 1.0, 0.0
        if inside:
            x = (at[k + 1] - first) / step
            until = 0.5 * x * x if x < 1.0 else 1.0 - 0.5 * (2.0 - x) ** 2
            next_weight = (x if x < 1.0 else 2.0 - x) / step
        reference = commands.reference[k, j]
        if reference < lower:
            reference = lower
            below += until - passed
        elif reference > upper:
            reference = upper
            above += until - passed
        mean += reference * (until - passed)
        slope += reference * (next_weight - weight)
        if not inside:
            break
        passed, weight = until, next_weight
        k += 1
    return mean, slope, below, above, place


@compiled
def roll_out(  # type: ignore[no-untyped-def]
    tree, parameters, actuators, commands, count, q, v, earlier, slip, positions, steps
):
    """Simulate the motion from the first sample to the last.

    tree, parameters: those of `kernels.dynamics`, parameters of one robot, shape (b, 10, 1).
    count: number of steps from one sample to the next.
    q, v: initial positions and velocities, shape (n,); not changed.
    earlier: velocities one step before, shape (n,); not changed.
    slip: states of the Dahl elements, shape (n,), changed in place.
    positions: filled with the positions at the samples, shape (N, n).
    steps: filled, see `Steps`.

    Returns whether it did not diverge.
    """
    values, n, samples = actuators.values, len(q), len(commands.t)
    middle, speed, rest, zero = np.empty((n, 1)), np.empty((n, 1)), np.zeros((n, 1)), np.zeros((n, 1))
    torque, mass = np.empty((n, 1)), np.empty((n * (n + 1) // 2, 1))
    none, excess = np.empty((0, 1)), np.empty(1)
    slots, added = np.empty(0, dtype=np.int64), np.empty((0, 1))
    q, v = q.copy(), v.copy()
    before, free, dry = earlier.copy(), np.empty(n), np.zeros(n)
    matrix, factor, inverse = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n))
    viscous, starts, laws = np.zeros((n, 2)), np.arange(n + 1), np.zeros((n, 6))
    laws[:, FADING] = np.inf
    for j in range(n):
        if values[BREAKAWAY, j] > 0.0:
            laws[j, SHAPE], laws[j, CONSTANT] = DAHL, values[BREAKAWAY, j]
    knee, coulomb, response, unhindered = np.full(n, np.inf), np.empty(n), np.empty((n, n)), np.empty(n)
    push, stopped = np.empty(n), np.zeros(n)
    places = np.zeros(n, dtype=np.int64)
    k = 0
    for sample in range(samples):
        for j in range(n):
            positions[sample, j] = q[j]
        if sample == samples - 1:
            break
        step = (commands.t[sample + 1] - commands.t[sample]) / count
        for part in range(count):
            start = commands.t[sample] + part * step
            for j in range(n):
                middle[j, 0] = q[j] + 0.5 * step * v[j]
                speed[j, 0] = 1.5 * v[j] - 0.5 * before[j]
            dynamics_single(*(tree, parameters, middle, speed, rest, slots, added, zero, torque, mass, none, excess))
            for j in range(n):
                first = start - values[DELAY, j] - 0.5 * step
                lowest, highest = values[LOWER_REFERENCE, j], values[UPPER_REFERENCE, j]
                mean, by_delay, below, above, places[j] = _average(commands, j, lowest, highest, first, step, places[j])
                kp, kd = values[KP, j], values[KD, j]
                expected = kp * (mean - middle[j, 0]) - kd * speed[j, 0]
                limited = 1.0 if expected > values[LIMIT, j] else -1.0 if expected < -values[LIMIT, j] else 0.0
                effort = kp * (mean - q[j] - 0.25 * step * v[j]) - 0.5 * kd * v[j]
                if limited != 0.0:
                    effort, kp, kd = limited * values[LIMIT, j], 0.0, 0.0
                drag = values[VISCOUS, j]
                for i in range(j):
                    matrix[j, i] = matrix[i, j] = mass[j * (j + 1) // 2 + i, 0]
                inertia = mass[j * (j + 1) // 2 + j, 0] + values[ARMATURE, j]
                matrix[j, j] = inertia + 0.5 * step * (kd + drag) + 0.25 * step * step * kp
                push[j] = step * (effort - torque[j, 0] - values[OFFSET, j] - 0.5 * drag * v[j])
                coulomb[j], stopped[j] = _strength(values, j, torque[j, 0]), 0.0
                steps.load[k, j], steps.slip[k, j] = torque[j, 0], slip[j]
                steps.q[k, j], steps.v[k, j] = q[j], v[j]
                steps.middle[k, j], steps.speed[k, j] = middle[j, 0], speed[j, 0]
                steps.mean[k, j], steps.by_delay[k, j], steps.limited[k, j] = mean, by_delay, limited
                steps.below[k, j], steps.above[k, j] = below, above
            for i in range(len(mass)):
                steps.mass[k, i] = mass[i, 0]
            for j in range(n):
                for i in range(n):
                    share = mass[max(i, j) * (max(i, j) + 1) // 2 + min(i, j), 0]
                    push[j] += (share + (values[ARMATURE, j] if i == j else 0.0)) * v[i]
            while True:
                for j in range(n):
                    free[j] = push[j]
                _invert(matrix, factor, inverse)
                _multiply(inverse, free)
                for j in range(n):  # Dahl elements follow the mean velocity, signs that at the end
                    elastic = values[BREAKAWAY, j] > 0.0
                    unhindered[j] = 0.5 * (v[j] + free[j]) if elastic else free[j]
                    for i in range(n):
                        response[j, i] = inverse[j, i] if elastic else 2.0 * inverse[j, i]
                dry_friction(0.5 * step, unhindered, response, viscous, starts, laws, coulomb, knee, slip, dry)
                _set_velocities(k, step, v, free, inverse, values, coulomb, dry, stopped, steps)
                if not _stop(k, step, q, v, values, stopped, steps):
                    break
                for j in range(n):
                    if stopped[j] != 0.0:
                        push[j] = coulomb[j] = dry[j] = 0.0
                        for i in range(n):
                            matrix[i, j] = matrix[j, i] = 0.0
                        matrix[j, j] = 1.0
            largest = 0.0
            for j in range(n):
                largest = max(largest, abs(steps.end[k, j]))
            if not largest < BREAKDOWN:
                return False
            for j in range(n):
                before[j] = v[j] if stopped[j] == 0.0 else 0.0
                steps.stopped[k, j] = stopped[j]
                if values[BREAKAWAY, j] > 0.0:
                    slip[j] = slid(slip[j], _move(k, j, step, values, steps), values[BREAKAWAY, j])
                if stopped[j] == 0.0:
                    q[j] += _advance(k, j, step, v[j], steps)
                else:
                    q[j] = values[UPPER_STOP if stopped[j] > 0.0 else LOWER_STOP, j]
                v[j] = steps.end[k, j]
            k += 1
    return True


@compiled_part
def _strength(values, j, load):  # type: ignore[no-untyped-def]
    """Coulomb friction of a joint under a load."""
    return values[COULOMB, j] + values[LOAD_COULOMB, j] * abs(load)


@compiled_part
def _set_velocities(k, step, v, free, inverse, values, coulomb, dry, stopped, steps):  # type: ignore[no-untyped-def]
    """Velocities at the end of a step, and which joints slide, stick, or reverse in it; Dahl elements only slide."""
    n = len(v)
    for j in range(n):
        end = free[j]
        for i in range(n):
            end -= step * inverse[j, i] * dry[i]
        sign = 1.0 if end >= 0.0 else -1.0
        elastic = values[BREAKAWAY, j] > 0.0
        sticks = stopped[j] != 0.0 or (not elastic and abs(dry[j]) < (1.0 - STICK_TOLERANCE) * coulomb[j])
        steps.sliding[k, j] = 0.0 if sticks else sign
        steps.end[k, j] = end
        steps.response[k, j] = inverse[j, j]
        steps.reversal[k, j] = 0.0
        if not sticks and not elastic and v[j] * end < 0.0:
            steps.reversal[k, j] = -v[j] / (end - v[j] + 2.0 * sign * coulomb[j] * step * inverse[j, j])
    for j in range(n):
        for i in range(n):
            later = 2.0 * steps.reversal[k, i] * steps.sliding[k, i] * coulomb[i]
            steps.end[k, j] += step * inverse[j, i] * later
        if steps.sliding[k, j] == 0.0:
            steps.end[k, j] = 0.0


@compiled_part
def _advance(k, j, step, v, steps):  # type: ignore[no-untyped-def]
    """Way of a joint in a step."""
    turns, share = steps.reversal[k, j] > 0.0, steps.reversal[k, j]
    first, last = (share, 1.0 - share) if turns else (1.0, 1.0)
    return 0.5 * step * (first * v + last * steps.end[k, j])


@compiled_part
def _move(k, j, step, values, steps):  # type: ignore[no-untyped-def]
    """Way of a joint in a step that may end at a stop."""
    side = steps.stopped[k, j]
    if side == 0.0:
        return _advance(k, j, step, steps.v[k, j], steps)
    return values[UPPER_STOP if side > 0.0 else LOWER_STOP, j] - steps.q[k, j]


@compiled_part
def _stop(k, step, q, v, values, stopped, steps):  # type: ignore[no-untyped-def]
    """Mark joints that would go beyond a stop; returns whether there is one that was not marked before."""
    found = False
    for j in range(len(q)):
        after = q[j] + _advance(k, j, step, v[j], steps)
        side = 1.0 if after > values[UPPER_STOP, j] else -1.0 if after < values[LOWER_STOP, j] else 0.0
        if stopped[j] == 0.0 and side != 0.0:
            stopped[j] = side
            found = True
    return found


@compiled_part
def _invert(matrix, factor, inverse):  # type: ignore[no-untyped-def]
    """Inverse of a symmetric positive definite matrix by its Cholesky factor."""
    n = len(matrix)
    _factorize(matrix, factor)
    for column in range(n):
        for i in range(n):
            total = 1.0 if i == column else 0.0
            for k in range(i):
                total -= factor[i, k] * inverse[k, column]
            inverse[i, column] = total / factor[i, i]
        for back in range(n):
            i = n - 1 - back
            total = inverse[i, column]
            for k in range(i + 1, n):
                total -= factor[k, i] * inverse[k, column]
            inverse[i, column] = total / factor[i, i]


@compiled_part
def _factorize(matrix, factor):  # type: ignore[no-untyped-def]
    """Lower Cholesky factor."""
    for i in range(len(matrix)):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = math.sqrt(total) if i == j else total / factor[j, j]


@compiled_part
def _multiply(matrix, vector):  # type: ignore[no-untyped-def]
    """Replace a vector by its product with a matrix."""
    old = vector.copy()
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * old[j]
        vector[i] = total


@compiled
def differentiate(  # type: ignore[no-untyped-def]
    actuators, commands, count, steps, by_q, by_v, load_by_q, columns, slopes
):
    """Derivatives of the simulated positions.

    actuators, commands, count, steps: those of `roll_out`, which has filled `steps`.
    by_q, by_v: derivatives of ID at (middle, speed, a) by positions and velocities, shape (S, n, n); rows are torques.
    load_by_q: derivatives of ID at (middle, speed, 0) by positions, shape (S, n, n), or (0, n, n) where no friction
        depends on the load.
    columns: numbers of the p parameters, n kind + joint.
    slopes: filled with the derivatives of the positions by the parameters, then by the initial positions, then by the
        initial velocities, and then, where it has place for them, by the initial states of the Dahl elements, shape
        (N, n, p + 2 n) or (N, n, p + 3 n).
    """
    values, samples = actuators.values, len(commands.t)
    n, p, width = steps.q.shape[1], len(columns), slopes.shape[2]
    q, v, before, slip = np.zeros((n, width)), np.zeros((n, width)), np.zeros((n, width)), np.zeros((n, width))
    right, next_v, speed = np.empty((n, width)), np.empty((n, width)), np.empty((n, width))
    middle = np.empty((n, width))
    matrix, factor = np.empty((n, n)), np.zeros((n, n))
    turning, along, grown = np.zeros((n, width)), np.zeros(n), np.zeros((n, width))
    for j in range(n):
        q[j, p + j] = 1.0
        v[j, p + n + j] = before[j, p + n + j] = 1.0
        if width > p + 2 * n:
            slip[j, p + 2 * n + j] = 1.0
    k = 0
    for sample in range(samples):
        for j in range(n):
            for c in range(width):
                slopes[sample, j, c] = q[j, c]
        if sample == samples - 1:
            break
        step = (commands.t[sample + 1] - commands.t[sample]) / count
        for _ in range(count):
            for j in range(n):
                for c in range(width):
                    middle[j, c] = q[j, c] + 0.5 * step * v[j, c]
                    speed[j, c] = 1.5 * v[j, c] - 0.5 * before[j, c]
            for j in range(n):
                free = steps.limited[k, j] == 0.0
                kp, kd = (values[KP, j], values[KD, j]) if free else (0.0, 0.0)
                drag = kd + values[VISCOUS, j]
                for i in range(j + 1):
                    matrix[j, i] = matrix[i, j] = steps.mass[k, j * (j + 1) // 2 + i]
                matrix[j, j] += values[ARMATURE, j] + 0.5 * step * drag + 0.25 * step * step * kp
                for c in range(width):
                    value = values[ARMATURE, j] * v[j, c] - 0.5 * step * drag * v[j, c]
                    right[j, c] = value - step * kp * (q[j, c] + 0.25 * step * v[j, c])
                for i in range(n):
                    share = steps.mass[k, max(i, j) * (max(i, j) + 1) // 2 + min(i, j)]
                    slope_q, slope_v = step * by_q[k, j, i], step * by_v[k, j, i]
                    for c in range(width):
                        right[j, c] += share * v[i, c] - slope_q * middle[i, c] - slope_v * speed[i, c]
            for c in range(p):
                kind, j = columns[c] // n, columns[c] % n
                right[j, c] += step * _push(kind, j, k, step, values, steps)
            for j in range(n):
                if values[LOAD_COULOMB, j] > 0.0:
                    _grow(j, k, values, steps, load_by_q, by_v, middle, speed, grown)
                    share = step * _share(j, k, step, values, steps)
                    for c in range(width):
                        right[j, c] -= share * grown[j, c]
                if values[BREAKAWAY, j] > 0.0:
                    half, distance = 0.5 * _move(k, j, step, values, steps), values[BREAKAWAY, j]
                    friction = step * _strength(values, j, steps.load[k, j])
                    left = math.exp(-abs(half) / distance)
                    slope = 0.25 * step * _stiffness(steps.slip[k, j], half, distance)
                    matrix[j, j] += friction * slope
                    for c in range(width):
                        right[j, c] -= friction * (left * slip[j, c] + slope * v[j, c])
            for j in range(n):
                along[j] = 0.0
                if steps.reversal[k, j] > 0.0:
                    along[j] = _turn(j, k, step, values, steps, columns, v, grown, turning)
                    friction = 2.0 * step * steps.sliding[k, j] * _strength(values, j, steps.load[k, j])
                    matrix[j, j] -= friction * along[j]
                    for c in range(width):
                        right[j, c] += friction * turning[j, c]
            for j in range(n):
                if steps.sliding[k, j] == 0.0:
                    for i in range(n):
                        matrix[i, j] = matrix[j, i] = 0.0
                    matrix[j, j] = 1.0
                    for c in range(width):
                        right[j, c] = 0.0
            _factorize(matrix, factor)
            for i in range(n):
                for c in range(width):
                    next_v[i, c] = right[i, c]
                for j in range(i):
                    for c in range(width):
                        next_v[i, c] -= factor[i, j] * next_v[j, c]
                for c in range(width):
                    next_v[i, c] /= factor[i, i]
            for back in range(n):
                i = n - 1 - back
                for j in range(i + 1, n):
                    for c in range(width):
                        next_v[i, c] -= factor[j, i] * next_v[j, c]
                for c in range(width):
                    next_v[i, c] /= factor[i, i]
            for j in range(n):
                turns, share = steps.reversal[k, j] > 0.0, steps.reversal[k, j]
                first, last = (share, 1.0 - share) if turns else (1.0, 1.0)
                moved = steps.v[k, j] - steps.end[k, j] if turns else 0.0
                if values[BREAKAWAY, j] > 0.0:
                    _slide(j, k, step, values, steps, columns, q, v, next_v, slip)
                if steps.stopped[k, j] != 0.0:
                    stop = n * (UPPER_STOP if steps.stopped[k, j] > 0.0 else LOWER_STOP) + j
                    for c in range(width):
                        before[j, c] = v[j, c] = 0.0
                        q[j, c] = 1.0 if c < p and columns[c] == stop else 0.0
                    continue
                for c in range(width):
                    before[j, c] = v[j, c]
                    q[j, c] += 0.5 * step * (first * v[j, c] + last * next_v[j, c])
                    if turns:
                        q[j, c] += 0.5 * step * moved * (along[j] * next_v[j, c] + turning[j, c])
                    v[j, c] = next_v[j, c]
            k += 1


@compiled_part
def _stiffness(slip, along, distance):  # type: ignore[no-untyped-def]
    """Derivative of the state of a Dahl element after a displacement by this displacement."""
    return (1.0 - np.sign(along) * slid(slip, along, distance)) / distance


@compiled_part
def _lag(slip, along, distance):  # type: ignore[no-untyped-def]
    """Derivative of the state of a Dahl element after a displacement by its breakaway displacement."""
    return -along * _stiffness(slip, along, distance) / distance


@compiled_part
def _share(j, k, step, values, steps):  # type: ignore[no-untyped-def]
    """Mean friction of a joint in a step, as a share of its Coulomb friction, with the sign of its direction."""
    if values[BREAKAWAY, j] > 0.0:
        return slid(steps.slip[k, j], 0.5 * _move(k, j, step, values, steps), values[BREAKAWAY, j])
    return steps.sliding[k, j] * (1.0 - 2.0 * steps.reversal[k, j])


@compiled_part
def _grow(j, k, values, steps, load_by_q, by_v, middle, speed, grown):  # type: ignore[no-untyped-def]
    """Fill a row of `grown` with the derivatives of the Coulomb friction by the state, which the load depends on."""
    share = values[LOAD_COULOMB, j] * np.sign(steps.load[k, j])
    for c in range(grown.shape[1]):
        grown[j, c] = 0.0
    for i in range(len(middle)):
        slope_q, slope_v = share * load_by_q[k, j, i], share * by_v[k, j, i]
        for c in range(grown.shape[1]):
            grown[j, c] += slope_q * middle[i, c] + slope_v * speed[i, c]


@compiled_part
def _slide(j, k, step, values, steps, columns, q, v, next_v, slip):  # type: ignore[no-untyped-def]
    """Replace the derivatives of the state of a Dahl element by those after a step."""
    n, distance, way = len(q), values[BREAKAWAY, j], _move(k, j, step, values, steps)
    left, slope = math.exp(-abs(way) / distance), _stiffness(steps.slip[k, j], way, distance)
    side = steps.stopped[k, j]
    for c in range(slip.shape[1]):
        along = 0.5 * step * (v[j, c] + next_v[j, c]) if side == 0.0 else -q[j, c]
        slip[j, c] = left * slip[j, c] + slope * along
    for c in range(len(columns)):
        if columns[c] == n * BREAKAWAY + j:
            slip[j, c] += _lag(steps.slip[k, j], way, distance)
        elif side != 0.0 and columns[c] == n * (UPPER_STOP if side > 0.0 else LOWER_STOP) + j:
            slip[j, c] += slope


@compiled_part
def _turn(j, k, step, values, steps, columns, v, grown, turning):  # type: ignore[no-untyped-def]
    """Derivative of the time of a reversal, as a share of the step.

    Fills a row of `turning` with its derivative at a given velocity at the end, and returns that by this velocity, from
    w (v' - v) + 2 s h R F w (1 - w) = -v.
    """
    n, share, sign = steps.q.shape[1], steps.reversal[k, j], steps.sliding[k, j]
    response, free, load = steps.response[k, j], steps.limited[k, j] == 0.0, steps.load[k, j]
    friction = _strength(values, j, load)
    slope = steps.end[k, j] - steps.v[k, j] + 2.0 * sign * friction * step * response * (1.0 - 2.0 * share)
    for c in range(turning.shape[1]):
        turning[j, c] = -(1.0 - share) * v[j, c] / slope
    for c in range(len(columns)):
        kind = columns[c] // n
        if columns[c] % n != j:
            continue
        change = 0.0
        if kind == COULOMB:
            change = response
        elif kind == LOAD_COULOMB:
            change = response * abs(load)
        elif kind == ARMATURE:
            change = -friction * response * response
        elif kind == VISCOUS or (kind == KD and free):
            change = -0.5 * step * friction * response * response
        elif kind == KP and free:
            change = -0.25 * step * step * friction * response * response
        turning[j, c] -= 2.0 * sign * step * share * (1.0 - share) * change / slope
    if values[LOAD_COULOMB, j] > 0.0:
        for c in range(turning.shape[1]):
            turning[j, c] -= 2.0 * sign * step * share * (1.0 - share) * response * grown[j, c] / slope
    return -share / slope


@compiled_part
def _push(kind, j, k, step, values, steps):  # type: ignore[no-untyped-def]
    """Derivative of the torque that drives a joint in one step by one of its own parameters."""
    mean_speed = 0.5 * (steps.v[k, j] + steps.end[k, j])
    free = steps.limited[k, j] == 0.0
    if kind == ARMATURE:
        return -(steps.end[k, j] - steps.v[k, j]) / step
    if kind == VISCOUS:
        return -mean_speed
    if kind == COULOMB:
        return -_share(j, k, step, values, steps)
    if kind == LOAD_COULOMB:
        return -_share(j, k, step, values, steps) * abs(steps.load[k, j])
    if kind == BREAKAWAY:
        distance = values[BREAKAWAY, j]
        if distance == 0.0:
            return 0.0
        half, friction = 0.5 * _move(k, j, step, values, steps), _strength(values, j, steps.load[k, j])
        return -friction * _lag(steps.slip[k, j], half, distance)
    if kind == OFFSET:
        return -1.0
    if kind == LIMIT:
        return steps.limited[k, j]
    if kind in (LOWER_STOP, UPPER_STOP):
        return 0.0
    if not free:
        return 0.0
    if kind == DELAY:
        return values[KP, j] * steps.by_delay[k, j]
    if kind == LOWER_REFERENCE:
        return values[KP, j] * steps.below[k, j]
    if kind == UPPER_REFERENCE:
        return values[KP, j] * steps.above[k, j]
    if kind == KP:
        return steps.mean[k, j] - steps.q[k, j] - 0.5 * step * mean_speed
    return -mean_speed
