# SPDX-License-Identifier: Apache-2.0
"""The causal filter against exact solutions; residuals of a model on motion of its robot and of a changed one."""

import numpy as np
import pytest
from scipy.signal import lsim, lti
from support.altered import altered
from support.simulated import ARM, GRIPPER, TERMS, Simulated

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import RotorInertia
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.identification.assembly import replace_covariance, replace_values
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.online.assessment import assess
from robot_dyn_id.online.monitoring import CausalFilter, Columns, ResidualMonitor
from robot_dyn_id.online.watch import WatchSettings
from robot_dyn_id.simulation.sensors import draw_colored_noise
from robot_dyn_id.simulation.simulated_robot import Actuation, SimulatedRobot


def test_the_filter_is_the_exact_second_order_low_pass_at_any_sample_times():
    rng = np.random.default_rng(1)
    t = np.concatenate([[0.0], np.cumsum(rng.uniform(1e-4, 0.05, 200))])
    u = np.sin(3 * t) + 0.3 * rng.normal(size=len(t))
    u[0] = 0.0
    w = 2 * np.pi * 5.0
    made = CausalFilter(5.0)
    y, dy = np.array([made.add(time, np.array([value])) for time, value in zip(t, u, strict=True)])[..., 0].T
    fine = np.linspace(0, t[-1], 100_001)
    truth = lsim(lti([w**2], [1, 2 * w, w**2]), np.interp(fine, t, u), fine)[1]
    assert np.abs(y - np.interp(t, fine, truth)).max() < 1e-4
    slope = np.gradient(truth, fine)
    assert np.abs(dy - np.interp(t, fine, slope)).max() < 1e-2


def test_filtered_acceleration_fits_filtered_velocity_and_position_without_lag_between_them():
    made, t = CausalFilter(10.0), np.arange(0, 3, 1e-3)
    pairs = np.array([made.add(s, np.array([np.sin(s), np.cos(s)])) for s in t])[1000:]
    (q, dq), (dq_again, ddq) = pairs.transpose(1, 2, 0)
    assert np.allclose(dq, dq_again, atol=1e-6)
    assert np.allclose(ddq, -q, atol=1e-6)
    assert made.settled


@pytest.mark.parametrize("text", [ARM, GRIPPER])
def test_the_columns_give_the_low_passed_torque_of_friction_that_jumps_too(text):
    """Slow motion at constant acceleration, turning round at 1 s: only friction is not smooth there."""
    robot = Simulated(text, terms=(RotorInertia(), *TERMS))
    columns, torque, n = Columns(robot.regressor, 10.0), CausalFilter(10.0), len(robot.joints)
    left = []
    for t in np.arange(0.0, 2.0, 2e-3):
        q, dq, ddq = np.full((3, n), [[0.1 * (t - 1.0) ** 2], [0.2 * (t - 1.0)], [0.2]])
        state = Motion(q[:, None], dq[:, None], ddq[:, None])
        tau = robot.regressor.torque(state, robot.parameters)[:, 0]
        columns.add(t, np.array((q, dq, tau)))
        expected, _ = torque.add(t, tau)
        _, shown, found = columns.read()
        assert np.array_equal(shown, expected)
        left.append(robot.parameters @ found - expected)
    assert np.abs(left[500:]).max() < 5e-3, "friction of 1 N m changes its sign"


@pytest.fixture(scope="module")
def arm():
    return Simulated(ARM)


@pytest.fixture(scope="module")
def parameters(arm):
    noise = {"noise": 0.05, "duration": 20.0}
    return identify(
        [arm.record(1, **noise)], [arm.record(2, **noise)], arm.model, Settings(terms=TERMS), "t"
    ).parameters


