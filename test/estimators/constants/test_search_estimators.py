# SPDX-License-Identifier: Apache-2.0
"""Searches of constants, total least squares, period averages: against what they must agree with."""

from dataclasses import replace

import numpy as np
import pytest
from support.linear_problems import TRUTH, arm, arm_problem, cut, noisy, problem, rows, stacked
from support.simulated import SMALL, Simulated, estimator_of

from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS, PeriodAveraged, Separable, TotalLeastSquares
from robot_dyn_id.estimators.constants.search_space import SearchSpace
from robot_dyn_id.estimators.factors import Factors

SEARCHES = ("lm", "pso", "pso_lm", "ga")


@pytest.mark.parametrize("name", SEARCHES)
def test_without_constants_there_is_nothing_to_search(name):
    hard = Simulated(terms=(Viscous(), Coulomb(0.0)))
    with pytest.raises(UsageError, match=f"{name}: no term on a joint that moves has a free constant"):
        estimator_of(name).fit(arm_problem(robot=hard))


def test_too_few_steps_raise_an_error():
    with pytest.raises(ConvergenceError, match=r"lm: the constants .* have not converged after 1 steps"):
        ESTIMATORS["lm"](iterations=1).fit(arm_problem(noisy(1)))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_searches_end_where_separable_does(weighted):
    task = arm_problem(noisy(1))
    best = Separable(weighted=weighted).fit(task)
    for name in SEARCHES:
        found = ESTIMATORS[name](weighted=weighted, **SMALL.get(name, {})).fit(task)
        if "lm" in name:
            assert np.all(np.abs(found.values - best.values) < 1e-2 * best.standard_deviations)
            np.testing.assert_allclose(found.standard_deviations, best.standard_deviations, rtol=1e-2)
        away = np.abs(found.values - arm()[0].base_values) / found.standard_deviations
        assert np.mean(away < 3.0) >= 0.95


def test_a_search_repeats_itself_and_counts_how_far_it_stopped_from_the_best():
    task = arm_problem(noisy(1))
    one, again = estimator_of("pso").fit(task), estimator_of("pso").fit(task)
    np.testing.assert_array_equal(one.values, again.values)
    best = ESTIMATORS["weighted"]().fit(task.with_columns(one.regressor, task.columns))
    assert np.all(one.standard_deviations >= np.abs(one.values - best.values) * 0.99)


def test_costs_of_the_box_are_those_of_the_data():
    """Polynomials through the nodes against columns at the constants themselves."""
    task = arm_problem(noisy(1))
    space = SearchSpace.from_problem(task, "pso", 0.5, 3.0, False)
    points = space.lower + (space.upper - space.lower) * np.random.default_rng(0).random((5, len(space.lower)))
    p = len(task.names)
    for point, cost in zip(points, space.compute_costs(points), strict=True):
        at = task.with_columns(space.constants.regressor(point[p:]), task.columns)
        assert cost == pytest.approx(0.5 * Factors.from_problem(at).squared_residuals(point[:p]).sum(), rel=1e-5)


def test_total_least_squares_is_that_of_the_singular_vector():
    data = rows(noise=(0.5, 0.5))
    estimate = TotalLeastSquares().fit(problem(*data))
    ordinary = ESTIMATORS["weighted"]().fit(problem(*data))
    full = np.column_stack(stacked(*data, weights=1.0 / ordinary.residual_rms))
    scale = np.linalg.norm(full, axis=0)
    right = np.linalg.svd(full / scale)[2][-1]
    expected = -right[:-1] / right[-1] * scale[-1] / scale[:-1]
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-3, atol=1e-4)
    assert [one.code for one in estimate.findings] == ["total_least_squares_errors"]
    nearly = TotalLeastSquares(column_error=1e-6).fit(problem(*data))
    np.testing.assert_allclose(nearly.values, ordinary.values, rtol=1e-9, atol=1e-9)


def test_it_takes_away_the_bias_of_errors_in_columns():
    """With errors of all entries alike, as it assumes; least squares shrinks."""
    rng, truth = np.random.default_rng(5), np.array([1.0, -2.0, 3.0, 0.5])
    clean = rng.normal(size=(4000, 4))
    tau = clean @ truth
    tau = tau + 0.2 * np.sqrt(np.mean(tau**2)) * rng.normal(size=4000)
    task = problem([clean + 0.2 * rng.normal(size=clean.shape)], [tau], supports=(np.arange(4),))
    ours, least = TotalLeastSquares(autoregressive_order=0).fit(task), ESTIMATORS["weighted"]().fit(task)
    assert np.linalg.norm(ours.values - truth) < 0.4 * np.linalg.norm(least.values - truth)
    assert np.all(np.abs(ours.values - truth) < 4.0 * ours.standard_deviations)


def periodic(columns, torques, times=4):
    return [np.tile(w, (times, 1)) for w in columns], [np.tile(tau, times) for tau in torques]


def test_averages_of_exact_periods_give_the_exact_parameters():
    estimate = PeriodAveraged().fit(replace(problem(*periodic(*rows(count=50)), size=33), period=5.0))
    np.testing.assert_allclose(estimate.values, TRUTH, atol=1e-9)
    (finding,) = estimate.findings
    assert finding.code == "periods_averaged"
    assert "4 periods" in finding.message and "3 degrees of freedom" in finding.message


def test_few_periods_have_wide_intervals_that_hold_the_truth():
    """Four periods, 60 recordings, with noise that joints share."""
    held = []
    for seed in range(60):
        columns, torques = periodic(*rows(count=50, seed=1))
        rng = np.random.default_rng(seed)
        shared = 0.3 * rng.normal(size=200)
        noise = [shared + size * rng.normal(size=200) for size in (0.1, 0.4)]
        task = problem(columns, [tau + one for tau, one in zip(torques, noise, strict=True)])
        estimate = PeriodAveraged().fit(replace(task, period=5.0))
        held.append(np.abs(estimate.values - TRUTH) < 1.96 * estimate.standard_deviations)
    print(np.mean(held))
    assert 0.90 < np.mean(held) < 0.985


def test_a_period_must_be_known_whole_and_there_thrice():
    task = arm_problem(noisy(1))
    with pytest.raises(UsageError, match="period_averaged: the period of the motion is not known: give `period`"):
        PeriodAveraged().fit(replace(task, period=None))
    with pytest.raises(UsageError, match=r"a period of 1\.23 s is 12\.30 rows"):
        PeriodAveraged().fit(replace(task, period=1.23))
    with pytest.raises(InputError, match=r"period_averaged: 2 whole periods of 10 s without interruption: record 3"):
        PeriodAveraged().fit(cut(task, int(25 * task.rate)))
