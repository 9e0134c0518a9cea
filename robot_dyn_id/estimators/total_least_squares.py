# SPDX-License-Identifier: Apache-2.0
"""Total least squares: errors in the columns as well as in the torques (Golub and Van Loan 1980)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import MIN_SINGULAR_VALUE_RATIO, compress_rows
from robot_dyn_id.estimators.sandwich import compute_sandwich
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.findings import make_finding
from robot_dyn_id.options import CheckedOptions, OptionRanges, Range


@dataclass(frozen=True)
class TotalLeastSquares(CheckedOptions):
    """Errors of every entry of a weighted row, torque and columns, each a share of the RMS of its own column.

    By the smallest singular value of the compressed rows with columns of unit norm (Van Huffel and Vandewalle, The
    Total Least Squares Problem, 1991). A regressor keeps to this only roughly: its errors come from a few angles, not
    one for each entry, and entries that are zero by structure have none: for comparison.

    Attributes:
        column_error: error of a column over that of the torque, each as a share of its RMS; towards 0 it is `weighted`.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
    """

    column_error: float = 1.0
    autoregressive_order: int = 6

    name: ClassVar[str] = "total_least_squares"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "column_error": Range(0, includes_low=False),
        "autoregressive_order": Range(0),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            ConvergenceError: errors as large as what the weakest direction shows.
        """
        factors = compress_rows(problem)
        ordinary, weighted, weights = solve_reweighted(factors)
        values, inverse, share = solved(factors.stack(weights), self.column_error)
        solution = replace(weighted, values=values, inverse=inverse)
        noise, covariance = compute_sandwich(problem, values, inverse, weights, self.autoregressive_order)
        estimate = Estimate.from_solution(problem, factors, ordinary, solution, covariance, noise)
        message = (
            f"total least squares assumes independent errors of {share:.1%} of the RMS of each torque and of "
            f"{self.column_error * share:.1%} of that of each column"
        )
        finding = make_finding("total_least_squares_errors", message)
        return replace(estimate, findings=(*estimate.findings, finding))


def solved(stack: Array, column_error: float) -> tuple[Array, Array, float]:
    """Parameters, the inverse of W' W - s^2 D^2, and the error of the torque as a share of its norm.

    Args:
        stack: weighted rows [W tau], shape (any, p + 1).
        column_error: see `TotalLeastSquares`.

    Raises:
        ConvergenceError: errors as large as what the weakest direction shows.
    """
    norms = np.linalg.norm(stack, axis=0)
    scale = np.where(norms > 0.0, norms, 1.0)
    scale[:-1] *= column_error
    factor = np.asarray(np.linalg.qr(stack / scale, mode="r"))
    _, singular, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
    shown = singular > MIN_SINGULAR_VALUE_RATIO * singular.max(initial=0.0)
    basis, squares = right[shown].T, singular[shown] ** 2
    seen = np.column_stack([factor[:, :-1] @ basis, factor[:, -1]])
    least = np.linalg.svd(seen, compute_uv=False)[-1] ** 2 if seen.shape[0] >= seen.shape[1] else 0.0
    if not least < squares.min(initial=np.inf):
        raise ConvergenceError(
            f"total_least_squares: errors of {np.sqrt(least):.1%} of the torque are as large as what the weakest "
            f"direction shows: excite more, mend outliers, give a smaller column_error, or use weighted"
        )
    inverse_root = basis / np.sqrt(squares - least)
    values = inverse_root @ (inverse_root.T @ (factor[:, :-1].T @ factor[:, -1]))
    root = inverse_root / scale[:-1, None]
    return values * scale[-1] / scale[:-1], root @ root.T, float(np.sqrt(least))
