# SPDX-License-Identifier: Apache-2.0
"""MAP over constants of terms: against a direct minimization, with data of very much and of very little information."""

import numpy as np
import pytest
from support.altered import altered
from support.linear_problems import arm, arm_problem, noisy

from robot_dyn_id.dynamics.prior import FLOOR, make_earlier_prior
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import ImprovedStribeck, Stribeck
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators import MaximumAPosterioriConstants, Separable
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings


def test_it_is_at_the_least_of_the_posterior():
    """The posterior with the noise that it reports, parameters solved for, around each constant."""
    task = arm_problem(noisy(1))
    found = MaximumAPosterioriConstants(autoregressive_order=0).fit(task)
    constants, known, weights = (
        Constants.from_problem(task, "map_constants"),
        task.prior.rows(0.25),
        1.0 / found.noise_rms,
    )
    values = np.array([constant.value for constant in found.constants])
    sigmas = np.array([constant.standard_deviation for constant in found.constants]) / values

    def best(logarithms):
        at = Factors.from_problem(task.with_columns(constants.regressor(logarithms), task.columns))
        rows = np.concatenate([at.stack(weights), known])
        x = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
        away = (logarithms - constants.logarithms) / 0.25
        return x, float(np.sum((rows[:, -1] - rows[:, :-1] @ x) ** 2) + away @ away)

    x, least = best(np.log(values))
    assert np.all(np.abs(found.values - x) < 0.03 * found.standard_deviations)
    for number, sigma in enumerate(sigmas):
        step = np.eye(len(sigmas))[number] * sigma
        below, above = (best(np.log(values) + sign * step)[1] - least for sign in (-1.0, 1.0))
        assert below > 0.5 and above > 0.5  # at least 1 of a quadratic, more where constants are correlated
        assert abs(below - above) / (below + above) / 2.0 < 0.05  # of a deviation, to the vertex of the parabola


def test_without_belief_it_is_separable_and_with_much_it_stays():
    task = arm_problem(noisy(1))
    free, weak = Separable().fit(task), MaximumAPosterioriConstants(spread=100.0, autoregressive_order=0).fit(task)
    assert np.all(np.abs(weak.values - free.values) < 0.05 * free.standard_deviations)
    for mine, other in zip(weak.constants, free.constants, strict=True):
        assert abs(mine.value - other.value) < 0.05 * other.standard_deviation
    sure = MaximumAPosterioriConstants(spread=1e-6).fit(task)
    begin = Constants.from_problem(task, "map_constants").logarithms
    np.testing.assert_allclose(np.log([constant.value for constant in sure.constants]), begin, atol=1e-5)
    assert "constants of the terms" in sure.regularized_towards


def test_too_few_steps_raise_an_error():
    with pytest.raises(ConvergenceError, match=r"map_constants: the constants .* have not converged after 1 steps"):
        MaximumAPosterioriConstants(iterations=1).fit(arm_problem(noisy(1)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Stribeck, ImprovedStribeck])
def test_breakaway_is_as_uncertain_as_the_friction_that_it_is_a_part_of(kind):
    """fb - fc, which may be small by chance, has the size of fc and fb; every other term its own."""
    robot, _ = arm()
    earlier = identify([noisy(1)], [noisy(2)], robot.model, Settings(terms=(kind(0.1),)), "0").parameters
    sliding, rise = np.array([5.0, 3.0, 1.0]), np.array([0.01, -1.0, 0.0])
    friction = np.array([sliding, rise, *np.full((len(kind.symbols) - 2, 3), 0.2)])
    regressor = Regressor.from_parameters(earlier)
    full = np.concatenate([earlier.bodies.standard_parameters, friction.T.ravel()])
    given = altered(earlier, terms={"values": friction.T.ravel()}, estimate={"values": earlier.base.mapping @ full})
    prior = make_earlier_prior(given, regressor, np.eye(len(regressor.names)))
    sizes = prior.scales[-friction.size :].reshape(3, -1)
    np.testing.assert_allclose(sizes[:, 1], np.hypot(sliding, sliding + rise))
    np.testing.assert_allclose(sizes[:, 0], np.maximum(sliding, FLOOR * sliding.mean()))
    np.testing.assert_allclose(sizes[:, 2:], 0.2)
