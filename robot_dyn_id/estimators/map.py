# SPDX-License-Identifier: Apache-2.0
"""Maximum a posteriori: least squares with a Gaussian prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.feasible_gls import WhitenedSolution, solve_whitened
from robot_dyn_id.options import CheckedOptions, Count, Order, Positive


@dataclass(frozen=True)
class MaximumAPosteriori(CheckedOptions):
    """`generalized` with a Gaussian prior, |W theta - tau|^2 + |A theta - b|^2, both of unit variance.

    The prior is that of the problem, from the URDF or an earlier parameter set, see `Prior.rows`. Parameters that are
    not excited stay at it. The estimate is biased towards the prior; the posterior covariance holds if the prior does.

    Attributes:
        spread: prior standard deviation of each parameter, as a share of its size on this robot.
        autoregressive_order: AR order of the noise model.
        passes: number of whitening passes.
    """

    spread: Positive = 0.25
    autoregressive_order: Order = 6
    passes: Count = 2

    name: ClassVar[str] = "map"
    uses_prior: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: the problem has no prior.
        """
        prior = require_prior(problem, self.name)
        rows = prior.rows(self.spread)
        center = prior.center
        found = solve_with_prior(problem, rows, center, self.autoregressive_order, self.passes)
        target = f"{prior.source}, give or take {self.spread:.0%} of each parameter's size"
        return found.make_estimate(problem, regularized_towards=target)


def require_prior(problem: LinearProblem, estimator: str) -> Prior:
    """Prior of a problem.

    Raises:
        UsageError: the problem has no prior.
    """
    if problem.prior is None:
        raise UsageError(f"{estimator}: there is no prior: complete the masses of the URDF, or use another estimator")
    return problem.prior


def solve_with_prior(problem: LinearProblem, rows: Array, center: Array, order: int, passes: int) -> WhitenedSolution:
    """Solve the white rows together with those of a prior.

    Args:
        problem: the problem, with p parameters.
        rows: rows [A b] of the prior, of unit variance, shape (any, p + 1).
        center: values of the parameters that neither data nor prior determine, shape (p,).
        order: AR order of the noise model.
        passes: number of whitening passes.
    """

    def solve(white: Factors, weights: Array) -> Solution:
        stack = white.stack(weights, rows)
        stack[:, -1] -= stack[:, :-1] @ center  # what rounding hides stays at the prior, not at zero
        solution = Solution.from_rows(stack)
        return replace(solution, values=center + solution.values)

    return solve_whitened(problem, order, passes, "qr", solve)
