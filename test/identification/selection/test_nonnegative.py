# SPDX-License-Identifier: Apache-2.0
"""Least squares from normal equations with bounds."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from robot_dyn_id.identification.selection.nonnegative import solve_nonnegative


@pytest.mark.parametrize("seed", range(5))
def test_the_solution_is_that_of_bounded_least_squares(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(200, 12)) * 10.0 ** rng.uniform(-3, 3, 12)
    torque = columns @ (rng.normal(size=12) / np.linalg.norm(columns, axis=0)) + 0.01 * rng.normal(size=200)
    bounded = rng.random(12) < 0.6
    found = solve_nonnegative(columns.T @ columns, columns.T @ torque, bounded)
    lower = np.where(bounded, 0.0, -np.inf)
    expected = lsq_linear(columns, torque, (lower, np.inf), tol=1e-14).x
    assert (found[bounded] >= 0.0).all()
    residuals = [np.linalg.norm(columns @ x - torque) for x in (found, expected)]
    assert residuals[0] <= residuals[1] * (1.0 + 1e-6)


def test_equal_columns_share_their_parameter():
    column = np.linspace(1.0, 2.0, 50)
    rows = np.column_stack([column, column, np.ones(50)])
    found = solve_nonnegative(rows.T @ rows, rows.T @ (4.0 * column + 1.0), np.array([True, True, False]))
    assert found[0] + found[1] == pytest.approx(4.0, rel=1e-6)
    assert found[2] == pytest.approx(1.0, rel=1e-5)


def test_columns_without_data_have_the_parameter_zero():
    rows = np.column_stack([np.arange(10.0), np.zeros(10)])
    found = solve_nonnegative(rows.T @ rows, rows.T @ np.arange(10.0), np.array([False, True]))
    assert found[1] == 0.0
