# SPDX-License-Identifier: Apache-2.0
"""Reduction of friction to the terms that a motion is designed for."""

import numpy as np
import pytest
from support.robots import ratio
from support.simulated import ARM, Simulated

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import (
    AbsoluteVelocity,
    Coulomb,
    Coupling,
    Dahl,
    DoubleCoulomb,
    LoadCoulomb,
    LoadDahl,
    Offset,
    RotorInertia,
    SaturatingViscous,
    Stribeck,
    TemperatureCoulomb,
    Viscous,
)
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.design.information import compute_regressor_gradient
from robot_dyn_id.excitation.design.planning import find_least_known_parameters, make_design_task
from robot_dyn_id.excitation.design.reduction import EarlierFit, ReducedRegressor
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.robot import RobotModel

COMPLETE = (
    *(RotorInertia(), Offset(), Viscous(), DoubleCoulomb(), Dahl(), SaturatingViscous()),
    *(LoadCoulomb(), LoadDahl(), AbsoluteVelocity()),
)


def regressor_of(terms, couplings=()):
    model = RobotModel.from_urdf(ARM)
    return Regressor(model, place_terms_on_joints(model, terms, couplings))


@pytest.mark.parametrize(
    ("terms", "expected", "left_out"),
    [
        ((Viscous(), Coulomb(0.1), Offset()), (Viscous(), Coulomb(0.1), Offset()), ()),
        ((Viscous(), Coulomb(0.1), Dahl()), (Viscous(), Coulomb(0.1)), ()),
        ((Viscous(), Stribeck(), Dahl()), (Viscous(), Stribeck()), ()),
        ((DoubleCoulomb(), TemperatureCoulomb()), (Coulomb(),), ("temperature_coulomb",)),
        (
            COMPLETE,
            (RotorInertia(), Offset(), Viscous(), AbsoluteVelocity(), Coulomb()),
            ("saturating_viscous", "load_coulomb", "load_dahl"),
        ),
    ],
)
def test_terms_that_a_motion_is_designed_for(terms, expected, left_out):
    reduced = ReducedRegressor.from_regressor(regressor_of(terms))
    assert reduced.regressor.names == regressor_of(expected).names
    assert reduced.left_out == left_out
    assert compute_base_parameters(reduced.regressor).names == compute_base_parameters(regressor_of(expected)).names


def test_in_sliding_the_reduced_friction_has_the_torque_of_the_sum():
    coupling = Coupling("both", (("elbow", 1.0), ("wrist", 1.0)), (Dahl(), Viscous()))
    regressor = regressor_of((Viscous(), DoubleCoulomb(), Dahl(), Offset()), (coupling,))
    reduced = ReducedRegressor.from_regressor(regressor)
    motion = draw_random_motion(regressor.model, 60)
    fast = Motion(motion.q, motion.dq + np.copysign(0.3, motion.dq), motion.ddq)
    fast.dq[1] = np.abs(fast.dq[1])
    fast.dq[2] = np.abs(fast.dq[2])  # nor is the sum of both near rest
    parameters = np.random.default_rng(0).uniform(0.1, 1.0, len(regressor.names))
    assert ratio(reduced.regressor.torque(fast, reduced.sums @ parameters), regressor.torque(fast, parameters)) <= 1e-9


@pytest.mark.parametrize("terms", [(LoadCoulomb(0.3),), (LoadDahl(), Viscous()), (TemperatureCoulomb(0.2), Viscous())])
def test_gradients_of_torques_include_those_of_the_load(terms):
    """Torques along a motion are limited with all terms of an identified robot."""
    coupling = Coupling("both", (("elbow", 1.0), ("wrist", -0.5)), terms)
    regressor = regressor_of((), (coupling,))
    parameters = np.random.default_rng(1).uniform(0.5, 1.0, len(regressor.names))
    whole = draw_random_motion(regressor.model, 25, seed=5)
    motion = Motion(whole.q, whole.dq, whole.ddq)
    weights = np.random.default_rng(2).normal(size=motion.q.shape)
    c, n = regressor.structure.shape
    slots = np.arange(c * n).reshape(c, n)
    cotangent = (parameters[:, None, None] * weights).reshape(c * n, -1)
    ours = compute_regressor_gradient(regressor, motion, slots, cotangent)
    expected = np.zeros((3, n, len(motion)))
    for row, joint in np.ndindex(3, n):
        ends = []
        for sign in (1.0, -1.0):
            moved = [part.copy() for part in (motion.q, motion.dq, motion.ddq)]
            moved[row][joint] += sign * 1e-6
            ends.append((weights * regressor.torque(Motion(*moved), parameters)).sum(axis=0))
        expected[row, joint] = (ends[0] - ends[1]) / 2e-6
    assert ratio(np.array(ours), expected) <= 1e-7


@pytest.fixture(scope="module")
def earlier():
    """A robot with presliding friction, and its identification."""
    terms = (Viscous(), Coulomb(), Dahl(), LoadCoulomb(), Offset())
    robot = Simulated(terms=terms)
    recording = robot.record(duration=60.0, noise=0.05, velocity=1e-4)
    settings = Settings(terms=terms, cutoff=10.0)
    return robot, identify(*split([recording], robot.joints), robot.model, settings, "test").parameters


@pytest.mark.slow
def test_an_earlier_fit_gives_the_levels_that_a_motion_is_designed_for(earlier):
    robot, parameters = earlier
    regressor = Regressor.from_parameters(parameters)
    reduced = ReducedRegressor.from_regressor(regressor)
    base = compute_base_parameters(reduced.regressor)
    fit = EarlierFit.from_parameters(parameters, reduced, base)
    true = base.mapping @ reduced.sums @ robot.parameters
    off = np.abs(fit.values - true) / fit.standard_deviations
    assert off.max() < 4.5
    level = base.names.index("fc2")
    single = parameters.base.names.index("fdc2")  # elements share a level that is known better than any of them
    assert fit.standard_deviations[level] < 0.5 * parameters.estimate.standard_deviations[single]
    assert ratio(fit.information @ fit.covariance, np.eye(len(true))) < 1e-6
    other = ReducedRegressor.from_regressor(regressor_of((Viscous(),)))
    with pytest.raises(InputError, match="other parameters than this design"):
        EarlierFit.from_parameters(parameters, other, compute_base_parameters(other.regressor))


@pytest.mark.slow
def test_a_motion_is_designed_after_an_identification_with_presliding_friction(earlier):
    _, parameters = earlier
    regressor = Regressor.from_parameters(parameters)
    settings = DesignSettings(acceleration={"all": 5.0}, clearance=0.0)
    task = make_design_task(settings, regressor.model, regressor, parameters, include_prior=True)
    assert "term load_coulomb: the motion is designed without it" in task.notes
    assert task.objective == "a_optimal"
    assert set(find_least_known_parameters(task.earlier)) <= set(task.problem.information.names)
    assert not any(name.startswith("fd") for name in task.problem.information.names)
    x = task.problem.parametrization.random(np.random.default_rng(0), 0.5)
    score = task.problem.score(x)
    assert np.isfinite(score.value)
    direction = np.random.default_rng(1).normal(size=len(x))
    ends = [task.problem.objective_value(x + sign * 1e-6 * direction) for sign in (1.0, -1.0)]
    assert score.gradient() @ direction == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-3)
