# SPDX-License-Identifier: Apache-2.0
"""95 % intervals of parameters some of which are not negative."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from robot_dyn_id.estimators.bounded_intervals import NORMAL, BoundedNormal


def random_normal(seed, count=8, bounded=5):
    """An estimate with nearly collinear bounded parameters, some of which are below zero."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, count))
    rows[:, -2:] = rows[:, -4:-2] + 0.1 * rng.normal(size=(30, 2))
    return BoundedNormal(rng.normal(size=count), rows.T @ rows, np.arange(count) >= count - bounded)


def least_distance(normal, combination, value):
    """Least d2 within the bounds, where a combination has a value, by a bounded solver with a large weight."""
    root = np.linalg.cholesky(normal.metric).T
    rows = np.vstack([root, 1e5 * combination])
    right = np.append(root @ normal.center, 1e5 * value)
    found = lsq_linear(rows, right, (np.where(normal.bounded, 0.0, -np.inf), np.inf), tol=1e-14, method="bvls").x
    assert combination @ found == pytest.approx(value, abs=1e-6)
    return float(np.sum((root @ (found - normal.center)) ** 2))


@pytest.mark.parametrize("seed", range(6))
def test_the_likelihood_at_both_ends_is_that_of_95_percent(seed):
    normal = random_normal(seed)
    combinations = np.vstack([np.eye(8), np.random.default_rng(seed).normal(size=(3, 8))])
    root = np.linalg.cholesky(normal.metric).T
    bounds = (np.where(normal.bounded, 0.0, -np.inf), np.inf)
    at_minimum = lsq_linear(root, root @ normal.center, bounds, tol=1e-14, method="bvls").x
    least = np.sum((root @ (at_minimum - normal.center)) ** 2)
    for combination, (low, high) in zip(combinations, normal.find_intervals(combinations), strict=True):
        assert low <= combination @ at_minimum + 1e-8 <= high + 2e-8
        assert least_distance(normal, combination, high) - least == pytest.approx(NORMAL**2, rel=1e-3)
        if low > 1e-9 or np.count_nonzero(combination) > 1 or not normal.bounded[combination.argmax()]:
            assert least_distance(normal, combination, low) - least == pytest.approx(NORMAL**2, rel=1e-3)
        else:
            assert low == pytest.approx(0.0, abs=1e-9)


def test_without_bounds_intervals_and_covariance_are_those_of_the_normal_distribution():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 6))
    hessian, scores = root.T @ root, np.diag(rng.uniform(0.5, 2.0, 6))
    far = hessian @ np.full(6, 50.0)
    normal = BoundedNormal.from_scores(hessian, far, scores, np.arange(6) > 3)
    inverse = np.linalg.inv(hessian)
    sandwich = inverse @ scores @ inverse
    sigma = np.sqrt(np.diag(sandwich))
    expected = 50.0 + NORMAL * sigma[:, None] * np.array([-1.0, 1.0])
    np.testing.assert_allclose(normal.find_intervals(np.eye(6)), expected, rtol=1e-6)
    np.testing.assert_allclose(normal.find_covariance(sigma), sandwich, rtol=1e-5)


def test_a_parameter_at_its_bound_has_an_interval_from_zero_on():
    normal = BoundedNormal(np.array([1.0, 0.0, -1.0]), np.eye(3), np.array([False, True, True]))
    (free_low, free_high), (low, high), (lower, higher) = normal.find_intervals(np.eye(3))
    assert (free_low, free_high) == pytest.approx((1.0 - NORMAL, 1.0 + NORMAL))
    assert (low, lower) == (0.0, 0.0)
    assert high == pytest.approx(NORMAL)
    assert higher == pytest.approx(np.sqrt(1.0 + NORMAL**2) - 1.0)  # less: the data contradict the bound


def test_what_collinear_parameters_share_is_known_though_their_parts_are_not():
    """Two columns that are nearly the same: each may be all of the sum of 1, and has the deviation of that."""
    metric = 1e4 * np.array([[1.0, 1.0 - 1e-6], [1.0 - 1e-6, 1.0]])
    normal = BoundedNormal(np.array([0.9, 0.1]), metric, np.array([True, True]))
    intervals = normal.find_intervals(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(intervals[:2], [[0.0, 1.02], [0.0, 1.02]], atol=0.01)
    np.testing.assert_allclose(intervals[2], [1.0 - 0.0196, 1.0 + 0.0196], atol=1e-3)
    deviations = np.array([0.46, 0.46])
    covariance = normal.find_covariance(deviations)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=1e-3)
    assert np.sqrt(covariance.sum()) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("truth", [0.0, 0.3, 3.0])
def test_intervals_hold_the_truth_in_95_percent_of_draws_or_more_at_zero(truth):
    rows = np.random.default_rng(1).normal(size=(60, 4))
    rows[:, 3] = rows[:, 2] + 0.3 * rows[:, 3]
    parameters = np.array([1.0, -2.0, 1.0, truth])
    draws, held = 400, np.zeros(4)
    rng = np.random.default_rng(2)
    for _ in range(draws):
        torque = rows @ parameters + 5.0 * rng.normal(size=60)
        normal = BoundedNormal.from_scores(rows.T @ rows, rows.T @ torque, 25.0 * rows.T @ rows, np.arange(4) > 1)
        low, high = normal.find_intervals(np.eye(4)).T
        held += (low <= parameters) & (parameters <= high)
    assert np.all(held[:2] / draws == pytest.approx(0.95, abs=0.03))
    assert np.all(held[2:] / draws > 0.92)
