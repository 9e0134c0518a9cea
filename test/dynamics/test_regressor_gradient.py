# SPDX-License-Identifier: Apache-2.0
"""The regressor's reverse mode against Pinocchio's analytical derivatives and against finite differences."""

import sys

import numpy as np
import pinocchio
import pytest
from support.processes import run_program
from support.regressor_gradients import SMALL, compared, everywhere, gradient, model_of, with_terms
from support.robots import GRAVITIES, URDFS, Truth, every_model, panda_arm, ratio, robot

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb
from robot_dyn_id.excitation.design.information import compute_regressor_gradient
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.regressor_gradient import TILE
from robot_dyn_id.model.robot import RobotModel

ARMS = ("panda", "ur5_robot", "tiago_pro", "solo12", *SMALL)


# --- Against Pinocchio -------------------------------------------------------------------------------------------


def torque_gradient(truth, motion, weights):
    """Pinocchio's derivatives of sum weights . tau of a robot with its nominal parameters, shape (3, n, N)."""
    project, results = truth.robot.coupling, []
    for state, weight in zip(truth._states(motion), weights.T, strict=True):
        by_q, by_dq, mass = pinocchio.computeRNEADerivatives(truth.model, truth.data, *state)
        mass = np.triu(mass) + np.triu(mass, 1).T
        results.append([project.T @ (matrix.T @ (project @ weight)) for matrix in (by_q, by_dq, mass)])
    return np.array(results).transpose(1, 2, 0)


def check_torque_gradient(model, motion):
    """With the nominal parameters as the cotangent of every row the number is the sum of the torques."""
    weights = np.random.default_rng(1).normal(size=motion.q.shape)
    ours = gradient(Regressor(model), motion, model.inertial_parameters[:, None, None] * weights)
    expected = torque_gradient(Truth(model), motion, weights)
    zero = 1e-15 * np.abs(expected).max()  # where a derivative is exactly zero, Pinocchio's is rounding
    for by, reference in zip(ours, expected, strict=True):
        assert np.abs(by - reference).max() <= 1e-10 * np.abs(reference).max() + zero


@every_model
def test_derivatives_of_the_torque_are_those_of_pinocchio(name):
    check_torque_gradient(robot(name), draw_random_motion(robot(name), 10, seed=2))


@pytest.mark.parametrize("gravity", GRAVITIES)
@pytest.mark.parametrize("text", SMALL)
def test_trees_mimics_and_prismatic_joints_under_any_gravity(text, gravity):
    model = RobotModel.from_urdf(SMALL[text], gravity=GRAVITIES[gravity])
    check_torque_gradient(model, draw_random_motion(model, 50, seed=3))


# --- Against finite differences ----------------------------------------------------------------------------------


def differences(function, motion, step=1e-5):
    """Central differences of a function, with a value for each sample, by the motion of each joint: (3, n, N)."""
    parts = (motion.q, motion.dq, motion.ddq)
    result = np.empty((3, *motion.q.shape))
    for row, joint in np.ndindex(result.shape[:2]):
        ends = []
        for sign in (1, -1):
            moved = [part.copy() for part in parts]
            moved[row][joint] += sign * step
            ends.append(function(Motion(*moved)))
        result[row, joint] = (ends[0] - ends[1]) / (2 * step)
    return result


@pytest.mark.parametrize("name", ARMS)
def test_any_cotangent_of_any_entry(name):
    """Every block has parameters of its own, unlike in a torque; friction and rotor inertia are in it."""
    regressor = with_terms(model_of(name))
    motion, rng = draw_random_motion(regressor.model, 20, seed=4), np.random.default_rng(4)
    cotangent = rng.normal(size=(*regressor.structure.shape, 20))
    ours = gradient(regressor, motion, cotangent)
    expected = differences(lambda moved: np.einsum("cjk,cjk->k", cotangent, regressor.dense(moved)), motion)
    for by, reference in zip(ours, expected, strict=True):
        assert ratio(by, reference) <= 1e-8


def test_the_hard_sign_adds_nothing():
    model = panda_arm()
    motion = draw_random_motion(model, 5, seed=5)
    regressor = Regressor(model, place_terms_on_joints(model, [Coulomb(0.0)]))
    cotangent = np.zeros((*regressor.structure.shape, 5))
    cotangent[70:] = 1.0
    assert not gradient(regressor, motion, cotangent).any()


# --- Samples and slots -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, TILE - 1, TILE, TILE + 1, 3 * TILE + 5])
def test_samples_do_not_know_of_one_another(count):
    regressor = with_terms(robot("panda"))
    motion = draw_random_motion(regressor.model, count, seed=6)
    cotangent = np.random.default_rng(6).normal(size=(*regressor.structure.shape, count))
    whole = gradient(regressor, motion, cotangent)
    for sample in sorted({0, count // 2, count - 1}):
        one = slice(sample, sample + 1)
        assert ratio(whole[..., one], gradient(regressor, motion.take(one), cotangent[..., one])) <= 1e-13


@pytest.mark.parametrize("name", ["panda", "mimics"])
def test_entries_without_a_slot_do_not_count(name):
    regressor = with_terms(model_of(name))
    motion, rng = draw_random_motion(regressor.model, 20, seed=7), np.random.default_rng(7)
    cotangent = rng.normal(size=(*regressor.structure.shape, 20))
    left_out = rng.random(regressor.structure.shape) < 0.4
    slots = np.where(left_out, -1, everywhere(regressor))
    ours = compute_regressor_gradient(regressor, motion, slots, cotangent.reshape(-1, 20))
    cotangent[left_out] = 0.0
    assert np.array_equal(ours, gradient(regressor, motion, cotangent))


# --- Without numba -----------------------------------------------------------------------------------------------

WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # importing it fails
sys.path.append("..")  # for the folder support
import numpy as np
from robot_dyn_id.kernels.compiled import COMPILED
from support.regressor_gradients import compared
assert not COMPILED
np.savez(sys.argv[1], **compared(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is nothing to compare with")
def test_numpy_gives_what_numba_gives(tmp_path, request):
    names, file = ("ur5_robot", "tiago_pro", "solo12", *SMALL), tmp_path / "numpy.npz"
    assert all(name in URDFS or name in SMALL for name in names)
    command = [sys.executable, "-c", WITHOUT_NUMBA, str(file), *names]
    done = run_program(*command, cwd=request.path.parents[1])
    assert done.returncode == 0, done.stderr
    with np.load(file) as slow:
        for name, fast in compared(names).items():
            assert ratio(fast, slow[name]) <= 1e-12, name
