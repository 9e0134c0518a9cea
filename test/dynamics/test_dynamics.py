# SPDX-License-Identifier: Apache-2.0
"""Inverse and forward dynamics from the base parameters alone, against Pinocchio with the full parameters."""

import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from support.processes import run_program
from support.robots import (
    MIMICKING,
    MIMICS,
    OBLIQUE,
    SINGULAR_MASS_MATRIX,
    Truth,
    every_model,
    mimic_torque,
    panda_arm,
    ratio,
    robot,
)
from support.simulated import ARM, GRIPPER, TERMS, Simulated

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics, check_robot
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.dynamics import TILE
from robot_dyn_id.model.robot import RobotModel

STATES = 100


def dynamics_of(model, terms=(), values=()):
    """Dynamics of a model whose nominal parameters were mapped to base parameters, everything else dropped."""
    regressor = Regressor(model, place_terms_on_joints(model, terms))
    base = compute_base_parameters(regressor)
    return Dynamics(regressor, base.independent, base.mapping @ np.concatenate([model.inertial_parameters, *values]))


@cache
def dynamics_of_model(name):
    return dynamics_of(robot(name))


def states(motion):
    return motion.q.T, motion.dq.T, motion.ddq.T


@every_model
def test_torque_and_mass_matrix_are_pinocchios(name):
    model = robot(name)
    motion, truth, dynamics = draw_random_motion(model, STATES, seed=7), Truth(model), dynamics_of_model(name)
    assert ratio(dynamics.inverse_dynamics(*states(motion)), truth.torque(motion)) <= 1e-10
    assert ratio(dynamics.mass_matrix(motion.q.T), truth.mass_matrix(motion)) <= 1e-10


@every_model
def test_forward_dynamics_undoes_pinocchios_torque(name):
    model = robot(name)
    motion, truth, dynamics = draw_random_motion(model, STATES, seed=8), Truth(model), dynamics_of_model(name)
    torque, q, dq = truth.torque(motion), motion.q.T, motion.dq.T
    if name in SINGULAR_MASS_MATRIX:
        with pytest.raises(
            InputError, match=f"^{model.name}: .* not positive definite .* the inertia of joint \\w+ is not positive"
        ):
            dynamics.forward_dynamics(q, dq, torque)
        return
    condition = np.linalg.cond(truth.mass_matrix(motion)).max()
    allowed = max(1e-9, 1e-15 * condition)
    assert ratio(dynamics.forward_dynamics(q, dq, torque), motion.ddq.T) <= allowed


@pytest.mark.parametrize(
    "name", [name for name in MIMICKING if name not in ("romeo", "talos_full_v2", "talos_full_v2_box")]
)
def test_torque_is_that_of_pinocchios_own_mimic_joints(name):
    """The three others mimic joints that stand after them, which Pinocchio does not build."""
    model = robot(name)
    motion = draw_random_motion(model, STATES, seed=6)
    torque = dynamics_of_model(name).inverse_dynamics(*states(motion))
    assert ratio(torque, mimic_torque(model, motion)) <= 1e-10


@pytest.mark.parametrize("name", ["panda", "ur5_robot", "pr2", "tiago_pro", "solo12"])
def test_base_parameters_alone_do_what_all_parameters_do(name):
    model, base = robot(name), dynamics_of_model(name)
    every = Dynamics(base.regressor, np.arange(len(base.regressor.names)), model.inertial_parameters)
    assert np.any(np.delete(every.values, base.columns)), "the others are zero anyway"
    q, dq, ddq = states(draw_random_motion(model, STATES, seed=5))
    torque = every.inverse_dynamics(q, dq, ddq)
    assert ratio(base.inverse_dynamics(q, dq, ddq), torque) <= 1e-12
    assert ratio(base.mass_matrix(q), every.mass_matrix(q)) <= 1e-12
    assert ratio(base.forward_dynamics(q, dq, torque), every.forward_dynamics(q, dq, torque)) <= 1e-9


