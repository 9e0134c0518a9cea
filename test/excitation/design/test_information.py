# SPDX-License-Identifier: Apache-2.0
"""The information of a motion against the stacked regressor, and its gradient against finite differences."""

import numpy as np
import pytest
from support.robots import MIMICS, OBLIQUE, panda_arm, ratio, robot

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, RotorInertia, Viscous
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.design.information import CHUNK_SAMPLES, Information
from robot_dyn_id.excitation.design.objectives import OBJECTIVES
from robot_dyn_id.model.robot import RobotModel

ROBOTS = {
    "panda": panda_arm,
    "panda with its fingers": lambda: robot("panda"),
    "ur5": lambda: robot("ur5_robot"),
    "tree": lambda: robot("solo12"),
    "oblique": lambda: RobotModel.from_urdf(OBLIQUE),
    "mimics": lambda: RobotModel.from_urdf(MIMICS),
}


def information(model, pivots="rref", width=0.2, terms=True):
    kinds = (Viscous(), Coulomb(width), RotorInertia()) if terms else ()
    regressor = Regressor(model, place_terms_on_joints(model, kinds))
    noise = np.linspace(0.1, 0.7, len(model.joint_names))
    return Information(regressor, compute_base_parameters(regressor, pivots), noise)


def stacked(teller, motion):
    """The weighted base regressor of all samples, shape (n N, p)."""
    dense = teller.regressor.dense(motion)[teller.base.independent]
    return (dense / teller.noise[:, None]).reshape(len(dense), -1).T


def smooth(model, count):
    """A motion as it is designed: slow enough for the width of the friction."""
    motion = draw_random_motion(model, count, seed=1)
    return Motion(motion.q, 0.3 * motion.dq, motion.ddq)


@pytest.mark.parametrize("name", ROBOTS)
def test_information_is_the_square_of_the_weighted_base_regressor(name):
    teller = information(ROBOTS[name]())
    motion = draw_random_motion(teller.regressor.model, 100, seed=2)
    rows, matrix = stacked(teller, motion), teller.matrix(motion)
    assert matrix.shape == (len(teller.names),) * 2
    assert ratio(matrix, rows.T @ rows) <= 1e-13
    assert np.array_equal(matrix, matrix.T)


def test_information_adds_up():
    teller = information(panda_arm())
    motion = draw_random_motion(teller.regressor.model, 2 * CHUNK_SAMPLES + 7, seed=3)
    parts = [motion.take(slice(0, 5)), motion.take(slice(5, None))]
    assert ratio(teller.matrix(motion), sum(teller.matrix(part) for part in parts)) <= 1e-13
    gradient = np.random.default_rng(3).normal(size=(len(teller.names),) * 2)
    whole = teller.pull_back(motion, gradient)
    pieces = [teller.pull_back(part, gradient) for part in parts]
    for ours, first, second in zip(whole, *pieces, strict=True):
        assert ours.shape == motion.q.shape
        assert ratio(ours, np.hstack([first, second])) <= 1e-12


def test_information_is_the_inverse_of_the_covariance_of_weighted_least_squares():
    """100 noisy torques of one motion: squared errors in the metric of M are p in the mean (chi-squared)."""
    teller, rng = information(panda_arm()), np.random.default_rng(4)
    motion = draw_random_motion(teller.regressor.model, 200, seed=4)
    rows, matrix = stacked(teller, motion), teller.matrix(motion)
    errors = np.linalg.lstsq(rows, rng.normal(size=(len(rows), 400)), rcond=None)[0]
    squares = np.einsum("pr,pq,qr->r", errors, matrix, errors)
    p = len(teller.names)
    assert abs(squares.mean() - p) <= 5.0 * np.sqrt(2.0 * p / 400)


