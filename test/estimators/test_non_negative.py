# SPDX-License-Identifier: Apache-2.0
"""Least squares with non-negative parameters."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from robot_dyn_id.estimators.non_negative import minimize_non_negative, solve_bounded


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("collinear", [False, True])
def test_the_minimum_is_that_of_lawson_and_hanson(seed, collinear):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 30))
    if collinear:
        rows[:, 15:] = rows[:, :15] + 1e-3 * rng.normal(size=(80, 15))
    rows /= np.linalg.norm(rows, axis=0)
    torque = rows @ np.maximum(rng.normal(size=30), 0.0) + 0.3 * rng.normal(size=80)
    values, positive = minimize_non_negative(rows.T @ rows, rows.T @ torque, rng.random(30) < 0.5)
    expected, norm = nnls(rows, torque)
    assert np.all(values >= 0.0)
    np.testing.assert_array_equal(positive, values > 0.0)
    assert np.linalg.norm(rows @ values - torque) <= norm * (1.0 + 1e-9)
    np.testing.assert_allclose(rows @ values, rows @ expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_solution_is_that_of_bounded_least_squares(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(200, 12)) * 10.0 ** rng.uniform(-3, 3, 12)
    torque = columns @ (rng.normal(size=12) / np.linalg.norm(columns, axis=0)) + 0.01 * rng.normal(size=200)
    bounded = rng.random(12) < 0.6
    found = solve_bounded(columns.T @ columns, columns.T @ torque, bounded)
    lower = np.where(bounded, 0.0, -np.inf)
    expected = lsq_linear(columns, torque, (lower, np.inf), tol=1e-14).x
    assert (found[bounded] >= 0.0).all()
    residuals = [np.linalg.norm(columns @ x - torque) for x in (found, expected)]
    assert residuals[0] <= residuals[1] * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_solution_does_not_depend_on_the_start(seed):
    rng = np.random.default_rng(seed)
    rows, bounded = rng.normal(size=(60, 24)), np.arange(24) >= 4
    normal, target = rows.T @ rows, rows.T @ rng.normal(size=60)
    found = solve_bounded(normal, target, bounded)
    assert (found[bounded] == 0.0).any()
    for start in (np.zeros(20, dtype=bool), rng.random(20) < 0.5, found[bounded] > 0.0):
        np.testing.assert_allclose(solve_bounded(normal, target, bounded, start), found, rtol=1e-9, atol=1e-12)


def test_equal_columns_share_their_parameter():
    column = np.linspace(1.0, 2.0, 50)
    rows = np.column_stack([column, column, np.ones(50)])
    found = solve_bounded(rows.T @ rows, rows.T @ (4.0 * column + 1.0), np.array([True, True, False]))
    assert found[0] + found[1] == pytest.approx(4.0, rel=1e-6)
    assert found[2] == pytest.approx(1.0, rel=1e-5)


def test_columns_without_data_have_the_parameter_zero():
    rows = np.column_stack([np.arange(10.0), np.zeros(10)])
    found = solve_bounded(rows.T @ rows, rows.T @ np.arange(10.0), np.array([False, True]))
    assert found[1] == 0.0
