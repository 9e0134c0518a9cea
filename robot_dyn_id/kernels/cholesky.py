# SPDX-License-Identifier: Apache-2.0
"""Cholesky factors of small matrices, straight from LAPACK.

`scipy.linalg.cho_factor` checks and copies its arguments for longer than LAPACK factorizes a matrix of 100 rows, and a
choice among models factorizes thousands of them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from robot_dyn_id.arrays import Array


class CholeskyFactor:
    """Triangular factor U of a symmetric matrix U' U.

    Attributes:
        upper: U in its upper triangle, shape (c, c); what is below is undefined.
    """

    __slots__ = ("upper",)

    def __init__(self, upper: Array) -> None:
        """Keep a factor; see `from_matrix`."""
        self.upper = upper

    @classmethod
    def from_matrix(cls, matrix: Array, *, overwrite: bool = False) -> CholeskyFactor:
        """Factorize a matrix.

        Args:
            matrix: symmetric positive-definite matrix, of which the lower triangle is read, shape (c, c).
            overwrite: whether the factor may take the place of the matrix.

        Raises:
            LinAlgError: the matrix is not positive definite, or has NaN.
        """
        # the transposed view has the order of LAPACK: nothing is copied twice
        upper, fault = lapack.dpotrf(matrix.T, lower=False, clean=False, overwrite_a=overwrite)
        if fault or (upper.size and math.isnan(upper[-1, -1])):  # NaN gets from every element to the last
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return cls(upper)

    def solve(self, right: Array) -> Array:
        """Solution of the equations with the matrix, shape of `right`: (c,) or (c, k)."""
        if not right.size:  # which LAPACK refuses
            return right.copy()
        return np.asarray(lapack.dpotrs(self.upper, right, lower=False)[0])

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the matrix."""
        return 2.0 * float(np.log(self.upper.diagonal()).sum())
