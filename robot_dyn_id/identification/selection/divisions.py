# SPDX-License-Identifier: Apache-2.0
"""Two divisions of the same rows: blocks of time, and bands of the position of each joint.

What is assumed about a robot has to predict other times, and other positions: what drifts slowly along a motion is the
same in neighboring blocks of time, and imitates springs, tilts, couplings and gains, which then fail on the next
recording. In a band all rows are left out in which the joint was there, whenever that was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation
from robot_dyn_id.identification.selection.engine import Tried

Errors = Callable[[CrossValidation], Array]
"""Sums of squared errors of a model in the parts of a division, shape (parts, n)."""


@dataclass(frozen=True)
class Divisions:
    """Cross-validations in both divisions.

    Attributes:
        times: blocks of time.
        positions: bands of positions, with the same weights; None: only blocks of time are left out.
    """

    times: CrossValidation
    positions: CrossValidation | None = None

    @classmethod
    def from_grams(cls, times: CrossValidation, bands: BlockGrams) -> Divisions:
        """Both divisions.

        Args:
            times: blocks of time, without zeros of recordings.
            bands: products of the same columns in bands of positions.
        """
        return cls(times, times.on(bands))

    @property
    def each(self) -> tuple[CrossValidation, ...]:
        """The cross-validations."""
        return (self.times,) if self.positions is None else (self.times, self.positions)

    def with_times(self, times: CrossValidation) -> Divisions:
        """The same bands with other blocks of time, their weights and zeros."""
        if self.positions is None:
            return Divisions(times)
        same = np.array_equal(self.positions.weights, times.weights)
        positions = self.positions if same else self.positions.with_weights(times.weights)
        return Divisions(times, positions.with_zeros(times.zeros, None))

    def without(self, block: int) -> Divisions:
        """The same without a block of time; see `CrossValidation.without`."""
        return Divisions(self.times.without(block), self.positions)

    def with_signs(self, times: CrossValidation) -> Divisions:
        """The same with the signs of a cross-validation on the blocks of time."""
        return Divisions(times, self.positions and replace(self.positions, bounded=times.bounded))

    def weigh(
        self, step: str, name: str, before: Errors, after: Errors, alternatives: int = 1, loss: float = math.nan
    ) -> Tried:
        """Gain of an alternative in the division in which it pays less.

        Args:
            step: what is chosen.
            name: name of the alternative.
            before: errors of the model without it.
            after: errors with it.
            alternatives: number of alternatives that are compared at once.
            loss: see `Tried`.
        """
        rows = []
        for division in self.each:
            rows.append(division.weigh(step, name, before(division), after(division), alternatives, loss))
            if not rows[-1].pays:
                break
        return min(rows, key=lambda row: row.gain - row.required)


def errors_of(candidate: Candidate) -> Errors:
    """Errors of fits with signs of a candidate."""
    return lambda division: division.errors(candidate)
