# SPDX-License-Identifier: Apache-2.0
"""Robust, MAP, ridge and separable estimators, and what every estimator refuses or names."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from support.linear_problems import (
    PERIOD,
    SUPPORTS,
    TRUTH,
    arm,
    arm_problem,
    cut,
    every_estimator,
    noisy,
    problem,
    rows,
)
from support.simulated import SMALL, Simulated, changed, estimator_of

from robot_dyn_id.dynamics.terms import Coulomb, LoadCoulomb, Offset, Stribeck, Viscous
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS, MaximumAPosteriori, Ridge, Robust, Separable, WeightedLeastSquares
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.files.configuration import parse_configuration, read_configuration
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.report.summary import summarize_identification
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan

new_estimator = pytest.mark.parametrize("name", ["robust", "map", "ridge"])


def exact(problem):
    """The problem with the torques that the true parameters would have given."""

    def tiles():
        for tile in problem.tiles():
            tile.block[-1] = arm()[0].base_values[problem.supports[tile.joint]] @ tile.block[:-1]
            yield tile

    return replace(problem, tiles=tiles)


# --- What every estimator refuses or names -----------------------------------------------------------------------


@every_estimator
def test_a_joint_that_never_moves_is_named_and_nothing_else_suffers(name):
    still = changed(noisy(1), q=lambda q: q * [1, 1, 0], dq=lambda dq: dq * [1, 1, 0])
    estimate = estimator_of(name).fit(arm_problem(still))
    assert {"fv3", "fc3"} <= set(estimate.unexcited)
    assert not {"fv1", "fc1", "off1"} & set(estimate.unexcited)
    assert np.isinf(estimate.condition_number)
    assert np.all(np.isfinite(estimate.values))
    assert np.all(np.isfinite(estimate.covariance))
    values = dict(zip(arm()[0].base.names, estimate.values, strict=True))
    (sigma,) = estimate.standard_deviations[[arm()[0].base.names.index("fv1")]]
    # a small population stops short of the minimum, and counts its distance into sigma
    assert values["fv1"] == pytest.approx(1.5, abs=2.0 * sigma if name == "ga" else 0.2)


@pytest.mark.slow
@every_estimator
def test_one_torque_of_a_million_is_resisted_or_raises_the_uncertainty(name):
    """No estimate without a word: the reported errors are as large as the true ones, or none settles."""

    def hit(tau):
        tau[1500, 1] = 1e6
        return tau

    given = arm_problem(changed(noisy(1), tau=hit))
    if name == "lm":
        with pytest.raises(ConvergenceError, match=r"lm: the constants .* have not converged"):
            estimator_of(name).fit(given)
        return
    estimate = estimator_of(name).fit(given)
    off = np.abs(estimate.values - arm()[0].base_values) / estimate.standard_deviations
    print(f"{name}: at most {off.max():.1f} sigma")
    assert off.max() < 5.0
    assert name != "robust" or np.abs(estimate.values - arm()[0].base_values).max() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weighted", "robust"])
def test_one_torque_of_a_million_is_replaced_and_reported(name):
    def hit(tau):
        tau[1500, 1] = 1e6
        return tau

    evaluation = identified(name, changed(noisy(1), tau=hit)).evaluation
    assert evaluation.verdict.word == "good"
    assert {one.code for one in evaluation.findings if one.severity != "error"} >= {"effort_outliers"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "word"), [("weighted", "bad"), ("robust", "suspect")])
def test_a_collision_makes_a_verdict(name, word):
    """No single torques, which are replaced: half a second of what only `robust` leaves out, and it says so."""

    def hit(tau):
        tau[1500:1550, 1] += 300.0
        return tau

    evaluation = identified(name, changed(noisy(1), tau=hit)).evaluation
    assert evaluation.verdict.word == word
    assert (evaluation.held_out.all_joints_nrmse < 0.05) == (name == "robust")
    (finding,) = [one for one in evaluation.findings if one.code == "contact"]
    assert finding.joints == ("elbow",)


@every_estimator
def test_fewer_rows_than_parameters_are_refused(name):
    with pytest.raises(InputError, match="only 6 rows for 24 parameters: record longer"):
        estimator_of(name).fit(cut(arm_problem(), 2))
    with pytest.raises(InputError, match="no rows are left"):
        estimator_of(name).fit(cut(arm_problem(), 0))


def test_what_an_estimator_needs_and_has_not():
    with pytest.raises(UsageError, match="map: there is no prior: complete the masses"):
        MaximumAPosteriori().fit(problem(*rows()))
    hard = Simulated(terms=(Viscous(), Coulomb(0.0)))
    with pytest.raises(UsageError, match="separable: no term on a joint that moves has a free constant"):
        Separable().fit(arm_problem(robot=hard))


@pytest.mark.slow
def test_what_does_not_settle_is_not_given():
    with pytest.raises(ConvergenceError, match="robust: not converged after 1 iterations"):
        Robust(iterations=1).fit(arm_problem(noisy(1)))
    both = Simulated(terms=(Viscous(), Stribeck(0.3, 0.02), Offset()))  # few nodes of each: the start is not the end
    with pytest.raises(ConvergenceError, match=r"separable: the constants .*smoothing_width of elbow.* after 1 steps"):
        Separable(iterations=1).fit(arm_problem(stribeck()[2], both, SLOW))


# --- Exact data, intervals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["robust", "ridge"])
def test_exact_data_give_the_exact_parameters(name):
    estimate = ESTIMATORS[name]().fit(problem(*rows()))
    np.testing.assert_allclose(estimate.values, TRUTH, rtol=0, atol=1e-6)
    assert estimate.rows == 800


@pytest.mark.parametrize("name", ["robust", "ridge"])
def test_tiles_of_any_size_give_the_same_answer(name):
    data = rows(noise=(0.1, 2.0), count=399)
    one, *others = (ESTIMATORS[name]().fit(problem(*data, size=size, segments=3)) for size in (1000, 7, 64))
    for other in others:
        for key in ("values", "covariance", "residual_rms", "noise_rms"):
            np.testing.assert_allclose(getattr(other, key), getattr(one, key), rtol=1e-6, atol=1e-12, err_msg=key)


@new_estimator
@pytest.mark.parametrize("correlation_time", [0.0, 0.1], ids=["white", "colored"])
def test_intervals_hold_the_truth_as_often_as_they_say(name, correlation_time):
    found = []
    for seed in range(12):
        estimate = ESTIMATORS[name]().fit(arm_problem(noisy(seed, correlation_time)))
        found.append((estimate.values - arm()[0].base_values) / estimate.standard_deviations)
    coverage = (np.abs(found) < 1.96).mean()
    print(f"{name}, {correlation_time} s: {coverage:.3f}")
    assert 0.85 < coverage < 0.995


# --- Robust ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["huber", "bisquare"])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_an_outlier_does_not_move_it(loss, size):
    columns, torques = rows(noise=(0.1, 2.0), count=400)
    clean = Robust(loss).fit(problem(columns, torques))
    torques[0][123] += size
    spoilt = Robust(loss).fit(problem(columns, torques))
    moved = np.abs(spoilt.values - clean.values) / clean.standard_deviations
    print(f"{loss}, {size:g}: moved {moved.max():.2g} sigma")
    assert np.all(moved < 0.5)  # seven rows are gone, the outlier and six behind it
    np.testing.assert_allclose(spoilt.standard_deviations, clean.standard_deviations, rtol=0.1)
    ordinary = WeightedLeastSquares().fit(problem(columns, torques))
    assert np.abs(ordinary.values - clean.values).max() > 10 * clean.standard_deviations.max()


def test_an_outlier_in_a_recording_does_not_move_it():
    """The low-pass spreads it over seconds, and all of it is left out."""
    wild = changed(noisy(1), tau=lambda tau: tau + 1e6 * (np.arange(len(tau)) == 1500)[:, None] * [0, 1, 0])
    clean, spoilt = (Robust().fit(arm_problem(recording)) for recording in (noisy(1), wild))
    moved = np.abs(spoilt.values - clean.values) / clean.standard_deviations
    print(f"moved {moved.max():.2g} sigma")
    assert np.all(moved < 1.0)


@pytest.mark.parametrize("loss", ["huber", "bisquare"])
def test_a_tenth_of_outliers_costs_little(loss):
    columns, torques = rows(noise=(0.1, 2.0), count=1000)
    rng = np.random.default_rng(3)
    for tau, sigma in zip(torques, (0.1, 2.0), strict=True):
        tau[rng.choice(1000, 100, replace=False)] += 30.0 * sigma * rng.choice([-1, 1], 100)
    estimate = Robust(loss, autoregressive_order=0).fit(problem(columns, torques))
    assert np.all(np.abs(estimate.values - TRUTH) < 4.0 * estimate.standard_deviations)
    np.testing.assert_allclose(estimate.noise_rms, (0.1, 2.0), rtol=0.25)


def test_bisquare_is_the_minimum_of_its_own_loss():
    columns, torques = rows(noise=(0.1, 2.0))
    estimate = Robust(autoregressive_order=0).fit(problem(columns, torques))
    noise = estimate.noise_rms

    def loss(values):
        residuals = [(tau - w @ values[s]) / n for w, tau, s, n in zip(columns, torques, SUPPORTS, noise, strict=True)]
        return sum(np.sum(1.0 - np.maximum(1.0 - (r / 4.685) ** 2, 0.0) ** 3) for r in residuals)

    best = minimize(loss, estimate.values, method="BFGS", options={"gtol": 1e-9}).x
    assert np.all(np.abs(best - estimate.values) < 0.01 * estimate.standard_deviations)


# --- Priors ------------------------------------------------------------------------------------------------------


def test_map_is_the_posterior_that_the_formula_gives():
    """With white rows of known size and a prior on some columns, against the normal equations written out."""
    prior = arm_problem().prior
    full = prior.rows(0.3)
    left, value = full[:, :-1], full[:, -1]
    size = 0.3 * prior.scales
    known = np.isfinite(size)
    covariance = (prior.mapping[:, known] * size[known] ** 2) @ prior.mapping[:, known].T
    np.testing.assert_allclose(left @ covariance @ left.T, np.eye(len(left)), atol=1e-8)
    np.testing.assert_allclose(left @ (prior.mapping @ prior.values), value, atol=1e-9)
    free = [i for i, name in enumerate(arm()[0].base.names) if name.startswith(("f", "o"))]
    assert len(left) == len(arm()[0].base.names) - len(free)
    np.testing.assert_allclose(left[:, free], 0.0, atol=1e-12)


def test_map_stays_at_the_prior_where_the_data_say_nothing_and_follows_them_where_they_do():
    wrist_only = exact(arm_problem(changed(noisy(1), q=lambda q: q * [0, 0, 1], dq=lambda dq: dq * [0, 0, 1])))
    estimate = MaximumAPosteriori().fit(wrist_only)
    names, prior = arm()[0].base.names, arm_problem().prior
    nominal = dict(zip(names, prior.mapping @ prior.values, strict=True))
    values = dict(zip(names, estimate.values, strict=True))
    hidden = [name for name in estimate.unexcited if not name.startswith(("f", "o"))]
    assert "Izz1" in hidden
    print({name: (values[name], nominal[name]) for name in hidden})
    tight = MaximumAPosteriori(spread=1e-6).fit(arm_problem(noisy(1)))
    for name, value in zip(names, tight.values, strict=True):
        if not name.startswith(("f", "o")):
            assert value == pytest.approx(nominal[name], abs=1e-5)
    for name in hidden:
        if np.isfinite(estimate.standard_deviations[names.index(name)]):
            assert values[name] == pytest.approx(nominal[name], rel=0.3, abs=0.02)
    wide = MaximumAPosteriori(spread=1e4).fit(arm_problem(noisy(1)))
    free = ESTIMATORS["generalized"]().fit(arm_problem(noisy(1)))
    np.testing.assert_allclose(wide.values, free.values, rtol=1e-4, atol=1e-5)
    assert "URDF of small" in estimate.regularized_towards


def test_the_prior_pays_where_data_are_short():
    """The truth is 15 % from the URDF: the posterior of 25 % is nearer to it than least squares of a few seconds."""
    short = noisy(2, 0.1)
    short = changed(short, rows=slice(0, 600))
    errors = {}
    for name in ("map", "generalized"):
        estimate = ESTIMATORS[name]().fit(arm_problem(short))
        errors[name] = np.linalg.norm((estimate.values - arm()[0].base_values)[:15])
    print(errors)
    assert errors["map"] < 0.6 * errors["generalized"]


def test_scales_grow_with_the_robot_and_not_with_the_units():
    prior = arm_problem().prior
    double = replace(prior, values=prior.values * 2.0, scales=prior.scales * 2.0)
    np.testing.assert_allclose(double.rows(0.25)[:, :-1], prior.rows(0.25)[:, :-1] / 2.0, atol=1e-9)
    np.testing.assert_allclose(double.rows(0.25)[:, -1], prior.rows(0.25)[:, -1], rtol=1e-6, atol=1e-9)


def test_ridge_is_the_formula():
    columns, torques = rows(noise=(1.0, 1.0))
    estimate = Ridge(penalty=0.5, autoregressive_order=0).fit(problem(columns, torques))
    gram, moment = np.zeros((8, 8)), np.zeros(8)
    for w, tau, support, noise in zip(columns, torques, SUPPORTS, estimate.noise_rms, strict=True):
        gram[np.ix_(support, support)] += w.T @ w / noise**2
        moment[support] += w.T @ tau / noise**2
    expected = np.linalg.solve(gram + 0.5 * np.diag(np.diag(gram)), moment)
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-9)
    assert "zero, with 0.5 of the information" in estimate.regularized_towards
    assert "zero, with 0.5 of the information" not in Ridge().fit(problem(columns, torques)).regularized_towards


# --- Separable ---------------------------------------------------------------------------------------------------

SLOW = SignalPlan.from_low_pass(200.0, LowPass(10.0), True)


@cache
def stribeck():
    """An arm with Stribeck friction and its recording; the terms to begin with are elsewhere."""
    truth = Simulated(terms=(Viscous(), Stribeck(0.08), Offset()))
    recording = truth.record(seed=3, duration=40.0, noise=0.5, rate=200.0)
    return truth, Simulated(terms=(Viscous(), Stribeck(0.3), Offset())), recording


def test_stribeck_velocities_are_found_within_their_uncertainty():
    truth, start, recording = stribeck()
    plan = replace(SLOW, slowest=(0.02,) * 3)
    estimate = Separable().fit(arm_problem(recording, start, plan))
    for constant in estimate.constants:
        print(constant)
        assert constant.name == "stribeck.stribeck_velocity"
        assert abs(constant.value - 0.08) < 3.0 * constant.standard_deviation
        assert constant.standard_deviation < 0.03
    assert [constant.joint for constant in estimate.constants] == ["shoulder", "elbow", "wrist"]
    assert np.mean(np.abs(estimate.values - truth.base_values) < 3.0 * estimate.standard_deviations) >= 0.95
    velocities = [term.stribeck_velocity for _, term in estimate.regressor.terms if isinstance(term, Stribeck)]
    assert velocities == [constant.value for constant in estimate.constants]
    known = WeightedLeastSquares().fit(arm_problem(recording, truth, plan))
    assert np.all(estimate.standard_deviations > 0.9 * known.standard_deviations)  # more parameters cost certainty


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_it_is_the_minimum_that_brute_force_finds(weighted):
    """A fine grid over one joint's constant at a time around the answer, and far from it, finds nothing better."""
    _, start, recording = stribeck()
    task = arm_problem(recording, start, SLOW)
    estimate = Separable(weighted=weighted).fit(task)

    def cost(velocities):
        terms = list(start.regressor.terms)
        for i, velocity in zip(range(3, 6), velocities, strict=True):
            terms[i] = (terms[i][0], Stribeck(velocity))
        regressor = replace(start.regressor, terms=tuple(terms))
        factors = Factors.from_problem(task.with_columns(regressor, task.columns))
        weights = np.ones(3)
        for _ in range(6 if weighted else 1):
            squares = factors.squared_residuals(factors.solve(weights).values)
            weights = 1.0 / np.sqrt(squares / factors.counts)
        return np.exp(factors.counts @ np.log(squares) / factors.counts.sum()) if weighted else squares.sum()

    found = [constant.value for constant in estimate.constants]
    least = cost(found)
    for joint in range(3):
        for velocity in (*np.geomspace(0.004, 0.8, 25), *(found[joint] * np.linspace(0.96, 1.04, 9))):
            trial = [velocity if i == joint else value for i, value in enumerate(found)]
            assert least <= cost(trial) * (1.0 + 1e-6)


