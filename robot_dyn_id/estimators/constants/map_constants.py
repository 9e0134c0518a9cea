# SPDX-License-Identifier: Apache-2.0
"""Maximum a posteriori over linear parameters and nonlinear constants, by Gauss-Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.constants import MAX_LOG_STEP, Constants
from robot_dyn_id.estimators.constants.estimates import split_constants
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import compress_rows
from robot_dyn_id.estimators.feasible_gls import WhitenedSolution
from robot_dyn_id.estimators.map import MaximumAPosteriori, require_prior, solve_with_prior
from robot_dyn_id.options import CheckedOptions, Count, Order, Positive

CONVERGED_DEVIATIONS = 0.01
"""RMS change of the constants [standard deviations] below which the search has converged."""

STEP_SHARES = (1.0, 0.5, 0.25, 0.125)
"""Shares of a step, tried in turn until the next step is shorter (natural monotonicity test, Deuflhard 2011)."""


@dataclass(frozen=True)
class MaximumAPosterioriConstants(CheckedOptions):
    """`map` over the free constants of the terms, too: Stribeck velocities and smoothing widths.

    The prior of a constant is Gaussian in its logarithm, around its value in the term, with the same spread as all
    others; the search starts there. A constant that is not identifiable keeps its prior value and standard deviation.

    Attributes:
        spread: prior standard deviation of each parameter, as a share of its size on this robot, and of the logarithms
            of the constants.
        iterations: maximum number of Gauss-Newton steps.
        autoregressive_order: AR order of the noise model.
        passes: number of whitening passes.
    """

    spread: Positive = 0.25
    iterations: Count = 50
    autoregressive_order: Order = 6
    passes: Count = 2

    name: ClassVar[str] = "map_constants"
    uses_prior: ClassVar[bool] = True
    expensive: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant, or the problem has no prior.
        """
        prior = require_prior(problem, self.name)
        compress_rows(problem)  # raises an error before the search if there are too few rows
        constants = Constants.from_problem(problem, self.name)
        begin = MaximumAPosteriori(self.spread, self.autoregressive_order, self.passes).fit(problem)
        at = self._at(constants, prior, constants.logarithms, begin.values)
        for _ in range(self.iterations):
            if at.length(at.step) < CONVERGED_DEVIATIONS:
                return self._make_estimate(at, prior)
            for share in STEP_SHARES:
                values = at.values + share * (at.found.solution.values[: len(at.values)] - at.values)
                then = self._at(constants, prior, at.linear.logarithms + share * at.step, values)
                if at.length(then.step) < at.length(at.step):
                    break
            at = then
        raise ConvergenceError(
            f"map_constants: the constants {', '.join(constants.labels)} have not converged after {self.iterations} "
            f"steps: increase iterations, reduce spread, or use map"
        )

    def _at(self, constants: Constants, prior: Prior, logarithms: Array, values: Array) -> _Posterior:
        """Linearize the problem at given constants and parameters, and solve it with both priors."""
        linear = Linearized.from_constants(constants, logarithms, True)
        known = prior.rows(self.spread)
        k = len(logarithms)
        away = constants.logarithms - logarithms
        rows = np.zeros((len(known) + k, known.shape[1] + k))
        rows[: len(known), : len(values)] = known[:, :-1]
        rows[: len(known), -1] = known[:, -1]
        rows[len(known) :, len(values) :] = np.column_stack([np.eye(k), away]) / self.spread
        extended = linear.problem(values, np.ones(k, dtype=bool))
        center = np.append(prior.center, away)
        found = solve_with_prior(extended, rows, center, self.autoregressive_order, self.passes)
        return _Posterior(linear, values, extended, found)

    def _make_estimate(self, at: _Posterior, prior: Prior) -> Estimate:
        found = at.found
        target = f"{prior.source} and the constants of the terms, give or take {self.spread:.0%} of their sizes"
        estimate = found.make_estimate(at.extended, regularized_towards=target)
        return split_constants(estimate, at.linear, np.ones(len(at.step), dtype=bool))


@dataclass(frozen=True)
class _Posterior:
    """Solution of a problem linearized at given constants and parameters.

    Attributes:
        linear: the linearized problem.
        values: the p parameters at which it is linearized.
        extended: problem of the p parameters and the changes of the k logarithms.
        found: its solution.
    """

    linear: Linearized
    values: Array
    extended: LinearProblem
    found: WhitenedSolution

    @property
    def step(self) -> Array:
        """Step of the logarithms within their ranges, limited to `MAX_LOG_STEP`, shape (k,)."""
        at = self.linear.logarithms
        constants = self.linear.constants
        wanted = np.clip(self.found.solution.values[len(self.values) :], -MAX_LOG_STEP, MAX_LOG_STEP)
        return np.asarray(np.clip(at + wanted, constants.lower, constants.upper) - at)

    def length(self, step: Array) -> float:
        """RMS of a step in standard deviations."""
        sigma = np.sqrt(np.diag(self.found.solution.inverse)[len(self.values) :])
        return float(np.sqrt(np.mean((step / sigma) ** 2)))
