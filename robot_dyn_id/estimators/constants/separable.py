# SPDX-License-Identifier: Apache-2.0
"""Separable least squares: nonlinear constants and linear parameters (Golub and Pereyra 1973; Kaufman 1975).

For given constants the optimal linear parameters are known, so that only the logarithms of the constants are searched:
first on a grid from several starts and by Newton's method, both on polynomials without further passes over the data;
then by Gauss-Newton steps with one pass over the data each, most often a single one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.estimates import estimate_constants
from robot_dyn_id.estimators.constants.grid import search_grid
from robot_dyn_id.estimators.constants.linearized import REWEIGHTING_PASSES, Linearized
from robot_dyn_id.estimators.constants.projected import Projected
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import check_rows
from robot_dyn_id.options import CheckedOptions, Count, Order, Range

CONVERGED_COST_DECREASE = 1e-10
"""Relative decrease of the cost below which the search has converged."""

CONVERGED_WEIGHT_CHANGE = 1e-3
"""Relative change of the weights below which they have converged."""

DAMPING_LEVELS = np.array([0.0, *np.geomspace(1e-3, 1e6, 10)])
"""Damping levels tried in turn until the cost decreases, as shares of the constants' information (Levenberg 1944)."""


@dataclass(frozen=True)
class Separable(CheckedOptions):
    """`weighted` over the free constants of the terms, too: Stribeck velocities and smoothing widths.

    The covariance of parameters and logarithms of constants is that of `weighted` with a derivative column for each
    constant.

    Attributes:
        weighted: whether joints are weighted by 1 / RMS of their residuals; otherwise all rows have the same weight.
        grid: number of initial values of each constant.
        iterations: maximum number of Gauss-Newton steps.
        autoregressive_order: AR order of the noise model; 0: white residuals.
    """

    weighted: bool = True
    grid: Annotated[int, Range(2)] = 14
    iterations: Count = 50
    autoregressive_order: Order = 6

    name: ClassVar[str] = "separable"
    uses_prior: ClassVar[bool] = False

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant.
            InputError: fewer rows than parameters.
        """
        check_rows(problem)
        constants = Constants.from_problem(problem, self.name)
        found, course = self._descend(constants, self._start(constants))
        return estimate_constants(found, self.autoregressive_order, course)

    def _start(self, constants: Constants) -> Array:
        """Logarithms that minimize the projected cost, shape (k,); weights and constants are iterated in turn."""
        at = Projected.from_constants(constants)
        if self.weighted:
            at = at.reweight(0.5 * (constants.lower + constants.upper))
        found = at.descend(search_grid(at, self.grid))
        for _ in range(REWEIGHTING_PASSES if self.weighted else 0):
            before = at.weights
            at = at.reweight(found)
            found = at.descend(found)
            if np.abs(at.weights / before - 1.0).max() < CONVERGED_WEIGHT_CHANGE:
                break
        return found

    def _descend(self, constants: Constants, start: Array) -> tuple[Linearized, Array]:
        """Damped Gauss-Newton iteration of the logarithms within their ranges.

        Returns:
            The problem at the minimum, and the cost after each step.

        Raises:
            ConvergenceError: the cost still decreases after all steps.
        """
        at = Linearized.from_constants(constants, start, self.weighted)
        course = [at.cost]
        for _ in range(self.iterations):
            for damping in DAMPING_LEVELS:
                step, promised = at.step(damping)
                if promised <= CONVERGED_COST_DECREASE * at.scale:
                    return at, np.array(course)
                trial = np.clip(at.logarithms + step, constants.lower, constants.upper)
                then = Linearized.from_constants(constants, trial, self.weighted)
                if then.cost < at.cost:
                    break
            else:
                return at, np.array(course)
            decrease = at.cost - then.cost
            at = then
            course.append(at.cost)
            if decrease <= CONVERGED_COST_DECREASE * at.scale:
                return at, np.array(course)
        raise ConvergenceError(
            f"separable: the constants {', '.join(constants.labels)} have not converged after {self.iterations} steps: "
            f"increase iterations, or fix those that are not identifiable"
        )
