# SPDX-License-Identifier: Apache-2.0
"""Minima of the cost over the constants of terms, on compressed data.

The cost has more than one: a Stribeck velocity far above the true one takes the place of viscous friction. A local
search from one start, or over all terms in turn, ends in either. From each minimum that is found, the profile over the
constants of every term shows where others may be, and a search starts from each of its own minima.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.estimators.constants.constants import Constants, compute_costs
from robot_dyn_id.estimators.constants.grid import Grid
from robot_dyn_id.estimators.constants.linearized import REWEIGHTING_PASSES
from robot_dyn_id.estimators.constants.projected import Projected

RELATIVE_STARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Relative places in the ranges of all constants that searches start from, in addition to the given constants."""

CONVERGED_WEIGHT_CHANGE = 1e-3
"""Relative change of the weights below which they have converged."""

SAME_LOGARITHM = 1e-2
"""Minima whose logarithms differ by less are one."""

MAX_ROUNDS = 20
"""Maximum number of minima whose profiles are searched: each has a lower cost than the one before."""


@dataclass(frozen=True)
class Minimum:
    """Local minimum of the cost.

    Attributes:
        logarithms: logarithms of the k constants, shape (k,).
        cost: its cost, see `compute_costs`.
        positive: which of the p parameters are not at their bound of zero, see `Term.rises`, shape (p,).
    """

    logarithms: Array
    cost: float
    positive: Mask


def find_minima(constants: Constants, weighted: bool, count: int) -> tuple[Minimum, ...]:
    """Find the minima of the cost, the lowest first.

    Args:
        constants: the k constants; their values are one of the starts.
        weighted: see `compute_costs`.
        count: number of values of each constant in a profile.
    """
    search = _Search(Projected.from_constants(constants), weighted, count)
    grid = search.grid(constants.logarithms)
    starts = [constants.logarithms, *(grid.share(share) for share in RELATIVE_STARTS)]
    swept = np.unique([search.sweep(start) for start in starts], axis=0)
    found = [search.descend(start) for start in (constants.logarithms, *swept)]
    for _ in range(MAX_ROUNDS):
        lowest = min(found, key=lambda minimum: minimum.cost)
        others = [search.descend(start) for start in search.list_starts(lowest)]
        found += others
        if not any(other.cost < lowest.cost for other in others):
            break
    return _list_distinct(found)


@dataclass(frozen=True)
class _Search:
    """Searches on one set of compressed data."""

    projected: Projected
    weighted: bool
    count: int

    def grid(self, logarithms: Array) -> Grid:
        """Candidates, with the weights at given constants."""
        return Grid.from_projected(self.projected.reweight(logarithms), self.count) if self.weighted else self._grid

    @cached_property
    def _grid(self) -> Grid:
        """Candidates without weights."""
        return Grid.from_projected(self.projected, self.count)

    def sweep(self, start: Array) -> Array:
        return self.grid(start).sweep(start)

    def descend(self, start: Array) -> Minimum:
        """Local minimum; weights and constants are iterated in turn."""
        found = start
        at = self.projected.reweight(start) if self.weighted else self.projected
        for _ in range(1 + REWEIGHTING_PASSES):
            found = at.descend(found)
            if not self.weighted:
                break
            before = at.weights
            at = at.reweight(found)
            if np.abs(at.weights / before - 1.0).max() < CONVERGED_WEIGHT_CHANGE:
                break
        cost = float(compute_costs(at.squares(found), at.grams.counts, self.weighted))
        return Minimum(found, cost, at.positive_parameters(found))

    def list_starts(self, minimum: Minimum) -> list[Array]:
        """Starts at the minima of the profiles through a minimum, one term changed, but those next to it."""
        grid = self.grid(minimum.logarithms)
        constants = self.projected.constants
        starts = []
        for number, own in constants.numbers.items():
            values = grid.values[number]
            explained = grid.profile(number, minimum.logarithms)
            shape = [len(np.unique(values[:, place])) for place in range(len(own))]
            spacing = (values[-1] - values[0]) / (np.array(shape) - 1)
            for i in _find_peaks(explained.reshape(shape)):
                if np.all(np.abs(values[i] - minimum.logarithms[own]) <= spacing):
                    continue
                start = minimum.logarithms.copy()
                start[own] = values[i]
                starts.append(start)
        return starts


def _find_peaks(explained: Array) -> list[int]:
    """Flat indices of the entries that no neighbor along an axis exceeds; one of equal neighbors."""
    highest = np.ones(explained.shape, dtype=bool)
    for axis in range(explained.ndim):
        moved = np.moveaxis(explained, axis, 0)
        peak = np.moveaxis(highest, axis, 0)
        peak[1:] &= moved[1:] > moved[:-1]
        peak[:-1] &= moved[:-1] >= moved[1:]
    return [int(i) for i in np.flatnonzero(highest)]


def _list_distinct(found: list[Minimum]) -> tuple[Minimum, ...]:
    """The minima by their costs, the lowest of those that are one."""
    distinct: list[Minimum] = []
    for minimum in sorted(found, key=lambda minimum: minimum.cost):
        if all(np.abs(minimum.logarithms - other.logarithms).max() > SAME_LOGARITHM for other in distinct):
            distinct.append(minimum)
    return tuple(distinct)
