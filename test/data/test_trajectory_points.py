# SPDX-License-Identifier: Apache-2.0
"""Points of a trajectory, and the polynomials between them."""

import numpy as np

from robot_dyn_id.data.trajectory_points import TrajectoryPoints, evaluate, fit_polynomial
from robot_dyn_id.data.trajectory_rows import TrajectoryRows


def test_velocity_and_acceleration_are_the_derivatives_of_position():
    rng = np.random.default_rng(1)
    coefficients = fit_polynomial(0.7, rng.normal(size=(3, 2)), rng.normal(size=(3, 2)))
    step = 1e-5
    for s in (0.0, 0.31, 0.7):
        before, here, after = (evaluate(coefficients, s + d) for d in (-step, 0.0, step))
        assert np.allclose((after.q - before.q) / (2 * step), here.dq, atol=1e-6)
        assert np.allclose((after.dq - before.dq) / (2 * step), here.ddq, atol=1e-5)


def test_ends_of_a_polynomial():
    rng = np.random.default_rng(2)
    for order in (1, 2, 3):
        start, end = rng.normal(size=(2, order, 4))
        coefficients = fit_polynomial(0.3, start, end)
        for s, values in ((0.0, start), (0.3, end)):
            for got, expected in zip(evaluate(coefficients, s)[:order], values, strict=True):
                assert np.allclose(got, expected, atol=1e-9)


def test_joints_come_in_any_order():
    points = TrajectoryPoints.from_rows(
        ("a", "b"), TrajectoryRows(("b", "a"), (0, 10**9), ((1, 2), (3, 4)), *3 * [((), ())])
    )
    assert np.array_equal(points.q, [[2, 1], [4, 3]])
    assert np.isnan(points.dq).all() and np.isnan(points.ddq).all() and points.effort is None
