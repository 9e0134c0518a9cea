# SPDX-License-Identifier: Apache-2.0
"""Rows near reversals: where the threshold comes from, what is left out, and what friction gains by it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support.robots import joint, urdf
from support.simulated import TERMS, Simulated, changed

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Stribeck, Viscous
from robot_dyn_id.estimators import Separable, WeightedLeastSquares
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.whitening import LaggedGrams
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.processing import find_rest
from robot_dyn_id.signals.reversals import estimate_velocity_noise, find_slowest_speeds
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording


@pytest.fixture(scope="module")
def robot():
    return Simulated()


@pytest.fixture(scope="module")
def recording(robot):
    """With a gap, so that there are two segments."""
    whole = robot.record(duration=60.0, noise=0.05, velocity=0.005)
    return changed(whole, rows=(whole.samples.t < 25.0) | (whole.samples.t > 26.0))


def prepared(recording, joints, cutoff=None, velocity="recorded"):
    found = survey([recording], joints, {})
    plan = plan_signals(found, SignalSettings(cutoff, velocity=velocity))
    return FilteredTrials([recording], joints, {}, plan)


def without(trials, slowest):
    """The trials with these low-velocity thresholds."""
    return replace(trials, plan=replace(trials.plan, slowest=slowest))


def problem_of(robot, trials):
    return trials.problem(robot.regressor, np.arange(len(robot.regressor.names)))


def rows_of(robot, trials):
    """Joint, segment and block of every tile."""
    return [(tile.joint, tile.segment, tile.block.copy()) for tile in problem_of(robot, trials).tiles()]


def test_slow_rows_are_left_out_joint_by_joint_and_no_others(robot, recording):
    """They are zero, so that those that follow keep their place in time."""
    trials = prepared(recording, robot.joints)
    slowest = (0.0, 0.3, 0.6)
    every = rows_of(robot, trials)
    fast = rows_of(robot, without(trials, slowest))
    dq = [p.motion.dq[:, p.own & (p.number % trials.plan.row_stride == 0)] for p in trials]
    dq = [part for part in dq if part.shape[1]]
    assert [tile[:2] for tile in every] == [tile[:2] for tile in fast]
    moving = np.concatenate(dq, axis=1)
    for row in range(3):
        block, left = (np.concatenate([b for j, _, b in tiles if j == row], axis=1) for tiles in (every, fast))
        assert np.array_equal(left, np.where(np.abs(moving[row]) >= slowest[row], block, 0.0))
    counts = [Factors.from_problem(problem_of(robot, without(trials, s))).counts for s in ((), slowest)]
    share = [np.mean(np.abs(moving[j]) >= slowest[j]) for j in range(3)]
    np.testing.assert_allclose(counts[1] / counts[0], share)
    assert share[0] == 1.0 > 0.95 > share[1] > share[2] > 0.3


def test_a_joint_at_rest_keeps_its_rows_and_one_that_reverses_does_not():
    t = np.arange(4000) / 1000.0
    speeds = np.where(t < 2.0, np.sin(2.0 * np.pi * t), 1e-4)
    rest = find_rest(speeds, 0.01, 1000.0)
    assert not rest[t < 2.245].any() and rest[t > 2.255].all()  # 0.25 s after the last sample that is fast, 1.998 s


def test_rows_that_are_left_out_do_not_change_what_is_known_of_the_noise(robot):
    """Autocovariances are means over the pairs of rows that are left."""
    recording = robot.record(duration=400.0, noise=0.5, correlation_time=0.3)
    trials = prepared(recording, robot.joints, 4.0)
    covariances = []
    for slowest in ((), (0.3, 0.3, 0.3)):
        lagged = LaggedGrams.from_problem(problem_of(robot, without(trials, slowest)), 4)
        covariances.append(lagged.residual_autocovariance(robot.parameters))
    assert lagged.counts.max() < 0.9 * sum(np.count_nonzero(p.own) for p in trials) / trials.plan.row_stride
    np.testing.assert_allclose(covariances[1], covariances[0], atol=0.15 * covariances[0].max())
    assert np.all(covariances[0][:, 1] > 0.4 * covariances[0][:, 0])


@pytest.mark.parametrize("rate", [100.0, 500.0])
@pytest.mark.parametrize("velocity", ["recorded", "derivative"])
def test_the_noise_of_the_velocity_is_found_from_the_data(robot, rate, velocity):
    """Within 15 % of what is left of the known noise behind the low-pass."""
    motion = draw_random_fourier(robot.model, 1)
    sensors = Sensors(np.zeros(3), 1e-4, 0.01)
    recording = simulate_recording(robot.regressor, robot.parameters, motion, sample_times(40.0, rate), sensors, 1)
    trials = prepared(recording, robot.joints, 8.0, velocity)
    errors = [(p.motion.dq - motion.evaluate(p.t)[1])[:, p.own] for p in trials]
    truth = np.sqrt(np.mean(np.concatenate(errors, axis=1) ** 2, axis=1))
    np.testing.assert_allclose(estimate_velocity_noise(trials), truth, rtol=0.15)


def test_given_thresholds_are_used():
    joints, fastest = ("a", "b", "c"), np.array([1.0, 2.0, 0.02])
    noise = np.array([0.01, 0.02, 0.03])
    assert find_slowest_speeds(joints, 0.0, {}, lambda: noise, fastest) == ((0.0, 0.0, 0.0), ())
    assert find_slowest_speeds(joints, 0.01, {"b": 0.5}, lambda: noise, fastest) == ((0.01, 0.5, 0.01), ())
    speeds, (finding,) = find_slowest_speeds(joints, "auto", {"a": 0.0}, lambda: noise, fastest)
    assert speeds == (0.0, pytest.approx(0.06), 0.0)
    assert (finding.code, finding.joints) == ("slow_rows_kept", ("c",))


def pinned(**options):
    return Settings(terms=TERMS, estimator=WeightedLeastSquares(), velocity="recorded", **options)


@pytest.mark.slow
def test_an_identification_leaves_them_out(robot, recording):
    def run(**options):
        return identify(*split([recording], robot.joints), robot.model, pinned(**options), "test")

    plain, auto = run(), run(reversal_speed="auto")
    assert 0.8 < auto.rows[0] / plain.rows[0] < 1.0
    off = np.abs(auto.estimate.values - robot.base_values) / auto.estimate.standard_deviations
    assert np.all(off < 4.5)
    still = run(reversal_speeds={"elbow": 50.0})
    assert still.rows[0] == plain.rows[0]
    assert [one.joints for one in still.evaluation.findings if one.code == "slow_rows_kept"] == [("elbow",)]


# --- The figure --------------------------------------------------------------------------------------------------

ONE = urdf(joint("turn", "base", "l1", axis="0 1 0"), links=1)


class Reversing:
    """One joint with Stribeck friction (fc 5, fb 8, v_b 0.05 rad/s, fv 4), and its noisy recording."""

    def __init__(self, seed):
        self.model = RobotModel.from_urdf(ONE)
        self.truth = self.regressor((Viscous(), Stribeck(0.05)))
        self.parameters = np.concatenate([self.model.inertial_parameters, [4.0, 5.0, 8.0 - 5.0]])
        sensors = Sensors(np.array([0.5]), 1e-5, 0.005)
        motion = draw_random_fourier(self.model, seed)
        recording = simulate_recording(self.truth, self.parameters, motion, sample_times(60.0, 500.0), sensors, seed)
        self.trials = prepared(recording, self.model.joint_names, 6.25)
        held_out = Motion(*draw_random_fourier(self.model, seed + 100).evaluate(np.linspace(0.0, 50.0, 10_001))[:3])
        self.slow = held_out.take(np.abs(held_out.dq[0]) < 0.1)

    def regressor(self, terms):
        return Regressor(self.model, place_terms_on_joints(self.model, terms))

    def fit(self, terms, slowest):
        """Torque error of the fit where the held-out motion is slow, and what it leaves of the training torque."""
        regressor = self.regressor(terms)
        columns = compute_base_parameters(regressor).independent
        factors = Factors.from_problem(without(self.trials, (slowest,)).problem(regressor, columns))
        values = factors.solve(np.ones(1)).values
        difference = regressor.torque(self.slow, values, columns) - self.truth.torque(self.slow, self.parameters)
        return np.sqrt(np.mean(difference**2)), factors.squared_residuals(values)[0]

    def stribeck(self, slowest):
        """Torque error with the Stribeck velocity that fits best, and that velocity."""

        def cost(log):
            return self.fit((Viscous(), Stribeck(float(np.exp(log)))), slowest)[1]

        found = minimize_scalar(cost, bounds=np.log([1e-3, 0.5]), method="bounded", options={"xatol": 1e-3})
        velocity = float(np.exp(found.x))
        return self.fit((Viscous(), Stribeck(velocity)), slowest)[0], velocity


@pytest.mark.parametrize("seed", [1, 2])
def test_stribeck_friction_at_a_reversal_is_ten_times_better_than_coulomb(seed):
    case = Reversing(seed)
    threshold = 3.0 * float(estimate_velocity_noise(case.trials)[0])
    coulomb = min(case.fit((Viscous(), Coulomb(width)), 0.0)[0] for width in (0.0, 0.02))
    for slowest in (threshold, 3.0 * 0.005):  # of the filtered velocity, and of the recorded one
        error, velocity = case.stribeck(slowest)
        assert error <= 0.1 * coulomb
        assert velocity == pytest.approx(0.05, rel=0.05)
    assert case.stribeck(0.0)[0] > 2.0 * error  # with all rows, the noise of the velocity bends the law


# --- Peaks of a few samples --------------------------------------------------------------------------------------

VELOCITY = 0.002
"""Stribeck velocity [rad/s]: the peak lasts for some milliseconds at a reversal."""


@pytest.fixture(scope="module")
def narrow():
    """Three joints at 1 kHz with a narrow peak, velocities from positions with noise of 1 urad."""
    robot = Simulated(terms=(Viscous(), Stribeck(VELOCITY)))
    motion = draw_random_fourier(robot.model, 1)
    sensors = Sensors(np.full(3, 0.02), 1e-6, None)
    return robot, simulate_recording(robot.regressor, robot.parameters, motion, sample_times(20.0, 1000.0), sensors, 1)


@pytest.mark.slow
def test_a_narrow_peak_is_identified_with_its_uncertainty(narrow):
    """The automatic cut-off would keep every fourth sample, and one wrong sign would spread over a period of it."""
    robot, recording = narrow
    settings = Settings(
        terms=(Viscous(), Stribeck()), estimator=Separable(), velocity="derivative", reversal_speed="auto"
    )
    found = identify(*split([recording], robot.joints), robot.model, settings, "test")
    assert found.parameters.provenance.estimator == "separable" and found.training.plan.decimation == 1
    for constant in found.estimate.constants:
        assert abs(constant.value - VELOCITY) < 4.0 * constant.standard_deviation < VELOCITY


def test_slow_samples_near_a_peak_do_not_spread(narrow):
    """Whatever is measured while the sign of the velocity is not known, the rows are the same."""
    robot, recording = narrow
    trials = prepared(recording, robot.joints, 6.0, "derivative")
    slowest = tuple(3.0 * estimate_velocity_noise(trials))
    wrong = recording.samples.tau.copy()
    for part in trials:
        slow = part.own & (np.abs(part.motion.dq) < np.array(slowest)[:, None])
        for driven, samples in enumerate(slow):
            wrong[np.searchsorted(recording.samples.t, part.t[samples] - 1e-6), driven] += 100.0
    assert np.any(wrong != recording.samples.tau)
    other = changed(recording, tau=wrong)
    for (_, _, block), (_, _, same) in zip(
        rows_of(robot, without(trials, slowest)),
        rows_of(robot, without(prepared(other, robot.joints, 6.0, "derivative"), slowest)),
        strict=True,
    ):
        np.testing.assert_allclose(block, same, atol=1e-9)
