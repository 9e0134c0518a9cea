"""Choice of the velocity within which Coulomb friction changes its sign.

The width is the one constant that enters the columns nonlinearly. Each joint's friction is in its own torque only, so
the columns of several widths are compressed together in one walk, and the best combination is found on the factors,
joint by joint, without looking at the data again; a second walk refines it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.problem import LinearProblem
from robot_dyn_id.regressor import Integers, Regressor
from robot_dyn_id.terms import Coulomb

COARSE = np.geomspace(0.002, 0.5, 9)
"""Widths that are tried first, as shares of the joint's greatest speed."""

FINE = np.geomspace(0.55, 1.8, 7)
"""Then around the best of those."""


def choose_widths(
    regressor: Regressor,
    independent: Integers,
    speeds: Array,
    problem_of: Callable[[Regressor, Integers], LinearProblem],
) -> Regressor:
    """The regressor with the smoothing width of each Coulomb term chosen from the data.

    Args:
        regressor: with Coulomb terms of any width.
        independent: its independent columns.
        speeds: greatest speed of each joint [rad/s or m/s], shape (n,).
        problem_of: the problem of some columns of a regressor.
    """
    sliding = [i for i, (_, term) in enumerate(regressor.terms) if isinstance(term, Coulomb)]
    widths = {i: np.atleast_1d(_speed(regressor, i, speeds)) for i in sliding}
    for grid in (COARSE, FINE):
        candidates = {i: np.maximum(widths[i] * grid, 1e-6) for i in sliding}
        widths = _best(regressor, independent, candidates, problem_of)
    terms = list(regressor.terms)
    for i in sliding:
        terms[i] = (terms[i][0], Coulomb(float(widths[i][0])))
    return Regressor(regressor.model, tuple(terms))


def _speed(regressor: Regressor, term: int, speeds: Array) -> float:
    return max(float(np.abs(regressor.terms[term][0].weights) @ speeds), 1e-3)


def _best(
    regressor: Regressor,
    independent: Integers,
    candidates: dict[int, Array],
    problem_of: Callable[[Regressor, Integers], LinearProblem],
) -> dict[int, Array]:
    """One width per Coulomb term: coordinate descent over the candidates, likelihood of normal residuals."""
    extra = [(i, width) for i, widths in candidates.items() for width in widths]
    wide = Regressor(
        regressor.model, (*regressor.terms, *((regressor.terms[i][0], Coulomb(float(w))) for i, w in extra))
    )
    first = len(regressor.names)
    own = {i: first - len(regressor.term_columns) + _column(regressor, i) for i in candidates}
    fixed = [int(column) for column in independent if column not in own.values()]
    columns = np.array([*fixed, *range(first, first + len(extra))])
    factors = Factors.of(problem_of(wide, columns))
    offsets = {i: len(fixed) + n * len(next(iter(candidates.values()))) for n, i in enumerate(candidates)}
    middle = len(next(iter(candidates.values()))) // 2
    choice = {i: middle for i in candidates}

    def cost(trial: dict[int, int]) -> float:
        kept = np.array([*range(len(fixed)), *sorted(offsets[i] + trial[i] for i in trial)])
        return _likelihood(factors.keep(kept))

    for _ in range(2):
        for i, widths in candidates.items():
            costs = [cost({**choice, i: number}) for number in range(len(widths))]
            choice[i] = int(np.argmin(costs))
    return {i: candidates[i][[number]] for i, number in choice.items()}


def _column(regressor: Regressor, term: int) -> int:
    return sum(len(t.symbols) for _, t in regressor.terms[:term])


def _likelihood(factors: Factors) -> float:
    weights: Sequence[float] | Array = np.ones(len(factors.counts))
    squares = np.ones(len(factors.counts))
    for _ in range(3):
        squares = np.maximum(factors.squared_residuals(factors.solve(weights).values), 1e-300)
        weights = np.sqrt(factors.counts / squares)
    return float(factors.counts @ np.log(squares))
