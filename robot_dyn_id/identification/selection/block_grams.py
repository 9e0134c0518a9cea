# SPDX-License-Identifier: Apache-2.0
"""Gram matrices of all candidate columns by joint and block: candidates are fitted from them without the data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import Tile, find_used_rows
from robot_dyn_id.dynamics.regressor import Regressor, make_joint_coordinates
from robot_dyn_id.dynamics.terms import Spring
from robot_dyn_id.signals.blocks import ALL_FITS, NO_BLOCK, Blocks
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.trials import FilteredTrials

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
        sums: for each joint the sums of [W tau] over the rows of each of R recordings, shape (K + 2, R, support + 1).
        recording_counts: number of these rows, shape (n, K + 2, R).
    """

    columns: int
    supports: tuple[Integers, ...]
    matrices: tuple[Array, ...]
    sums: tuple[Array, ...]
    recording_counts: Integers

    @classmethod
    def from_trials(cls, trials: FilteredTrials, regressor: Regressor, blocks: Blocks) -> BlockGrams:
        """Accumulate the products in one pass over the data.

        Args:
            trials: the recordings.
            regressor: robot and all candidate terms.
            blocks: division of the trials.
        """
        problem = trials.problem(regressor, np.arange(len(regressor.names)))

        def number(tile: Tile) -> Integers:
            assert tile.t is not None  # tiles of recordings have stamps
            return blocks.numbers(tile.trial, tile.t)

        return cls._accumulate(problem, number, blocks.count, len(trials.recordings))

    @classmethod
    def from_bands(cls, trials: FilteredTrials, regressor: Regressor, count: int) -> BlockGrams:
        """Products in bands of each joint's position instead of blocks of time, with as many rows in each.

        Args:
            trials: the recordings.
            regressor: robot and all candidate terms.
            count: number of bands.
        """
        coordinates = {one.name: one for one in make_joint_coordinates(regressor.model)}
        positions = tuple((coordinates[name], Spring()) for name in regressor.model.joint_names)
        wider = regressor.with_terms((*regressor.terms, *positions))
        first = 10 * len(regressor.model.body_names) + len(regressor.term_columns)
        problem = trials.problem(wider, np.arange(len(wider.names)), repeated=True)
        joints = len(positions)
        places = [int(np.searchsorted(s, first + j)) for j, s in enumerate(problem.supports)]
        held: list[list[Array]] = [[] for _ in places]
        for tile in problem.tiles():
            held[tile.joint].append(tile.block[places[tile.joint]][find_used_rows(tile.block)])
        shares = np.linspace(0.0, 1.0, count + 1)[1:-1]
        edges = [
            np.quantile(q, shares) if q.size else shares for q in (np.concatenate([np.zeros(0), *own]) for own in held)
        ]

        def number(tile: Tile) -> Integers:
            return np.asarray(np.digitize(tile.block[places[tile.joint]], edges[tile.joint]))

        found = cls._accumulate(problem, number, count, len(trials.recordings))
        return found.without(range(first, first + joints))

    @classmethod
    def _accumulate(
        cls, problem: RecordedProblem, number: Callable[[Tile], Integers], count: int, recordings: int
    ) -> BlockGrams:
        """Products of rows by the number that each row has."""
        matrices = tuple(np.zeros((count + OUTSIDE, len(s) + 1, len(s) + 1)) for s in problem.supports)
        sums = tuple(np.zeros((count + OUTSIDE, recordings, len(s) + 1)) for s in problem.supports)
        counts = np.zeros((len(matrices), count + OUTSIDE, recordings), dtype=np.int64)
        for tile in problem.tiles():
            numbers = number(tile)
            for own in np.unique(numbers).tolist():
                rows = np.ascontiguousarray(tile.block[:, numbers == own])
                place = {NO_BLOCK: count, ALL_FITS: count + 1}.get(own, own)
                matrices[tile.joint][place] += rows @ rows.T
                sums[tile.joint][place, tile.trial] += rows.sum(axis=1)
                counts[tile.joint, place, tile.trial] += np.count_nonzero(rows.any(axis=0))
        return cls(len(problem.columns), problem.supports, matrices, sums, counts)

    def without(self, columns: range) -> BlockGrams:
        """The products without consecutive columns of W."""
        kept = [(s < columns.start) | (s >= columns.stop) for s in self.supports]
        rows = [np.flatnonzero(np.append(one, True)) for one in kept]
        supports = [s[one] for s, one in zip(self.supports, kept, strict=True)]
        return replace(
            self,
            columns=self.columns - len(columns),
            supports=tuple(np.where(s < columns.start, s, s - len(columns)) for s in supports),
            matrices=tuple(m[:, r[:, None], r] for m, r in zip(self.matrices, rows, strict=True)),
            sums=tuple(one[..., r] for one, r in zip(self.sums, rows, strict=True)),
        )

    def scaled(self, columns: int, factors: Array) -> BlockGrams:
        """The products if the first columns of each joint's rows were larger by a factor.

        Args:
            columns: number of these columns.
            factors: factor of each joint, shape (n,).
        """
        scales = [
            np.append(np.where(support < columns, factor, 1.0), 1.0)
            for support, factor in zip(self.supports, factors.tolist(), strict=True)
        ]
        matrices = tuple(one * scale[:, None] * scale for one, scale in zip(self.matrices, scales, strict=True))
        sums = tuple(one * scale for one, scale in zip(self.sums, scales, strict=True))
        return replace(self, matrices=matrices, sums=sums)

    @cached_property
    def counts(self) -> Integers:
        """Number of rows, shape (n, K + 2)."""
        return np.asarray(self.recording_counts.sum(axis=2))

    def count_divided(self, blocks: Collection[int]) -> int:
        """Number of recordings with rows in at least two of some blocks."""
        rows = self.recording_counts[:, list(blocks)].sum(axis=0)
        return int(np.count_nonzero(np.count_nonzero(rows, axis=0) > 1))

    def effort_variation(self) -> Array:
        """RMS of each joint's effort about its mean [N m or N], shape (n,)."""
        count = np.maximum(self.counts.sum(axis=1), 1)
        mean = np.array([sums[:, :, -1].sum() for sums in self.sums]) / count
        square = np.array([matrices[:, -1, -1].sum() for matrices in self.matrices]) / count
        return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))

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

    def squared_errors(self, parameters: Array, block: int, zeros: Array | None = None) -> Array:
        """Sum of the squared prediction errors of each joint in a block, shape (n,).

        Args:
            parameters: parameters of all columns, shape (c,).
            block: number of the block.
            zeros: zero of each joint's effort in each recording, in addition to the parameters, shape (R, n).
        """
        signed = self._signed(parameters)
        errors = np.array([v @ m[block] @ v for v, m in zip(signed, self.matrices, strict=True)])
        if zeros is not None:
            residuals = np.array([s[block] @ v for v, s in zip(signed, self.sums, strict=True)])
            errors += (zeros.T * (self.recording_counts[:, block] * zeros.T - 2.0 * residuals)).sum(axis=1)
        return np.asarray(np.maximum(errors, 0.0))

    def mean_residuals(self, parameters: Array, places: Sequence[int]) -> Array:
        """Mean residual of each joint in each recording, 0 without rows, shape (R, n).

        Args:
            parameters: parameters of all columns, shape (c,).
            places: places of `matrices` whose rows are used.
        """
        at = list(places)
        sums = [s[at].sum(axis=0) @ v for v, s in zip(self._signed(parameters), self.sums, strict=True)]
        return np.asarray(np.array(sums) / np.maximum(self.recording_counts[:, at].sum(axis=1), 1)).T

    def center(self, joint: int, places: Sequence[int]) -> Array:
        """Change of a joint's product [W tau]' [W tau], if its zero is free in each recording, (c + 1, c + 1).

        The rows of each recording then have the mean of all, so that the offset is that of the mean zero.

        Args:
            joint: number of the joint.
            places: places of `matrices` whose rows are used.
        """
        at, columns = list(places), np.append(self.supports[joint], self.columns)
        sums, counts = self.sums[joint][at].sum(axis=0), self.recording_counts[joint, at].sum(axis=0)
        of_each = sums / np.sqrt(np.maximum(counts, 1))[:, None]
        whole = sums.sum(axis=0) / np.sqrt(max(counts.sum(), 1))
        change = np.zeros((self.columns + 1, self.columns + 1))
        change[np.ix_(columns, columns)] = np.outer(whole, whole) - of_each.T @ of_each
        return change

    def _signed(self, parameters: Array) -> list[Array]:
        """Factors of [W tau] of each joint whose sum is the residual."""
        return [np.append(-parameters[support], 1.0) for support in self.supports]

    def block_counts(self, blocks: Collection[int]) -> Array:
        """Number of rows of each joint in some blocks, shape (n,)."""
        return np.asarray(self.counts[:, list(blocks)].sum(axis=1), dtype=np.float64)
