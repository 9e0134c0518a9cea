# SPDX-License-Identifier: Apache-2.0
"""Minima over real bodies and non-negative numbers satisfy the optimality conditions."""

import numpy as np
import pytest

from robot_dyn_id.estimators.cone_program import ConeProgram, convert_to_matrices

BODIES, FLOOR = 3, 0.01
BOUNDED = np.arange(10 * BODIES + 2, 10 * BODIES + 14)


def make_program(seed, bodies=BODIES, spread=3.0):
    """A program whose columns differ in size, with two numbers of free sign."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 10 * BODIES + 14)) * 10.0 ** rng.uniform(-spread, 0.0, 10 * BODIES + 14)
    return ConeProgram(rows.T @ rows, -rows.T @ rng.normal(size=80), bodies, BOUNDED, FLOOR)


@pytest.mark.parametrize("bodies", [0, BODIES])
@pytest.mark.parametrize("seed", range(8))
def test_the_gradient_is_a_multiplier_of_the_cones_and_vanishes_where_they_leave_room(seed, bodies):
    program = make_program(seed, bodies)
    x, multipliers = program.solve(1e-11)
    gradient, free = program.quadratic @ x + program.linear, np.ones(len(x), dtype=bool)
    free[program.in_cones] = False
    split = program.inertial
    room = convert_to_matrices(x[:split].reshape(-1, 10)) - FLOOR * np.eye(4)
    of_bodies = convert_to_matrices(gradient[:split].reshape(-1, 10))
    size = np.abs(program.linear).max()
    rounding = 1e-7 * size
    assert np.abs(gradient[free]).max() < rounding
    np.testing.assert_allclose(gradient[BOUNDED], multipliers, rtol=0, atol=rounding)
    for least in (x[BOUNDED], gradient[BOUNDED], np.linalg.eigvalsh(room), np.linalg.eigvalsh(of_bodies)):
        assert least.min(initial=0.0) > -rounding
    gap = np.sum(room * of_bodies) + x[BOUNDED] @ gradient[BOUNDED]
    assert abs(gap) < 1e-11 + 1e-9 * size * np.abs(x).sum()  # what it iterates to: the gap, and the residual
    assert (multipliers > 1e-3).any()
    assert (x[BOUNDED] > 1e-3).any()


def test_units_of_the_coordinates_do_not_matter_without_bodies():
    program = make_program(0, bodies=0)
    size = 10.0 ** np.random.default_rng(1).uniform(-6.0, 6.0, len(program.linear))
    scaled = ConeProgram(size[:, None] * program.quadratic * size, size * program.linear, 0, BOUNDED, FLOOR)
    np.testing.assert_allclose(size * scaled.solve(1e-12)[0], program.solve(1e-12)[0], rtol=1e-4, atol=1e-5)
