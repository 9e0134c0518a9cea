# SPDX-License-Identifier: Apache-2.0
"""Cholesky factors of small matrices."""

import numpy as np
import pytest

from robot_dyn_id.kernels.cholesky import CholeskyFactor


@pytest.mark.parametrize("size", [0, 1, 7])
def test_factor_solves_and_has_the_determinant(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size + 3))
    matrix = root @ root.T
    kept = matrix.copy()
    factor = CholeskyFactor.from_matrix(matrix)
    for shape in ((size,), (size, 2)):
        truth = rng.normal(size=shape)
        np.testing.assert_allclose(factor.solve(matrix @ truth), truth, rtol=1e-9, atol=1e-12)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)
    np.testing.assert_array_equal(matrix, kept)
    again = CholeskyFactor.from_matrix(matrix, overwrite=True)
    np.testing.assert_array_equal(np.triu(again.upper), np.triu(factor.upper))


@pytest.mark.parametrize("matrix", [np.diag([1.0, -1.0]), np.array([[1.0, np.nan], [np.nan, 1.0]])])
def test_other_matrices_are_refused(matrix):
    with pytest.raises(np.linalg.LinAlgError):
        CholeskyFactor.from_matrix(matrix)
