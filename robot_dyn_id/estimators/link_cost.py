# SPDX-License-Identifier: Apache-2.0
"""Price of physically consistent links: errors on blocks that a fit has not used, with and without them.

In the training rows bounds always cost something, because they take freedom from the noise; only held-out rows show
whether the data contradict every real robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.estimators.factors import Grams

BLOCKS = 5
"""Number of contiguous blocks of rows."""


@dataclass(frozen=True)
class LinkCost:
    """Errors of all joints on held-out blocks [N m or N].

    Attributes:
        with_links: root of the sum of squares with physically consistent links.
        without: the same columns and signs, bodies free.
    """

    with_links: float
    without: float

    @property
    def ratio(self) -> float:
        """Ratio of the two; 1 if both are zero."""
        return self.with_links / self.without if self.without > 0.0 else 1.0


def accumulate_blocks(problem: LinearProblem, counts: Integers | Array, blocks: int = BLOCKS) -> tuple[Grams, ...]:
    """Gram matrices of contiguous blocks of rows, in one pass over the problem.

    Args:
        problem: the problem.
        counts: number of rows of each joint, shape (n,).
        blocks: number of blocks, of equal numbers of rows.
    """
    sizes = [len(support) + 1 for support in problem.supports]
    sums = [[np.zeros((size, size)) for size in sizes] for _ in range(blocks)]
    used = np.zeros((blocks, len(sizes)), dtype=np.int64)
    start = np.zeros(len(sizes), dtype=np.int64)
    for tile in problem.tiles():
        rows = tile.block.shape[1]
        place = (start[tile.joint] + np.arange(rows)) * blocks // max(1, int(counts[tile.joint]))
        start[tile.joint] += rows
        for block in np.unique(np.minimum(place, blocks - 1)).tolist():
            part = tile.block[:, np.minimum(place, blocks - 1) == block]
            sums[block][tile.joint] += part @ part.T
            used[block, tile.joint] += part.shape[1]
    names = len(problem.names)
    return tuple(Grams(names, problem.supports, tuple(own), row) for own, row in zip(sums, used, strict=True))


def cross_validate_links(
    blocks: Sequence[Grams], weights: Array, mapping: Array, prior: BodyPrior, bounded: Mask, strength: float
) -> LinkCost:
    """Fit without each block, with and without consistent links, and compare the errors on it.

    Args:
        blocks: Gram matrices of the base parameters' rows of each block, neither weighted nor whitened.
        weights: weight of each joint, shape (n,).
        mapping: base = mapping @ full, shape (p, c).
        prior: prior bodies.
        bounded: mask of the terms that are not negative, shape (c - 10 b,).
        strength: information of the prior.
    """
    totals = [block.total(weights) for block in blocks]
    whole = reduce(add, totals)
    wide = np.zeros((len(mapping) + 1, mapping.shape[1] + 1))
    wide[:-1, :-1], wide[-1, -1] = mapping, 1.0
    squares = np.zeros(2)
    for block, own in zip(blocks, totals, strict=True):
        gram = wide.T @ (whole - own) @ wide
        for number, links in enumerate((True, False)):
            found = fit_consistent(gram, prior, bounded, strength, links=links)
            squares[number] += block.squared_residuals(mapping @ found.values).sum()
    return LinkCost(*np.sqrt(squares).tolist())
