# SPDX-License-Identifier: Apache-2.0
"""Iterative identification on simulated arms whose inertias in the URDF are only approximate."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import joint, panda_arm, urdf

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.controllers import Gains
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.workflow.iteration import (
    SimulatedTrials,
    Trial,
    TrialIdentifier,
    iterate,
    scale_inertia_for_motion,
)

GAINS, DROOP, WRONG = Gains.from_bandwidth(10.0), 0.3, 0.5
PLANAR = urdf(joint("one", "base", "l1", axis="0 1 0"), joint("two", "l1", "l2", axis="0 1 0"), links=2)


def trials(model, seed, duration, rate=250.0):
    """A robot whose bodies are up to 50 % lighter or heavier than the URDF says, with friction."""
    rng, n = np.random.default_rng(seed), len(model.joint_names)
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    wrong = np.repeat(rng.uniform(1.0 - WRONG, 1.0 + WRONG, len(model.body_names)), 10)
    friction = np.outer([0.6, 0.5, 0.1], np.linspace(1.0, 0.3, n)).ravel()
    parameters = np.concatenate([wrong * model.inertial_parameters, friction])
    motion = draw_random_fourier(model, seed)
    start = scale_inertia_for_motion(motion, duration, Dynamics.from_model(model), GAINS, DROOP, 1.0 + WRONG)
    robot = Dynamics(regressor, np.arange(len(parameters)), parameters)
    sensors = Sensors(np.full(n, 0.02), 1e-5, 1e-4)
    return SimulatedTrials(robot, motion, duration, rate, sensors, GAINS, start, limit_effort=False)


@pytest.mark.slow
@pytest.mark.parametrize("model", [RobotModel.from_urdf(PLANAR), panda_arm()], ids=["2R", "7 axes"])
def test_the_robot_ends_up_on_the_designed_motion(model):
    run = trials(model, 0, 6.0, 500.0)
    found = iterate(run, TrialIdentifier(model, Settings(estimator=ESTIMATORS["consistent"]()), "test"))
    assert found.converged, found.reason
    assert "stopped shrinking" in found.reason
    assert min(found.errors) < 0.02 < found.errors[0], found.errors
    best = int(np.argmin(found.errors))
    assert run(found.parameters, best + 1).error == min(found.errors), "the best ones, and a motion that is repeatable"


@pytest.mark.parametrize("model", [RobotModel.from_urdf(PLANAR), panda_arm()], ids=["2R", "7 axes"])
def test_the_start_scale_keeps_any_arm_of_the_family_within_the_droop(model):
    """Where feedback s M Kp e holds an arm whose bodies are 0.5 to 1.5 times the URDF's, e is within the droop."""
    prior, motion, rng = Dynamics.from_model(model), draw_random_fourier(model, 1), np.random.default_rng(0)
    scale = scale_inertia_for_motion(motion, 10.0, prior, GAINS, DROOP, 1.5).scale
    q, dq, _ = (x.T for x in motion.evaluate(np.linspace(0.0, 10.0, 1500))[:3])
    masses = prior.mass_matrix(q)
    for _ in range(20):
        corner = np.repeat(rng.choice([0.5, 1.5], len(model.body_names)), 10)
        true = replace(prior, values=corner * prior.values)
        needed = np.linalg.solve(scale * masses, true.bias(q, dq)[..., None]) / GAINS.proportional
        assert np.all(np.abs(needed) <= 1.02 * DROOP)
    assert scale >= 1.5


EMPTY = ArrayRecording("trial", ("one",), Chunk(np.arange(2.0), *np.zeros((3, 2, 1))))


def scripted(errors, models, max_trials=10):
    """Result and used models of trials with these errors, from which these models are identified; None: refused."""
    used, wanted, found = [], iter(errors), iter(models)

    def run(model, number):
        used.append(model)
        assert number == len(used)
        error = next(wanted)
        if np.isnan(error):
            raise InputError("joint one ran away")
        return Trial(EMPTY, error)

    def identify_trial(recording):
        model = next(found)
        if model is None:
            raise InputError("no inertia")
        return model

    return iterate(run, identify_trial, max_trials=max_trials), used


def test_a_model_that_does_not_reduce_the_tracking_error_is_not_returned():
    found, used = scripted([0.2, 5.0] * 3, "abc")
    assert (found.converged, found.parameters, found.errors) == (False, None, (0.2, 5.0) * 3)
    assert used == [None, "a", None, "b", None, "c"], "each of them follows a trial as at the start"
    assert found.reason == (
        "3 models in succession were refused; "
        "the model in trial 6 does not reduce the tracking error: 5 with it, 0.2 without"
    )


