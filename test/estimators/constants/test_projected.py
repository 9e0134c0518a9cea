# SPDX-License-Identifier: Apache-2.0
"""Polynomials through nodes, Gram matrices, and the cost over constants alone: against what they stand for."""

import numpy as np
import pytest
from support.linear_problems import arm_problem, noisy
from support.simulated import Simulated

from robot_dyn_id.dynamics.terms import Coulomb, ImprovedStribeck, Offset, Stribeck, Viscous
from robot_dyn_id.estimators import Separable
from robot_dyn_id.estimators.constants.chebyshev import chebyshev_nodes, make_differentiation, make_interpolation
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.grid import Grid
from robot_dyn_id.estimators.constants.projected import NODES_PER_CONSTANT, Projected
from robot_dyn_id.estimators.factors import Factors, Grams
from robot_dyn_id.estimators.weighting import compute_weights_from_squares

ROBOTS = {
    "one constant": Simulated(terms=(Viscous(), Coulomb(0.02), Offset())),
    "two constants": Simulated(terms=(Viscous(), Stribeck(0.3, 0.05), Offset())),
    "no other column": Simulated(terms=(Coulomb(0.02),)),
    "a sharp sign": Simulated(terms=(ImprovedStribeck(0.2),)),
}


@pytest.fixture(scope="module", params=ROBOTS)
def projected(request):
    return Projected.from_constants(Constants.from_problem(arm_problem(noisy(1), ROBOTS[request.param]), "separable"))


def test_polynomials_are_followed_exactly():
    nodes, at = chebyshev_nodes(-1.5, 4.0, 9), np.array([-1.5, 0.3, 2.0, 4.0])
    polynomial = np.polynomial.Polynomial([1.0, -0.5, 0.3, 0.0, 0.2, -0.01, 0.0, 0.002, 0.001])
    np.testing.assert_allclose(make_interpolation(nodes, at) @ polynomial(nodes), polynomial(at), rtol=1e-11)
    np.testing.assert_allclose(make_interpolation(nodes, nodes), np.eye(9), atol=1e-14)
    slopes = make_differentiation(nodes)
    np.testing.assert_allclose(slopes @ polynomial(nodes), polynomial.deriv()(nodes), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slopes @ slopes @ polynomial(nodes), polynomial.deriv(2)(nodes), rtol=1e-8, atol=1e-8)


def test_grams_are_the_squares_of_factors():
    task = arm_problem(noisy(1))
    grams, factors = Grams.from_problem(task), Factors.from_problem(task)
    weights = np.array([1.0, 2.0, 0.5])
    stack = factors.stack(weights)
    np.testing.assert_allclose(grams.total(weights), stack.T @ stack, rtol=1e-9, atol=1e-9 * (stack**2).sum())
    np.testing.assert_array_equal(grams.counts, factors.counts)
    values = factors.solve(weights).values
    np.testing.assert_allclose(grams.squared_residuals(values), factors.squared_residuals(values), rtol=1e-8)


def spots(constants, count, inner):
    """Logarithms anywhere in the ranges, `inner` of a range away from their ends."""
    shares = inner + (1.0 - 2.0 * inner) * np.random.default_rng(0).random((count, len(constants.lower)))
    return constants.lower + shares * (constants.upper - constants.lower)


def test_the_cost_is_that_of_the_data(projected):
    """At the nodes; anywhere too where a constant has many. Columns at their bound are left out."""
    constants, rng = projected.constants, np.random.default_rng(1)
    tried = [np.array([rng.choice(nodes) for nodes in projected.nodes]) for _ in range(3)]
    if len(projected.nodes[0]) == NODES_PER_CONSTANT:
        tried += list(spots(constants, 3, 0.0))
    for at in tried:
        columns = constants.problem.columns[projected.positive_parameters(at)]
        factors = Factors.from_problem(constants.problem.with_columns(constants.regressor(at), columns))
        exact = factors.solve(np.ones(3)).values
        assert projected.cost(at) == pytest.approx(0.5 * factors.squared_residuals(exact).sum(), rel=1e-5)
        weighted = projected.reweight(at)
        squares = factors.squared_residuals(exact)
        expected = compute_weights_from_squares(squares, len(constants.parameters), factors.counts)
        np.testing.assert_allclose(weighted.weights, expected, rtol=1e-5)
        squares = factors.squared_residuals(factors.solve(weighted.weights).values) @ weighted.weights**2
        assert weighted.cost(at) == pytest.approx(0.5 * squares, rel=1e-5)


