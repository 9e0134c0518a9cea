# SPDX-License-Identifier: Apache-2.0
"""Profiles of the cost over the constants of one term, on compressed data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.projected import PROJECTED_RANK_TOLERANCE, Projected, solve_gram

MAX_SWEEPS = 20
"""Maximum number of sweeps over all terms from one start."""


class _Columns(NamedTuple):
    """Unit-norm columns of all candidates.

    Attributes:
        gram: their Gram matrix after the fixed columns have been projected out.
        torque: their products with the torque.
        places: columns of each term's candidates, shape (candidates, m), by the index of the term.
    """

    gram: Array
    torque: Array
    places: dict[int, Integers]


@dataclass(frozen=True)
class Grid:
    """Candidates for the constants of each term, over their whole ranges.

    Attributes:
        projected: cost of the k constants, with its weights.
        values: logarithms of each term's candidates, by its index, shape (candidates, constants of the term).
    """

    projected: Projected
    values: dict[int, Array]

    @classmethod
    def from_projected(cls, projected: Projected, count: int) -> Grid:
        """Make the grid.

        Args:
            projected: cost of the constants.
            count: number of values of each constant; the root of twice as many for each of several constants of a term.
        """
        constants = projected.constants
        return cls(
            projected, {number: _list_values(constants, own, count) for number, own in constants.numbers.items()}
        )

    @cached_property
    def _columns(self) -> _Columns:
        mixing, places = self.projected.mixing(self.values)
        return _Columns(*self.projected.left_over(mixing / self.projected.norms(mixing)), places)

    def share(self, share: float) -> Array:
        """Logarithms at the same relative place of the lists of all terms, 0 to 1, shape (k,)."""
        return self._logarithms({number: round(share * (len(own) - 1)) for number, own in self.values.items()})

    def sweep(self, start: Array) -> Array:
        """Choose the candidates of all terms in turn until no choice changes; logarithms, shape (k,).

        Args:
            start: logarithms that are not on the grid, shape (k,): the nearest candidates are the first choice.
        """
        numbers = self.projected.constants.numbers
        choice = {
            number: int(np.argmin(np.abs(own - start[numbers[number]]).sum(axis=1)))
            for number, own in self.values.items()
        }
        for _ in range(MAX_SWEEPS):
            before = dict(choice)
            for number in self.values:
                choice[number] = int(np.argmax(self._explained(number, choice)))
            if choice == before:
                break
        return self._logarithms(choice)

    def profile(self, number: int, at: Array) -> Array:
        """Squared torque that each candidate of a term explains, the others nearest to given constants.

        Args:
            number: index of the term.
            at: logarithms of all constants, shape (k,).

        Returns:
            Shape (candidates,); half of its differences are those of the cost.
        """
        numbers = self.projected.constants.numbers
        choice = {
            other: int(np.argmin(np.abs(own - at[numbers[other]]).sum(axis=1))) for other, own in self.values.items()
        }
        return self._explained(number, choice)

    def _logarithms(self, choice: dict[int, int]) -> Array:
        constants = self.projected.constants
        logarithms = np.empty(len(constants.lower))
        for number, i in choice.items():
            logarithms[constants.numbers[number]] = self.values[number][i]
        return logarithms

    def _explained(self, number: int, choice: dict[int, int]) -> Array:
        """Squared torque explained by the chosen columns of the other terms and those of each candidate.

        Columns of the others whose parameters are at their bound are left out.
        """
        gram, torque, places = self._columns
        positive = self.projected.positive(self._logarithms(choice))
        own = places[number]
        chosen = [places[other][i][positive[other]] for other, i in choice.items() if other != number]
        others = np.concatenate([*chosen, own[0, :0]])
        flat = own.ravel()
        solved = solve_gram(gram[np.ix_(others, others)], np.column_stack([torque[others], gram[np.ix_(others, flat)]]))
        moment = (torque[flat] - gram[np.ix_(flat, others)] @ solved[:, 0]).reshape(own.shape)
        through = solved[:, 1:].reshape(len(others), *own.shape)
        rest = gram[own[:, :, None], own[:, None, :]] - np.einsum(
            "com,ocn->cmn", gram[own][:, :, others].swapaxes(1, 2), through
        )
        return np.asarray(torque[others] @ solved[:, 0] + _gain(rest, moment, self.projected.sampled.rising[number]))


def _list_values(constants: Constants, own: list[int], count: int) -> Array:
    """Logarithms of one term's constants, shape (candidates, constants of the term)."""
    each = count if len(own) == 1 else max(2, round(np.sqrt(2.0 * count)))
    return np.array(list(product(*(np.linspace(constants.lower[i], constants.upper[i], each) for i in own))))


def _gain(rest: Array, moment: Array, rising: Mask) -> Array:
    """Squared torque explained by the columns of each candidate alone, shape (candidates,).

    Args:
        rest: their Gram matrices without the other terms' columns, shape (candidates, m, m).
        moment: their products with the torque without that of the others, shape (candidates, m).
        rising: which of the m parameters are not negative, shape (m,): where one would be, all these are zero.
    """
    values, vectors = np.linalg.eigh(rest)
    along = np.einsum("cmn,cm->cn", vectors, moment)
    shares = np.divide(along, values, out=np.zeros_like(along), where=values > PROJECTED_RANK_TOLERANCE)
    gain = np.asarray((shares * along).sum(axis=1))
    below = (np.einsum("cmn,cn->cm", vectors, shares)[:, rising] < 0.0).any(axis=1)
    if below.any():
        kept = ~rising
        gain = np.where(below, _gain(rest[:, kept][:, :, kept], moment[:, kept], rising[kept]), gain)
    return gain
