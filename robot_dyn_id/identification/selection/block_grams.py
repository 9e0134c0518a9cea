# SPDX-License-Identifier: Apache-2.0
"""Gram matrices of all candidate columns by joint and block: candidates are fitted from them without the data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.signals.blocks import ALL_FITS, NO_BLOCK, Blocks
from robot_dyn_id.signals.trials import FilteredTrials

if TYPE_CHECKING:
    from typing_extensions import Self


OUTSIDE = 2
"""Places after those of the blocks: rows in no block, and rows that every fit uses."""


@dataclass(frozen=True)
class BlockGrams:
    """[W tau]' [W tau] of the rows of each joint in each of K blocks, and of the rows outside of all blocks.

    Attributes:
        columns: number of columns c of W.
        supports: for each joint the columns in its rows.
        matrices: for each joint, shape (K + 2, support + 1, support + 1); the last two: rows in no block, and rows
            that every fit uses.
        counts: number of rows, shape (n, K + 2).
    """

    columns: int
    supports: tuple[Integers, ...]
    matrices: tuple[Array, ...]
    counts: Integers

    @classmethod
    def from_trials(cls, trials: FilteredTrials, regressor: Regressor, blocks: Blocks) -> Self:
        """Accumulate the products in one pass over the data.

        Args:
            trials: the recordings.
            regressor: robot and all candidate terms.
            blocks: division of the trials.
        """
        problem = trials.problem(regressor, np.arange(len(regressor.names)))
        matrices = tuple(np.zeros((blocks.count + OUTSIDE, len(s) + 1, len(s) + 1)) for s in problem.supports)
        counts = np.zeros((len(matrices), blocks.count + OUTSIDE), dtype=np.int64)
        for tile in problem.tiles():
            assert tile.t is not None  # tiles of recordings have stamps
            numbers = blocks.numbers(tile.trial, tile.t)
            for number in np.unique(numbers).tolist():
                rows = np.ascontiguousarray(tile.block[:, numbers == number])
                place = {NO_BLOCK: blocks.count, ALL_FITS: blocks.count + 1}.get(number, number)
                matrices[tile.joint][place] += rows @ rows.T
                counts[tile.joint, place] += np.count_nonzero(rows.any(axis=0))
        return cls(len(regressor.names), problem.supports, matrices, counts)

    @property
    def block_count(self) -> int:
        """Number of blocks K."""
        return int(self.counts.shape[1]) - OUTSIDE

    def weighted(self, weights: Array) -> Array:
        """Sum over the joints with one weight each, shape (K + 2, c + 1, c + 1)."""
        total = np.zeros((self.block_count + OUTSIDE, self.columns + 1, self.columns + 1))
        for support, matrices, weight in zip(self.supports, self.matrices, weights, strict=True):
            places = np.append(support, self.columns)
            total[:, places[:, None], places] += weight**2 * matrices
        return total

    def squared_errors(self, parameters: Array, block: int) -> Array:
        """Sum of the squared prediction errors of each joint in a block, shape (n,).

        Args:
            parameters: parameters of all columns, shape (c,).
            block: number of the block.
        """
        signed = [np.append(-parameters[support], 1.0) for support in self.supports]
        return np.array([max(0.0, float(v @ m[block] @ v)) for v, m in zip(signed, self.matrices, strict=True)])

    def block_counts(self, blocks: Collection[int]) -> Array:
        """Number of rows of each joint in some blocks, shape (n,)."""
        return np.asarray(self.counts[:, list(blocks)].sum(axis=1), dtype=np.float64)
