# SPDX-License-Identifier: Apache-2.0
"""Iterative identification on simulated arms whose inertias in the URDF are only approximate."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import joint, panda_arm, urdf

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.identification.iteration import (
    SimulatedTrials,
    Trial,
    TrialIdentifier,
    iterate,
    scale_inertia_for_motion,
)
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.controllers import Gains
from robot_dyn_id.simulation.sensors import Sensors

GAINS, DROOP, WRONG = Gains.from_bandwidth(10.0), 0.3, 0.5
PLANAR = urdf(joint("one", "base", "l1", axis="0 1 0"), joint("two", "l1", "l2", axis="0 1 0"), links=2)


def trials(model, seed, duration, rate=250.0):
    """A robot whose bodies are up to 50 % lighter or heavier than the URDF says, with friction."""
    rng, n = np.random.default_rng(seed), len(model.joint_names)
    regressor = Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    wrong = np.repeat(rng.uniform(1.0 - WRONG, 1.0 + WRONG, len(model.body_names)), 10)
    friction = np.outer([0.6, 0.5, 0.1], np.linspace(1.0, 0.3, n)).ravel()
    parameters = np.concatenate([wrong * model.inertial_parameters, friction])
    motion = random_fourier(model, seed)
    start = scale_inertia_for_motion(motion, duration, Dynamics.from_model(model), GAINS, DROOP, 1.0 + WRONG)
    robot = Dynamics(regressor, np.arange(len(parameters)), parameters)
    sensors = Sensors(np.full(n, 0.02), 1e-5, 1e-4)
    return SimulatedTrials(robot, motion, duration, rate, sensors, GAINS, start, limit_effort=False)


@pytest.mark.parametrize("model", [RobotModel.from_urdf(PLANAR), panda_arm()], ids=["2R", "7 axes"])
def test_the_robot_ends_up_on_the_designed_motion(model):
    run = trials(model, 0, 6.0, 500.0)
    found = iterate(run, TrialIdentifier(model, Settings(estimator=ESTIMATORS["consistent"]()), "test"))
    assert found.converged, found.reason
    assert "stopped shrinking" in found.reason
    assert min(found.errors) < 0.02 < found.errors[0], found.errors
    assert run(found.parameters).error == min(found.errors), "the best ones, and a motion that can be repeated"


@pytest.mark.parametrize("model", [RobotModel.from_urdf(PLANAR), panda_arm()], ids=["2R", "7 axes"])
def test_the_start_scale_keeps_any_arm_of_the_family_within_the_droop(model):
    """Where feedback s M Kp e holds an arm whose bodies are 0.5 to 1.5 times the URDF's, e is within the droop."""
    prior, motion, rng = Dynamics.from_model(model), random_fourier(model, 1), np.random.default_rng(0)
    scale = scale_inertia_for_motion(motion, 10.0, prior, GAINS, DROOP, 1.5).scale
    q, dq, _ = (x.T for x in motion.evaluate(np.linspace(0.0, 10.0, 1500))[:3])
    masses = prior.mass_matrix(q)
    for _ in range(20):
        corner = np.repeat(rng.choice([0.5, 1.5], len(model.body_names)), 10)
        true = replace(prior, values=corner * prior.values)
        needed = np.linalg.solve(scale * masses, true.bias(q, dq)[..., None]) / GAINS.proportional
        assert np.all(np.abs(needed) <= 1.02 * DROOP)
    assert scale >= 1.5


def test_a_first_model_that_does_not_reduce_the_tracking_error_is_not_returned():
    recording = ArrayRecording("trial", ("one",), Chunk(np.arange(2.0), *np.zeros((3, 2, 1))))
    found = iterate(lambda model: Trial(recording, 0.2 if model is None else 5.0), lambda trial: "model")
    assert (found.converged, found.parameters, found.errors) == (False, None, (0.2, 5.0))
    assert found.reason == "the first model does not reduce the tracking error: 5 with it, 0.2 without"


def test_parameters_that_cannot_be_used_for_control_end_the_iteration_with_the_reason():
    model = RobotModel.from_urdf(PLANAR)
    run = trials(model, 0, 4.0)

    def indefinite(trial):
        raise InputError("the identified mass matrix is not positive definite")

    found = iterate(run, indefinite)
    assert (found.converged, found.parameters) == (False, None)
    assert found.reason == (
        "the model identified from trial 1 cannot be used for control: "
        "the identified mass matrix is not positive definite"
    )
    assert len(found.iterations) == 1


def test_a_trial_that_breaks_down_and_one_that_is_the_last():
    model = RobotModel.from_urdf(PLANAR)
    first = trials(model, 0, 4.0)(None)
    parameters = TrialIdentifier(model, Settings(), "test")(first.recording)
    errors = iter([1.0, 0.5, 0.25])

    def shrinking(use):
        return Trial(first.recording, next(errors))

    def same(recording):
        return parameters

    found = iterate(shrinking, same, max_trials=3)
    assert not found.converged
    assert found.reason == "the tracking error is still shrinking after 3 trials"
    assert found.errors == (1.0, 0.5, 0.25)

    def breaking(use):
        if use is None:
            return first
        raise InputError("the simulation broke down")

    found = iterate(breaking, same)
    assert found.reason == "trial 2 could not be run: the simulation broke down"
    assert found.parameters is None


def test_bad_choices_are_refused():
    model = RobotModel.from_urdf(PLANAR)
    with pytest.raises(UsageError, match="2 trials"):
        iterate(lambda use: None, lambda recording: None, max_trials=1)
    with pytest.raises(UsageError, match="droop"):
        scale_inertia_for_motion(random_fourier(model, 0), 5.0, Dynamics.from_model(model), GAINS, 0.0)
    weightless = Dynamics(Regressor(model), np.arange(20), np.zeros(20))
    with pytest.raises(InputError, match="mass matrix of the URDF"):
        scale_inertia_for_motion(random_fourier(model, 0), 5.0, weightless, GAINS, DROOP)