def watch(arm, parameters, factor=1.0, noise=0.05, duration=12.0, rate=500.0, window=10.0):
    """A monitor after a motion of the arm with efforts scaled by `factor`, and its residuals."""
    motion, t = draw_random_fourier(arm.model, 7), np.arange(round(duration * rate)) / rate
    q, dq, ddq, _ = motion.evaluate(t)
    tau = factor * arm.regressor.torque(Motion(q, dq, ddq), arm.parameters)
    tau = tau + noise * np.random.default_rng(4).normal(size=tau.shape)
    monitor, residuals = ResidualMonitor(parameters, 10.0, window), []
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]) and k % 10 == 0:
            residuals.append(monitor.residual())
    return monitor, residuals


@pytest.mark.slow
def test_the_residual_of_the_plants_own_model_is_noise(arm, parameters):
    """White noise of 0.05 N m through the low-pass keeps a share sqrt(w / (2 rate)) of it... plus friction's corners."""
    monitor, residuals = watch(arm, parameters)
    assert monitor.assessed.all()
    assert monitor.worse(3.0, 0.1) == ()
    quiet = 0.05 * np.sqrt(2 * np.pi * 10.0 / (4 * 500.0))
    difference = np.array([residual.difference for residual in residuals])
    assert np.all(np.median(np.abs(difference), axis=0) < 3 * quiet)
    assert np.all(monitor.nrmse < 0.05)


@pytest.mark.slow
def test_the_standard_deviation_is_that_of_the_parameters(arm, parameters):
    """Y C Y' by another way: predictions of parameters drawn from their distribution."""
    _, residuals = watch(arm, parameters, duration=2.0)
    drawn = np.random.default_rng(0).multivariate_normal(
        parameters.estimate.values, parameters.estimate.covariance, 200
    )
    predictions = []
    for values in drawn:
        guessed = replace_values(parameters, values)
        predictions.append(watch(arm, guessed, duration=0.5, rate=200.0)[1][-1].predicted)
    again = watch(arm, parameters, duration=0.5, rate=200.0)[1][-1].standard_deviation
    assert np.allclose(np.std(predictions, axis=0), again, rtol=0.2)
    assert all((residual.standard_deviation > 0).all() for residual in residuals)


@pytest.mark.parametrize("window", [10.0, 0.3])
def test_another_load_is_detected(arm, parameters, window):
    monitor, _ = watch(arm, parameters, factor=1.3, window=window)
    assert monitor.worse(3.0, 0.1) == parameters.robot.joint_names


PULSE = 100.0
"""Torque pulse of a setpoint jump, visible in one sample of the efforts and not in the motion [N m]."""


def stopped(arm, stop, late):
    """A motion braked from its state at `stop`, with a delay of `late`, sampled at 200 Hz.

    The simulated robot joins the braking smoothly; a controller that does not gives a pulse.
    """
    truth = Dynamics(arm.regressor, np.arange(len(arm.parameters)), arm.parameters)
    motion, t = draw_random_fourier(arm.model, 7), np.arange(0.01, 12.0, 0.01)
    robot = SimulatedRobot(truth, motion.evaluate(np.zeros(1))[0][:, 0], 1e-3, Actuation(limit_effort=False))
    q, dq, ddq, _ = motion.evaluate(t)
    robot.tracker.follow(TrajectoryPoints(t, q.T, dq.T, ddq.T), 0.0, 0.0)
    q, dq, _, _ = motion.evaluate(np.array([stop]))
    braking = Braking(q[:, 0], dq[:, 0], np.full(3, 5.0))
    t = np.linspace(0.0, braking.duration, 200)[1:]
    q, dq, _, _ = braking.evaluate(t)
    for k in range(round((stop + 1.5) * 1000)):
        if k == round((stop + late) * 1000):
            robot.tracker.follow(TrajectoryPoints(t, q.T, dq.T), robot.time, robot.time)
        q_now, dq_now, tau = robot.tick()
        if k % 5 == 0:
            pulse = PULSE if late and 0 <= k - round((stop + late) * 1000) < 5 else 0.0
            yield 1e-3 * k, q_now, dq_now, tau + pulse


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "late"), [(3.0, 0.0), (3.0, 0.01), (5.3, 0.01), (8.1, 0.01)])
def test_a_stop_does_not_look_like_another_robot(arm, parameters, stop, late):
    """The setpoint jumps back by what the robot has gone meanwhile: a pulse that efforts at 200 Hz do not show."""
    monitor, heavier = (ResidualMonitor(parameters, 10.0, 10.0) for _ in range(2))
    largest = 0.0
    for t, q, dq, tau in stopped(arm, stop, late):
        if monitor.add(t, q, dq, tau) and heavier.add(t, q, dq, 1.3 * tau):
            heavier.residual()
            largest = max(largest, np.abs(monitor.residual().difference).max())
            assert monitor.worse(3.0, 0.1) == ()
    assert monitor.assessed.all()
    assert (largest > 4.0) == (late > 0.0), "without a pulse the test has no content"
    assert heavier.worse(3.0, 0.1) == parameters.robot.joint_names


