# SPDX-License-Identifier: Apache-2.0
"""The estimators that simulate the robot: what they share, and instrumental variables."""

from dataclasses import replace

import numpy as np
import pytest
from support.encoder_loop import (
    DERIVATIVE,
    IDEAL,
    LOOP,
    PROPORTIONAL,
    RATE,
    loop_problem,
    recorded,
    relative_bias,
    robot,
)
from support.linear_problems import problem, rows
from support.simulated import COMPUTED_TORQUE, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators import Instrumental, OutputError, WeightedLeastSquares
from robot_dyn_id.estimators.simulated.replayed import find_velocity_dependent_columns
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.closed_loop import UNKNOWN_CONTROLLER, ControllerModel, Replay

every_simulating = pytest.mark.parametrize("kind", [Instrumental, OutputError])
PLAN = SignalPlan.from_low_pass(RATE, LowPass(20.0), False)


def truth():
    known = robot()
    return Dynamics(known.regressor, np.arange(len(known.parameters)), known.parameters)


def replayed(recording, controller, plan=PLAN):
    """Grid numbers, motion and torque of a simulation along a recording, cut at both ends."""
    pieces = list(Replay(controller, truth(), FilteredTrials([recording], robot().joints, {}, plan)))
    parts = [(p.motion.q, p.motion.dq, p.motion.ddq, p.tau) for p in pieces]
    own = [np.array([x[:, p.own] for x in part]) for p, part in zip(pieces, parts, strict=True)]
    q, dq, ddq, tau = np.concatenate(own, axis=2)
    return np.concatenate([p.number[p.own] for p in pieces]), Motion(q, dq, ddq), tau


# --- The simulation ----------------------------------------------------------------------------------------------


def test_the_true_robot_in_the_true_loop_moves_as_recorded():
    """The compiled loop against the one that the recording was made with, tick by tick."""
    recording = recorded(0, resolution=0.0, noise=0.0)
    numbers, motion, tau = replayed(recording, IDEAL)
    settled = numbers > 2 * RATE  # the filter makes another start
    q, recorded_tau = recording.samples.q.T[:, numbers[settled]], recording.samples.tau.T[:, numbers[settled]]
    assert np.abs(motion.q[:, settled] - q).max() < 1e-5
    assert np.abs(tau[:, settled] - recorded_tau).max() < 0.01 * np.abs(recorded_tau).max()


def test_simulated_motion_and_torque_belong_together():
    """Torques of the simulated motion by inverse dynamics are those that the controller gave."""
    _, motion, tau = replayed(recorded(0), LOOP)
    low_pass = LowPass(10.0)
    needed = robot().regressor.torque(motion, robot().parameters)
    given, needed = (low_pass.apply(x, RATE)[:, 100:-100] for x in (tau, needed))
    assert np.sqrt(np.mean((given - needed) ** 2)) < 0.01 * np.sqrt(np.mean(given**2))


def test_windows_of_any_size_are_simulated_as_one():
    """A slower filter makes windows longer: what is simulated goes on where the window before ended."""
    recording = recorded(0, noise=0.0)
    several, few = (dict.fromkeys(()), dict.fromkeys(()))
    for found, cutoff in ((several, 40.0), (few, 4.0)):
        plan = SignalPlan.from_low_pass(RATE, LowPass(cutoff), False)
        numbers, motion, _ = replayed(recording, IDEAL, plan)
        found.update(zip(numbers.tolist(), motion.q.T, strict=True))
    both = sorted(set(several) & set(few))
    assert len(both) > 4000
    difference = np.abs([several[number] - few[number] for number in both])
    assert difference[:100].max() < 2e-3  # the filters make another start
    assert np.median(difference) < 2e-4


def test_an_encoder_a_delay_and_a_slow_velocity_change_what_is_simulated():
    recording = recorded(0)
    _, _, plain = replayed(recording, IDEAL)
    for controller in (LOOP, replace(IDEAL, delay=0.004), replace(IDEAL, velocity_cutoff=30.0)):
        _, _, other = replayed(recording, controller)
        assert 0.01 < np.abs(other - plain).max() < 0.5 * np.abs(plain).max()


def test_friction_columns_are_those_that_turn_with_the_motion():
    regressor = robot().regressor
    names = [
        name for name, flag in zip(regressor.names, find_velocity_dependent_columns(regressor), strict=True) if flag
    ]
    assert names == ["fv1", "fv2", "fc1", "fc2"]


# --- Refusals ----------------------------------------------------------------------------------------------------


