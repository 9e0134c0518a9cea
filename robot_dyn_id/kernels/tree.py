# SPDX-License-Identifier: Apache-2.0
"""The arrays that compiled loops read a robot from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array, Integers


@dataclass(frozen=True)
class Tree:
    """A kinematic tree of b bodies with n independent joints, prepared for the kernels.

    Attributes:
        parent: parent body, -1 for the base, shape (b,).
        leader: the independent joint that moves each body, shape (b,).
        multiplier: mimic multiplier of each body, shape (b,).
        turn: rotation to the parent's frame = turn[0] + cos q turn[1] + sin q turn[2], shape (b, 3, 3, 3).
        shift: origin in the parent's frame = shift[0] + q shift[1], shape (b, 2, 3).
        axis: motion axis in the body's frame, angular part then linear part, shape (b, 6).
        gravity: gravity vector in the base frame, shape (3,).
        pair_start: the non-zero blocks (pairs of body and joint) of body i are pair_start[i] to pair_start[i + 1].
        pair_row: the joint of every structurally non-zero block of the regressor.
        pair_from: the block of the same joint and the parent body, or the number of blocks if there is none.
        pair_gain: the body's multiplier where the joint moves this very body, else 0.
    """

    parent: Integers
    leader: Integers
    multiplier: Array
    turn: Array
    shift: Array
    axis: Array
    gravity: Array
    pair_start: Integers
    pair_row: Integers
    pair_from: Integers
    pair_gain: Array

    @property
    def blocks(self) -> tuple[Integers, Array, Array, Array, Integers, Integers, Array, Array]:
        """Geometry and non-zero blocks in the order in which the kernels of the regressor take them."""
        return (
            self.parent,
            self.turn,
            self.shift,
            self.axis,
            self.pair_start,
            self.pair_from,
            self.pair_gain,
            self.gravity,
        )

    def pair_slots(self, slots: Integers) -> Integers:
        """Slots of the ten columns of every block, shape (pairs, 10), from `slots`, shape (columns, n)."""
        bodies = len(self.parent)
        of_pair = np.repeat(np.arange(bodies), np.diff(self.pair_start))
        return np.ascontiguousarray(slots[: 10 * bodies].reshape(bodies, 10, -1)[of_pair, :, self.pair_row])


def build_tree(
    parent: Integers,
    rotation: Array,
    translation: Array,
    axis: Array,
    prismatic: NDArray[np.bool_],
    leader: Integers,
    multiplier: Array,
    gravity: Array,
) -> Tree:
    """Prepare a tree; the arguments are the attributes of `RobotModel` of the same names.

    Rodrigues' formula R(q) = a a' + cos q (I - a a') + sin q [a]x makes every axis, aligned or not, the same work; a
    prismatic joint is the same with only the constant term.
    """
    turns, shifts, axes = [], [], []
    for r, p, a, slides in zip(rotation, translation, axis, prismatic, strict=True):
        x, y, z = a
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        along = np.outer(a, a)
        parts = (np.eye(3), 0 * along, 0 * along) if slides else (along, np.eye(3) - along, cross)
        turns.append([r @ part for part in parts])
        shifts.append([p, r @ a if slides else 0 * p])
        axes.append(np.concatenate([0 * a, a] if slides else [a, 0 * a]))
    pairs: list[tuple[int, int, int | None, float]] = []
    index: dict[tuple[int, int], int] = {}
    for body in range(len(parent)):
        above = [row for (b, row) in index if b == parent[body]]
        for row in sorted({*above, int(leader[body])}):
            index[body, row] = len(pairs)
            gain = multiplier[body] if row == leader[body] else 0.0
            pairs.append((body, row, index.get((int(parent[body]), row)), float(gain)))
    columns = list(zip(*pairs, strict=True))
    return Tree(
        parent=np.ascontiguousarray(parent),
        leader=np.ascontiguousarray(leader),
        multiplier=np.ascontiguousarray(multiplier),
        turn=np.ascontiguousarray(turns),
        shift=np.ascontiguousarray(shifts),
        axis=np.ascontiguousarray(axes),
        gravity=np.array(gravity, dtype=np.float64),  # kernels are compiled again for an array that cannot be written
        pair_start=np.searchsorted(columns[0], np.arange(len(parent) + 1)),
        pair_row=np.array(columns[1]),
        pair_from=np.array([len(pairs) if above is None else above for above in columns[2]]),
        pair_gain=np.array(columns[3]),
    )
