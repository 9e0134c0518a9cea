"""Inverse and forward dynamics from the base parameters alone, against Pinocchio with the full parameters."""

from dataclasses import replace

import numpy as np
import pytest
from robots import SINGULAR_MASS_MATRIX, Truth, every_model, panda_arm, ratio, robot
from simulated import ARM, GRIPPER, TERMS, Simulated

from robot_dyn_id.base_parameters import base_parameters, random_motion
from robot_dyn_id.dynamics import Dynamics, check_robot
from robot_dyn_id.errors import InputError
from robot_dyn_id.pipeline import identify
from robot_dyn_id.regressor import Motion, Regressor, terms_on_joints
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.settings import Settings
from robot_dyn_id.terms import Coulomb, Offset, RotorInertia, Viscous

STATES = 100


def dynamics_of(model, terms=(), values=()):
    """Dynamics of a model whose nominal parameters were mapped to base parameters, everything else forgotten."""
    regressor = Regressor(model, terms_on_joints(model, terms))
    base = base_parameters(regressor)
    return Dynamics(regressor, base.independent, base.mapping @ np.concatenate([model.inertial_parameters, *values]))


def states(motion):
    return motion.q.T, motion.dq.T, motion.ddq.T


@every_model
def test_torque_and_mass_matrix_are_pinocchios(name):
    model = robot(name)
    motion, truth, dynamics = random_motion(model, STATES, seed=7), Truth(model), dynamics_of(model)
    assert ratio(dynamics.inverse_dynamics(*states(motion)), truth.torque(motion)) <= 1e-10
    assert ratio(dynamics.mass_matrix(motion.q.T), truth.mass_matrix(motion)) <= 1e-10


@every_model
def test_forward_dynamics_undoes_pinocchios_torque(name):
    model = robot(name)
    motion, truth, dynamics = random_motion(model, STATES, seed=8), Truth(model), dynamics_of(model)
    torque, q, dq = truth.torque(motion), motion.q.T, motion.dq.T
    if name in SINGULAR_MASS_MATRIX:
        flat = np.linalg.eigvalsh(truth.mass_matrix(motion))[:, 0]
        assert flat.min() < 1e-9, "this model is no longer singular: take it off the list"
        return
    condition = np.linalg.cond(truth.mass_matrix(motion)).max()
    allowed = max(1e-9, 1e-15 * condition)
    assert ratio(dynamics.forward_dynamics(q, dq, torque), motion.ddq.T) <= allowed


def test_an_arm_to_ten_digits():
    model = panda_arm()
    motion = random_motion(model, STATES, seed=9)
    acceleration = dynamics_of(model).forward_dynamics(motion.q.T, motion.dq.T, Truth(model, model.held).torque(motion))
    assert ratio(acceleration, motion.ddq.T) <= 1e-10


def test_terms_are_where_they_belong():
    """Rotor inertia in the mass matrix, friction and offset in the bias, gravity in the torque at rest."""
    model = panda_arm()
    terms, ones = (Viscous(), Coulomb(0.05), Offset(), RotorInertia()), np.ones(7)
    loaded = dynamics_of(model, terms, (2 * ones, 3 * ones, 0.5 * ones, 0.7 * ones))
    bare, motion = dynamics_of(model), random_motion(model, 5, seed=1)
    q, dq, _ = states(motion)
    assert np.allclose(loaded.mass_matrix(q) - bare.mass_matrix(q), 0.7 * np.eye(7), atol=1e-12)
    friction = 2 * dq + 3 * np.tanh(dq / 0.05) + 0.5
    assert np.allclose(loaded.bias(q, dq) - bare.bias(q, dq), friction, atol=1e-11)
    assert np.allclose(
        loaded.gravity(q), Truth(model, model.held).torque(Motion(q.T, 0 * q.T, 0 * q.T)) + 0.5, atol=1e-11
    )


def test_one_state_is_a_row_of_a_batch():
    dynamics, motion = dynamics_of(panda_arm()), random_motion(panda_arm(), 4, seed=2)
    q, dq, ddq = states(motion)
    torque = dynamics.inverse_dynamics(q, dq, ddq)
    assert torque.shape == (4, 7)
    assert ratio(dynamics.inverse_dynamics(q[2], dq[2], ddq[2]), torque[2]) < 1e-14
    assert np.allclose(dynamics.forward_dynamics(q[2], dq[2], torque[2]), ddq[2], atol=1e-10)
    assert dynamics.mass_matrix(q[1]).shape == (7, 7)


def test_parameters_of_no_real_robot_are_refused():
    dynamics, q = dynamics_of(panda_arm()), np.zeros((3, 7))
    impossible = replace(dynamics, values=-dynamics.values)
    with pytest.raises(InputError, match=r"not positive definite at q = \[0"):
        impossible.forward_dynamics(q, q, q)


def test_states_of_another_robot_are_refused():
    with pytest.raises(InputError, match="do not fit 7 joints"):
        dynamics_of(panda_arm()).inverse_dynamics(np.zeros(6), np.zeros(6), np.zeros(6))


@pytest.mark.parametrize("text", [ARM, GRIPPER], ids=["arm", "mimic"])
def test_an_identified_set_carries_its_dynamics(text):
    """From the parameter set alone: torque equals the regressor's, and forward dynamics undoes it."""
    arm = Simulated(text)
    result = identify([arm.record(1)], [arm.record(2)], arm.model, Settings(terms=TERMS), "test")
    dynamics, motion = Dynamics.of(result.parameters), random_motion(arm.model, 20, seed=3)
    q, dq, ddq = states(motion)
    torque = dynamics.inverse_dynamics(q, dq, ddq)
    full = np.zeros(len(arm.regressor.names))
    full[result.parameters.independent_columns] = result.parameters.values
    assert ratio(torque, arm.regressor.torque(motion, full).T) <= 1e-12
    representative = np.concatenate([result.parameters.standard_parameters, result.parameters.term_values])
    assert ratio(torque, arm.regressor.torque(motion, representative).T) <= 1e-12
    assert ratio(dynamics.forward_dynamics(q, dq, torque), ddq) <= 1e-9
    check_robot(result.parameters, arm.model)
    with pytest.raises(InputError, match="another description"):
        check_robot(result.parameters, RobotModel.from_urdf(text.replace('name="small"', 'name="other"')))
