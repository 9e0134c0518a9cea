# SPDX-License-Identifier: Apache-2.0
"""Levenberg-Marquardt (Levenberg 1944; Marquardt 1963) over linear parameters and nonlinear constants together."""

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
from robot_dyn_id.options import CheckedOptions, Count, Order

INITIAL_DAMPING = 1e-3
"""Initial damping, as a share of each column's information: halved after a successful step, otherwise doubled."""

MAX_DAMPING = 1e3
"""Damping above which the search is stuck."""

CONVERGED_COST_DECREASE = 1e-8
"""Relative decrease of the cost that is negligible: with 1e4 rows a hundredth of the standard deviations."""

CONVERGED_STEPS = 3
"""Consecutive steps with a negligible decrease after which the search has converged."""


@dataclass(frozen=True)
class LevenbergMarquardt(CheckedOptions):
    """Local minimum that starts from least squares at the given constants.

    `separable` finds the same minimum independently of the initial constants.

    Attributes:
        iterations: maximum number of steps.
        weighted: whether joints are weighted by 1 / RMS of their residuals; otherwise all rows have the same weight.
        autoregressive_order: AR order of the noise model; 0: white residuals.
    """

    iterations: Count = 100
    weighted: bool = True
    autoregressive_order: Order = 6

    name: ClassVar[str] = "lm"
    uses_prior: ClassVar[bool] = False
    expensive: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant.
            ConvergenceError: the constants have not converged.
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
                f"lm: the constants {', '.join(constants.labels)} have not converged after {len(course) - 1} steps: "
                f"increase iterations, or use separable"
            )
        return estimate_constants(found, self.autoregressive_order, course)


def minimize_damped(
    constants: Constants, point: Array, weighted: bool, iterations: int
) -> tuple[Linearized | None, Array]:
    """Find the local minimum of the cost.

    Args:
        constants: the k constants.
        point: initial p parameters and k logarithms, shape (p + k,).
        weighted: see `compute_costs`.
        iterations: maximum number of steps, with one pass over the data each.

    Returns:
        The problem at the minimum, None if the search has not converged, and the cost initially and after each step.
    """
    p = len(constants.parameters)
    damping = INITIAL_DAMPING
    negligible = 0
    values = point[:p]
    at = Linearized.from_constants(constants, point[p:], weighted)
    cost = _cost(at, values)
    course = [cost]
    for _ in range(iterations):
        step = _step(at, values, damping)
        step *= _share(at, step[p:])
        trial = np.clip(at.logarithms + step[p:], constants.lower, constants.upper)
        then = Linearized.from_constants(constants, trial, weighted)
        less = cost - _cost(then, values + step[:p])
        scale = 0.5 * float(at.factors.counts.sum()) if weighted else cost
        negligible = negligible + 1 if abs(less) <= CONVERGED_COST_DECREASE * scale else 0
        if less > 0.0:
            values = values + step[:p]
            at = then
            cost = cost - less
            damping = damping / 2.0
        else:
            damping *= 2.0
        course.append(cost)
        if negligible == CONVERGED_STEPS:
            return at, np.array(course)
        if damping > MAX_DAMPING:
            break
    return None, np.array(course)


def _cost(at: Linearized, values: Array) -> float:
    plain = at.factors.keep(np.arange(len(values)))
    return float(compute_costs(plain.squared_residuals(values), plain.counts, at.weighted))


def _step(at: Linearized, values: Array, damping: float) -> Array:
    """Damped step of parameters and logarithms within their ranges, shape (p + k,)."""
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
    """Distances of each logarithm from the bounds of its range, down and up, shape (k,) each."""
    return at.logarithms - at.constants.lower, at.constants.upper - at.logarithms


def _share(at: Linearized, step: Array) -> float:
    """Share of a step for which no logarithm leaves its range or changes by more than `MAX_LOG_STEP`."""
    low, high = _room(at)
    room = np.minimum(np.where(step < 0.0, low, high), MAX_LOG_STEP)
    return float(np.min(np.divide(room, np.abs(step), out=np.ones_like(step), where=np.abs(step) > room), initial=1.0))
