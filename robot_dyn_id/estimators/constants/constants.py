# SPDX-License-Identifier: Apache-2.0
"""Free constants of the terms of a problem, and the problem made linear in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import LinearProblem, RegressorProblem, Tile
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import FreeConstant, Term
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.constants.derived import Slopes
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.fitting import inverse_rms

WEIGHINGS = 4
"""Solutions from one set of weights to the next."""

STRIDE = 1.5
"""Greatest change of a logarithm in one step."""

END = 1e-6
"""Logarithms closer than this to the end of their range are at it."""


def costs(squares: Array, counts: Integers, weighted: bool) -> Array:
    """Half of minus two log-likelihoods with a variance for each joint, or half of the sum of squares.

    Args:
        squares: sums of squared residuals of each joint, shape (..., n).
        counts: rows of each joint, shape (n,).
        weighted: which of the two.
    """
    return np.asarray(0.5 * (np.log(np.maximum(squares, 1e-300)) @ counts if weighted else squares.sum(axis=-1)))


@dataclass(frozen=True)
class Constants:
    """The k free constants of a problem.

    Attributes:
        problem: the problem, at the constants that its terms have.
        names: of its p parameters.
        places: number of the term in `problem.regressor.terms`, and which constant.
        lower, upper: ends of the ranges of the logarithms, shape (k,).
    """

    problem: RegressorProblem
    parameters: tuple[str, ...]
    places: tuple[tuple[int, FreeConstant], ...]
    lower: Array
    upper: Array

    @staticmethod
    def of(problem: LinearProblem, estimator: str) -> Constants:
        """Those of terms on joints that move, for an estimator of this name.

        Raises:
            UsageError: there are none.
        """
        places, ranges = [], []
        if isinstance(problem, RegressorProblem):
            speeds = problem.max_speeds()
            for number, (coordinate, term) in enumerate(problem.regressor.terms):
                speed = float(np.abs(coordinate.weights) @ speeds)
                for free in term.free if speed > 0.0 else ():
                    places.append((number, free))
                    ranges.append(free.range(speed))
        if not isinstance(problem, RegressorProblem) or not places:
            raise UsageError(
                f"{estimator}: no term on a joint that moves has a free constant: use weighted, or a term with one, "
                "such as stribeck, or coulomb with a smoothing_width other than 0"
            )
        lower, upper = np.log(np.array(ranges)).T
        return Constants(problem, problem.names, tuple(places), lower, upper)

    @property
    def logarithms(self) -> Array:
        """Of their values as the terms have them, within their ranges, shape (k,)."""
        given = [self.problem.regressor.terms[i][1].constants[free.name] for i, free in self.places]
        return np.asarray(np.clip(np.log(given), self.lower, self.upper))

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """`term.constant` and the joint or coupling, of each."""
        terms = self.problem.regressor.terms
        return tuple((f"{terms[i][1].name}.{free.name}", terms[i][0].name) for i, free in self.places)

    @property
    def labels(self) -> tuple[str, ...]:
        """For messages."""
        return tuple(f"{name.partition('.')[2]} of {joint}" for name, joint in self.names)

    @cached_property
    def numbers(self) -> dict[int, list[int]]:
        """The constants of each term that has some, by its number."""
        found: dict[int, list[int]] = {}
        for constant, (number, _) in enumerate(self.places):
            found.setdefault(number, []).append(constant)
        return found

    def term(self, number: int, logarithms: Array) -> Term:
        """A term with other constants; `logarithms` of all constants, shape (k,)."""
        chosen = {self.places[i][1].name: float(np.exp(logarithms[i])) for i in self.numbers[number]}
        return self.problem.regressor.terms[number][1].with_constants(chosen)

    def regressor(self, logarithms: Array) -> Regressor:
        """Robot and terms with other constants."""
        terms = list(self.problem.regressor.terms)
        for number in self.numbers:
            terms[number] = (terms[number][0], self.term(number, logarithms))
        return Regressor(self.problem.regressor.model, tuple(terms))

    def first_column(self, number: int) -> int:
        """Column of a term's first symbol in the regressor."""
        terms = self.problem.regressor.terms
        bodies = len(self.problem.regressor.model.body_names)
        return 10 * bodies + sum(len(term.symbols) for _, term in terms[:number])

    def linearised(self, logarithms: Array, weighted: bool) -> Linearised:
        """The problem at these constants, and its slopes."""
        here = self.regressor(logarithms)
        added = [(here.terms[number][0], Slopes(here.terms[number][1])) for number in self.numbers]
        position = {int(column): i for i, column in enumerate(self.problem.columns)}
        columns, constant, parent = list(self.problem.columns), [], []
        at = len(here.names)
        for number, own in self.numbers.items():
            first, symbols = self.first_column(number), len(here.terms[number][1].symbols)
            for i in own:
                for symbol in range(symbols):
                    if first + symbol in position:
                        columns.append(at)
                        constant.append(i)
                        parent.append(position[first + symbol])
                    at += 1
        wide = self.problem.with_columns(Regressor(here.model, (*here.terms, *added)), np.array(columns))
        slopes = np.array([constant, parent], dtype=np.int64)
        return Linearised(self, logarithms, weighted, wide, *slopes)