@pytest.mark.parametrize("text", [OBLIQUE, MIMICS], ids=["tree", "mimics"])
def test_forward_undoes_inverse_dynamics_with_all_terms(text):
    """Rotor inertias of mimic followers couple with their leaders as the bodies do."""
    model = RobotModel.from_urdf(text)
    terms, ones = (Viscous(), Coulomb(0.05), Offset(), RotorInertia()), np.ones(len(model.body_names))
    dynamics = dynamics_of(model, terms, (2 * ones, 3 * ones, 0.5 * ones, 0.7 * ones))
    q, dq, ddq = states(draw_random_motion(model, TILE + 40, seed=4))
    torque = dynamics.inverse_dynamics(q, dq, ddq)
    assert ratio(dynamics.forward_dynamics(q, dq, torque), ddq) <= 1e-12
    inertia = np.einsum("kij,kj->ki", dynamics.mass_matrix(q), ddq)
    assert ratio(inertia + dynamics.bias(q, dq), torque) <= 1e-12


def test_an_arm_to_ten_digits():
    model = panda_arm()
    motion = draw_random_motion(model, STATES, seed=9)
    acceleration = dynamics_of(model).forward_dynamics(motion.q.T, motion.dq.T, Truth(model, model.held).torque(motion))
    assert ratio(acceleration, motion.ddq.T) <= 1e-10


def test_terms_are_where_they_belong():
    """Rotor inertia in the mass matrix, friction and offset in the bias, gravity in the torque at rest."""
    model = panda_arm()
    terms, ones = (Viscous(), Coulomb(0.05), Offset(), RotorInertia()), np.ones(7)
    loaded = dynamics_of(model, terms, (2 * ones, 3 * ones, 0.5 * ones, 0.7 * ones))
    bare, motion = dynamics_of(model), draw_random_motion(model, 5, seed=1)
    q, dq, _ = states(motion)
    assert np.allclose(loaded.mass_matrix(q) - bare.mass_matrix(q), 0.7 * np.eye(7), atol=1e-12)
    friction = 2 * dq + 3 * np.tanh(dq / 0.05) + 0.5
    assert np.allclose(loaded.bias(q, dq) - bare.bias(q, dq), friction, atol=1e-11)
    assert np.allclose(
        loaded.gravity(q), Truth(model, model.held).torque(Motion(q.T, 0 * q.T, 0 * q.T)) + 0.5, atol=1e-11
    )


def test_friction_may_be_that_of_another_velocity():
    robot = Simulated(ARM, TERMS)
    dynamics = Dynamics(robot.regressor, np.arange(len(robot.parameters)), robot.parameters)
    q, dq, ddq, sliding = np.random.default_rng(1).normal(size=(4, 20, 3))
    changed = dynamics.inverse_dynamics(q, dq, ddq, sliding=sliding) - dynamics.inverse_dynamics(q, dq, ddq)
    friction = dynamics.friction(q, sliding) - dynamics.friction(q, dq)
    assert np.abs(friction).max() > 0.1
    np.testing.assert_allclose(changed, friction, atol=1e-10)
    with pytest.raises(InputError, match="do not fit together"):
        dynamics.inverse_dynamics(q, dq, ddq, sliding=sliding[:7])


def test_one_state_is_a_row_of_a_batch():
    dynamics, motion = dynamics_of(panda_arm()), draw_random_motion(panda_arm(), 4, seed=2)
    q, dq, ddq = states(motion)
    torque = dynamics.inverse_dynamics(q, dq, ddq)
    assert torque.shape == (4, 7)
    assert ratio(dynamics.inverse_dynamics(q[2], dq[2], ddq[2]), torque[2]) < 1e-14
    assert np.allclose(dynamics.forward_dynamics(q[2], dq[2], torque[2]), ddq[2], atol=1e-10)
    assert dynamics.mass_matrix(q[1]).shape == (7, 7)


def test_a_batch_is_its_states_one_by_one():
    """Also where the last tile is not full, and where another state of the tile is not a number."""
    dynamics, motion = dynamics_of(panda_arm()), draw_random_motion(panda_arm(), 2 * TILE + 5, seed=3)
    q, dq, tau = states(motion)
    broken = q.copy()
    broken[TILE + 1, 2] = np.nan
    batch = dynamics.forward_dynamics(broken, dq, tau)
    assert np.isnan(batch[TILE + 1]).any()
    for k in (0, TILE - 1, TILE, TILE + 2, 2 * TILE + 4):
        assert ratio(batch[k], dynamics.forward_dynamics(q[k], dq[k], tau[k])) <= 1e-12


