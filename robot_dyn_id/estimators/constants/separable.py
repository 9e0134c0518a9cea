# SPDX-License-Identifier: Apache-2.0
"""Separable least squares: constants of terms beside their linear parameters (Golub and Pereyra 1973; Kaufman 1975).

For given constants the best linear parameters are known, so only the constants are searched, by their logarithms: first
on a grid from many starts and by Newton's method, on polynomials, without looking at the data again; then by
Gauss-Newton steps, one walk over the data each, which mostly find that there is nothing left to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.estimates import estimate_constants
from robot_dyn_id.estimators.constants.grid import best_of_grid
from robot_dyn_id.estimators.constants.linearized import REWEIGHTING_PASSES, Linearized
from robot_dyn_id.estimators.constants.projected import Projected
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import check_rows
from robot_dyn_id.options import CheckedOptions, OptionRanges, Range

CONVERGED_COST_DECREASE = 1e-10
"""Relative decrease of the cost that is none."""

CONVERGED_WEIGHT_CHANGE = 1e-3
"""Relative change of weights that is none."""

DAMPING_LEVELS = np.array([0.0, *np.geomspace(1e-3, 1e6, 10)])
"""Tried in turn until the cost falls, as shares of the constants' own information (Levenberg 1944)."""


@dataclass(frozen=True)
class Separable(CheckedOptions):
    """`weighted`, with the free constants of the terms found as well: Stribeck velocities and smoothing widths.

    The covariance, of parameters and of the logarithms of the constants, is that of `weighted` with a column for each
    constant: what it does to the torque.

    Attributes:
        weighted: whether each joint counts by 1 / RMS of its residual, else all rows are alike.
        grid: values of each constant that the search begins with.
        iterations: Gauss-Newton steps after which it is given up.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
    """

    weighted: bool = True
    grid: int = 14
    iterations: int = 50
    autoregressive_order: int = 6

    name: ClassVar[str] = "separable"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "grid": Range(2),
        "iterations": Range(1),
        "autoregressive_order": Range(0),
    }

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
        """The best logarithms by polynomials through nodes, weights and constants in turn; shape (k,)."""
        at = Projected.from_constants(constants)
        if self.weighted:
            at = at.reweight(0.5 * (constants.lower + constants.upper))
        found = at.descend(best_of_grid(at, self.grid))
        for _ in range(REWEIGHTING_PASSES if self.weighted else 0):
            before, at = at.weights, at.reweight(found)
            found = at.descend(found)
            if np.abs(at.weights / before - 1.0).max() < CONVERGED_WEIGHT_CHANGE:
                break
        return found

    def _descend(self, constants: Constants, start: Array) -> tuple[Linearized, Array]:
        """Gauss-Newton with damping on the logarithms, kept within their ranges; the costs on the way.

        Raises:
            ConvergenceError: the cost still falls after all steps.
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
            decrease, at = at.cost - then.cost, then
            course.append(at.cost)
            if decrease <= CONVERGED_COST_DECREASE * at.scale:
                return at, np.array(course)
        raise ConvergenceError(
            f"separable: the constants {', '.join(constants.labels)} still move after {self.iterations} steps: give "
            f"more iterations, or fix those that the data cannot tell"
        )
