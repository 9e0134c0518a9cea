# SPDX-License-Identifier: Apache-2.0
"""Recursive estimates against batch solutions; payloads and friction that change on a robot of known parameters."""

import numpy as np
import pytest
from scipy.stats import chi2, gumbel_r
from support.simulated import ARM, TERMS, Simulated

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.whitening import fit_whitening
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.online import ModelWatch, RecursiveLeastSquares, WatchSettings, compute_information_root
from robot_dyn_id.online.changes import PAYLOAD, ChangeThresholds, fit_gumbel_law
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.online.noise import Autocovariance, RowWhitening
from robot_dyn_id.simulation.sensors import draw_colored_noise

RATE, NOISE, QUIET = 200.0, 0.05, 30.0


def rows_of(seed, count=40, joints=3, columns=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, joints, columns)), rng.normal(size=(count, joints))


def test_without_forgetting_the_estimate_is_regularized_least_squares():
    rows, targets = rows_of(0)
    mean, limits = np.arange(5.0), np.linspace(0.5, 2.0, 5)
    ours = RecursiveLeastSquares(mean, limits)
    for row, target in zip(rows, targets, strict=True):
        ours.update(row, target)
    stacked, right = rows.reshape(-1, 5), targets.ravel()
    information = stacked.T @ stacked + np.diag(limits**-2)
    expected = np.linalg.solve(information, stacked.T @ right + mean / limits**2)
    assert np.allclose(ours.values, expected, rtol=1e-10)
    assert np.allclose(ours.covariance, np.linalg.inv(information), rtol=1e-9)
    begun = np.sum((mean / limits) ** 2) + right @ right
    left = np.sum((right - stacked @ expected) ** 2) + np.sum(((mean - expected) / limits) ** 2)
    assert np.isclose(ours.gain, begun - left, rtol=1e-10), "the drop of the sum of squares"


def test_forgetting_weights_the_rows_exponentially():
    rows, targets = rows_of(1)
    ours = RecursiveLeastSquares(np.zeros(5), np.full(5, 1e6))  # an uninformative prior
    for row, target in zip(rows, targets, strict=True):
        ours.update(row, target, 0.9)
    weights = np.repeat(0.9 ** np.arange(len(rows))[::-1], 3)
    stacked, right = rows.reshape(-1, 5), targets.ravel()
    expected = np.linalg.solve(stacked.T * weights @ stacked, stacked.T * weights @ right)
    assert np.allclose(ours.values, expected, atol=1e-8)


def test_what_the_motion_does_not_show_keeps_a_bounded_covariance_and_returns_to_what_was_expected():
    rng, limits = np.random.default_rng(2), np.array([0.5, 0.1, 2.0])
    ours = RecursiveLeastSquares(np.array([1.0, 2.0, 3.0]), limits)
    for _ in range(300):
        ours.update(rng.normal(size=(2, 3)), rng.normal(size=2) + 20.0, 0.99)
    assert np.abs(ours.values - [1.0, 2.0, 3.0]).max() > 1.0
    deviations = []
    for _ in range(3000):
        ours.update(np.array([[1.0, 0.0, 0.0]]), np.array([5.0]), 0.99)
        deviations.append(np.sqrt(np.diag(ours.covariance)))
    assert np.all(np.array(deviations)[1000:, 1:] < limits[1:] * 0.99 ** (-3 / 2) * 1.001)
    assert np.allclose(deviations[-1][1:], limits[1:], rtol=0.02)
    assert np.allclose(ours.values[1:], [2.0, 3.0], atol=1e-6)
    assert abs(ours.values[0] - 5.0) < 3 * deviations[-1][0] < 0.5, "what is shown is known"


def test_estimates_of_known_parameters_are_within_their_deviations():
    squares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth, limits = rng.normal(size=4), np.ones(4)
        ours = RecursiveLeastSquares(np.zeros(4), limits)
        for _ in range(20):
            rows = rng.normal(size=(2, 4))
            ours.update(rows, rows @ truth + rng.normal(size=2))
        error = ours.values - truth
        squares.append(error @ np.linalg.solve(ours.covariance, error))
    assert 4 - 4 * np.sqrt(8 / 40) < np.mean(squares) < 4 + 4 * np.sqrt(8 / 40), "chi-square with 4 degrees of freedom"