@dataclass(frozen=True)
class Drag(Viscous):
    """Not linear in the acceleration."""

    name: ClassVar[str] = "drag"

    def columns(self, y, dy, ddy):
        return (dy * ddy**2)[None, :]


def test_a_term_that_no_mass_matrix_can_hold_is_refused():
    dynamics = dynamics_of(panda_arm(), (Drag(),), (np.ones(7),))
    with pytest.raises(UsageError, match="not linear in the acceleration"):
        dynamics.mass_matrix(np.zeros(7))


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # importing it fails
import numpy as np
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.model.robot import RobotModel
assert not COMPILED
out = {}
for number, text in enumerate(sys.argv[2:]):
    model = RobotModel.from_urdf(text)
    dynamics = Dynamics.from_model(model)
    motion = draw_random_motion(model, 100, seed=8)
    q, dq, ddq = motion.q.T, motion.dq.T, motion.ddq.T
    out[f"{number} torque"] = dynamics.inverse_dynamics(q, dq, ddq)
    out[f"{number} acceleration"] = dynamics.forward_dynamics(q, dq, ddq)
    out[f"{number} one"] = dynamics.forward_dynamics(q[3], dq[3], ddq[3])
np.savez(sys.argv[1], **out)
"""


@pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is nothing to compare with")
def test_numpy_gives_what_numba_gives(tmp_path):
    command = [sys.executable, "-c", WITHOUT_NUMBA, str(tmp_path / "numpy.npz"), OBLIQUE, MIMICS]
    done = run_program(*command)
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(tmp_path / "numpy.npz") as slow:
        for number, text in enumerate((OBLIQUE, MIMICS)):
            model = RobotModel.from_urdf(text)
            dynamics = Dynamics.from_model(model)
            q, dq, ddq = states(draw_random_motion(model, 100, seed=8))
            acceleration = dynamics.forward_dynamics(q, dq, ddq)
            assert ratio(slow[f"{number} torque"], dynamics.inverse_dynamics(q, dq, ddq)) <= 1e-14
            assert ratio(slow[f"{number} acceleration"], acceleration) <= 1e-12
            assert ratio(slow[f"{number} one"], acceleration[3]) <= 1e-12


def test_parameters_of_no_real_robot_are_refused():
    dynamics, q = dynamics_of(panda_arm()), np.zeros((3, 7))
    impossible = replace(dynamics, values=-dynamics.values)
    with pytest.raises(InputError, match=r"not positive definite at q = \[0"):
        impossible.forward_dynamics(q, q, q)


def test_states_of_another_robot_are_refused():
    with pytest.raises(InputError, match="do not fit 7 joints"):
        dynamics_of(panda_arm()).inverse_dynamics(np.zeros(6), np.zeros(6), np.zeros(6))


@pytest.mark.slow
@pytest.mark.parametrize("text", [ARM, GRIPPER], ids=["arm", "mimic"])
def test_an_identified_set_carries_its_dynamics(text):
    """From the parameter set alone: torque equals the regressor's, and forward dynamics undoes it."""
    arm = Simulated(text)
    result = identify([arm.record(1)], [arm.record(2)], arm.model, Settings(terms=TERMS), "test")
    dynamics, motion = Dynamics.from_parameters(result.parameters), draw_random_motion(arm.model, 20, seed=3)
    q, dq, ddq = states(motion)
    torque = dynamics.inverse_dynamics(q, dq, ddq)
    full = np.zeros(len(arm.regressor.names))
    full[result.parameters.base.independent] = result.parameters.estimate.values
    assert ratio(torque, arm.regressor.torque(motion, full).T) <= 1e-12
    representative = np.concatenate([result.parameters.bodies.standard_parameters, result.parameters.terms.values])
    assert ratio(torque, arm.regressor.torque(motion, representative).T) <= 1e-12
    assert ratio(dynamics.forward_dynamics(q, dq, torque), ddq) <= 1e-9
    check_robot(result.parameters, arm.model)
    with pytest.raises(InputError, match="another robot"):
        check_robot(result.parameters, RobotModel.from_urdf(text.replace('name="small"', 'name="other"')))