def test_smoothing_widths_of_several_terms_are_found():
    truth = Simulated(terms=(Viscous(), Coulomb(0.15), LoadCoulomb(0.05)))
    start = Simulated(terms=(Viscous(), Coulomb(0.02), LoadCoulomb(0.02)))
    recording = truth.record(duration=40.0, noise=0.02)
    estimate = Separable().fit(arm_problem(recording, start, SignalPlan.from_low_pass(100.0, LowPass(10.0), False)))
    for constant in estimate.constants:
        print(constant)
        expected = 0.15 if constant.name == "coulomb.smoothing_width" else 0.05
        assert abs(constant.value - expected) < max(4.0 * constant.standard_deviation, 0.05 * expected)


def test_constants_that_do_nothing_are_named():
    """Without Stribeck friction in the robot there is no velocity of it."""
    truth = Simulated(terms=(Viscous(), Coulomb(0.0), Offset()))
    start = Simulated(terms=(Viscous(), Stribeck(0.3), Offset()))
    recording = truth.record(seed=3, duration=20.0, noise=0.5)
    estimate = Separable().fit(arm_problem(recording, start))
    (finding,) = [one for one in estimate.findings if one.code == "constants_not_identified"]
    assert "stribeck_velocity of" in finding.message
    assert np.all(np.isfinite(estimate.values))