def test_a_limit_must_be_a_positive_number():
    with pytest.raises(InputError, match="limits"):
        RecursiveLeastSquares(np.zeros(2), np.array([1.0, np.inf]))


def test_the_information_of_a_covariance_with_unknown_parameters():
    covariance = np.diag([0.04, np.inf, 0.09])
    covariance[0, 2] = covariance[2, 0] = 0.03
    root = compute_information_root(covariance, np.full(3, 10.0))
    found = np.linalg.inv(root.T @ root)
    known = np.linalg.inv(np.linalg.inv(covariance[np.ix_([0, 2], [0, 2])]) + 0.01 * np.eye(2))
    assert np.allclose(found[np.ix_([0, 2], [0, 2])], known)
    assert np.isclose(found[1, 1], 100.0)


def test_a_stream_is_whitened_as_the_whole_would_be():
    rng = np.random.default_rng(3)
    noise = draw_colored_noise(np.array([1.0, 3.0]), 4000, 50.0, 0.1, rng)
    autocovariance = Autocovariance(2, 3)
    for sample in noise.T:
        autocovariance.add(sample, np.ones(2, dtype=bool))
    found = autocovariance.fit()
    lagged = np.array([[row[k:] @ row[: len(row) - k] / (len(row) - k) for k in range(4)] for row in noise])
    assert np.allclose(found.filters, fit_whitening(lagged, [4000, 4000]).filters)
    stream = RowWhitening(found)
    white = np.array([stream.add(sample[:, None], np.ones(2, dtype=bool))[:, 0] for sample in noise.T])[3:]
    assert np.allclose(white.std(axis=0), 1.0, atol=0.05)
    assert np.abs(np.mean(white[1:] * white[:-1], axis=0)).max() < 4 / np.sqrt(4000)
    stream.restart()
    assert not stream.add(noise[:, :1], np.ones(2, dtype=bool)).any(), "nothing before it is known"


def test_the_most_likely_gumbel_law_is_found():
    values = gumbel_r.rvs(3.0, 2.0, size=(200, 5), random_state=6)
    ours = np.transpose(fit_gumbel_law(values))
    np.testing.assert_allclose(ours, [gumbel_r.fit(column) for column in values.T], rtol=1e-3)


@pytest.mark.parametrize("freedom", [2, 3, 4, 6])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_thresholds_of_sums_of_squares_are_exceeded_as_rarely_as_required(freedom, scale):
    """Blocks of 20 values: once in T seconds is one of 20 T. The scale stands for noise wrongly assumed white."""
    truth, rng = scale * chi2.isf(1.0 / (20 * 1e4), freedom), np.random.default_rng(4)

    def learned(blocks, count):
        thresholds = ChangeThresholds(np.full(count, float(freedom)))
        for values in scale * rng.chisquare(freedom, size=(blocks * 20, count)):
            thresholds.add(values, 0.05)
        return thresholds.fit(1e4)

    assert np.mean(learned(30, 1000) >= truth) >= 0.85
    many = learned(3000, 20).mean()
    print(freedom, scale, many / truth)
    assert truth < 1.02 * many < 1.17 * truth


def test_statistics_without_data_have_the_threshold_of_white_noise():
    silent = ChangeThresholds(np.array([2.0, 4.0]))
    floor = silent.fit(1e4)
    np.testing.assert_allclose(floor, chi2.isf(1e-4, [2, 4]), rtol=1e-6)
    for _ in range(100):
        silent.add(np.zeros(2), 0.5)
    np.testing.assert_allclose(silent.fit(1e4), floor)


@pytest.fixture(scope="module")
def arm():
    return Simulated(ARM)


@pytest.fixture(scope="module")
def parameters(arm):
    noise = {"noise": NOISE, "correlation_time": 0.1, "duration": 30.0}
    return identify(
        [arm.record(1, **noise)], [arm.record(2, **noise)], arm.model, Settings(terms=TERMS), "t"
    ).parameters


