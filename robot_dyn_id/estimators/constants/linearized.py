# SPDX-License-Identifier: Apache-2.0
"""A problem linearized in the free constants of its terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.estimators.constants.constants import LOG_RANGE_MARGIN, MAX_LOG_STEP, Constants, compute_costs
from robot_dyn_id.estimators.constants.derived import ConstantDerivatives
from robot_dyn_id.estimators.constants.sampled import list_varying
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.weighting import compute_weights

REWEIGHTING_PASSES = 4
"""Number of iterations of the weights at given constants."""


@dataclass(frozen=True)
class Linearized:
    """Problem at given values of the constants, with e derivative columns.

    Attributes:
        constants: the k constants.
        logarithms: logarithms of their values, shape (k,).
        weighted: whether joints are weighted by 1 / RMS of their residuals.
        wide: the problem with the derivatives as further columns.
        constant: index of the constant of each derivative column, shape (e,).
        parent: index of the parameter that multiplies each derivative column, shape (e,).
    """

    constants: Constants
    logarithms: Array
    weighted: bool
    wide: LinearProblem
    constant: Integers
    parent: Integers

    @classmethod
    def from_constants(cls, constants: Constants, logarithms: Array, weighted: bool) -> Linearized:
        """The problem at some values of the constants, with its derivatives."""
        here = constants.regressor(logarithms)
        added = [(here.terms[number][0], ConstantDerivatives(here.terms[number][1])) for number in constants.numbers]
        position = {int(column): i for i, column in enumerate(constants.problem.columns)}
        columns = list(constants.problem.columns)
        constant = []
        parent = []
        at = len(here.names)
        for number, own in constants.numbers.items():
            first = constants.first_column(number)
            symbols = len(here.terms[number][1].symbols)
            for i in own:
                for symbol in range(symbols):
                    if first + symbol in position:
                        columns.append(at)
                        constant.append(i)
                        parent.append(position[first + symbol])
                    at += 1
        wide = constants.problem.with_columns(here.with_terms((*here.terms, *added)), np.array(columns))
        slopes = np.array([constant, parent], dtype=np.int64)
        return cls(constants, logarithms, weighted, wide, *slopes)

    @cached_property
    def factors(self) -> Factors:
        """Compressed rows of `wide`: one pass over the data."""
        return Factors.from_problem(self.wide)

    @cached_property
    def _solved(self) -> tuple[Solution, Array, Array]:
        """Optimal solution at these constants, its weights, and the sums of squared residuals of the joints."""
        plain = self.factors.keep(np.arange(len(self.constants.parameters)))
        weights = np.ones(len(plain.counts))
        solution = plain.solve(weights)
        for _ in range(REWEIGHTING_PASSES if self.weighted else 0):
            weights = compute_weights(plain, solution.values)
            solution = plain.solve(weights)
        return solution, weights, plain.squared_residuals(solution.values)

    @property
    def values(self) -> Array:
        """Optimal parameters at these constants, shape (p,)."""
        return self._solved[0].values

    @property
    def cost(self) -> float:
        """Cost of the optimal parameters, see `compute_costs`."""
        return float(compute_costs(self._solved[2], self.factors.counts, self.weighted))

    @property
    def scale(self) -> float:
        """Scale for relative changes of the cost."""
        return float(0.5 * self.factors.counts.sum()) if self.weighted else self.cost

    @property
    def inside(self) -> Mask:
        """Mask of the constants that are not at a bound of their range, shape (k,)."""
        low = self.logarithms - self.constants.lower
        high = self.constants.upper - self.logarithms
        return (low > LOG_RANGE_MARGIN) & (high > LOG_RANGE_MARGIN)

    def step(self, damping: float) -> tuple[Array, float]:
        """Gauss-Newton step of the logarithms within their ranges.

        Args:
            damping: damping as a share of each constant's own information.

        Returns:
            The step, shape (k,), and the predicted decrease of the cost.
        """
        low = self.logarithms - self.constants.lower
        high = self.constants.upper - self.logarithms
        free = np.ones(len(low), dtype=bool)
        for _ in range(1 + len(free)):
            step, promised = self._step(damping, free)
            blocked = free & (((low <= LOG_RANGE_MARGIN) & (step < 0.0)) | ((high <= LOG_RANGE_MARGIN) & (step > 0.0)))
            if not blocked.any():
                break
            free &= ~blocked
        return np.clip(step, -MAX_LOG_STEP, MAX_LOG_STEP), promised

    def _step(self, damping: float, free: Mask) -> tuple[Array, float]:
        """Step of constants and parameters together: Kaufman's step if the parameters are optimal."""
        p = len(self.constants.parameters)
        stack = self.factors.stack(self._solved[1])
        stack = np.column_stack([stack[:, :p], stack[:, p:-1] @ self.mixing(self.values)[:, free], stack[:, -1]])
        norms = np.linalg.norm(stack[:, p:-1], axis=0)
        below = np.zeros((len(norms), stack.shape[1]))
        below[:, p:-1] = np.diag(np.sqrt(damping) * norms)
        solved = Solution.from_rows(np.concatenate([stack, below])).values
        before = stack[:, -1] - stack[:, :p] @ self.values
        after = stack[:, -1] - stack[:, :-1] @ solved
        step = np.zeros(len(free))
        step[free] = solved[p:]
        return step, 0.5 * float(before @ before - after @ after)

    @property
    def rising(self) -> Integers:
        """Indices of the parameters that are not negative, see `Term.rises`."""
        terms = self.constants.problem.regressor.terms
        first = self.constants.first_column
        columns = [
            first(number) + terms[number][1].symbols.index(symbol)
            for number in self.constants.numbers
            for symbol in terms[number][1].rises
        ]
        return np.flatnonzero(np.isin(self.constants.problem.columns, columns))

    def rising_with(self, chosen: Mask) -> Integers:
        """Indices of the parameters of `rising` whose width only the chosen constants are, shape (k,) to (any,)."""
        terms = self.constants.problem.regressor.terms
        found = []
        for number, own in self.constants.numbers.items():
            term, first = terms[number][1], self.constants.first_column(number)
            for place, i in enumerate(own):
                symbols = [term.symbols[symbol] for symbol in list_varying(term, place)]
                if chosen[i] and set(symbols) <= set(term.rises):
                    found += [first + term.symbols.index(symbol) for symbol in symbols]
        return np.flatnonzero(np.isin(self.constants.problem.columns, found))

    @property
    def variance(self) -> float:
        """Mean square of the residuals, for costs that are sums of squares."""
        return float(self._solved[2].sum() / max(1, self.factors.counts.sum()))

    def white_deviations(self) -> Array:
        """Standard deviations of the logarithms as if the residuals of each joint were white noise, shape (k,).

        Infinite for constants that no column depends on.
        """
        p = len(self.constants.parameters)
        stack = self.factors.stack(compute_weights(self.factors.keep(np.arange(p)), self.values))
        columns = stack[:, p:-1] @ self.mixing(self.values)
        acts = np.linalg.norm(columns, axis=0) > 0.0
        found = np.full(len(acts), np.inf)
        solution = Solution.from_rows(np.column_stack([stack[:, :p], columns[:, acts], stack[:, -1]]))
        found[acts] = np.sqrt(np.diag(solution.inverse)[p:])
        return found

    def mixing(self, values: Array) -> Array:
        """Matrix that combines derivative columns to derivatives of the torque at given parameters, shape (e, k)."""
        mixing = np.zeros((len(self.constant), len(self.logarithms)))
        mixing[np.arange(len(self.constant)), self.constant] = values[self.parent]
        return mixing

    def problem(self, values: Array, chosen: Mask) -> LinearProblem:
        """Problem extended by one parameter for each chosen constant: the change of its logarithm.

        Args:
            values: parameters at which the torque is linearized, shape (p,).
            chosen: mask of the k constants, shape (k,).
        """
        p = len(self.constants.parameters)
        inside = np.flatnonzero(chosen)
        whole = self.mixing(values)
        supports = []
        mixings = []
        for support in self.wide.supports:
            mixing = whole[np.ix_(support[support >= p] - p, inside)]
            own = np.flatnonzero([i in self.constant[support[support >= p] - p] for i in inside])
            supports.append(np.concatenate([support[support < p], p + own]))
            mixings.append(mixing[:, own])

        def tiles() -> Iterator[Tile]:
            for tile in self.wide.tiles():
                plain = int(np.count_nonzero(self.wide.supports[tile.joint] < p))
                slopes = mixings[tile.joint].T @ tile.block[plain:-1]
                yield replace(tile, block=np.concatenate([tile.block[:plain], slopes, tile.block[-1:]]))

        labels = tuple(self.constants.labels[i] for i in inside)
        return LinearProblem(
            (*self.constants.parameters, *labels),
            self.wide.joint_names,
            tuple(supports),
            tiles,
            self.wide.rate,
            self.wide.prior,
            self.wide.period,
            self.constants.problem.values_only,
        )
