# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics, mass matrix and forward dynamics of N states of a tree with known standard parameters.

Newton-Euler recursion for the torque, composite bodies for the mass matrix and its factors L' D L, which need no square
root and keep the zeros of a branched tree, for forward dynamics (Featherstone, Rigid Body Dynamics Algorithms, 2008,
chapters 5 and 6). Followers of mimic joints add to the rows and columns of the joint that leads them: M = G' M_full G.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.kernels.bodies import (
    ACCEL,
    EFFECT,
    FORCE,
    MASS,
    MOMENT,
    ROTATION,
    ROWS,
    STANDARD,
    add_to_parent,
    find_effect,
    find_inertia,
    find_wrench,
    merge_composite,
    place_joint,
    project,
    propagate,
    read_joint,
    rotate,
    shift_effect,
)
from robot_dyn_id.kernels.compiled import compiled, inlined, samples, shifted

TILE = 64  # states worked on together: the workspace of an arm stays in the second cache
WIDTH = TILE + 8  # rows a power of two apart would compete for the same few cache lines

SINGULAR = 1e-14
"""A pivot of M below this share of its largest diagonal entry is rounding: the matrix is not positive definite."""


class BodyTree(NamedTuple):
    """A tree of b bodies as the kernels of dynamics take it.

    Attributes:
        parent: parent body, b for the base, shape (b,).
        leader, multiplier, offset: position of body i's joint = multiplier[i] q[leader[i]] + offset[i], shape (b,).
        turn, shift, axis, gravity: those of `kernels.tree.Tree`.
        slides: 1 for prismatic joints, else 0, shape (b,).
    """

    parent: Integers
    leader: Integers
    multiplier: Array
    offset: Array
    turn: Array
    shift: Array
    axis: Array
    slides: Array
    gravity: Array


@inlined
def _outward(  # type: ignore[no-untyped-def]
    n, start, parent, leader, multiplier, offset, turn, shift, axis, slides, q, dq, ddq, work
):
    """Motion of all bodies from the base on, and the wrench that each needs."""
    for body in range(parent.shape[0]):
        i, p = np.uint64(body), np.uint64(parent[body])
        read_joint(n, start, i, leader[body], multiplier[body], offset[body], slides[body], q, dq, ddq, work)
        rotate(n, p, i, turn, work)
        place_joint(n, p, i, shift, axis, work)
        propagate(n, p, i, 1.0 - slides[body], slides[body], work)
        find_inertia(n, i, work)
        find_wrench(n, i, work)


@inlined
def _torque(n, parent, leader, multiplier, slides, work, sums):  # type: ignore[no-untyped-def]
    """Torque of the joints, the first rows of `sums`; the wrenches add up towards the base."""
    for reverse in range(parent.shape[0]):
        body = parent.shape[0] - 1 - reverse
        i, row = np.uint64(body), np.uint64(leader[body])
        felt = FORCE if slides[body] > 0.0 else MOMENT
        project(n, i, i, felt, multiplier[body], row, work, sums)
        add_to_parent(n, i, np.uint64(parent[body]), work)