def test_the_last_good_model_stays_where_another_cannot_be_used():
    found, used = scripted([0.2, 0.1, 0.1, 0.05, 0.05], ["a", None, "b", "c"])
    assert used == [None, "a", "a", "b", "c"]
    assert (found.parameters, found.converged) == ("b", True)
    assert found.refused == ("the model identified from trial 2 cannot be used for control: no inertia",)
    assert [iteration.used for iteration in found.iterations] == used
    assert [iteration.parameters for iteration in found.iterations] == ["a", None, "b", "c", None]


def test_a_trial_that_is_stopped_is_repeated_with_the_last_good_model():
    found, used = scripted([0.2, 0.1, np.nan, 0.1, 0.02, 0.02], "abcd")
    assert used == [None, "a", "b", "a", "c", "d"]
    assert (found.parameters, found.converged) == ("c", True)
    assert found.refused == ("trial 3 could not be run: joint one ran away",)
    found, used = scripted([0.2, np.nan], "ab", max_trials=2)
    assert (found.parameters, found.reason) == (None, "2 trials were run; trial 2 could not be run: joint one ran away")


def test_a_simulated_robot_that_leaves_the_motion_is_stopped():
    model = RobotModel.from_urdf(PLANAR)
    run = trials(model, 0, 4.0)
    weak = replace(Dynamics.from_model(model), values=0.01 * model.inertial_parameters)
    assert run.follow(weak).error > run(None).error
    with pytest.raises(InputError, match=r"joint (one|two) was .* away from the motion .*: the trial was stopped"):
        replace(run, max_deviation=0.5).follow(weak)


def test_the_noise_of_a_simulated_trial_differs_by_its_number():
    run = trials(RobotModel.from_urdf(PLANAR), 0, 1.0)
    first, again, second = (next(iter(run(None, number).recording.chunks(["one"]))).q for number in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, second)


def test_gains_of_each_joint_are_those_of_its_feedback():
    model = RobotModel.from_urdf(PLANAR)
    run = trials(model, 0, 2.0)
    both = replace(run, gains=Gains((100.0, 100.0), (20.0, 20.0)))
    assert both(None).error == run(None).error
    t = np.arange(round(run.duration * run.rate)) / run.rate
    motion = run.motion.evaluate(t)[0].T

    def errors(gains):
        (chunk,) = replace(run, gains=gains).follow(None).recording.chunks(model.joint_names)
        return np.sqrt(((chunk.q - motion) ** 2).mean(axis=0))

    ratio = errors(Gains((100.0, 10.0), (20.0, 6.0))) / errors(both.gains)
    assert ratio[0] == pytest.approx(1.0, abs=0.02) and ratio[1] > 2.0, "only the joint that is softer is worse"
    assert errors(replace(both.gains, exponent=0.9)).max() < errors(both.gains).max(), "a root enlarges small errors"
    with pytest.raises(UsageError, match="gains"):
        replace(run, gains=Gains((100.0,) * 3, 20.0))(None)
    with pytest.raises(UsageError, match="exponent"):
        Gains(1.0, 1.0, exponent=1.2)


@pytest.mark.slow
def test_a_trial_that_breaks_down_and_one_that_is_the_last():
    model = RobotModel.from_urdf(PLANAR)
    first = trials(model, 0, 4.0)(None)
    parameters = TrialIdentifier(model, Settings(), "test")(first.recording)
    errors = iter([1.0, 0.5, 0.25])

    def shrinking(use, number):
        return Trial(first.recording, next(errors))

    def same(recording):
        return parameters

    found = iterate(shrinking, same, max_trials=3)
    assert not found.converged
    assert found.reason == "the tracking error is still shrinking after 3 trials"
    assert found.errors == (1.0, 0.5, 0.25)

    def breaking(use, number):
        raise InputError("the simulation broke down")

    found = iterate(breaking, same)
    assert found.reason == "trial 1 could not be run: the simulation broke down"
    assert found.parameters is None


def test_bad_choices_are_refused():
    model = RobotModel.from_urdf(PLANAR)
    with pytest.raises(UsageError, match="2 trials"):
        iterate(lambda use, number: None, lambda recording: None, max_trials=1)
    with pytest.raises(UsageError, match="droop"):
        scale_inertia_for_motion(draw_random_fourier(model, 0), 5.0, Dynamics.from_model(model), GAINS, 0.0)
    weightless = Dynamics(Regressor(model), np.arange(20), np.zeros(20))
    with pytest.raises(InputError, match="mass matrix of the URDF"):
        scale_inertia_for_motion(draw_random_fourier(model, 0), 5.0, weightless, GAINS, DROOP)
