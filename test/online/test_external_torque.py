# SPDX-License-Identifier: Apache-2.0
"""Momentum observer, contact test and wrench on a simulated arm with known external torque."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.model_nodes import COULOMB, NOISE, VISCOUS, identified, presliding
from support.robots import PLANAR3R, panda_arm
from support.simulated import ARM, TERMS

from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.model.kinematics import Kinematics, find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.online.contact import ContactMonitor, ContactSettings
from robot_dyn_id.online.contact_noise import compute_contact_statistics
from robot_dyn_id.online.external_wrench import WrenchPrior, estimate_wrench
from robot_dyn_id.online.momentum_observer import MomentumObserver, ObserverFilter, ObserverSettings
from robot_dyn_id.simulation.sensors import draw_colored_noise

RATE = 250.0
PUSH = np.array([2.0, -1.5, 0.8])
SETTINGS = ContactSettings(quiet=20.0)


def states(parameters, duration, noise=0.0, seed=1, rate=RATE, correlation=0.1):
    """Times and states q, dq, tau of a motion, shape (N,) and (3, N, n), by the model of a set."""
    regressor = Regressor.from_parameters(parameters)
    motion, t = draw_random_fourier(regressor.model, 5), np.arange(round(duration * rate)) / rate
    q, dq, ddq, _ = motion.evaluate(t % motion.period)
    moved = regressor.with_states(Motion(q, dq, ddq), 1.0 / rate)
    tau = regressor.torque(moved, parameters.estimate.values, parameters.base.independent)
    sigmas = np.full(len(q), noise)
    tau = tau + draw_colored_noise(sigmas, len(t), rate, correlation, np.random.default_rng(seed))
    return t, np.array((q, dq, tau)).transpose(0, 2, 1)


def torques(observer, t, motion, velocity=True):
    """Estimates, shape (N, n), NaN where there is none."""
    found = np.full(motion[0].shape, np.nan)
    for k, (q, dq, tau) in enumerate(motion.transpose(1, 0, 2)):
        if observer.add(t[k], q, dq if velocity else None, tau):
            found[k] = observer.estimate().torque
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e6])
def test_the_low_pass_is_exact_for_ramps_and_bounded_for_any_gain_and_period(ratio):
    rate, step = np.array([3.0]), ratio / 3.0
    low_pass = ObserverFilter(rate)
    outputs = low_pass.follow(np.full(6, step), np.arange(6.0).reshape(6, 1, 1))[:, 0, 0]
    t = step * np.arange(6)
    np.testing.assert_allclose(outputs, (t - (1.0 - np.exp(-3.0 * t)) / 3.0) / step, rtol=1e-6)
    low_pass.reset()
    values = low_pass.follow(np.full(200, step), ((-1.0) ** np.arange(200)).reshape(200, 1, 1))
    assert np.abs(values).max() <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("make", "velocity"), [(identified, True), (identified, False), (presliding, False)])
def test_the_observer_sees_the_external_torque_and_nothing_else(make, velocity):
    """Presliding states, which follow filtered positions, cost an error while a joint turns round."""
    parameters = make()
    t, motion = states(parameters, 4.0, rate=1000.0)
    motion[2, t > 2.0] -= PUSH
    found = torques(MomentumObserver(parameters), t, motion, velocity)
    before, after = found[(t > 0.5) & (t < 2.0)], found[(t > 2.3)]
    assert np.sqrt(np.mean(before**2)) < 0.03
    assert np.sqrt(np.mean((after - PUSH) ** 2)) < 0.03
    late = 0.0 if velocity and make is identified else 0.008  # of the low-pass
    rise = found[np.searchsorted(t, 2.0 + 1.0 / 60.0 + late)] / PUSH
    np.testing.assert_allclose(rise, 1.0 - np.exp(-1.0), atol=0.1)


@pytest.mark.parametrize("delay", [0.0, 0.005, -0.005], ids=["no delay", "late", "early"])
@pytest.mark.parametrize("velocity", [True, False], ids=["measured", "derived"])
def test_many_joint_states_at_once_are_the_same_as_one_by_one(velocity, delay):
    """With jitter, a gap, repeated states, and time that is set back, in pieces of any length."""
    t, motion = states(presliding(), 3.0)
    rng = np.random.default_rng(6)
    t = t + rng.uniform(0.0, 1e-3, len(t))
    kept = np.r_[0:200, 240:300, 295:310, 310:500, 20:120]
    t, motion = t[kept], motion[:, kept]
    one, many = (MomentumObserver(presliding(), ObserverSettings(effort_delay=delay)) for _ in range(2))
    single = [(t[k], one.estimate()) for k in range(len(t)) if one.add(t[k], *_state(motion, k, velocity))]
    found = []
    for part in np.split(np.arange(len(t)), [1, 7, 150, 203, 204, 470]):
        observed = many.follow(t[part], *_state(motion, part, velocity))
        estimates = many.estimates(observed, np.arange(len(observed)))
        found += [estimates[k] for k in range(len(estimates))]
    assert one.interruptions == many.interruptions == 1
    assert [time for time, _ in single] == [estimate.t for estimate in found] and len(found) > 250
    for (_, expected), estimate in zip(single, found, strict=True):
        for name in ("q", "torque", "effort", "model_covariance", "reversal", "slow"):
            np.testing.assert_allclose(getattr(estimate, name), getattr(expected, name), rtol=1e-9, atol=1e-12)


def _state(motion, k, velocity):
    return motion[0, k], motion[1, k] if velocity else None, motion[2, k]


def test_gains_of_single_joints_and_far_beyond_the_sampling_rate_are_stable():
    t, motion = states(identified(), 2.0)
    motion[2] -= PUSH
    found = torques(MomentumObserver(identified(), ObserverSettings(gain=(5e3, 20.0, 1.0))), t, motion)
    assert np.isnan(found[-1]).all(), "the slowest joint has not settled"
    found = torques(MomentumObserver(identified(), ObserverSettings(gain=(5e3, 200.0, 20.0))), t, motion)
    np.testing.assert_allclose(found[-50:].mean(axis=0), PUSH, atol=0.1)


@pytest.mark.slow
def test_an_effort_that_is_late_is_aligned():
    t, motion = states(identified(), 4.0)
    late = motion.copy()
    late[2, 2:] = motion[2, :-2]
    with_delay, without = (
        np.nanstd(torques(MomentumObserver(identified(), ObserverSettings(effort_delay=delay)), t, late))
        for delay in (2.0 / RATE, 0.0)
    )
    assert 10.0 * with_delay < without
    early = motion.copy()
    early[2, :-2] = motion[2, 2:]
    settings = ObserverSettings(effort_delay=-2.0 / RATE)
    assert np.nanstd(torques(MomentumObserver(identified(), settings), t, early)[:-2]) < 0.02


@pytest.mark.slow
def test_repeated_and_late_states_are_ignored_and_missing_ones_restart():
    t, motion = states(identified(), 6.0)
    observer, plain = MomentumObserver(identified()), MomentumObserver(identified())
    valid = []
    for k, (q, dq, tau) in enumerate(motion.transpose(1, 0, 2)):
        if 700 < k < 710 or 900 < k < 1000:  # 40 ms, then 0.4 s
            valid.append(False)
            continue
        valid.append(observer.add(t[k], q, dq, tau))
        plain.add(t[k], q, dq, tau)
        assert not observer.add(t[k], q + 1.0, dq, tau + 100.0)
        assert not observer.add(t[k] - 0.01, q + 1.0, dq, tau + 100.0)
    np.testing.assert_array_equal(observer.estimate().torque, plain.estimate().torque)
    assert observer.interruptions == 1
    assert all(valid[600:701]) and all(valid[710:901])
    assert not any(valid[1000:1024]) and all(valid[1026:])
    observer.add(0.0, *motion[:, 0])
    assert not observer.settled, "time was set back"


@pytest.mark.slow
def test_the_covariance_is_that_of_sets_drawn_from_the_covariance_of_the_parameters():
    parameters, rng = identified(), np.random.default_rng(0)
    t, motion = states(parameters, 1.0)
    observer = MomentumObserver(parameters)
    torques(observer, t, motion)
    truth = observer.estimate()
    root = np.linalg.cholesky(parameters.estimate.covariance + 1e-18 * np.eye(len(parameters.estimate.values)))
    drawn = []
    for _ in range(60):
        other = MomentumObserver(
            replace_values(parameters, parameters.estimate.values + root @ rng.normal(size=len(root)))
        )
        drawn.append(torques(other, t[-100:], motion[:, -100:])[-1] - truth.torque)
    ratio = np.std(drawn, axis=0) / np.sqrt(np.diag(truth.model_covariance))
    np.testing.assert_allclose(ratio, 1.0, atol=0.3)


@pytest.mark.slow
def test_efforts_without_gravity_are_those_of_a_set_without_gravity():
    parameters = altered(
        parameter_set(ARM, terms=TERMS, gravity=(0.0, 0.0, 0.0)),
        effort={"kind": "gravity_compensated", "robot_compensates": ("gravity",)},
        ranges={"dq_max": np.full(3, 4.0)},
    )
    t, motion = states(parameters, 2.0, rate=1000.0)
    motion[2] -= PUSH
    found = torques(MomentumObserver(parameters), t, motion)
    np.testing.assert_allclose(found[-100:].mean(axis=0), PUSH, atol=0.1)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"effort": {"kind": "external", "robot_compensates": ("unknown",)}}, r"effort\.kind"),
        ({"judgment": {"verdict": "bad"}}, "verdict"),
    ],
)
def test_sets_that_give_no_external_torque_are_refused(changes, word):
    with pytest.raises(InputError, match=word):
        MomentumObserver(altered(identified(), **changes))


@pytest.mark.parametrize(
    "options", [{"gain": (1.0, 2.0)}, {"gain": (0.0,)}, {"cutoff": -1.0}, {"effort_delay": np.nan}]
)
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(UsageError):
        MomentumObserver(identified(), ObserverSettings(**options))


@cache
def quiet_motion(duration):
    return states(identified(), duration, NOISE)


@pytest.mark.slow
def test_a_recording_at_once_gives_the_contact_states_of_a_stream():
    t, motion = states(identified(), 26.0, NOISE)
    motion[2, t > 24.0, 1] -= 3.0
    stream = ContactMonitor(identified(), settings=SETTINGS)
    reported = (stream.add(t[k], *motion[:, k]) for k in range(len(t)))
    expected = [state for state in reported if state is not None]
    monitor = ContactMonitor(identified(), settings=SETTINGS)
    found = monitor.follow(t, *motion)
    assert len(found) == len(expected) and found.contact[-1] and not found.contact[0]
    np.testing.assert_allclose(found.since, [state.since for state in expected])
    for k in (0, 100, len(expected) - 1):
        assert found[k].joints == expected[k].joints and found[k].contact == expected[k].contact
        np.testing.assert_allclose(found[k].statistics, expected[k].statistics, rtol=1e-6)
        np.testing.assert_allclose(found[k].thresholds, expected[k].thresholds, rtol=1e-6)
        np.testing.assert_allclose(found[k].covariance, expected[k].covariance, rtol=1e-6)


def test_a_weak_contact_is_detected_by_the_lasting_torque():
    """White noise of the efforts: the slower low-pass passes a tenth of its variance, and all of the contact."""
    t, motion = states(identified(), 26.0, NOISE, correlation=1e-3)
    limit = ContactMonitor(identified(), settings=SETTINGS)
    limit.follow(t, *motion)
    present, lasting = limit.noise
    assert np.all(np.diag(lasting.covariance) < 0.3 * np.diag(present.covariance))
    push = 0.5 * np.sqrt(present.thresholds[2] * present.covariance[1, 1])
    motion[2, t > 24.0, 1] -= push
    found = ContactMonitor(identified(), settings=SETTINGS).follow(t, *motion)
    over = found.statistics > found.thresholds
    assert not over[:, 0].any() and over[-1, 1, 0] and 24.05 < found.since[-1] < 24.5
    assert found[-1].joints == (1,)


@cache
def learn():
    t, motion = quiet_motion(22.0)
    monitor = ContactMonitor(identified(), settings=SETTINGS)
    monitor.follow(t, *motion)
    assert monitor.noise is not None, monitor.refusal
    return monitor, t[-1]


def learned():
    """A monitor that has learned from motion with noise, and when."""
    return deepcopy(learn())


@pytest.mark.slow
def test_contacts_are_detected_soon_and_no_motion_is_taken_for_one():
    """20 contacts of a fifth of a second each, and 40 s without."""
    monitor, _ = learned()
    t, motion = states(identified(), 83.0, NOISE, seed=2)
    rng, delays = np.random.default_rng(3), []
    starts = 62.0 + np.arange(20)
    for start in starts:
        push = rng.normal(size=3)
        motion[2, (t >= start) & (t < start + 0.2)] -= 0.8 * push / np.abs(push).max()
    later = t > 22.0
    reported = monitor.follow(t[later], *motion[:, later])
    begun = {state.since for state in reported if state.contact}
    assert not [since for since in begun if since < starts[0]]
    for start in starts:
        delays.append(min((since - start for since in begun if start <= since < start + 0.2), default=np.inf))
    assert np.mean(np.array(delays) <= 0.05) >= 0.95
    ends = [state for state in reported if state.estimate.t > starts[-1] + 1.0]
    assert not any(state.contact for state in ends)


def test_the_joint_and_the_limits_of_a_contact_are_reported():
    monitor, end = learned()
    t, motion = states(identified(), end + 1.0, NOISE, seed=2)
    motion[2, t > end + 0.5, 1] -= 3.0
    reported = monitor.follow(t[t > end], *motion[:, t > end])
    state = reported[-1]
    assert state.contact and 1 in state.joints and end + 0.5 < state.since < end + 0.55
    assert np.all(state.limits > 0.0) and state.limits[1] < 3.0
    assert abs(state.estimate.torque[1] - 3.0) < 4.0 * np.sqrt(state.covariance[1, 1])


def test_the_end_of_a_strong_contact_is_late_by_the_decay_of_the_lasting_torque():
    """As documented: (0.1 + 0.1 ln 2R) s for a contact that has lasted and was R times the limit."""
    monitor, begin = learned()
    lasting = monitor.noise[1]
    t, motion = states(identified(), begin + 3.0, NOISE, seed=2)
    later, end = t > begin, begin + 1.5
    push = 40.0
    motion[2, (t >= begin + 0.5) & (t < end), 1] -= push
    found = monitor.follow(t[later], *motion[:, later])
    ratio = push / np.sqrt(lasting.thresholds[2] * lasting.covariance[1, 1])
    late = found.estimates.t[found.contact][-1] - end
    assert ratio > 20.0
    assert late == pytest.approx(0.1 + 0.1 * np.log(2.0 * ratio), abs=0.07), "and 0.02 s of the observer"


@pytest.mark.parametrize(
    ("begin", "end", "push", "words"),
    [(15.0, 15.5, 3.0, "disturbance"), (0.0, 30.0, 1.0, "lasts")],
    ids=["in the last part", "all the time"],
)
def test_a_contact_in_the_learning_is_noticed_and_refused(begin, end, push, words):
    t, motion = quiet_motion(22.0)
    motion = motion.copy()
    motion[2, (t >= begin) & (t < end), 1] -= push
    monitor = ContactMonitor(identified(), settings=SETTINGS)
    reported = monitor.follow(t, *motion)
    assert monitor.noise is None and words in monitor.refusal
    assert monitor.learning > 17.0, "learning begins again"
    assert not reported.contact.any()
    assert np.isnan(reported[-1].thresholds).all()


def test_a_joint_without_held_out_torque_is_judged_by_the_error_of_all_joints():
    t, motion = quiet_motion(22.0)
    motion = motion.copy()
    motion[2, :, 1] -= 1.0
    errors = identified().judgment.held_out_nrmse.copy()
    errors[1] = np.nan
    monitor = ContactMonitor(altered(identified(), judgment={"held_out_nrmse": errors}), settings=SETTINGS)
    monitor.follow(t, *motion)
    assert monitor.noise is None and "lasts" in monitor.refusal


def test_too_short_a_learning_is_refused():
    t, motion = quiet_motion(22.0)
    monitor = ContactMonitor(identified(), settings=ContactSettings(quiet=2.0))
    monitor.follow(t[:800], *motion[:, :800])
    assert monitor.noise is None and "too short" in monitor.refusal


def test_friction_that_holds_a_resting_arm_is_no_contact_and_more_is_one():
    """At rest stiction takes any value up to breakaway: one of an unknown past, constant for a second."""
    monitor, end = learned()
    t, motion = states(identified(), end + 1.0, NOISE, seed=2)
    q, stop = motion[0, np.searchsorted(t, end + 0.2)], t > end + 0.2
    regressor = Regressor.from_parameters(identified())
    still = Motion(q[:, None], *np.zeros((2, 3, 1)))
    rest = regressor.torque(still, identified().estimate.values, identified().base.independent.astype(np.int64))[:, 0]

    def resting(share, monitor):
        at = t[stop] + 1.0
        effort = (
            rest
            + share * COULOMB
            + draw_colored_noise(np.full(3, NOISE), len(at), RATE, 0.1, np.random.default_rng(4)).T
        )
        return monitor.follow(at, np.tile(q, (len(at), 1)), np.zeros((len(at), 3)), effort).contact.any()

    assert not resting(0.9, monitor)
    assert resting(6.0, learned()[0])
    assert VISCOUS > 0.0


def test_joints_at_rest_during_the_learning_do_not_end_it():
    t, motion = quiet_motion(22.0)
    t, motion = t[:1000], motion[:, :1000]
    still = np.repeat(motion[:, :1], len(t), axis=1)
    still[1] = 0.0
    monitor = ContactMonitor(identified(), settings=SETTINGS)
    monitor.follow(t, *still)
    assert monitor.learning == pytest.approx(20.0, abs=1e-9)


def test_joints_of_infinite_variance_do_not_count():
    covariance = np.diag([1.0, np.inf, 4.0])
    np.testing.assert_allclose(
        compute_contact_statistics(np.array([[2.0, 1e9, 2.0]]), covariance[None])[0], [5.0, 4.0, 0.0, 1.0]
    )


def test_the_jacobian_is_the_derivative_of_the_pose():
    model = panda_arm()
    at, kinematics = find_placement_of(model, "panda_link8"), Kinematics(model)
    q, step = np.random.default_rng(1).uniform(-1.0, 1.0, 7), 1e-6
    jacobian = kinematics.poses(q[:, None]).jacobian(at)

    def pose(q):
        poses = kinematics.poses(q[:, None])
        turn = poses.rotation[0, at.body]
        return turn @ at.rotation, turn @ at.position + poses.position[0, at.body]

    turn, _ = pose(q)
    for joint in range(7):
        away = step * (np.arange(7) == joint)
        (high, there), (low, here) = pose(q + away), pose(q - away)
        spin = turn.T @ (high - low) / (2.0 * step)
        expected = [*(turn.T @ (there - here) / (2.0 * step)), spin[2, 1], spin[0, 2], spin[1, 0]]
        np.testing.assert_allclose(jacobian[:, joint], expected, atol=1e-8)


def test_the_wrench_is_recovered_within_its_covariance():
    model = panda_arm()
    at, kinematics, rng = find_placement_of(model, "panda_link8"), Kinematics(model), np.random.default_rng(2)
    q = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.8, 0.4])
    jacobian = kinematics.poses(q[:, None]).jacobian(at)
    sigma = np.array([0.3, 0.3, 0.2, 0.2, 0.1, 0.05, 0.05])
    truth = np.array([5.0, -3.0, 8.0, 0.3, -0.2, 0.1])
    found = [
        estimate_wrench(jacobian, truth @ jacobian + sigma * rng.normal(size=7), np.diag(sigma**2), WrenchPrior())
        for _ in range(200)
    ]
    assert all(one.measured.all() for one in found)
    errors = np.array([one.values - truth for one in found])
    whitened = np.einsum("ki,ij,kj->k", errors, np.linalg.inv(found[0].covariance), errors)
    assert 5.0 < whitened.mean() < 7.0
    force = estimate_wrench(jacobian, truth[:3] @ jacobian[:3], np.diag(sigma**2), WrenchPrior(moment=0.0))
    np.testing.assert_allclose(force.values, [5.0, -3.0, 8.0, 0.0, 0.0, 0.0], atol=0.01)
    assert np.all(np.diag(force.covariance)[:3] < np.diag(found[0].covariance)[:3])
    assert force.measured.all() and not force.covariance[3:].any()


def test_components_of_an_oblique_direction_that_joints_do_not_measure_are_not_measured():
    """Joints that measure a force along (1, 1, 0) only: neither x nor y is known, though their sum is."""
    jacobian = np.zeros((6, 2))
    jacobian[:, 0] = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    jacobian[2, 1] = 1.0
    found = estimate_wrench(jacobian, np.array([4.0, 3.0]), 0.01 * np.eye(2), WrenchPrior())
    assert found.unmeasured == ("force x", "force y", "moment x", "moment y", "moment z")
    values, covariance = found.published
    assert np.isnan(values[[0, 1]]).all() and values[2] == pytest.approx(3.0, abs=0.01)
    assert np.isinf(np.diag(covariance)[:2]).all() and covariance[2, 2] == pytest.approx(0.01, rel=0.01)
    along = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert along @ found.covariance @ along == pytest.approx(0.01, rel=0.01), "the covariance holds the sum"


def test_directions_that_joints_do_not_measure_are_reported():
    """A planar arm has no joint for forces along its axes; a stretched one has no joint for forces along its links."""
    model = RobotModel.from_file(PLANAR3R)
    link = model.link_names[-1] if hasattr(model, "link_names") else "link3"
    at, kinematics = find_placement_of(model, link), Kinematics(model)
    bent, straight = (
        estimate_wrench(kinematics.poses(q[:, None]).jacobian(at), np.ones(3), 0.01 * np.eye(3), WrenchPrior())
        for q in (np.array([0.3, 0.9, -0.7]), np.array([0.3, 0.0, 0.0]))
    )
    assert bent.measured.sum() == 3
    assert straight.measured.sum() == 2
    values, covariance = bent.published
    np.testing.assert_array_equal(np.isnan(values), ~bent.measured)
    np.testing.assert_array_equal(np.isinf(np.diag(covariance)), ~bent.measured)
    assert np.isfinite(covariance[np.ix_(bent.measured, bent.measured)]).all()
    for one in (bent, straight):
        deviations = np.sqrt(np.diag(one.covariance))
        np.testing.assert_allclose((deviations / WrenchPrior().deviations)[~one.measured], 1.0, atol=0.3)