@dataclass(frozen=True)
class Linearised:
    """A problem at some values of its constants, with slopes.

    Attributes:
        constants: the k constants.
        logarithms: of their values, shape (k,).
        weighted: whether joints count by 1 / RMS of their residuals.
        wide: the problem with the e slopes as further columns.
        constant: that each slope belongs to, shape (e,).
        parent: the parameter that multiplies each slope, shape (e,).
    """

    constants: Constants
    logarithms: Array
    weighted: bool
    wide: LinearProblem
    constant: Integers
    parent: Integers

    @cached_property
    def factors(self) -> Factors:
        """The compressed rows of `wide`: one walk over the data."""
        return Factors.of(self.wide)

    @cached_property
    def _solved(self) -> tuple[Solution, Array, Array]:
        """Best parameters at these constants, the weights, and the sum of squared residuals of each joint."""
        plain = self.factors.keep(np.arange(len(self.constants.parameters)))
        weights = np.ones(len(plain.counts))
        solution = plain.solve(weights)
        for _ in range(WEIGHINGS if self.weighted else 0):
            weights = inverse_rms(plain, solution.values)
            solution = plain.solve(weights)
        return solution, weights, plain.squared_residuals(solution.values)

    @property
    def values(self) -> Array:
        """The best parameters at these constants, shape (p,)."""
        return self._solved[0].values

    @property
    def cost(self) -> float:
        """See `costs`."""
        return float(costs(self._solved[2], self.factors.counts, self.weighted))

    @property
    def scale(self) -> float:
        """What a change of the cost is compared with."""
        return float(0.5 * self.factors.counts.sum()) if self.weighted else self.cost

    @property
    def inside(self) -> Mask:
        """Which constants are not at an end of their range, shape (k,)."""
        low, high = self.logarithms - self.constants.lower, self.constants.upper - self.logarithms
        return (low > END) & (high > END)

    def step(self, damping: float) -> tuple[Array, float]:
        """The Gauss-Newton step of the logarithms, those that would leave their range held, shape (k,).

        Beside it the decrease of the cost that it promises.

        Args:
            damping: as a share of each constant's own information.
        """
        low, high = self.logarithms - self.constants.lower, self.constants.upper - self.logarithms
        free = np.ones(len(low), dtype=bool)
        for _ in range(1 + len(free)):
            step, promised = self._step(damping, free)
            blocked = free & (((low <= END) & (step < 0.0)) | ((high <= END) & (step > 0.0)))
            if not blocked.any():
                break
            free &= ~blocked
        return np.clip(step, -STRIDE, STRIDE), promised

    def _step(self, damping: float, free: Mask) -> tuple[Array, float]:
        """Jointly with the parameters, which is Kaufman's step once they are the best for these constants."""
        p = len(self.constants.parameters)
        stack = self.factors.stack(self._solved[1])
        stack = np.column_stack([stack[:, :p], stack[:, p:-1] @ self.mixing(self.values)[:, free], stack[:, -1]])
        norms = np.linalg.norm(stack[:, p:-1], axis=0)
        below = np.zeros((len(norms), stack.shape[1]))
        below[:, p:-1] = np.diag(np.sqrt(damping) * norms)
        solved = Solution.of(np.concatenate([stack, below])).values
        before = stack[:, -1] - stack[:, :p] @ self.values
        after = stack[:, -1] - stack[:, :-1] @ solved
        step = np.zeros(len(free))
        step[free] = solved[p:]
        return step, 0.5 * float(before @ before - after @ after)

    def mixing(self, values: Array) -> Array:
        """The slopes of the torque by the constants, at some parameters, from those of the columns, shape (e, k)."""
        mixing = np.zeros((len(self.constant), len(self.logarithms)))
        mixing[np.arange(len(self.constant)), self.constant] = values[self.parent]
        return mixing

    def problem(self, values: Array, chosen: Mask) -> LinearProblem:
        """The problem with a parameter more for each chosen constant, the change of its logarithm.

        Args:
            values: of the parameters, by which those changes act, shape (p,).
            chosen: of the k constants, shape (k,).
        """
        p, inside, whole = len(self.constants.parameters), np.flatnonzero(chosen), self.mixing(values)
        supports, mixings = [], []
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
        )