@inlined
def _mass(n, joints, parent, leader, multiplier, slides, work, sums):  # type: ignore[no-untyped-def]
    """Lower triangle of the mass matrix, the rows of `sums` after the torque; the bodies merge towards the base."""
    bodies = parent.shape[0]
    for body in range(bodies):
        i = np.uint64(body)
        for k in samples(n):
            work[i, MASS, k] = work[i, STANDARD, k]
    for reverse in range(bodies):
        body = bodies - 1 - reverse
        i, joint, ancestor = np.uint64(body), leader[body], body
        find_effect(n, i, 1.0 - slides[body], slides[body], work)
        while ancestor < bodies:
            a, other = np.uint64(ancestor), leader[ancestor]
            gain = multiplier[body] * multiplier[ancestor]
            if ancestor != body and other == joint:
                gain = 2.0 * gain  # both entries of M_full fall on the same one
            high, low = max(joint, other), min(joint, other)
            row = np.uint64(joints + high * (high + 1) // 2 + low)
            felt = EFFECT + 3 if slides[ancestor] > 0.0 else EFFECT
            project(n, a, i, felt, gain, row, work, sums)
            shift_effect(n, i, a, work)
            ancestor = parent[ancestor]
        merge_composite(n, i, np.uint64(parent[body]), work)


@inlined
def _eliminate(n, joints, sums):  # type: ignore[no-untyped-def]
    """Factors L' D L of the mass matrix, in its place, with 1 / D on the diagonal; the first rows become L'^-1 of them.

    The last joint comes first. The last row becomes the least excess of a pivot over what may be rounding.
    """
    last = joints + joints * (joints + 1) // 2
    factor, floor, least = np.uint64(last), np.uint64(last + 1), np.uint64(last + 2)
    for k in samples(n):
        sums[floor, k] = 0.0
        sums[least, k] = np.inf
    for j in range(joints):
        diagonal = np.uint64(joints + j * (j + 1) // 2 + j)
        for k in samples(n):
            sums[floor, k] = np.fmax(sums[floor, k], SINGULAR * sums[diagonal, k])
    for reverse in range(joints):
        j = joints - 1 - reverse
        row_j = joints + j * (j + 1) // 2
        x_j, diagonal = np.uint64(j), np.uint64(row_j + j)
        for k in samples(n):
            # fmin: what follows a pivot of zero is not a number
            sums[least, k] = np.fmin(sums[least, k], sums[diagonal, k] - sums[floor, k])
            sums[diagonal, k] = 1.0 / sums[diagonal, k]
        for before in range(j):
            i = j - 1 - before
            row_i = joints + i * (i + 1) // 2
            x_i, entry = np.uint64(i), np.uint64(row_j + i)
            for k in samples(n):
                sums[factor, k] = sums[entry, k] * sums[diagonal, k]
                sums[x_i, k] -= sums[factor, k] * sums[x_j, k]
            for m in range(i + 1):
                target, source = np.uint64(row_i + m), np.uint64(row_j + m)
                for k in samples(n):
                    sums[target, k] -= sums[factor, k] * sums[source, k]
            for k in samples(n):
                sums[entry, k] = sums[factor, k]


@inlined
def _substitute(n, joints, sums):  # type: ignore[no-untyped-def]
    """The first rows of `sums`, as `_eliminate` leaves them, become the solution."""
    for j in range(joints):
        row_j = joints + j * (j + 1) // 2
        x_j, diagonal = np.uint64(j), np.uint64(row_j + j)
        for k in samples(n):
            sums[x_j, k] *= sums[diagonal, k]
        for i in range(j):
            x_i, entry = np.uint64(i), np.uint64(row_j + i)
            for k in samples(n):
                sums[x_j, k] -= sums[entry, k] * sums[x_i, k]


def _kernel(tile: int, width: int) -> Any:
    """The kernel for tiles of `tile` states, in a workspace with rows of `width`: constants for the compiler.

    Its arguments, with b bodies, n joints and N states:
        tree: `BodyTree`.
        parameters: standard parameters of all states, shape (b, 10, 1), or of each state, shape (b, 10, N).
        q, dq, ddq: motion of the joints, shape (n, N).
        slots, added: entries of the packed lower triangle of M, shape (r,), and what is added to them, (r, N).
        effort: torque that accelerates the joints from dq, less what ddq needs, shape (n, N).

    It fills those of these that have rows:
        torque: torque of the motion, shape (n, N).
        mass: lower triangle of M row by row, shape (n (n + 1) / 2, N).
        acceleration: M^-1 (effort - torque), shape (n, N), and with it
        excess: 0 or less where M is not positive definite to rounding, shape (N,).
    """

    def dynamics(  # type: ignore[no-untyped-def]
        tree, parameters, q, dq, ddq, slots, added, effort, torque, mass, acceleration, excess
    ):
        parent, leader, multiplier, offset, turn, shift, axis, slides, gravity = tree
        bodies, joints, packed = parent.shape[0], q.shape[0], q.shape[0] * (q.shape[0] + 1) // 2
        base = np.uint64(bodies)
        # zeros: rows that a body has no use for, such as the cosine of a prismatic joint, are multiplied by zero
        work = np.zeros((bodies + 1, ROWS, width))
        sums = np.zeros((joints + packed + 3, width))
        shared = parameters.shape[2] == 1
        if shared:
            for body in range(bodies):
                for r in range(10):
                    work[body, STANDARD + r] = parameters[body, r, 0]
        for r in range(3):
            work[base, ROTATION + 4 * r] = 1.0
            work[base, ACCEL + r] = -gravity[r]
        for start in range(0, q.shape[1], tile):
            n = min(tile, q.shape[1] - start if tile > 1 else 1)
            for r in range(joints + packed):
                for k in range(width):
                    sums[r, k] = 0.0
            if not shared:
                for body in range(bodies):
                    for r in range(10):
                        for k in samples(n):
                            work[body, STANDARD + r, k] = parameters[body, r, shifted(start, k)]
            _outward(n, start, parent, leader, multiplier, offset, turn, shift, axis, slides, q, dq, ddq, work)
            _torque(n, parent, leader, multiplier, slides, work, sums)
            for j in range(torque.shape[0]):
                for k in samples(n):
                    torque[j, shifted(start, k)] = sums[j, k]
            if mass.shape[0] + acceleration.shape[0] == 0:
                continue
            _mass(n, joints, parent, leader, multiplier, slides, work, sums)
            for r in range(slots.shape[0]):
                for k in samples(n):
                    sums[joints + slots[r], k] += added[r, shifted(start, k)]
            for r in range(mass.shape[0]):
                for k in samples(n):
                    mass[r, shifted(start, k)] = sums[joints + r, k]
            if acceleration.shape[0] == 0:
                continue
            for j in range(joints):
                for k in samples(n):
                    sums[j, k] = effort[j, shifted(start, k)] - sums[j, k]
            _eliminate(n, joints, sums)
            _substitute(n, joints, sums)
            for j in range(joints):
                for k in samples(n):
                    acceleration[j, shifted(start, k)] = sums[j, k]
            for k in samples(n):
                excess[shifted(start, k)] = sums[-1, k]

    return dynamics


dynamics_tiles = compiled(_kernel(TILE, WIDTH))
dynamics_single = compiled(_kernel(1, 1))
