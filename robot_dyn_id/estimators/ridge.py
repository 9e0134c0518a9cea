# SPDX-License-Identifier: Apache-2.0
"""Ridge regression: least squares with a penalty on large parameters (Hoerl and Kennard 1970)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.feasible_gls import solve_whitened
from robot_dyn_id.options import CheckedOptions, Count, NotNegative, Order

PENALTIES = np.geomspace(1e-12, 1e3, 61)
"""Grid of penalties; the most likely one is refined around the best of them."""


@dataclass(frozen=True)
class Ridge(CheckedOptions):
    """`generalized` with a penalty on parameters by the torque that they cause, |W theta - tau|^2 + a |D theta|^2.

    D holds the norms of the white columns, so that a is the information of the penalty relative to that of the data. It
    is equivalent to a Gaussian prior at zero, and the covariance is the posterior one. By default a is the most likely.

    Attributes:
        penalty: a; 0 selects the most likely one.
        autoregressive_order: AR order of the noise model.
        passes: number of whitening passes.
    """

    penalty: NotNegative = 0.0
    autoregressive_order: Order = 6
    passes: Count = 2

    name: ClassVar[str] = "ridge"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        used = self.penalty

        def solve(white: Factors, weights: Array) -> Solution:
            nonlocal used
            stack = white.stack(weights)
            norms = np.linalg.norm(stack[:, :-1], axis=0)
            used = self.penalty or find_likeliest_penalty(stack, norms)
            rows = np.column_stack([np.diag(np.sqrt(used) * norms), np.zeros(len(norms))])
            return Solution.from_rows(np.concatenate([stack, rows]))

        found = solve_whitened(problem, self.autoregressive_order, self.passes, "qr", solve)
        solution = replace(found.solution, unexcited=found.ordinary.unexcited)
        target = f"zero, with {used:.2g} of the information that the data have of each parameter"
        return replace(found, solution=solution).make_estimate(problem, regularized_towards=target)


def find_likeliest_penalty(stack: Array, norms: Array) -> float:
    """Penalty of the highest marginal likelihood, for normal parameters of mean zero (MacKay 1992).

    Args:
        stack: rows [W tau] of unit variance, shape (any, p + 1).
        norms: norms of the columns, shape (p,).
    """
    from scipy.optimize import minimize_scalar  # slow to import, and seldom used

    left, singular, _ = np.linalg.svd(stack[:, :-1] / np.where(norms > 0, norms, 1.0), full_matrices=False)
    squares = singular**2
    projected = (left.T @ stack[:, -1]) ** 2

    def negative_log_likelihood(logarithm: float) -> float:
        penalty = np.exp(logarithm)
        return float(np.sum(np.log1p(squares / penalty) + penalty / (squares + penalty) * projected))

    grid = np.log(PENALTIES)
    best = int(np.argmin([negative_log_likelihood(value) for value in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return float(
        np.exp(minimize_scalar(negative_log_likelihood, bounds=around, method="bounded", options={"xatol": 1e-6}).x)
    )
