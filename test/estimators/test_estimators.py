# SPDX-License-Identifier: Apache-2.0
"""Least squares over tiles: exact where excited, infinite standard deviations elsewhere."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from support.linear_problems import SUPPORTS, TRUTH, problem, rows, stacked
from support.simulated import Simulated

from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import (
    ESTIMATORS,
    GeneralizedLeastSquares,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.newey_west import compute_larger_sandwich
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials

every_estimator = pytest.mark.parametrize("name", ["weighted", "generalized", "ols"])
every_method = pytest.mark.parametrize("method", ["qr", "gram"])


@every_estimator
@every_method
def test_exact_data_give_the_exact_parameters(name, method):
    estimate = ESTIMATORS[name](method=method).fit(problem(*rows()))
    np.testing.assert_allclose(estimate.values, TRUTH, rtol=0, atol=1e-8)
    assert np.all(estimate.standard_deviations < 1e-6)
    assert estimate.unexcited == ()
    assert estimate.rows == 800


@every_estimator
def test_an_arm_is_recovered_from_exact_rows(name):
    robot = Simulated()
    recording = robot.record(duration=36.0, rate=50.0)
    plan = SignalPlan.from_low_pass(50.0, LowPass(5.0), False)
    (piece,) = FilteredTrials([recording], robot.joints, {}, plan, keep_edges=True)
    tau = robot.regressor.torque(piece.motion, robot.parameters).T
    exact = replace(recording, samples=replace(recording.samples, tau=tau))
    estimate = ESTIMATORS[name]().fit(
        FilteredTrials([exact], robot.joints, {}, plan).problem(robot.regressor, robot.base.independent)
    )
    np.testing.assert_allclose(estimate.values, robot.base_values, rtol=0, atol=1e-8)


@every_method
def test_ordinary_least_squares_is_that_of_numpy(method):
    data = rows(noise=(0.1, 2.0))
    w, tau = stacked(*data)
    expected, *_ = np.linalg.lstsq(w, tau, rcond=None)
    estimate = OrdinaryLeastSquares(method=method).fit(problem(*data))
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-9)
    scaled = w / np.linalg.norm(w, axis=0)
    assert estimate.condition_number == pytest.approx(np.linalg.cond(scaled), rel=1e-6)
    for joint, (columns, torques) in enumerate(zip(*data, strict=True)):
        rms = np.sqrt(np.mean((torques - columns @ expected[SUPPORTS[joint]]) ** 2))
        assert estimate.residual_rms[joint] == pytest.approx(rms, rel=1e-9)


def test_weights_are_one_over_each_joints_own_noise():
    data = rows(noise=(0.1, 5.0))
    estimate = WeightedLeastSquares().fit(problem(*data))
    # both joints lose half of the eight parameters' degrees of freedom, so these are the weights up to a factor
    w, tau = stacked(*data, 1.0 / estimate.residual_rms)
    np.testing.assert_allclose(estimate.values, np.linalg.lstsq(w, tau, rcond=None)[0], rtol=1e-5)
    np.testing.assert_allclose(estimate.residual_rms, (0.1, 5.0), rtol=0.1)
    shared = slice(2, 6)  # shared by both joints: the one of less noise decides
    ordinary = OrdinaryLeastSquares().fit(problem(*data))
    errors = [np.linalg.norm((e.values - TRUTH)[shared]) for e in (estimate, ordinary)]
    assert errors[0] < 0.1 * errors[1]


@every_estimator
@pytest.mark.parametrize("segments", [1, 3])
def test_tiles_of_any_size_give_the_same_answer(name, segments):
    data = rows(noise=(0.1, 2.0), count=399)
    one, *others = (ESTIMATORS[name]().fit(problem(*data, size=size, segments=segments)) for size in (1000, 1, 7, 64))
    for other in others:
        for key in ("values", "covariance", "standard_deviations", "residual_rms", "noise_rms"):
            np.testing.assert_allclose(getattr(other, key), getattr(one, key), rtol=1e-8, atol=1e-14, err_msg=key)


def graded(condition, seed, count=4000, width=20):
    """Unit-norm columns of about a given condition number, and exact torques."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(count, width)))
    right, _ = np.linalg.qr(rng.normal(size=(width, width)))
    w = left * np.geomspace(1.0, 1.0 / condition, width) @ right
    w /= np.linalg.norm(w, axis=0)
    truth = rng.normal(size=width)
    return w, w @ truth, truth


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e5, 3e6])
def test_qr_is_as_accurate_as_the_whole_matrix_would_be(condition):
    ours, numpys = [], []
    for seed in range(48):
        w, tau, truth = graded(condition, seed)
        support = (np.arange(w.shape[1]),)
        estimate = Factors.from_problem(problem([w], [tau], support, size=128)).solve([1.0])
        assert 0.2 * condition < estimate.condition_number < 2 * condition
        assert not estimate.unexcited.any()
        ours.append(np.linalg.norm(estimate.values - truth))
        numpys.append(np.linalg.norm(np.linalg.lstsq(w, tau, rcond=None)[0] - truth))
    assert np.median(ours) < 4 * np.median(numpys)


