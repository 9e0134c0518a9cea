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
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.options import CheckedOptions, Order, Positive

TOTAL_LEAST_SQUARES_ERRORS = Definition(
    "total_least_squares_errors",
    Section.ESTIMATES,
    "info",
    "Total least squares attributes errors to the columns as well as to the torques.",
)


@dataclass(frozen=True)
class TotalLeastSquares(CheckedOptions):
    """Total least squares with errors in columns and torque, each proportional to the RMS of its column.

    The solution follows from the smallest singular value of the compressed, weighted rows with columns of unit norm
    (Van Huffel and Vandewalle, The Total Least Squares Problem, 1991). The assumption holds only roughly for a
    regressor: its errors come from a few angles, and structural zeros have no error. For comparison.

    Attributes:
        column_error: error of a column relative to that of the torque, each as a share of its RMS; near 0: `weighted`.
        autoregressive_order: AR order of the noise model; 0: white residuals.
    """

    column_error: Positive = 1.0
    autoregressive_order: Order = 6

    name: ClassVar[str] = "total_least_squares"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            ConvergenceError: the errors exceed the smallest singular value of the columns.
        """
        factors = compress_rows(problem)
        ordinary, weighted, weights = solve_reweighted(factors)
        values, inverse, share = solve_total_least_squares(factors.stack(weights), self.column_error)
        solution = replace(weighted, values=values, inverse=inverse)
        noise, covariance = compute_sandwich(problem, values, inverse, weights, self.autoregressive_order)
        estimate = Estimate.from_solution(problem.names, factors, ordinary, solution, covariance, noise)
        message = (
            f"total least squares assumes independent errors of {share:.1%} of the RMS of each torque and of "
            f"{self.column_error * share:.1%} of that of each column"
        )
        finding = TOTAL_LEAST_SQUARES_ERRORS.found(message)
        return replace(estimate, findings=(*estimate.findings, finding))


def solve_total_least_squares(stack: Array, column_error: float) -> tuple[Array, Array, float]:
    """Solve total least squares by the singular value decomposition.

    Args:
        stack: weighted rows [W tau], shape (any, p + 1).
        column_error: see `TotalLeastSquares`.

    Returns:
        Parameters, shape (p,), the inverse of W' W - s^2 D^2, shape (p, p), and the error of the torque as a share of
        its norm.

    Raises:
        ConvergenceError: the errors exceed the smallest singular value of the columns.
    """
    norms = np.linalg.norm(stack, axis=0)
    scale = np.where(norms > 0.0, norms, 1.0)
    scale[:-1] *= column_error
    factor = np.asarray(np.linalg.qr(stack / scale, mode="r"))
    _, singular, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
    shown = singular > MIN_SINGULAR_VALUE_RATIO * singular.max(initial=0.0)
    basis = right[shown].T
    squares = singular[shown] ** 2
    excited = np.column_stack([factor[:, :-1] @ basis, factor[:, -1]])
    least = np.linalg.svd(excited, compute_uv=False)[-1] ** 2 if excited.shape[0] >= excited.shape[1] else 0.0
    if not least < squares.min(initial=np.inf):
        raise ConvergenceError(
            f"total_least_squares: errors of {np.sqrt(least):.1%} of the torque exceed the excitation of the weakest "
            f"direction: use a richer excitation, remove outliers, reduce column_error, or use weighted"
        )
    inverse_root = basis / np.sqrt(squares - least)
    values = inverse_root @ (inverse_root.T @ (factor[:, :-1].T @ factor[:, -1]))
    root = inverse_root / scale[:-1, None]
    return values * scale[-1] / scale[:-1], root @ root.T, float(np.sqrt(least))
