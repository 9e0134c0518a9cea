# SPDX-License-Identifier: Apache-2.0
"""Least squares with non-negative parameters, and draws of its estimates."""

import numpy as np
import pytest
from scipy.optimize import nnls

from robot_dyn_id.estimators.non_negative import BoundedNormal, minimize_non_negative


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