def hidden():
    """Parameters 0 and 1 only in their sum, parameter 7 not at all."""
    columns, _ = rows()
    columns[0][:, 1] = columns[0][:, 0]
    columns[1][:, 5] = 0.0
    rng = np.random.default_rng(1)
    return columns, [w @ TRUTH[s] + 0.1 * rng.normal(size=len(w)) for w, s in zip(columns, SUPPORTS, strict=True)]


@every_estimator
@every_method
def test_what_the_data_do_not_show_is_named_and_left_small(name, method):
    data = hidden()
    estimate = ESTIMATORS[name](method=method).fit(problem(*data))
    assert estimate.unexcited == ("p0", "p1", "p7")
    np.testing.assert_array_equal(np.isinf(estimate.standard_deviations), [1, 1, 0, 0, 0, 0, 0, 1])
    assert np.all(np.isfinite(estimate.covariance))
    assert np.isinf(estimate.condition_number)
    # the minimum norm shares the sum evenly between equal columns
    np.testing.assert_allclose(estimate.values, [1.0, 1.0, *TRUTH[2:7], 0.0], atol=0.05)
    assert estimate.values[0] == pytest.approx(estimate.values[1], rel=1e-6)
    assert abs(estimate.values[7]) < 1e-100


def test_the_minimum_norm_is_that_of_numpy():
    data = hidden()
    w, tau = stacked(*data)
    scale = np.maximum(np.linalg.norm(w, axis=0), 1e-300)
    expected = np.linalg.lstsq(w / scale, tau, rcond=1e-9)[0] / scale
    np.testing.assert_allclose(OrdinaryLeastSquares().fit(problem(*data)).values, expected, atol=1e-9)


@every_estimator
def test_fewer_rows_than_parameters_are_refused(name):
    columns, torques = rows(count=3)
    with pytest.raises(InputError, match="only 6 rows for 8 parameters: record longer"):
        ESTIMATORS[name]().fit(problem(columns, torques))
    with pytest.raises(InputError, match="no rows are left"):
        ESTIMATORS[name]().fit(problem([w[:0] for w in columns], [tau[:0] for tau in torques]))


def colored(sigma, count, seed, keep=0.8):
    rng = np.random.default_rng(seed)
    return sigma * np.sqrt(1 - keep**2) * lfilter([1.0], [1.0, -keep], rng.normal(size=count))


