"""Inverse dynamics, mass matrix and forward dynamics of N states of a tree with known standard parameters.

Newton-Euler recursion for the torque, composite bodies for the mass matrix and its factors L' D L, which need no square
root and keep the zeros of a branched tree, for forward dynamics (Featherstone, Rigid Body Dynamics Algorithms, 2008,
chapters 5 and 6). Followers of mimic joints add to the rows and columns of the joint that leads them: M = G' M_full G.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.kernels.bodies import (
    EFFECT,
    FORCE,
    MOMENT,
    PULL,
    ROWS,
    TURN,
    accelerate,
    hand_down,
    lever,
    load,
    merge,
    move,
    need,
    place,
    project,
    turn_body,
    weigh,
)
from robot_dyn_id.kernels.compiled import compiled, inlined, samples, shifted

TILE = 64  # states worked on together: the workspace of an arm stays in the second cache
WIDTH = TILE + 8  # rows a power of two apart would compete for the same few cache lines

SINGULAR = 1e-14
"""A pivot of M below this share of its diagonal entry is rounding: the matrix is not positive definite."""


@inlined
def _outward(n, start, parent, leader, multiplier, offset, turn, shift, axis, slides, parameters, q, dq, ddq, work):  # type: ignore[no-untyped-def]
    """Motion of all bodies from the base on, and the wrench that each needs."""
    for body in range(parent.shape[0]):
        i, p = np.uint64(body), np.uint64(parent[body])
        load(n, start, i, leader[body], multiplier[body], offset[body], slides[body], q, dq, ddq, work)
        turn_body(n, p, i, turn, work)
        place(n, p, i, shift, axis, work)
        move(n, p, i, 1.0 - slides[body], slides[body], work)
        weigh(n, i, parameters, work)
        need(n, i, parameters[i, 0], work)


@inlined
def _feel(n, a, i, moment, force, slides, gain, row, work, sums):  # type: ignore[no-untyped-def]
    """Add what joint a feels of a wrench of body i, times `gain`."""
    if slides > 0.0:
        project(n, a, i, force, gain, row, work, sums)
    else:
        project(n, a, i, moment, gain, row, work, sums)


@inlined
def _torque(n, parent, leader, multiplier, slides, work, sums):  # type: ignore[no-untyped-def]
    """Add the torque of every joint to its row of `sums`; the wrenches add up towards the base."""
    for reverse in range(parent.shape[0]):
        body = parent.shape[0] - 1 - reverse
        i, row = np.uint64(body), np.uint64(leader[body])
        _feel(n, i, i, MOMENT, FORCE, slides[body], multiplier[body], row, work, sums)
        hand_down(n, i, np.uint64(parent[body]), work)


@inlined
def _mass(n, first, parent, leader, multiplier, slides, parameters, masses, work, sums):  # type: ignore[no-untyped-def]
    """Add the lower triangle of the mass matrix to the rows of `sums` from `first` on; the bodies merge to the base."""
    bodies = parent.shape[0]
    for body in range(bodies):
        masses[body] = parameters[body, 0]
    for reverse in range(bodies):
        body = bodies - 1 - reverse
        i, joint, ancestor = np.uint64(body), leader[body], body
        accelerate(n, i, masses[body], 1.0 - slides[body], slides[body], work)
        while ancestor < bodies:
            a, other = np.uint64(ancestor), leader[ancestor]
            gain = multiplier[body] * multiplier[ancestor]
            if ancestor != body and other == joint:
                gain = 2.0 * gain  # both entries of M_full fall on the same one
            high, low = max(joint, other), min(joint, other)
            row = np.uint64(first + high * (high + 1) // 2 + low)
            _feel(n, a, i, EFFECT, EFFECT + 3, slides[ancestor], gain, row, work, sums)
            lever(n, i, a, work)
            ancestor = parent[ancestor]
        merge(n, i, np.uint64(parent[body]), masses[body], work)
        masses[parent[body]] += masses[body]


@inlined
def _solve(n, joints, work, sums, definite, start):  # type: ignore[no-untyped-def]
    """Turn the first rows of `sums` from M x into x; M, in the rows that follow, is overwritten.

    The last joint is eliminated first. `definite` becomes the least excess of a pivot over rounding.
    """
    ratio, spare = np.uint64(0), np.uint64(1)
    for reverse in range(joints):
        j = joints - 1 - reverse
        first_j = joints + j * (j + 1) // 2
        diagonal, x_j = np.uint64(first_j + j), np.uint64(j)
        for k in samples(n):
            work[ratio, 0, k] = 1.0 / sums[diagonal, k]
        for step in range(j):
            i = j - 1 - step
            first_i = joints + i * (i + 1) // 2
            entry, x_i = np.uint64(first_j + i), np.uint64(i)
            for k in samples(n):
                work[spare, 0, k] = sums[entry, k] * work[ratio, 0, k]
                sums[x_i, k] -= work[spare, 0, k] * sums[x_j, k]
            for m in range(i + 1):
                row, other = np.uint64(first_i + m), np.uint64(first_j + m)
                for k in samples(n):
                    sums[row, k] -= work[spare, 0, k] * sums[other, k]
            for k in samples(n):
                sums[entry, k] = work[spare, 0, k]
        for k in samples(n):
            sums[x_j, k] *= work[ratio, 0, k]
    for j in range(joints):
        first_j, x_j = joints + j * (j + 1) // 2, np.uint64(j)
        for i in range(j):
            entry, x_i = np.uint64(first_j + i), np.uint64(i)
            for k in samples(n):
                sums[x_j, k] -= sums[entry, k] * sums[x_i, k]


@inlined
def _evaluate(  # type: ignore[no-untyped-def]
    tile, width, parent, leader, multiplier, offset, turn, shift, axis, slides, gravity, parameters,
    q, dq, ddq, effort, torque, mass, acceleration,
):  # fmt: skip
    bodies, joints = parent.shape[0], q.shape[0]
    packed = joints * (joints + 1) // 2
    base = np.uint64(bodies)
    work = np.zeros((bodies + 1, ROWS, width))
    sums = np.zeros((joints + packed, width))
    masses = np.zeros(bodies + 1)
    for r in range(3):
        work[base, TURN + 4 * r] = 1.0
        work[base, PULL + r] = -gravity[r]
    for start in range(0, q.shape[1], tile):
        n = min(tile, q.shape[1] - start)
        for row in range(joints + packed):
            for k in samples(n):
                sums[row, k] = 0.0
        _outward(n, start, parent, leader, multiplier, offset, turn, shift, axis, slides, parameters, q, dq, ddq, work)
        _torque(n, parent, leader, multiplier, slides, work, sums)
        for row in range(torque.shape[0]):
            for k in samples(n):
                torque[row, shifted(start, k)] = sums[row, k]
        if mass.shape[0] + acceleration.shape[0] > 0:
            _mass(n, joints, parent, leader, multiplier, slides, parameters, masses, work, sums)
        for row in range(mass.shape[0]):
            for k in samples(n):
                mass[row, shifted(start, k)] = sums[joints + row, k]
        if acceleration.shape[0] > 0:
            for row in range(joints):
                for k in samples(n):
                    sums[row, k] = effort[row, shifted(start, k)] - sums[row, k]
            _solve(n, joints, work, sums, masses, start)
            for row in range(joints):
                for k in samples(n):
                    acceleration[row, shifted(start, k)] = sums[row, k]


@compiled
def dynamics_tiles(  # type: ignore[no-untyped-def]
    parent, leader, multiplier, offset, turn, shift, axis, slides, gravity, parameters,
    q, dq, ddq, effort, torque, mass, acceleration,
):  # fmt: skip
    _evaluate(TILE, WIDTH, parent, leader, multiplier, offset, turn, shift, axis, slides, gravity, parameters,
        q, dq, ddq, effort, torque, mass, acceleration)


@compiled
def dynamics_single(  # type: ignore[no-untyped-def]
    parent, leader, multiplier, offset, turn, shift, axis, slides, gravity, parameters,
    q, dq, ddq, effort, torque, mass, acceleration,
):  # fmt: skip
    _evaluate(1, 1, parent, leader, multiplier, offset, turn, shift, axis, slides, gravity, parameters,
        q, dq, ddq, effort, torque, mass, acceleration)
