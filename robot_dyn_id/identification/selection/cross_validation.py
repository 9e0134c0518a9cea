# SPDX-License-Identifier: Apache-2.0
"""Blocked cross-validation of candidate models on Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.estimators.non_negative import solve_bounded
from robot_dyn_id.identification.selection.block_grams import BlockGrams

if TYPE_CHECKING:
    from typing_extensions import Self

WEIGHT_PASSES = 3
"""Passes of out-of-fold residuals to weights and back."""


@dataclass(frozen=True)
class Pull:
    """Quadratic pull of the inertial parameters towards a prior.

    Attributes:
        center: expected values of all columns, shape (c,).
        precision: inverse square of the size of each column's parameter; 0: nothing is known, shape (c,).
    """

    center: Array
    precision: Array


@dataclass(frozen=True)
class Candidate:
    """A model that is compared with others.

    Attributes:
        columns: columns of the wide regressor that it has, in ascending order.
        strength: strength of the pull, against residuals of unit variance.
    """

    columns: Integers
    strength: float


@dataclass(frozen=True)
class CrossValidation:
    """Candidates, fitted without each block in turn and judged on it.

    Attributes:
        grams: products of all candidate columns.
        pull: prior of the inertial parameters.
        bounded: columns whose parameters are not negative, shape (c,).
        weights: weight of each joint, one over the RMS of its residual, shape (n,).
        blocks: blocks that take part; the others are left out of everything.
        zeros: joints whose effort has a zero of its own in each recording; in a block that is left out it is that of
            the other blocks of the recording.
    """

    grams: BlockGrams
    pull: Pull
    bounded: Mask
    weights: Array
    blocks: tuple[int, ...]
    zeros: tuple[int, ...] = ()

    @classmethod
    def from_grams(
        cls, grams: BlockGrams, pull: Pull, bounded: Mask, reference: Candidate, blocks: tuple[int, ...]
    ) -> Self:
        """Determine the weights from out-of-fold residuals of a reference model.

        Residuals of the fit itself would, with a strong pull, let a joint that fits by chance take over.
        """
        return cls(grams, pull, bounded, np.ones(len(grams.supports)), blocks).weighted(reference)

    def weighted(self, reference: Candidate) -> Self:
        """The same blocks and zeros with weights from out-of-fold residuals of a reference model."""
        found = self
        counts = np.maximum(self.grams.block_counts(self.blocks), 1.0)
        for _ in range(WEIGHT_PASSES):
            rms = np.sqrt(found.errors(reference).sum(axis=0) / counts)
            largest = float(rms.max(initial=0.0))
            found = replace(found, weights=1.0 / np.maximum(rms, 1e-9 * largest if largest > 0.0 else 1.0))
        return found

    @cached_property
    def _products(self) -> Array:
        return self.grams.weighted(self.weights)

    @cached_property
    def _total(self) -> Array:
        count = self.grams.block_count
        return np.asarray(self._products[[*self.blocks, count + 1]].sum(axis=0))

    def gram(self, columns: Integers, left_out: int | None = None, *, all_rows: bool = False) -> Array:
        """Gram matrix of the weighted rows [W tau] of some columns, shape (p + 1, p + 1).

        Args:
            columns: columns of the wide regressor, shape (p,).
            left_out: block that is left out; None: no block is.
            all_rows: whether rows in no block are used too.
        """
        places = np.append(columns, self.grams.columns)
        at = np.ix_(places, places)
        gram = self._total[at]
        if left_out is not None:
            gram = gram - self._products[left_out][at]
        if all_rows:
            gram = gram + self._products[self.grams.block_count][at]
        divided = self._divided(left_out, all_rows)
        for joint in self.zeros:
            gram = gram + self.weights[joint] ** 2 * self.grams.center(joint, divided)[at]
        return np.asarray(gram)

    def _divided(self, left_out: int | None, all_rows: bool) -> list[int]:
        """Places of the rows of recordings that are divided into blocks."""
        places = [block for block in self.blocks if block != left_out]
        return [*places, self.grams.block_count] if all_rows else places

    def fit(self, candidate: Candidate, left_out: int | None = None, *, all_rows: bool = False) -> Array:
        """Parameters of all columns, zero in those that the candidate has not, shape (c,); see `gram`."""
        columns = candidate.columns
        total = self.gram(columns, left_out, all_rows=all_rows)
        precision = candidate.strength * self.pull.precision[columns]
        normal = total[:-1, :-1] + np.diag(precision)
        target = total[:-1, -1] + precision * self.pull.center[columns]
        parameters = np.zeros(self.grams.columns)
        parameters[columns] = solve_bounded(normal, target, self.bounded[columns])
        return parameters

    def errors(self, candidate: Candidate) -> Array:
        """Sums of squared out-of-fold errors, shape (blocks, n)."""
        return np.array([self.block_errors(self.fit(candidate, block), block) for block in self.blocks])

    def block_errors(self, parameters: Array, block: int) -> Array:
        """Sum of the squared errors of each joint in a block that parameters were fitted without, shape (n,).

        Args:
            parameters: parameters of all columns, shape (c,).
            block: number of the block.
        """
        return self.grams.squared_errors(parameters, block, self.find_zeros(parameters, block) if self.zeros else None)

    def find_zeros(self, parameters: Array, left_out: int | None = None, *, all_rows: bool = False) -> Array:
        """Zeros of the efforts in each recording relative to the offsets, 0 of other joints, shape (R, n); see `gram`.

        Args:
            parameters: parameters of all columns, shape (c,).
            left_out: block that is left out; None: no block is.
            all_rows: whether rows in no block are used too.
        """
        own = np.isin(np.arange(len(self.weights)), self.zeros)
        return np.where(own, self.grams.mean_residuals(parameters, self._divided(left_out, all_rows)), 0.0)

    def relative_gain(self, before: Array, after: Array) -> tuple[float, float]:
        """Share of the weighted squared error that a change removes, and its standard error over the blocks.

        Args:
            before: out-of-fold errors without the change, shape (blocks, n).
            after: those with it, shape (blocks, n).
        """
        gain, deviation = joint_gains(*(errors @ self.weights[:, None] ** 2 for errors in (before, after)))
        return float(gain[0]), float(deviation[0])


def joint_gains(before: Array, after: Array) -> tuple[Array, Array]:
    """Share of each joint's squared error that a change removes, and its standard error over the blocks, (n,) each.

    Args:
        before: out-of-fold errors without the change, shape (blocks, n).
        after: those with it, shape (blocks, n).
    """
    difference, total = before - after, np.maximum(before.sum(axis=0), 1e-300)
    count = len(difference)
    deviation = np.std(difference, axis=0, ddof=1) * np.sqrt(count) if count > 1 else np.full(len(total), np.inf)
    return np.asarray(difference.sum(axis=0) / total), np.asarray(deviation / total)


def relative_loss(errors: Array, reference: Array) -> float:
    """Loss of a candidate relative to a reference model: half the mean over joints, half that of all joints.

    The likelihood alone lets joints at rest veto a choice, the error of all joints alone takes wrong terms for joints
    that carry little torque.

    Args:
        errors: sums of squared errors, shape (blocks, n).
        reference: those of the reference model, shape (blocks, n).
    """
    own, of_reference = errors.sum(axis=0), np.maximum(reference.sum(axis=0), 1e-300)
    return float(0.5 * np.mean(np.sqrt(own / of_reference)) + 0.5 * np.sqrt(own.sum() / of_reference.sum()))