def watched(arm, parameters, changes, seed=5, quiet=QUIET):
    """A monitor along a motion of 60 s; `changes` are (time, change of all parameters from then on)."""
    motion, t = draw_random_fourier(arm.model, seed), np.arange(round(60.0 * RATE)) / RATE
    q, dq, ddq, _ = motion.evaluate(t % motion.period)
    states = Motion(q, dq, ddq)
    rng = np.random.default_rng(seed)
    tau = arm.regressor.torque(states, arm.parameters)
    tau = tau + draw_colored_noise(np.full(3, NOISE), len(t), RATE, 0.1, rng)
    for time, change in changes:
        tau[:, t >= time] += arm.regressor.torque(states.take(t >= time), change)
    monitor = ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=quiet))
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]) and monitor.watch.due(t[k]):
            monitor.residual()
            yield t[k], monitor


def make_change(arm, **values):
    """A change of the parameters, given by names of columns; shape (c,)."""
    change = np.zeros(len(arm.regressor.names))
    for name, value in values.items():
        change[arm.regressor.names.index(name)] = value
    return change


LOAD = {"m3": 0.8, "mz3": 0.16, "Ixx3": 0.032, "Iyy3": 0.032}


@pytest.mark.slow
def test_a_payload_and_its_removal_are_detected_and_its_mass_is_estimated(arm, parameters):
    load = make_change(arm, **LOAD)
    first, held = np.inf, ()
    for t, monitor in watched(arm, parameters, [(40.0, load), (50.0, -load)]):
        if monitor.watch.changed:
            first = min(first, t)
        if t < 50.0:
            held = monitor.watch.changes
    assert 40.0 < first < 40.5, "neither a false alarm nor a late detection"
    assert [change.part.name for change in held] == [PAYLOAD]
    change = held[0]
    errors = change.values[:4] - load[20:24]
    assert np.all(np.abs(errors) < 4 * change.standard_deviations[:4])
    assert change.standard_deviations[0] < 0.1
    assert "payload +0." in str(change)
    assert monitor.watch.detected > 50.0, "the payload has been removed"
    assert all(not c.significant for c in monitor.watch.changes if c.part.name == PAYLOAD)


@pytest.mark.slow
def test_a_change_of_friction_is_attributed_to_its_joint(arm, parameters):
    for t, monitor in watched(arm, parameters, [(40.0, make_change(arm, fv2=0.8, fc2=0.5, off2=0.3))]):
        assert t > 40.0 or not monitor.watch.changed
    assert 40.0 < monitor.watch.detected < 45.0
    assert [change.part.name for change in monitor.watch.changes] == ["elbow"]
    change = monitor.watch.changes[0]
    assert change.part.symbols == ("fv2", "fc2", "off2")
    assert np.all(np.abs(change.values - [0.8, 0.5, 0.3]) < 4 * change.standard_deviations)
    assert monitor.watch.summary == "friction of elbow"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 6])
def test_tracked_parameters_are_those_of_the_robot_within_their_deviations(arm, parameters, seed):
    """Coulomb friction too: its column passes the low-pass that its torque passes."""
    *_, (_, monitor) = watched(arm, parameters, [], seed)
    tracked = monitor.tracked
    assert np.all(np.abs(tracked.estimate.values - arm.base_values) < 4.0 * tracked.estimate.standard_deviations)


@pytest.mark.slow
def test_tracked_parameters_are_one_robot_with_an_uncertainty_that_grows_at_rest(arm, parameters):
    for _, monitor in watched(arm, parameters, []):
        assert not monitor.watch.changed
    tracked = monitor.tracked
    q, dq, ddq = np.random.default_rng(0).uniform(-1, 1, (3, 3))
    full = np.concatenate([tracked.bodies.standard_parameters, tracked.terms.values])
    as_full = Dynamics(Regressor.from_parameters(tracked), np.arange(len(full)), full).inverse_dynamics(q, dq, ddq)
    assert np.allclose(Dynamics.from_parameters(tracked).inverse_dynamics(q, dq, ddq), as_full), (
        "two representations of one robot"
    )
    start = tracked.estimate.standard_deviations
    for _ in range(200):  # at rest, discounted slowly
        monitor.watch._tracker.update(np.zeros((3, len(start))), np.zeros(3), 0.99)
    assert np.all(monitor.tracked.estimate.standard_deviations > start)