# --- Through the whole line --------------------------------------------------------------------------------------


def identified(name, recording, settings=None):
    robot, _ = arm()
    settings = settings or Settings(estimator=estimator_of(name), period=PERIOD)
    return identify([recording], [noisy(99)], robot.model, settings, "0")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pso", "ga", "period_averaged"])
def test_estimators_that_end_near_the_truth_go_the_whole_way(name):
    """The others recover it: `test/identification/test_pipeline.py`."""
    result = identified(name, noisy(1))
    assert result.parameters.provenance.estimator == name
    assert result.evaluation.held_out.all_joints_nrmse < 0.1
    assert len(summarize_identification(result, "parameters.yaml")["constants"]) == (3 if name in SMALL else 0)


@pytest.mark.slow
def test_an_earlier_parameter_set_is_a_prior(tmp_path):
    first = identified("weighted", noisy(1)).parameters
    write_parameters(tmp_path / "first.yaml", first)
    (tmp_path / "robot.yaml").write_text(f"estimator: map\nprior: {tmp_path / 'first.yaml'}\n")
    settings = read_configuration(tmp_path / "robot.yaml").settings
    short = changed(noisy(2, 0.1), rows=slice(0, 600))
    after = identified("map", short, settings)
    assert after.estimate.regularized_towards == "parameter set of small, give or take 25% of each parameter's size"
    truth = arm()[0].base_values
    errors = [np.linalg.norm(values - truth) for values in (after.estimate.values, first.estimate.values)]
    alone = np.linalg.norm(identified("map", short).estimate.values - truth)
    print(errors, alone)
    assert errors[0] < 0.7 * alone
    with pytest.raises(UsageError, match="estimator weighted uses no prior: use consistent, map, map_constants, "):
        parse_configuration({"estimator": "weighted", "prior": str(tmp_path / "first.yaml")})
    with pytest.raises(InputError, match=r"nowhere\.yaml: "):
        parse_configuration({"estimator": "map", "prior": str(tmp_path / "nowhere.yaml")})
    other = Settings(terms=(Viscous(),), estimator=MaximumAPosteriori(), prior=first)
    with pytest.raises(InputError, match="the parameter set of small has other joints or terms"):
        identified("map", short, other)
