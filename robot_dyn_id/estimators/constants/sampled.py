# SPDX-License-Identifier: Apache-2.0
"""Terms at several values of their constants at once, so that one pass over the data serves all of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.estimators.constants.chebyshev import chebyshev_nodes
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.derived import DerivedTerm


@dataclass(frozen=True)
class SampledTerm(DerivedTerm):
    """Columns of a term that depend on its free constants, at several values of these.

    Attributes:
        candidates: the term with each of the values.
        varying: indices of the columns that depend on the constants.
    """

    candidates: tuple[Term, ...]
    varying: tuple[int, ...]

    def __post_init__(self) -> None:
        """Name the columns: those of the first candidate, then of the next."""
        places = [(number, i) for number in range(len(self.candidates)) for i in self.varying]
        self.describe(
            [f"{self.term.symbols[i]}_{number}_" for number, i in places], [self.term.powers[i] for _, i in places]
        )

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        varying = list(self.varying)
        return np.concatenate([term.columns(y, dy, ddy)[varying] for term in self.candidates])


@dataclass(frozen=True)
class SampledProblem:
    """The rows of a problem with the columns of several values of its constants side by side.

    Attributes:
        problem: problem with the columns of all candidates.
        fixed: columns that depend on no constant.
        fixed_parameters: the parameters of those columns.
        places: columns of each candidate, shape (candidates, m), for each term with constants, by its index.
        parents: the m parameters of a candidate's columns, for each term with constants, by its index.
        rising: which of those parameters are not negative, see `Term.rises`, shape (m,), by the index of the term.
    """

    problem: LinearProblem
    fixed: Integers
    fixed_parameters: Integers
    places: dict[int, Integers]
    parents: dict[int, Integers]
    rising: dict[int, Mask]


def sample_constants(constants: Constants, candidates: dict[int, Array]) -> SampledProblem:
    """The problem of all candidates.

    Args:
        constants: the k constants.
        candidates: logarithms of the constants of each term, by its index, shape (candidates, constants of the term).
    """
    regressor = constants.problem.regressor
    at = len(constants.problem.regressor.names)
    independent = [int(column) for column in constants.problem.columns]
    varying = {number: list_varying(regressor.terms[number][1]) for number in candidates}
    replaced = {constants.first_column(number) + symbol for number, own in varying.items() for symbol in own}
    fixed = np.array([i for i, column in enumerate(independent) if column not in replaced], dtype=np.int64)
    columns = [independent[i] for i in fixed]
    added = []
    places = {}
    parents = {}
    rising = {}
    logarithms = constants.lower.copy()
    for number, values in candidates.items():
        first, (coordinate, own) = constants.first_column(number), regressor.terms[number]
        wanted = [symbol for symbol in varying[number] if first + symbol in independent]
        terms = []
        for value in values:
            logarithms[constants.numbers[number]] = value
            terms.append(constants.term(number, logarithms))
        added.append((coordinate, SampledTerm(own, tuple(terms), tuple(wanted))))
        parents[number] = np.array([independent.index(first + symbol) for symbol in wanted], dtype=np.int64)
        rising[number] = np.array([own.symbols[symbol] in own.rises for symbol in wanted], dtype=bool)
        count = len(values) * len(wanted)
        places[number] = (len(columns) + np.arange(count)).reshape(len(values), len(wanted))
        columns += range(at, at + count)
        at += count
    wide = regressor.with_terms((*regressor.terms, *added))
    problem = constants.problem.with_columns(wide, np.array(columns))
    return SampledProblem(problem, np.arange(len(fixed)), fixed, places, parents, rising)


def sample_at_nodes(
    constants: Constants, lower: Array, upper: Array, one: int, several: int
) -> tuple[tuple[Array, ...], SampledProblem]:
    """Chebyshev nodes of each constant, and the problem of all their values.

    Args:
        constants: the k constants.
        lower: lower ends of the nodes, logarithms, shape (k,).
        upper: upper ends of the nodes, logarithms, shape (k,).
        one: number of nodes of a constant that is the only one of its term.
        several: maximum number of combinations of nodes of a term with several constants.
    """
    numbers = constants.numbers
    counts = {i: one if len(own) == 1 else int(several ** (1 / len(own))) for own in numbers.values() for i in own}
    nodes = tuple(chebyshev_nodes(lower[i], upper[i], counts[i]) for i in range(len(lower)))
    return nodes, sample_constants(
        constants, {n: np.array(list(product(*(nodes[i] for i in own)))) for n, own in numbers.items()}
    )


def list_varying(term: Term, constant: int | None = None) -> list[int]:
    """List the symbols whose columns depend on a free constant of a term, given by its place; None: on any."""
    dy = np.outer(list(term.constants.values()), [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]).ravel()
    slopes = term.constant_slopes(np.ones_like(dy), dy, np.ones_like(dy))
    chosen = slopes if constant is None else slopes[[constant]]
    return [int(symbol) for symbol in np.flatnonzero(np.any(chosen != 0.0, axis=(0, 2)))]
