# SPDX-License-Identifier: Apache-2.0
"""The Kronecker form: its building blocks one by one, then against the compiled regressor and Pinocchio."""

from pathlib import Path

import numpy as np
import pinocchio
import pytest
from scipy.linalg import expm
from support.processes import run_python
from support.robots import GRAVITIES, MIMICS, OBLIQUE, Truth, every_kind, ratio, robot

from robot_dyn_id import parameters
from robot_dyn_id.dynamics import kronecker
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.model import screw
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import INERTIAL_SYMBOLS

SMALL = {"oblique": OBLIQUE, "mimics": MIMICS}


def random_transform(rng):
    return screw.exponential(screw_of(rng), rng.uniform(-3, 3))


def screw_of(rng):
    w = rng.normal(size=3)
    return np.concatenate([w / np.linalg.norm(w), rng.normal(size=3)])


def algebra(twist):
    """The 4 x 4 matrix of a twist."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = screw.skew(twist[:3]), twist[3:]
    return matrix


# --- Screws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["turning", "sliding", "both"])
def test_the_exponential_is_that_of_the_matrix(kind):
    rng = np.random.default_rng(1)
    for _ in range(20):
        twist = screw_of(rng)
        if kind == "turning":
            twist[3:] = 0
        elif kind == "sliding":
            twist[:3] = 0
        displacement = rng.uniform(-4, 4)
        expected = expm(algebra(twist) * displacement)
        assert ratio(screw.exponential(twist, displacement), expected) <= 1e-14


def test_the_adjoint_moves_twists_between_frames():
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b, twist = random_transform(rng), random_transform(rng), rng.normal(size=6)
        moved = algebra(screw.adjoint(a) @ twist)
        assert ratio(moved, a @ algebra(twist) @ np.linalg.inv(a)) <= 1e-13
        assert ratio(screw.adjoint(a @ b), screw.adjoint(a) @ screw.adjoint(b)) <= 1e-13
        assert ratio(screw.inverse(a) @ a, np.eye(4)) <= 1e-14


def test_the_bracket_is_the_commutator():
    rng = np.random.default_rng(3)
    v, u = rng.normal(size=(2, 6))
    expected = algebra(v) @ algebra(u) - algebra(u) @ algebra(v)
    assert ratio(algebra(screw.bracket(v) @ u), expected) <= 1e-14


@pytest.mark.parametrize("text", SMALL)
def test_the_product_of_exponentials_places_the_bodies(text):
    model = RobotModel.from_urdf(SMALL[text])
    peer = pinocchio.buildModelFromXML(SMALL[text])
    displacements = np.random.default_rng(4).uniform(-2, 2, len(model.body_names))
    data = peer.createData()
    pinocchio.forwardKinematics(peer, data, pinocchio.integrate(peer, pinocchio.neutral(peer), displacements))
    expected = np.array([data.oMi[peer.getJointId(name)].homogeneous for name in model.body_names])
    assert ratio(screw.compute_body_transforms(model, displacements), expected) <= 1e-14


# --- Inertia and its vector --------------------------------------------------------------------------------------


def test_the_spatial_inertia_is_that_of_its_point_masses():
    rng = np.random.default_rng(5)
    masses, places = rng.uniform(1, 2, 6), rng.normal(size=(6, 3))
    ours = np.zeros(10)
    expected = np.zeros((6, 6))
    for mass, (x, y, z) in zip(masses, places, strict=True):
        products = [y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
        ours += mass * np.array([1, x, y, z, *products])
        velocity = np.hstack([-screw.skew(np.array([x, y, z])), np.eye(3)])  # of the point, from a twist
        expected += mass * velocity.T @ velocity  # twice the kinetic energy
    papers = ours[list(kronecker.PAPER_ORDER)]
    assert ratio(kronecker.spatial_inertia(papers), expected) <= 1e-15
    assert ratio(kronecker.duplication() @ papers, expected.flatten(order="F")) <= 1e-15


def test_the_duplication_matrix_is_that_of_the_paper():
    k = kronecker.duplication()
    assert k.shape == (36, 10)
    assert np.linalg.matrix_rank(k) == 10
    assert np.count_nonzero(k) == 24
    assert set(np.abs(k[k != 0])) == {1.0}


def test_the_papers_order_is_a_permutation_of_ours():
    assert tuple(INERTIAL_SYMBOLS[i] for i in kronecker.PAPER_ORDER) == kronecker.PAPER_SYMBOLS
    assert sorted(kronecker.PAPER_SYMBOLS) == sorted(INERTIAL_SYMBOLS)


# --- The whole form ----------------------------------------------------------------------------------------------


def kronecker_regressor(model, motion):
    states = zip(motion.q.T, motion.dq.T, motion.ddq.T, strict=True)
    return np.array([kronecker.torque_regressor(model, *state) for state in states])


def kronecker_mass(model, motion, parameters):
    return np.array([kronecker.mass_regressor(model, q) @ parameters for q in motion.q.T])


@every_kind
def test_the_kronecker_form_is_the_compiled_regressor(name):
    model = robot(name)
    motion = draw_random_motion(model, 2, seed=6)
    assert ratio(kronecker_regressor(model, motion), Regressor(model).dense(motion).transpose(2, 1, 0)) <= 1e-10


@every_kind
def test_equation_26_is_pinocchios_mass_matrix(name):
    model = robot(name)
    motion = draw_random_motion(model, 1, seed=7)
    ours = kronecker_mass(model, motion, model.inertial_parameters)
    assert ratio(ours, Truth(model).mass_matrix(motion)) <= 1e-10


@pytest.mark.parametrize("gravity", GRAVITIES)
@pytest.mark.parametrize("text", SMALL)
def test_trees_mimics_and_prismatic_joints_under_any_gravity(text, gravity):
    model = RobotModel.from_urdf(SMALL[text], gravity=GRAVITIES[gravity])
    motion, truth = draw_random_motion(model, 30, seed=8), Truth(model)
    assert ratio(kronecker_regressor(model, motion), truth.regressor(motion)) <= 1e-14
    assert ratio(kronecker_mass(model, motion, model.inertial_parameters), truth.mass_matrix(motion)) <= 1e-14


@pytest.mark.slow
def test_the_planar_arm_agrees_to_the_papers_figures():
    model = RobotModel.from_urdf(robot("planar3r").urdf, gravity=(0, 0, -9.8))
    motion, truth = draw_random_motion(model, 500, seed=9), Truth(model)
    regressor, masses = kronecker_regressor(model, motion), kronecker_mass(model, motion, model.inertial_parameters)
    assert np.abs(regressor - truth.regressor(motion)).max() <= 1e-12
    assert np.abs(regressor @ model.inertial_parameters - truth.torque(motion)).max() <= 1e-12
    assert np.abs(masses - truth.mass_matrix(motion)).max() <= 1e-13
    assert np.linalg.eigvalsh(masses).min() > 0.09


def test_torque_and_mass_matrix_follow_from_the_base_parameters_alone():
    """tau = Y0 lambda0 and vec(M) = Z0 lambda0, with the independent columns Y0 and Z0."""
    model = robot("planar3r")
    base = compute_base_parameters(Regressor(model))
    values = base.mapping @ model.inertial_parameters
    motion, truth = draw_random_motion(model, 50, seed=10), Truth(model)
    torque = kronecker_regressor(model, motion)[..., base.independent] @ values
    assert ratio(torque, truth.torque(motion)) <= 1e-14
    masses = np.array([kronecker.mass_regressor(model, q)[..., base.independent] @ values for q in motion.q.T])
    assert ratio(masses, truth.mass_matrix(motion)) <= 1e-14


PARTS = sorted(path.stem for path in Path(parameters.__file__).parent.glob("*.py") if path.stem != "__init__")


def test_the_reference_shares_nothing_with_what_it_is_held_against():
    script = "import sys, robot_dyn_id.dynamics.kronecker; print(*sorted(m for m in sys.modules if m.startswith('robot_dyn_id.')))"
    done = run_python(script, check=True)
    assert set(done.stdout.split()) - {"robot_dyn_id._built_for"} == {
        f"robot_dyn_id.{name}"
        for name in (
            "dynamics",
            "dynamics.kronecker",
            "model",
            "model.screw",
            "parameters",
            *(f"parameters.{part}" for part in PARTS),
            "arrays",
            "errors",
            "findings",
            "uses",
            "version",
        )
    }