def test_no_change_is_reported_during_learning_and_invalid_settings_are_refused(arm, parameters):
    for t, monitor in watched(arm, parameters, [(5.0, make_change(arm, m3=1.0))], quiet=1000.0):
        assert not monitor.watch.changed
        assert monitor.watch.learning > 900.0
        if t > 10.0:
            break
    regressor = Regressor.from_parameters(parameters)
    with pytest.raises(InputError, match="payload body 'hand'"):
        ModelWatch(parameters, regressor, 10.0, settings=WatchSettings(payload_body="hand"))
    with pytest.raises(UsageError, match="cutoff must be positive"):
        ModelWatch(parameters, regressor, 0.0)
    for name in ("quiet", "false_alarm_interval", "memory"):
        with pytest.raises(UsageError, match=f"{name} must be positive"):
            WatchSettings(**{name: 0.0})


def test_nothing_is_learned_at_rest(parameters):
    monitor = ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=5.0))
    for k in range(1000):
        if monitor.add(k * 0.02, np.zeros(3), np.zeros(3), np.full(3, 5.0)):
            monitor.residual()
    assert monitor.watch.learning == 5.0
    assert monitor.tracked is None


def test_nothing_is_learned_from_zero_efforts(arm, parameters):
    """Drivers without effort sensing report zeros, which the monitor must survive."""
    monitor, motion = (
        ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=5.0)),
        draw_random_fourier(arm.model, 5),
    )
    t = np.arange(round(12.0 * RATE)) / RATE
    q, dq, _, _ = motion.evaluate(t)
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], dq[:, k], np.zeros(3)):
            monitor.residual()
    assert monitor.tracked is None
    assert monitor.watch.learning == 5.0
    assert set(monitor.worse(3.0, 0.1)) == set(parameters.robot.joint_names), "no model fits zero efforts"


@pytest.mark.slow
def test_monitoring_continues_when_a_bag_starts_again(arm, parameters):
    """The first detection lies in the future of the new stamps; a second change is still detected."""
    motion, count = draw_random_fourier(arm.model, 5), round(75.0 * RATE)
    passed = np.arange(count) / RATE
    t = np.where(passed < 45.0, passed, passed - 45.0)
    q, dq, ddq, _ = motion.evaluate(passed % motion.period)
    states = Motion(q, dq, ddq)
    tau = arm.regressor.torque(states, arm.parameters)
    tau += draw_colored_noise(np.full(3, NOISE), count, RATE, 0.1, np.random.default_rng(5))
    for time in (40.0, 60.0):
        tau[:, passed >= time] += arm.regressor.torque(states.take(passed >= time), make_change(arm, **LOAD))
    monitor, detections = ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=QUIET)), set()
    for k in range(count):
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]) and monitor.watch.due(t[k]):
            monitor.residual()
            detections.add(round(monitor.watch.detected, 1))
    assert any(40.0 <= time < 41.0 for time in detections)
    assert 15.0 < monitor.watch.detected < 16.0


def test_a_joint_that_did_not_move_while_its_noise_was_learned_is_named(arm, parameters):
    monitor = ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=6.0))
    assert monitor.watch.unmonitored == ()
    motion, t = draw_random_fourier(arm.model, 5), np.arange(round(8.0 * RATE)) / RATE
    q, dq, ddq = (values * [[1.0], [0.0], [1.0]] for values in motion.evaluate(t)[:3])
    tau = arm.regressor.torque(Motion(q, dq, ddq), arm.parameters)
    tau += NOISE * np.random.default_rng(5).normal(size=tau.shape)
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]):
            monitor.residual()
    assert monitor.watch.unmonitored == ("elbow",)
    assert not monitor.watch.changed
