# SPDX-License-Identifier: Apache-2.0
"""Blocked cross-validation of candidate models on Gram matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.estimators.non_negative import solve_bounded
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.engine import Tried, weigh

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


Fit = Callable[[Array], Array]
"""From the Gram matrix of a candidate's columns [W tau], shape (p + 1, p + 1), to its parameters, shape (p,)."""


@dataclass(frozen=True)
class CrossValidation:
    """Candidates, fitted without each block in turn and judged on it.

    Attributes:
        grams: products of all candidate columns.
        pull: prior of the inertial parameters.
        bounded: columns whose parameters are not negative, shape (c,).
        weights: weight of each joint, one over the RMS of its residual, shape (n,).
        blocks: blocks that take part; the others are left out of everything.
        products: weighted sum of the products over the joints, shape (K + 2, c + 1, c + 1).
        fits: parameters by columns, strength, signs, rows and kind of fit. The fit without blocks a and b belongs to
            the cross-validations without a and without b: nested cross-validations share this memory.
        zeros: joints whose effort has a zero of its own in each recording; in a block that is left out it is that of
            the other blocks of the recording.
        by_zeros: the same data with such zeros, by joints and whether the weights were determined again; nested
            cross-validations share this memory, too.
        positive: bounded parameters that were positive in the latest fit with signs, by columns and signs: those of
            other rows are nearly the same, so that a fit from there takes two thirds of the exchanges.
    """

    grams: BlockGrams
    pull: Pull
    bounded: Mask
    weights: Array
    blocks: tuple[int, ...]
    products: Array
    fits: dict[Hashable, Array] = field(default_factory=dict, repr=False)
    zeros: tuple[int, ...] = ()
    by_zeros: dict[tuple[tuple[int, ...], bool], CrossValidation] = field(default_factory=dict, repr=False)
    positive: dict[tuple[bytes, bytes], Mask] = field(default_factory=dict, repr=False)

    @classmethod
    def from_grams(
        cls, grams: BlockGrams, pull: Pull, bounded: Mask, reference: Candidate, blocks: tuple[int, ...]
    ) -> CrossValidation:
        """Determine the weights from out-of-fold residuals of a reference model.

        Residuals of the fit itself would, with a strong pull, let a joint that fits by chance take over.
        """
        ones = np.ones(len(grams.supports))
        return cls(grams, pull, bounded, ones, blocks, grams.weighted(ones)).weighted(reference)

    def weighted(self, reference: Candidate) -> CrossValidation:
        """The same with weights from out-of-fold residuals of a reference model."""
        found = self
        counts = np.maximum(self.grams.block_counts(self.blocks), 1.0)
        for _ in range(WEIGHT_PASSES):
            rms = np.sqrt(found.errors(reference).sum(axis=0) / counts)
            largest = float(rms.max(initial=0.0))
            found = found.with_weights(1.0 / np.maximum(rms, 1e-9 * largest if largest > 0.0 else 1.0))
        return found

    def with_weights(self, weights: Array) -> CrossValidation:
        """The same with other weights, shape (n,)."""
        return replace(self, weights=weights, products=self.grams.weighted(weights), fits={}, by_zeros={})

    def on(self, grams: BlockGrams) -> CrossValidation:
        """The same prior, signs and weights on other products of the same columns, without zeros of recordings."""
        blocks = tuple(range(grams.block_count))
        return CrossValidation(grams, self.pull, self.bounded, self.weights, blocks, grams.weighted(self.weights))

    def with_zeros(self, zeros: tuple[int, ...], reference: Candidate | None) -> CrossValidation:
        """The same with zeros of their own in each recording.

        Args:
            zeros: the joints.
            reference: model whose residuals in all blocks determine the weights again, see `without`; None: they are
                kept.
        """
        key = zeros, reference is not None
        if key not in self.by_zeros:
            every = tuple(range(self.grams.block_count))
            found = replace(self, zeros=zeros, blocks=every, fits={}, by_zeros={})
            self.by_zeros[key] = found if reference is None else found.weighted(reference)
        return replace(self.by_zeros[key], blocks=self.blocks)

    def without(self, block: int) -> CrossValidation:
        """The same without a block, with the same weights.

        Each weight is one number of a joint: that the block took part in it makes no model fit the block better.
        """
        return replace(self, blocks=tuple(other for other in self.blocks if other != block))

    @cached_property
    def _total(self) -> Array:
        count = self.grams.block_count
        return np.asarray(self.products[[*self.blocks, count + 1]].sum(axis=0))

    def gram(self, columns: Integers, left_out: int | None = None, *, all_rows: bool = False) -> Array:
        """Gram matrix of the weighted rows [W tau] of some columns, shape (p + 1, p + 1).

        Args:
            columns: columns of the wide regressor, shape (p,).
            left_out: block that is left out; None: no block is.
            all_rows: whether rows in no block are used too.
        """
        total = self._total
        if left_out is not None:
            total = total - self.products[left_out]
        if all_rows:
            total = total + self.products[self.grams.block_count]
        places = np.append(columns, self.grams.columns)
        gram = total[places[:, None], places]
        divided = self._divided(left_out, all_rows)
        for joint in self.zeros:
            gram += self.weights[joint] ** 2 * self.grams.center(joint, divided)[places[:, None], places]
        return np.asarray(gram)

    def _divided(self, left_out: int | None, all_rows: bool) -> list[int]:
        """Places of the rows of recordings that are divided into blocks."""
        places = [block for block in self.blocks if block != left_out]
        return [*places, self.grams.block_count] if all_rows else places

    def fitted(
        self, kind: str, fit: Fit, candidate: Candidate, left_out: int | None = None, *, all_rows: bool = False
    ) -> Array:
        """Parameters of all columns, zero in those that a candidate has not, shape (c,).

        Args:
            kind: name of the fit.
            fit: the fit; it is made once for each candidate and set of rows.
            candidate: columns and strength.
            left_out: block that is left out; None: no block is.
            all_rows: whether rows in no block are used too.
        """
        used = tuple(block for block in self.blocks if block != left_out)
        signs = self.bounded[candidate.columns].tobytes()
        key = (kind, candidate.columns.tobytes(), candidate.strength, signs, used, all_rows)
        found = self.fits.get(key)
        if found is None:
            found = np.zeros(self.grams.columns)
            found[candidate.columns] = fit(self.gram(candidate.columns, left_out, all_rows=all_rows))
            self.fits[key] = found
        return found

    def fit(self, candidate: Candidate, left_out: int | None = None) -> Array:
        """Fit with signs, shape (c,); see `fitted`."""
        columns = candidate.columns
        precision = candidate.strength * self.pull.precision[columns]
        bounded = self.bounded[columns]
        key = columns.tobytes(), bounded.tobytes()

        def fit(gram: Array) -> Array:
            target = gram[:-1, -1] + precision * self.pull.center[columns]
            found = solve_bounded(gram[:-1, :-1] + np.diag(precision), target, bounded, self.positive.get(key))
            self.positive[key] = found[bounded] > 0.0
            return found

        return self.fitted("signs", fit, candidate, left_out)

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

    def count_rows(self, *, all_rows: bool = False) -> Array:
        """Number of rows of each joint in each recording that its zeros are estimated from, shape (R, n).

        Args:
            all_rows: whether rows in no block are used too.
        """
        places = self._divided(None, all_rows)
        return np.asarray(self.grams.recording_counts[:, places].sum(axis=1).T, dtype=np.float64)

    def weigh(
        self, step: str, name: str, before: Array, after: Array, alternatives: int = 1, loss: float = math.nan
    ) -> Tried:
        """Gain of an alternative in the weighted error of all joints; see `engine.weigh`.

        Args:
            step: what is chosen.
            name: name of the alternative.
            before: sums of squared errors without it, shape (blocks, n).
            after: those with it, shape (blocks, n).
            alternatives: number of alternatives that are compared at once.
            loss: see `Tried`.
        """
        weight = self.weights**2
        return weigh(step, name, before @ weight, after @ weight, alternatives, loss)


def compute_relative_loss(errors: Array, reference: Array) -> float:
    """Loss of a candidate relative to a reference model: half the mean over joints, half that of all joints.

    The likelihood alone lets joints at rest veto a choice, the error of all joints alone takes wrong terms for joints
    that carry little torque.

    Args:
        errors: sums of squared errors, shape (blocks, n).
        reference: those of the reference model, shape (blocks, n).
    """
    own, of_reference = errors.sum(axis=0), np.maximum(reference.sum(axis=0), 1e-300)
    return float(0.5 * np.mean(np.sqrt(own / of_reference)) + 0.5 * np.sqrt(own.sum() / of_reference.sum()))