@pytest.mark.slow
def test_a_load_picked_up_later_is_detected(arm, parameters):
    """Within the window: it is what the joints do now that counts."""
    motion, t = draw_random_fourier(arm.model, 7), np.arange(0.0, 18.0, 1e-2)
    q, dq, ddq, _ = motion.evaluate(t % motion.duration)
    tau = np.where(t < 12.0, 1.0, 1.3) * arm.regressor.torque(Motion(q, dq, ddq), arm.parameters)
    monitor, first = ResidualMonitor(parameters, 10.0, 10.0), np.full(3, np.inf)
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]):
            monitor.residual()
            worse = monitor.worse(3.0, 0.1)
            first = np.minimum(first, [t[k] if name in worse else np.inf for name in parameters.robot.joint_names])
    assert np.all((first > 12.0) & (first < 17.0)), first


def test_unidentifiable_parameters_give_an_infinite_standard_deviation(arm, parameters):
    covariance = parameters.estimate.covariance.copy()
    covariance[-1], covariance[:, -1] = np.inf, np.inf  # the offset of the last joint
    _, residuals = watch(arm, replace_covariance(parameters, covariance), duration=1.0)
    assert np.array_equal(np.isinf(residuals[-1].standard_deviation), [False, False, True])


def test_an_arm_at_rest_is_not_assessed(parameters):
    monitor = ResidualMonitor(parameters, 10.0, 10.0)
    for k in range(2000):
        if monitor.add(k * 1e-3, np.zeros(3), np.zeros(3), np.full(3, 5.0)):
            monitor.residual()
    assert not monitor.assessed.any()
    assert monitor.worse(1.0, 0.0) == ()


def test_efforts_are_those_of_the_drives_that_the_model_was_identified_with(arm, parameters):
    gains, signs = np.array([20.0, 0.0, 5.0]), np.array([-1.0, -1.0, 1.0])
    driven = altered(parameters, effort={"drive_gains": gains, "drive_signs": signs})
    plain, monitor = (ResidualMonitor(one, 10.0, 10.0) for one in (parameters, driven))
    motion, t = draw_random_fourier(arm.model, 7), np.arange(0.0, 1.0, 1e-2)
    q, dq, ddq, _ = motion.evaluate(t)
    tau = arm.regressor.torque(Motion(q, dq, ddq), arm.parameters)
    reported = tau / np.array([-20.0, -1.0, 5.0])[:, None]
    for k in range(len(t)):
        plain.add(t[k], q[:, k], dq[:, k], tau[:, k])
        monitor.add(t[k], q[:, k], dq[:, k], reported[:, k])
    np.testing.assert_allclose(monitor.residual().difference, plain.residual().difference, atol=1e-12)


