# SPDX-License-Identifier: Apache-2.0
"""Free constants of the terms of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem, RegressorProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import FreeConstant, Term
from robot_dyn_id.errors import UsageError

MAX_LOG_STEP = 1.5
"""Maximum change of a logarithm in one step."""

VISIBLE_RATIO = 2.0
"""Ratio of the slowest rows' speed to a constant above which they do not show it: peaks have decayed to exp(-4) there,
and steps are within 1 - tanh(2) of their final value."""

LOG_RANGE_MARGIN = 1e-6
"""Logarithms closer than this to a bound of their range are treated as being at it."""


def compute_costs(squares: Array, counts: Integers, weighted: bool) -> Array:
    """Cost of residuals: the negative log-likelihood with one variance per joint, or half of the sum of squares.

    Args:
        squares: sums of squared residuals of each joint, shape (..., n).
        counts: number of rows of each joint, shape (n,).
        weighted: true for the likelihood, false for the sum of squares.
    """
    return np.asarray(0.5 * (np.log(np.maximum(squares, 1e-300)) @ counts if weighted else squares.sum(axis=-1)))


@dataclass(frozen=True)
class Constants:
    """The k free constants of a problem; estimators search their logarithms.

    Attributes:
        problem: the problem at the current constants of its terms.
        parameters: names of its p parameters.
        places: for each constant the index of its term in `problem.regressor.terms`, and the constant.
        lower: lower bounds of the logarithms, shape (k,).
        upper: upper bounds of the logarithms, shape (k,).
    """

    problem: RegressorProblem
    parameters: tuple[str, ...]
    places: tuple[tuple[int, FreeConstant], ...]
    lower: Array
    upper: Array

    @classmethod
    def from_problem(cls, problem: LinearProblem, estimator: str) -> Constants:
        """Collect the free constants of all terms on joints that move.

        Args:
            problem: the problem.
            estimator: name of the estimator, for the message.

        Raises:
            UsageError: no term has a free constant.
        """
        places = []
        ranges = []
        if isinstance(problem, RegressorProblem):
            speeds, slowest = problem.max_speeds(), problem.min_speeds()
            for number, (coordinate, term) in enumerate(problem.regressor.terms):
                speed = float(np.abs(coordinate.weights) @ speeds)
                for free in term.free_constants if speed > 0.0 else ():
                    places.append((number, free))
                    lower, upper = free.range(speed)
                    visible = float(np.abs(coordinate.weights) @ slowest) / VISIBLE_RATIO
                    ranges.append((max(lower, min(visible, 0.5 * upper)), upper))
        if not isinstance(problem, RegressorProblem) or not places:
            raise UsageError(
                f"{estimator}: no term on a joint that moves has a free constant: use weighted, or a term with one, "
                "such as stribeck, or coulomb with a smoothing_width other than 0"
            )
        lower, upper = np.log(np.array(ranges)).T
        return cls(problem, problem.names, tuple(places), lower, upper)

    @property
    def logarithms(self) -> Array:
        """Logarithms of the constants' current values, clipped to their ranges, shape (k,)."""
        given = [self.problem.regressor.terms[i][1].constants[free.name] for i, free in self.places]
        return np.asarray(np.clip(np.log(given), self.lower, self.upper))

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """For each constant `term.constant` and the joint or coupling."""
        terms = self.problem.regressor.terms
        return tuple((f"{terms[i][1].name}.{free.name}", terms[i][0].name) for i, free in self.places)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the constants in messages."""
        return tuple(f"{name.partition('.')[2]} of {joint}" for name, joint in self.names)

    @cached_property
    def numbers(self) -> dict[int, list[int]]:
        """Indices of the constants of each term that has some, by the index of the term."""
        found: dict[int, list[int]] = {}
        for constant, (number, _) in enumerate(self.places):
            found.setdefault(number, []).append(constant)
        return found

    def term(self, number: int, logarithms: Array) -> Term:
        """Term with other constants, given the logarithms of all constants, shape (k,)."""
        chosen = {self.places[i][1].name: float(np.exp(logarithms[i])) for i in self.numbers[number]}
        return self.problem.regressor.terms[number][1].with_constants(chosen)

    def regressor(self, logarithms: Array) -> Regressor:
        """Robot and terms with other constants, given the logarithms of all constants, shape (k,)."""
        terms = list(self.problem.regressor.terms)
        for number in self.numbers:
            terms[number] = (terms[number][0], self.term(number, logarithms))
        return self.problem.regressor.with_terms(terms)

    def first_column(self, number: int) -> int:
        """Column of the first symbol of a term in the regressor."""
        terms = self.problem.regressor.terms
        bodies = len(self.problem.regressor.model.body_names)
        return 10 * bodies + sum(len(term.symbols) for _, term in terms[:number])