@every_simulating
def test_what_cannot_be_simulated_is_refused(kind):
    given = loop_problem(recorded(1), 10.0)
    with pytest.raises(UsageError, match=f"{kind.name}: specify the controller"):
        kind().fit(given)
    with pytest.raises(UsageError, match=f"{kind.name}: rows that were not made of a recording"):
        kind(IDEAL).fit(problem(*rows()))
    with pytest.raises(UsageError, match="controller: proportional: elbo is not a joint; did you mean 'elbow'"):
        kind(ControllerModel("pd", (("elbo", 3.0),))).fit(given)
    with pytest.raises(UsageError, match=f"{kind.name}: iterations must be 1 or more"):
        kind(IDEAL, iterations=0)
    with pytest.raises(ConvergenceError, match=f"{kind.name}: no convergence after 1 simulations"):
        kind(IDEAL, iterations=1).fit(given)


@every_simulating
def test_a_wrong_controller_is_reported(kind):
    given = loop_problem(recorded(1), 10.0)
    with pytest.raises(ConvergenceError, match="of the simulated robot does not follow: it is"):
        kind(replace(IDEAL, proportional=(("all", 0.5),), derivative=())).fit(given)
    with pytest.raises(ConvergenceError, match=r"the simulation broke down|does not follow"):
        kind(replace(IDEAL, derivative=(("all", 1e5),))).fit(given)


@every_simulating
def test_a_robot_without_inertia_is_reported_or_made_consistent(kind):
    """The elbow is at rest: least squares gives it no inertia."""
    still = changed(recorded(1), q=lambda q: q * [1, 0], reference=lambda q: q * [1, 0])
    with pytest.raises(InputError, match=r"the mass matrix is not positive definite .* the inertia of joint elbow"):
        kind(IDEAL).fit(loop_problem(still, 10.0, prior=False))
    estimate = kind(COMPUTED_TORQUE).fit(loop_problem(still, 10.0))
    assert [(one.code, one.severity) for one in estimate.findings] == [("simulated_nearest_robot", "warning")]
    assert "fv2" in estimate.unexcited


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"law": "pid"}, "law 'pid' is not known; use one of pd, computed_torque"),
        ({"law": "pd"}, "give both the law and the proportional gains"),
        ({"proportional": (("all", 1.0),)}, "give both the law and the proportional gains"),
        ({"rate": 0.0}, "rate must be positive"),
        ({"delay": -1.0}, "delay must be 0 or more, not -1"),
        ({"velocity_cutoff": np.inf}, "velocity_cutoff must be 0 or more"),
        ({"resolution": (("elbow", -1e-3),)}, "resolution of elbow must be 0 or more, not -0.001"),
    ],
)
def test_invalid_controllers_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        ControllerModel(**options)


# --- Estimates ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_exact_angles_give_the_parameters():
    given = loop_problem(recorded(1, resolution=0.0, noise=0.0), 10.0)
    values = Instrumental(IDEAL).fit(given).values
    np.testing.assert_allclose(values, robot().base_values, rtol=0.01, atol=0.005)


def test_the_reference_may_be_left_out():
    """Then the low-passed motion is followed, here exactly, by computed torque."""
    samples = recorded(1).samples
    bare = replace(recorded(1), samples=Chunk(samples.t, samples.q, tau=samples.tau))
    estimate = Instrumental(COMPUTED_TORQUE).fit(loop_problem(bare, 5.0))
    plain = WeightedLeastSquares().fit(loop_problem(bare, 5.0))
    errors = [np.linalg.norm(e.values - robot().base_values) for e in (estimate, plain)]
    print(errors)
    assert errors[0] < 1.2 * errors[1]


@pytest.mark.slow
@pytest.mark.parametrize(("cutoff", "share"), [(10.0, 0.6), (50.0, 0.45)])
def test_bias_is_less_than_that_of_least_squares(cutoff, share):
    ours, plain = (relative_bias(estimator, cutoff) for estimator in (Instrumental(IDEAL), WeightedLeastSquares()))
    print(f"{cutoff} Hz: {ours:.2%} of {plain:.2%}")
    assert ours < share * plain


def test_gains_are_per_joint():
    assert UNKNOWN_CONTROLLER.law == ""
    np.testing.assert_array_equal(make_joint_array(IDEAL.proportional, robot().joints, "proportional"), PROPORTIONAL)
    np.testing.assert_array_equal(make_joint_array(IDEAL.derivative, robot().joints, "derivative"), DERIVATIVE)
    mixed = replace(IDEAL, proportional=(("all", 7.0), ("elbow", 3.0)))
    np.testing.assert_array_equal(make_joint_array(mixed.proportional, robot().joints, "proportional"), [7.0, 3.0])
