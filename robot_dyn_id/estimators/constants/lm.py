# SPDX-License-Identifier: Apache-2.0
"""Levenberg-Marquardt (Levenberg 1944; Marquardt 1963) over linear parameters and constants of terms together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.constants import LOG_RANGE_MARGIN, MAX_LOG_STEP, Constants, compute_costs
from robot_dyn_id.estimators.constants.estimates import estimate_constants
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Solution, compress_rows
from robot_dyn_id.estimators.weighting import compute_weights, solve_reweighted
from robot_dyn_id.options import CheckedOptions, OptionRanges, Range

INITIAL_DAMPING = 1e-3
"""To begin with, as a share of each column's own information: halved after a step that pays, else doubled."""

MAX_DAMPING = 1e3
"""Damping beyond which no step pays."""

CONVERGED_COST_DECREASE = 1e-8
"""Relative decrease of the cost that is none: of 1e4 rows it moves parameters by a hundredth of their deviations."""

CONVERGED_STEPS = 3
"""Steps in succession without decrease after which the search has settled."""


@dataclass(frozen=True)
class LevenbergMarquardt(CheckedOptions):
    """From least squares at the constants as the terms have them, to the least cost nearby.

    `separable` finds the same minimum and does not depend on where the constants begin.

    Attributes:
        iterations: steps after which it is given up.
        weighted: whether each joint counts by 1 / RMS of its residual, else all rows are alike.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
    """

    iterations: int = 100
    weighted: bool = True
    autoregressive_order: int = 6

    name: ClassVar[str] = "lm"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "iterations": Range(1),
        "autoregressive_order": Range(0),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant.
            ConvergenceError: the constants did not settle.
        """
        plain = compress_rows(problem)
        constants = Constants.from_problem(problem, self.name)
        ordinary, solution, _ = solve_reweighted(plain)
        values = (solution if self.weighted else ordinary).values
        found, course = minimize_damped(
            constants, np.append(values, constants.logarithms), self.weighted, self.iterations
        )
        if found is None:
            raise ConvergenceError(
                f"lm: the constants {', '.join(constants.labels)} did not settle in {len(course) - 1} steps: give more "
                f"iterations, or use separable"
            )
        return estimate_constants(found, self.autoregressive_order, course)


def minimize_damped(
    constants: Constants, point: Array, weighted: bool, iterations: int
) -> tuple[Linearized | None, Array]:
    """The problem at the constants of the least cost nearby; None if no step pays or all steps are used up.

    Beside it the cost at the beginning and after each step.

    Args:
        constants: the k constants.
        point: p parameters and k logarithms to begin with.
        weighted: see `compute_costs`.
        iterations: steps at most, one walk over the data each.
    """
    p, damping, quiet = len(constants.parameters), INITIAL_DAMPING, 0
    values, at = point[:p], Linearized.from_constants(constants, point[p:], weighted)
    cost = _cost(at, values)
    course = [cost]
    for _ in range(iterations):
        step = _step(at, values, damping)
        step *= _share(at, step[p:])
        trial = np.clip(at.logarithms + step[p:], constants.lower, constants.upper)
        then = Linearized.from_constants(constants, trial, weighted)
        less = cost - _cost(then, values + step[:p])
        scale = 0.5 * float(at.factors.counts.sum()) if weighted else cost
        quiet = quiet + 1 if abs(less) <= CONVERGED_COST_DECREASE * scale else 0
        if less > 0.0:
            values, at, cost, damping = values + step[:p], then, cost - less, damping / 2.0
        else:
            damping *= 2.0
        course.append(cost)
        if quiet == CONVERGED_STEPS:
            return at, np.array(course)
        if damping > MAX_DAMPING:
            break
    return None, np.array(course)


def _cost(at: Linearized, values: Array) -> float:
    plain = at.factors.keep(np.arange(len(values)))
    return float(compute_costs(plain.squared_residuals(values), plain.counts, at.weighted))


def _step(at: Linearized, values: Array, damping: float) -> Array:
    """Of parameters and logarithms, those that would leave their range held, shape (p + k,)."""
    p = len(values)
    plain = at.factors.keep(np.arange(p))
    weights = compute_weights(plain, values) if at.weighted else np.ones(len(plain.counts))
    stack = at.factors.stack(weights)
    rest = stack[:, -1] - stack[:, :p] @ values
    rows = np.column_stack([stack[:, :p], stack[:, p:-1] @ at.mixing(values), rest])
    below = np.zeros((rows.shape[1] - 1, rows.shape[1]))
    below[:, :-1] = np.diag(np.sqrt(damping) * np.linalg.norm(rows[:, :-1], axis=0))
    rows = np.concatenate([rows, below])
    free, low, high = np.ones(rows.shape[1] - 1, dtype=bool), *_room(at)
    step = np.zeros(len(free))
    for _ in range(1 + len(low)):
        step[free] = Solution.from_rows(rows[:, np.append(free, True)]).values
        step[~free] = 0.0
        blocked = ((low <= LOG_RANGE_MARGIN) & (step[p:] < 0.0)) | ((high <= LOG_RANGE_MARGIN) & (step[p:] > 0.0))
        if not blocked.any():
            break
        free[p:] &= ~blocked
    return step


def _room(at: Linearized) -> tuple[Array, Array]:
    """Of each logarithm, down and up to the ends of its range, shape (k,) each."""
    return at.logarithms - at.constants.lower, at.constants.upper - at.logarithms


def _share(at: Linearized, step: Array) -> float:
    """What of a step of the logarithms neither is too long nor leaves a range: parameters must go with them."""
    low, high = _room(at)
    room = np.minimum(np.where(step < 0.0, low, high), MAX_LOG_STEP)
    return float(np.min(np.divide(room, np.abs(step), out=np.ones_like(step), where=np.abs(step) > room), initial=1.0))
