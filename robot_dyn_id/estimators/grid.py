"""Search of free constants on a grid: the columns of all candidates are compressed together, in one walk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.estimators.constants import Constants
from robot_dyn_id.estimators.factors import UNSEEN, Factors
from robot_dyn_id.estimators.fitting import reweighted
from robot_dyn_id.regressor import Integers, Regressor
from robot_dyn_id.terms import Term

STARTS = 5
"""Candidates of all terms alike that the search starts from."""

SWEEPS = 20
"""Over all terms from one start, at most."""


def best_of_grid(constants: Constants, grid: int, weighted: bool) -> Array:
    """The best logarithms of the constants on a grid over their ranges, shape (k,).

    What the columns without constants explain is taken off once; what is left is a small problem for each choice. Terms
    are chosen in turn, from several starts, until none changes.

    Args:
        constants: the k constants.
        grid: values of each; of a term with several constants, in each direction the root of twice as many.
        weighted: whether joints count by 1 / RMS of their residuals.
    """
    candidates = {number: _candidates(constants, own, grid) for number, own in constants.numbers.items()}
    seen = compressed(constants, candidates)
    factors, places, fixed = seen.factors, seen.places, seen.fixed
    middle = np.concatenate([fixed, *(own[len(own) // 2] for own in places.values())]).astype(np.int64)
    weights = reweighted(factors.keep(np.sort(middle)))[2] if weighted else np.ones(len(factors.counts))
    gram, torque = _left_over(factors.stack(weights), fixed)

    def explained(choice: dict[int, int]) -> float:
        chosen = np.concatenate([places[number][i] for number, i in choice.items()]).astype(np.int64)
        best = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], torque[chosen], rcond=1e-10)[0]
        return float(best @ torque[chosen])

    found: tuple[float, dict[int, int]] = (-np.inf, {})
    for start in np.linspace(0.0, 1.0, STARTS):
        choice = {number: round(start * (len(own) - 1)) for number, own in candidates.items()}
        for _ in range(SWEEPS):
            before = dict(choice)
            for number, own in candidates.items():
                choice[number] = int(np.argmax([explained({**choice, number: i}) for i in range(len(own))]))
            if choice == before:
                break
        found = max(found, (explained(choice), choice), key=lambda pair: pair[0])
    logarithms = np.empty(len(constants.lower))
    for number, i in found[1].items():
        logarithms[constants.numbers[number]] = candidates[number][i]
    return logarithms


def _candidates(constants: Constants, own: list[int], grid: int) -> Array:
    """Logarithms of one term's constants, shape (candidates, constants of the term)."""
    count = grid if len(own) == 1 else max(2, round(np.sqrt(2.0 * grid)))
    return np.array(list(product(*(np.linspace(constants.lower[i], constants.upper[i], count) for i in own))))


@dataclass(frozen=True)
class Compressed:
    """The rows of a problem with the columns of several values of its constants side by side.

    Attributes:
        factors: of all columns.
        fixed: columns that no constant moves.
        fixed_parameters: the parameters that those belong to.
        places: for each term with constants, by its number, the columns of each candidate.
        parents: the parameters that a candidate's columns belong to, likewise.
    """

    factors: Factors
    fixed: Integers
    fixed_parameters: Integers
    places: dict[int, list[Integers]]
    parents: dict[int, Integers]


def compressed(constants: Constants, candidates: dict[int, Array]) -> Compressed:
    """Walk the data once.

    Args:
        constants: the k constants.
        candidates: logarithms of the constants of each term, by its number, shape (candidates, constants of the term).
    """
    regressor, at = constants.origin.regressor, len(constants.origin.regressor.names)
    independent = [int(column) for column in constants.origin.columns]
    varying = {number: _varying(regressor.terms[number][1]) for number in candidates}
    moved = {constants.first_column(number) + symbol for number, own in varying.items() for symbol in own}
    fixed = np.array([i for i, column in enumerate(independent) if column not in moved], dtype=np.int64)
    columns, added, parents = [independent[i] for i in fixed], [], {}
    places: dict[int, list[Integers]] = {number: [] for number in candidates}
    logarithms = constants.lower.copy()
    for number, values in candidates.items():
        first, coordinate = constants.first_column(number), regressor.terms[number][0]
        wanted = [symbol for symbol in varying[number] if first + symbol in independent]
        parents[number] = np.array([independent.index(first + symbol) for symbol in wanted], dtype=np.int64)
        for value in values:
            logarithms[constants.numbers[number]] = value
            term = constants.term(number, logarithms)
            added.append((coordinate, term))
            places[number].append(len(columns) + np.arange(len(wanted)))
            columns += [at + symbol for symbol in wanted]
            at += len(term.symbols)
    wide = Regressor(regressor.model, (*regressor.terms, *added))
    factors = Factors.of(constants.origin.problem_of(wide, np.array(columns)))
    return Compressed(factors, np.arange(len(fixed)), fixed, places, parents)


def _varying(term: Term) -> list[int]:
    """The symbols whose columns depend on the free constants."""
    dy = np.outer(list(term.constants.values()), [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]).ravel()
    slopes = term.constant_slopes(np.ones_like(dy), dy, np.ones_like(dy))
    return [int(symbol) for symbol in np.flatnonzero(np.any(slopes != 0.0, axis=(0, 2)))]


def _left_over(stack: Array, fixed: Integers) -> tuple[Array, Array]:
    """Gram matrix of all unit-norm columns and their products with the torque, less what the fixed columns explain."""
    norms = np.linalg.norm(stack[:, :-1], axis=0)
    scaled = stack / np.append(np.where(norms > 0.0, norms, 1.0), 1.0)
    left, singular, _ = np.linalg.svd(scaled[:, fixed], full_matrices=False)
    basis = left[:, singular > UNSEEN * singular.max(initial=0.0)]
    rest = scaled - basis @ (basis.T @ scaled)
    return rest[:, :-1].T @ rest[:, :-1], rest[:, :-1].T @ rest[:, -1]