def test_the_filters_restart_after_gaps_and_when_time_is_set_back(parameters):
    monitor = ResidualMonitor(parameters, 10.0, 10.0)
    rest = np.zeros(3)
    assert [monitor.add(k * 0.01, rest, rest, rest) for k in range(50)][-1]
    assert not monitor.add(0.49, rest, rest, rest), "the same stamp again"
    assert not monitor.add(1.0, rest, rest, rest), "a gap"
    assert [monitor.add(1.0 + k * 0.01, rest, rest, rest) for k in range(1, 50)][-1]
    assert not monitor.add(0.0, rest, rest, rest), "set back"


@pytest.mark.slow
def test_motion_outside_the_training_is_reported_with_joint_and_quantity(arm, parameters):
    """Another random motion, of which the elbow's speed is outside once the training was slower."""
    before = {one.name: one.share for one in watch(arm, parameters)[0].outside}
    slower = altered(parameters, ranges={"dq_max": parameters.ranges.dq_max * [1.0, 0.4, 1.0]})
    after = {one.name: one.share for one in watch(arm, slower)[0].outside}
    assert "elbow speed" not in before
    assert 0.05 < after["elbow speed"] < 1.0
    assert {what for what in after if "elbow" not in what} == {what for what in before if "elbow" not in what}


ENCODER = 2 * np.pi / 2**17
"""Step of the encoders [rad]."""


@pytest.mark.slow
@pytest.mark.parametrize("measured", [True, False], ids=["velocities", "positions only"])
def test_a_small_load_is_detected_with_and_without_velocities(arm, parameters, measured):
    """80 g and less than 1 N m, taken up after 34 s; without velocities positions in steps are differentiated."""
    motion, t = draw_random_fourier(arm.model, 7), np.arange(0.0, 37.0, 0.01)
    q, dq, ddq, _ = motion.evaluate(t % motion.period)
    states, late = Motion(q, dq, ddq), t >= 34.0
    tau = arm.regressor.torque(states, arm.parameters)
    tau += draw_colored_noise(np.full(3, 0.05), len(t), 100.0, 0.1, np.random.default_rng(5))
    load = np.zeros_like(arm.parameters)
    load[[arm.regressor.names.index(name) for name in ("m3", "mz3", "Ixx3", "Iyy3")]] = 0.08, 0.016, 0.0032, 0.0032
    tau[:, late] += arm.regressor.torque(states.take(late), load)
    monitor, detected = ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=30.0)), np.inf
    for k in range(len(t)):
        position = ENCODER * np.round(q[:, k] / ENCODER)
        if monitor.add(t[k], position, dq[:, k] if measured else None, tau[:, k]):
            monitor.residual()
            detected = min(detected, t[k] if monitor.watch.changed else np.inf)
            if t[k] < 34.0:
                assert monitor.worse(3.0, 0.1) == ()
    assert 34.0 <= detected < 34.2
    assert monitor.watch.summary == "payload"


def test_velocities_that_come_and_go_restart_the_filters(parameters):
    monitor, rest = ResidualMonitor(parameters, 10.0, 10.0), np.zeros(3)
    for begin, velocity in ((0.0, rest), (0.5, None), (1.0, rest)):
        settled = [monitor.add(begin + k * 0.01, rest, velocity, rest) for k in range(50)]
        assert not settled[0]
        assert settled[-1]


@pytest.mark.slow
def test_the_assessment_states_whether_the_model_fits(arm, parameters):
    names = parameters.robot.joint_names
    at_rest = assess(ResidualMonitor(parameters, 10.0, 10.0), 3.0, 0.1)
    assert at_rest.fits
    assert all(name in at_rest.message for name in names)
    monitor, _ = watch(arm, parameters)
    good = assess(monitor, 3.0, 0.1)
    assert good.fits
    assert good.message.startswith("the model fits; far outside the training motion: ")
    assert good.message.endswith("; changes are not detected yet")
    monitor, _ = watch(arm, parameters, factor=1.3)
    bad = assess(monitor, 3.0, 0.1)
    assert not bad.fits
    assert bad.message.startswith(f"the model does not fit any more: {', '.join(names)}")
    assert {f"{name}: RMS residual" for name in names} <= set(bad.values)
