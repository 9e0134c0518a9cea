# SPDX-License-Identifier: Apache-2.0
"""Separable least squares: nonlinear constants and linear parameters (Golub and Pereyra 1973; Kaufman 1975).

For given constants the optimal linear parameters are known, so that only the logarithms of the constants are searched:
first on a grid from several starts and by Newton's method, both on polynomials without further passes over the data;
then by Gauss-Newton steps with one pass over the data each, most often a single one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.estimates import estimate_constants, list_faint, report_ambiguous, shown_by_rows
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.constants.minima import Minimum, find_minima
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import check_rows
from robot_dyn_id.options import CheckedOptions, Count, Order, Range

CONVERGED_COST_DECREASE = 1e-10
"""Relative decrease of the cost below which the search has converged."""

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
    grid: Annotated[int, Range(2)] = 64
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
        minima = find_minima(constants, self.weighted, self.grid)
        found, course, kept, others = self._choose(constants, minima)
        estimate = estimate_constants(found, self.autoregressive_order, course)
        while not problem.values_only and len(faint := list_faint(estimate, found)):
            kept = np.delete(kept, faint)
            found, course, kept = self._descend_rising(constants, found.logarithms, kept)
            estimate = estimate_constants(found, self.autoregressive_order, course)
        ambiguous = report_ambiguous(estimate, found, others)
        estimate = replace(estimate, findings=(*estimate.findings, *ambiguous))
        return estimate.expanded(problem.names, kept)

    def _choose(
        self, constants: Constants, minima: tuple[Minimum, ...]
    ) -> tuple[Linearized, Array, Integers, tuple[Minimum, ...]]:
        """Descend from the lowest of the minima whose constants are shown by more than a few rows each.

        The cost of a peak that lasts for single samples is low where those have errors. Where no minimum is shown by
        rows as a whole, it is the one with the fewest constants that are not.

        Returns:
            As `_descend_rising`, and the minima above.
        """
        least, best = len(constants.lower) + 1, None
        for place, minimum in enumerate(minima):
            kept = np.flatnonzero(minimum.positive)
            found, course, kept = self._descend_rising(constants, minimum.logarithms, kept)
            hidden = int(np.count_nonzero(~shown_by_rows(found, np.ones_like(found.inside))))
            if hidden < least:
                least, best = hidden, (found, course, kept, minima[place + 1 :])
            if not least:
                break
        assert best is not None, "there is a minimum at least where a search ends"
        return best

    def _descend_rising(self, constants: Constants, start: Array, kept: Integers) -> tuple[Linearized, Array, Integers]:
        """See `_descend`, with some columns; those whose parameters would be negative though they cannot are left out.

        Returns:
            As `_descend`, and the columns of the problem that were kept.
        """
        problem = constants.problem
        while True:
            rest = replace(constants, problem=problem.with_columns(problem.regressor, problem.columns[kept]))
            found, course = self._descend(replace(rest, parameters=rest.problem.names), start)
            below = found.rising[found.values[found.rising] < 0.0]
            if not len(below):
                return found, course, kept
            kept = np.delete(kept, below)

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
