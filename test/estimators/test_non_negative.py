# SPDX-License-Identifier: Apache-2.0
"""Least squares with non-negative parameters, and draws of its estimates."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from robot_dyn_id.estimators.non_negative import BoundedNormal, minimize_non_negative, solve_bounded


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


def test_draws_far_from_the_bounds_have_the_sandwich_covariance():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 8))
    normal, middle = root.T @ root, np.diag(rng.uniform(0.5, 2.0, 8))
    center = np.full(8, 50.0)
    draws = BoundedNormal(normal, normal @ center, np.arange(8) > 3).draw(middle, 20_000)
    inverse = np.linalg.inv(normal)
    np.testing.assert_allclose(draws.mean(axis=0), center, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), inverse @ middle @ inverse, rtol=0.1, atol=0.05)


def test_draws_at_a_bound_are_half_a_normal_distribution():
    normal = np.eye(3)
    draws = BoundedNormal(normal, np.array([1.0, 0.0, -5.0]), np.array([False, True, True])).draw(np.eye(3), 20_000)
    assert np.mean(draws[:, 1] == 0.0) == pytest.approx(0.5, abs=0.02)
    assert np.mean(draws[:, 1] ** 2) == pytest.approx(0.5, abs=0.03)
    assert not draws[:, 2].any()


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
