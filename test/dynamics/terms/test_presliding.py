# SPDX-License-Identifier: Apache-2.0
"""Presliding terms: exact states, passivity, and their use in regressor and dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import GRIPPER, LIFT

from robot_dyn_id.dynamics.base_parameters import base_parameters, random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Coupling, Dahl, Offset, Viscous
from robot_dyn_id.model.robot import RobotModel

STEP = 1e-3


@pytest.fixture(scope="module")
def regressor() -> Regressor:
    model = RobotModel.from_urdf(LIFT)
    return Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(), Dahl(), Offset())))


def test_states_are_the_solution_of_the_dahl_equation():
    term = Dahl()
    path = np.concatenate([np.linspace(0.0, 0.02, 101), np.linspace(0.02, -0.005, 101)[1:]])
    states = term.integrate(path[None], STEP, term.initial_states()[:, None])[:, 0]
    d = term.displacements
    np.testing.assert_allclose(states[:, 100], 1.0 - np.exp(-0.02 / d), rtol=1e-12)
    np.testing.assert_allclose(states[:, -1], -1.0 + (2.0 - np.exp(-0.02 / d)) * np.exp(-0.025 / d), rtol=1e-12)
    thinned = term.integrate(path[None, ::20], 20 * STEP, term.initial_states()[:, None])[:, 0]
    np.testing.assert_allclose(thinned, states[:, ::20], rtol=1e-12)  # exact: the sample rate has no influence


def test_states_keep_their_value_at_rest_and_are_the_sign_in_sliding():
    term = Dahl()
    start = np.linspace(-0.9, 0.9, 6)[:, None]
    assert np.array_equal(term.integrate(np.full((1, 50), 0.3), STEP, start)[:, 0, -1], start[:, 0])
    far = term.integrate(np.array([[0.0, 50.0]]), STEP, start)[:, 0, -1]
    rest = np.zeros(1)
    np.testing.assert_allclose(far, term.columns(rest, rest + 1.0, rest)[:, 0])
    assert not term.columns(rest, rest, rest).any()


def test_every_element_is_passive():
    term, rng = Dahl(), np.random.default_rng(2)
    path = np.cumsum(rng.normal(0.0, 2e-3, 4000))[None]
    states = term.integrate(path, STEP, term.initial_states()[:, None])[:, 0]
    assert np.abs(states).max() <= 1.0
    d = term.displacements[:, None]
    moved = np.diff(path)
    way, before, after = np.sign(moved), states[:, :-1], states[:, 1:]
    work = np.abs(moved) - d * way * (after - before)  # integral of z dy, as d dz = (1 - way z) dy
    stored = 0.5 * d * (after**2 - before**2)
    assert (work - stored >= -1e-15).all()


def test_dynamics_advance_as_the_regressor_integrates(regressor):
    t = np.arange(400) * STEP
    q = np.array([np.sin(3.0 * t), 0.2 * np.cos(5.0 * t)])
    along = regressor.integrate(q, STEP)[Dahl()]
    values = np.concatenate([regressor.model.inertial_parameters, np.linspace(0.1, 1.0, len(regressor.term_columns))])
    dynamics = Dynamics(regressor, np.arange(len(values)), values)
    states = dynamics.initial_states()
    for k in range(len(t) - 1):
        states = dynamics.advance(states, q[:, k], q[:, k + 1], STEP)
    np.testing.assert_allclose(states[Dahl()][..., 0], along[..., -1], rtol=1e-12)
    batch = dynamics.advance(dynamics.initial_states(2), q[:, :2].T, q[:, 5:7].T, STEP)
    pair = regressor.integrate(q[:, [1, 6]], STEP)[Dahl()][..., -1]
    np.testing.assert_allclose(batch[Dahl()][..., 1], pair, rtol=1e-12)


def test_dynamics_with_states_invert_each_other_and_agree_with_the_regressor(regressor):
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 20, 2))
    values = np.concatenate([regressor.model.inertial_parameters, rng.uniform(0.1, 1.0, len(regressor.term_columns))])
    dynamics = Dynamics(regressor, np.arange(len(values)), values)
    states = regressor.random_states(rng, 20)
    tau = dynamics.inverse_dynamics(q, dq, ddq, states)
    np.testing.assert_allclose(dynamics.forward_dynamics(q, dq, tau, states), ddq, rtol=1e-9, atol=1e-9)
    motion = Motion(q.T.copy(), dq.T.copy(), ddq.T.copy(), states=states)
    np.testing.assert_allclose(regressor.torque(motion, values), tau.T, rtol=1e-12)
    assert np.abs(tau - dynamics.inverse_dynamics(q, dq, ddq)).max() > 0.1
    some = motion.take(slice(3, 9))
    np.testing.assert_allclose(regressor.torque(some, values), tau.T[:, 3:9], rtol=1e-12)


def test_every_element_is_a_base_parameter_of_its_own(regressor):
    names = base_parameters(regressor).names
    assert {f"fd{letter}{joint}" for letter in "abcdef" for joint in (1, 2)} <= set(names)
    motion = random_motion(regressor.model, 50)
    history = replace(motion, states=regressor.random_states(np.random.default_rng(0), 50))
    assert np.linalg.matrix_rank(regressor.dense(history)[-16:-2, 0].T) == 7  # Coulomb is another column
    assert np.linalg.matrix_rank(regressor.dense(motion)[-16:-2, 0].T) == 2  # without a history all are the sign


def test_states_follow_the_coordinate_of_a_mimic_joint_and_of_a_coupling():
    model = RobotModel.from_urdf(GRIPPER)
    sum_of_both = Coupling("both", (("turn", 1.0), ("finger", -2.0)), (Dahl(),))
    regressor = Regressor(model, terms_on_joints(model, (Dahl(),), (sum_of_both,)))
    q = np.cumsum(np.random.default_rng(4).normal(0.0, 3e-3, (2, 200)), axis=1)
    states = regressor.integrate(q, STEP)[Dahl()]
    for coordinate, path in enumerate((q[0], q[1], -0.5 * q[1] + 0.3, q[0] - 2.0 * q[1])):
        alone = Dahl().integrate(path[None], STEP, np.zeros((6, 1)))[:, 0]
        np.testing.assert_allclose(states[:, coordinate], alone, rtol=1e-9, atol=1e-12)