def directional(function, motion, direction, step):
    """Derivative of a function along a direction, by a five-point rule."""
    parts = (motion.q, motion.dq, motion.ddq)

    def at(share):
        return function(Motion(*(x + share * step * d for x, d in zip(parts, direction, strict=True))))

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_gradient_is_that_of_finite_differences(name):
    teller, rng = information(ROBOTS[name]()), np.random.default_rng(5)
    motion = smooth(teller.regressor.model, 40)
    gradient = rng.normal(size=(len(teller.names),) * 2)  # not symmetric: M is
    ours = teller.pull_back(motion, gradient)
    for part in range(3):
        direction = [rng.normal(size=motion.q.shape) * (part == row) for row in range(3)]
        expected = directional(lambda moved: np.sum(gradient * teller.matrix(moved)), motion, direction, 1e-3)
        assert np.sum(ours[part] * direction[part]) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_gradient_of_an_objective_along_a_trajectory(objective):
    """Along every coefficient of a Fourier series, through friction, rotor inertia and base parameters."""
    teller = information(panda_arm())
    series = draw_random_fourier(teller.regressor.model, 6)
    motion = Motion(*series.evaluate(np.linspace(0.0, 10.0, 200, endpoint=False))[:3])

    def value(moved):
        return OBJECTIVES[objective](teller.matrix(moved)).value

    ours = teller.pull_back(motion, OBJECTIVES[objective](teller.matrix(motion)).gradient())
    for joint, harmonic in [(0, 1), (3, 2), (5, 5), (6, 3)]:
        w, t = 0.2 * np.pi * harmonic, np.linspace(0.0, 10.0, 200, endpoint=False)
        direction = np.zeros((3, 7, 200))
        direction[:, joint] = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
        expected = directional(value, motion, direction, 1e-4)
        assert np.sum(np.array(ours) * direction) == pytest.approx(expected, rel=1e-6)


def test_differences_of_the_determinant_do_not_depend_on_the_choice_of_the_base():
    model = panda_arm()
    tellers = [information(model, pivots) for pivots in ("rref", "qr")]
    assert tellers[0].names != tellers[1].names
    motions = [Motion(*draw_random_fourier(model, seed).evaluate(np.linspace(0, 10, 300))[:3]) for seed in (7, 8)]
    d_optimal, raw = (
        [[OBJECTIVES[name](teller.matrix(motion)).value for motion in motions] for teller in tellers]
        for name in ("d_optimal", "condition_raw")
    )
    assert np.subtract(*d_optimal[0]) == pytest.approx(np.subtract(*d_optimal[1]), rel=1e-9)
    assert raw[0] != pytest.approx(raw[1], rel=1e-5)
    for motion in motions:  # and so the way to a better motion is the same
        first, second = (
            teller.pull_back(motion, OBJECTIVES["d_optimal"](teller.matrix(motion)).gradient()) for teller in tellers
        )
        assert ratio(np.array(first), np.array(second)) <= 1e-8


def test_a_robot_at_rest_does_not_determine_its_inertias():
    teller = information(panda_arm())
    still = Motion(*np.zeros((3, 7, 50)))
    matrix = teller.matrix(still)
    for objective in OBJECTIVES.values():
        assert objective(matrix).value == np.inf
        assert not objective(matrix).gradient().any()


@pytest.mark.parametrize("noise", [np.ones(6), np.zeros(7), np.full(7, np.nan), np.full(7, np.inf), -np.ones(7), 1.0])
def test_noise_that_is_none_is_refused(noise):
    regressor = Regressor(panda_arm())
    with pytest.raises(UsageError, match=r"torque noise .* must be one positive number for each of panda_joint1"):
        Information(regressor, compute_base_parameters(regressor), noise)


def test_base_parameters_of_another_regressor_are_refused():
    model = panda_arm()
    with pytest.raises(UsageError, match="base parameters are not those of this robot"):
        Information(
            Regressor(model, place_terms_on_joints(model, [Viscous()])),
            compute_base_parameters(Regressor(model)),
            np.ones(7),
        )