def test_the_noise_model_of_the_residuals_is_found():
    columns, torques = rows(count=20_000)
    torques = [tau + colored(sigma, len(tau), 5 + sigma) for tau, sigma in zip(torques, (1, 3), strict=True)]
    data = problem(columns, torques)
    estimate = GeneralizedLeastSquares(autoregressive_order=2).fit(data)
    lagged = LaggedGrams.from_problem(data, 2)
    whitening = fit_whitening(lagged.residual_autocovariance(estimate.values), lagged.counts)
    np.testing.assert_allclose(whitening.filters, [[1.0, -0.8, 0.0]] * 2, atol=0.03)
    np.testing.assert_allclose(estimate.residual_rms, [1.0, 3.0], rtol=0.05)
    np.testing.assert_allclose(estimate.noise_rms, [0.6, 1.8], rtol=0.05)


def test_noise_models_of_no_process_are_stable():
    """Autocovariances that belong to no process give filters of a lower order, which color noise without overflow."""
    none = np.array([[1.0, 0.96, 0.84, 0.66, 0.44, 0.21, -0.02], [1.0, 0.983, 0.929, 0.848, 0.758, 0.671, 0.593]])
    assert (np.linalg.eigvalsh([toeplitz(row) for row in none])[:, 0] < 0.0).all()
    whitening = fit_whitening(none, [441, 441])
    assert all(np.abs(np.roots(row)).max() < 1.0 for row in whitening.filters)
    assert (whitening.filters[:, 1] != 0.0).all() and (whitening.noise_rms < 0.3).all()


RUNS = 40


@cache
def errors(correlation_time, name, order):
    """Errors over their standard deviations: filtered recordings of one motion with new noise each, (runs, p)."""
    robot = Simulated()
    plan = SignalPlan.from_low_pass(100.0, LowPass(5.0), False)
    recording = robot.record(duration=30.0)
    found = []
    for run in range(RUNS):
        noise = np.random.default_rng(run).normal(size=recording.samples.tau.shape)
        if correlation_time:
            keep = np.exp(-0.01 / correlation_time)
            noise = lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], noise, axis=0)
        tau = recording.samples.tau + noise * (0.5, 0.8, 0.2)
        noisy = replace(recording, samples=replace(recording.samples, tau=tau))
        trials = FilteredTrials([noisy], robot.joints, {}, plan)
        estimate = ESTIMATORS[name](autoregressive_order=order).fit(
            trials.problem(robot.regressor, robot.base.independent)
        )
        found.append((estimate.values - robot.base_values) / estimate.standard_deviations)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weighted", "generalized"])
@pytest.mark.parametrize("correlation_time", [0.0, 0.1], ids=["white", "colored"])
def test_intervals_hold_the_truth_as_often_as_they_say(name, correlation_time):
    coverage = (np.abs(errors(correlation_time, name, 6)) < 1.96).mean()
    print(f"{name}, {correlation_time} s: {coverage:.3f}")
    assert 0.88 < coverage < 0.99


@pytest.mark.slow
def test_intervals_that_take_residuals_for_white_hold_it_clearly_less():
    naive = (np.abs(errors(0.1, "weighted", 0)) < 1.96).mean()
    print(f"naive: {naive:.3f}")
    assert naive < 0.85
    assert naive < (np.abs(errors(0.1, "weighted", 6)) < 1.96).mean() - 0.05


@pytest.mark.parametrize("name", ["weighted", "ols"])
def test_values_alone_are_the_same_without_a_pass_for_their_covariance(name):
    whole, passes = problem(*rows(noise=(0.1, 2.0))), []

    def tiles():
        passes.append(1)
        return whole.tiles()

    estimate = ESTIMATORS[name]().fit(replace(whole, tiles=tiles, values_only=True))
    np.testing.assert_array_equal(estimate.values, ESTIMATORS[name]().fit(whole).values)
    assert np.isnan(estimate.covariance).all()
    assert len(passes) == 1


def test_the_larger_sandwich_makes_no_pass_for_values_alone():
    whole = replace(problem(*rows(noise=(0.1, 2.0))), tiles=lambda: pytest.fail("a pass"), values_only=True)
    noise, covariance = compute_larger_sandwich(whole, whole, TRUTH, np.eye(len(TRUTH)), np.ones(2), 6)
    assert np.isnan(noise).all() and np.isnan(covariance).all()