def test_its_derivatives_are_those_of_differences(projected):
    step = 1e-4
    for at in spots(projected.constants, 2, 0.1):
        found = projected.curvature(at)
        assert found.cost == pytest.approx(projected.cost(at), rel=1e-12)
        for i, way in enumerate(step * np.eye(len(at))):
            ahead, behind = projected.curvature(at + way), projected.curvature(at - way)
            size = np.abs(found.gradient).max()
            assert found.gradient[i] == pytest.approx((ahead.cost - behind.cost) / (2 * step), abs=1e-5 * size)
            slope = (ahead.gradient - behind.gradient) / (2 * step)
            np.testing.assert_allclose(found.hessian[i], slope, atol=1e-4 * np.abs(found.hessian).max())


def test_a_grid_is_searched_as_by_trying_all(projected):
    """No other choice of a single term on the grid is better."""
    constants = projected.constants
    grid = Grid.from_projected(projected, 6)
    found = grid.sweep(constants.logarithms)
    assert projected.cost(projected.descend(found)) <= projected.cost(found)
    if len(constants.numbers[next(iter(constants.numbers))]) > 1:
        return
    least = projected.cost(found)
    for i in range(len(found)):
        for value in np.linspace(constants.lower[i], constants.upper[i], 6):
            trial = found.copy()
            trial[i] = value
            assert least <= projected.cost(trial) * (1.0 + 1e-9)


def test_profiles_are_costs(projected):
    """Differences of the torque that candidates explain, between those whose friction falls with speed, are those of
    twice the cost."""
    constants = projected.constants
    grid = Grid.from_projected(projected, 6)
    at = grid.share(0.6)
    for number, own in constants.numbers.items():
        costs = []
        for value in grid.values[number]:
            trial = at.copy()
            trial[own] = value
            costs.append(projected.cost(trial) if all(map(np.all, projected.positive(trial).values())) else np.nan)
        explained = grid.profile(number, at)
        kept = np.isfinite(costs)
        change = -2.0 * (np.array(costs)[kept] - costs[int(np.argmax(kept))])
        other = explained[kept] - explained[int(np.argmax(kept))]
        np.testing.assert_allclose(other, change, atol=1e-6 * abs(explained).max())


def test_friction_that_rises_with_speed_is_bounded():
    """Where fb - fc would be negative it is zero; the cost and its derivatives are those without the column."""
    robot = Simulated(terms=(ImprovedStribeck(0.2),))
    task = arm_problem(robot.record(duration=35.0), robot)
    away = robot.parameters.copy()
    away[robot.regressor.names.index("dfi2")] = -0.6
    torques = {0: rebuilt_torques(task, robot.base.mapping @ away)}
    constants = Constants.from_problem(task.with_torques(torques), "separable")
    at = Projected.from_constants(constants)
    here = np.log(np.full(len(constants.lower), 0.2))
    assert [bool(own[0]) for own in at.positive(here).values()] == [True, False, True]
    found = at.curvature(here)
    assert found.gradient[1] == 0.0 and np.all(found.hessian[1] == 0.0)
    found = Separable().fit(task.with_torques(torques))
    rises = [i for i, name in enumerate(task.names) if name.startswith("dfi")]
    assert np.all(found.values[rises] >= 0.0)


def rebuilt_torques(task, values):
    """Torques of the rows of a problem of one segment for given parameters, shape (n, rows)."""
    parts = [[] for _ in task.joint_names]
    for tile in task.tiles():
        parts[tile.joint].append(values[task.supports[tile.joint]] @ tile.block[:-1])
    return np.array([np.concatenate(part) for part in parts])


def test_it_does_not_matter_how_fine_the_grid_is():
    task = arm_problem(noisy(1))
    coarse, fine = Separable(grid=5).fit(task), Separable(grid=30).fit(task)
    assert np.all(np.abs(coarse.values - fine.values) < 1e-3 * fine.standard_deviations)


def test_constants_of_columns_that_are_not_estimated_are_named():
    """Without Coulomb friction among the parameters its width moves nothing."""
    task = arm_problem(noisy(1))
    names = np.array(task.regressor.names)[task.columns]
    others = task.columns[[not name.startswith("fc") for name in names]]
    estimate = Separable().fit(task.with_columns(task.regressor, others))
    assert len(estimate.values) == len(others) < len(names)
    (finding,) = [one for one in estimate.findings if one.code == "constants_not_identified"]
    assert "smoothing_width of" in finding.message
