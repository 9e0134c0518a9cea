# SPDX-License-Identifier: Apache-2.0
"""The cross-check passes on true models, fails on tampered ones, and is quick enough to run each time."""

import time
from dataclasses import replace

import numpy as np
import pytest
from support.robots import GRAVITIES, MIMICKING, MIMICS, OBLIQUE, panda_arm, robot

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.crosscheck import PINOCCHIO_SAMPLES, CrossCheck, compare_accelerations, cross_check
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.model.robot import RobotModel


def check(model, count=40, **options):
    return cross_check(Regressor(model), draw_random_motion(model, count, seed=1), **options)


# --- Passes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["planar3r", "ur5_robot", "anymal_c_simple", "icub", *MIMICKING])
def test_published_models_pass(name):
    result = check(robot(name))
    assert result.passed
    assert result.max_difference <= 1e-10
    assert result.rank_ours == result.rank_pinocchio == len(compute_base_parameters(Regressor(robot(name))).names)


@pytest.mark.parametrize("gravity", GRAVITIES)
@pytest.mark.parametrize("text", [OBLIQUE, MIMICS], ids=["oblique", "mimics"])
def test_trees_mimics_and_prismatic_joints_pass_under_any_gravity(text, gravity):
    result = check(RobotModel.from_urdf(text, gravity=GRAVITIES[gravity]))
    assert result.passed
    assert result.max_difference <= 1e-13


@pytest.mark.parametrize("name", ["planar3r", "ur5_robot"])
def test_accelerations_from_base_parameters_are_those_of_pinocchio(name):
    model = robot(name)
    base, motion = compute_base_parameters(Regressor(model)), draw_random_motion(model, 100, seed=3)
    values = base.mapping @ model.inertial_parameters
    assert compare_accelerations(Dynamics(Regressor(model), base.independent, values), motion) <= 1e-10
    heavier = Dynamics(Regressor(model), base.independent, 1.01 * values)
    assert compare_accelerations(heavier, motion) > 1e-3


def test_accelerations_of_mimics_are_those_of_the_projected_equations():
    model = RobotModel.from_urdf(MIMICS)
    whole = Dynamics.from_model(model)
    assert compare_accelerations(whole, draw_random_motion(model, 30, seed=4)) <= 1e-12


def test_held_joints_are_held_in_both():
    text_and_held = [(OBLIQUE, ["branch", "spin"], {"turn": 0.4, "slide": -0.3}), (MIMICS, ["d"], {"a": 0.4})]
    for text, joints, held in text_and_held:
        assert check(RobotModel.from_urdf(text, joints=joints, held=held)).passed


def test_terms_are_left_aside():
    model = panda_arm()
    with_terms = Regressor(model, place_terms_on_joints(model, [Viscous(), Coulomb()]))
    motion = draw_random_motion(model, 20, seed=2)
    assert cross_check(with_terms, motion) == cross_check(Regressor(model), motion)
    assert cross_check(with_terms, motion).rank_ours == 43


def test_any_parameters_can_be_compared_even_without_mass():
    """As representatives of base parameters are: zero outside the independent columns."""
    model = robot("panda")
    base = compute_base_parameters(Regressor(model))
    sparse = np.zeros(len(model.inertial_parameters))
    sparse[base.independent] = base.mapping @ model.inertial_parameters
    assert np.count_nonzero(sparse[::10] == 0.0) > 3
    result = check(model, parameters=sparse)
    assert result.passed
    nominal = check(model)
    assert (result.regressor, result.kronecker) == (nominal.regressor, nominal.kronecker)
    assert (result.torque, result.mass_matrix) != (nominal.torque, nominal.mass_matrix)


def test_samples_are_spread_over_the_motion():
    model = panda_arm()
    motion = draw_random_motion(model, 10 * PINOCCHIO_SAMPLES, seed=3)
    assert cross_check(Regressor(model), motion).samples == PINOCCHIO_SAMPLES
    assert cross_check(Regressor(model), motion.take(slice(0, 7))).samples == 7
    spoilt = motion.q.copy()
    spoilt[0, 9 * PINOCCHIO_SAMPLES :] = np.nan  # the last tenth
    assert np.isnan(cross_check(Regressor(model), replace(motion, q=spoilt)).max_difference)


def test_it_is_quick_for_an_arm():
    regressor = Regressor(panda_arm())
    motion = draw_random_motion(regressor.model, 5000, seed=4)
    cross_check(regressor, motion.take(slice(0, 2)))  # compiles, parses
    start = time.process_time()
    cross_check(regressor, motion)
    assert time.process_time() - start < 1.0


# --- Fails -------------------------------------------------------------------------------------------------------


def moved(array, index, by=1e-6):
    """A copy with one entry changed."""
    copy = array.copy()
    copy[index] += by
    return copy


def rolled(angle):
    """A rotation about x."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


TAMPERED = {
    "translation": lambda model: replace(model, translation=moved(model.translation, (3, 0))),
    "rotation": lambda model: replace(model, rotation=model.rotation @ rolled(1e-6)),
    "axis": lambda model: replace(model, axis=model.axis @ rolled(1e-6)),
    "parent": lambda model: replace(model, parent=moved(model.parent, 8, -1)),
    "kind": lambda model: replace(model, prismatic=~model.prismatic),
    "urdf": lambda model: replace(model, urdf=model.urdf.replace('xyz="0 -0.316 0"', 'xyz="0 -0.316001 0"')),
}
"""Changes of the geometry, by a millionth of lengths and angles."""


@pytest.mark.parametrize("case", TAMPERED)
def test_a_model_that_is_not_the_urdfs_fails(case):
    model = robot("panda")
    tampered = TAMPERED[case](model)
    result = check(tampered)
    assert check(model).passed
    assert not result.passed
    assert min(result.regressor, result.torque, result.mass_matrix) > 1e-8
    assert result.kronecker <= 1e-14  # both read the tampered model


@pytest.mark.parametrize(("index", "what"), [(60, "a mass"), (64, "a moment of inertia")], ids=["mass", "inertia"])
def test_nominal_parameters_that_are_not_the_urdfs_fail(index, what):
    model = robot("panda")
    tampered = replace(model, inertial_parameters=moved(model.inertial_parameters, index))
    result = check(tampered)
    assert not result.passed, what
    assert min(result.torque, result.mass_matrix) > 1e-8
    assert max(result.regressor, result.kronecker) <= 1e-14  # no parameter is in them


def test_a_wrong_kernel_fails_against_both_references(monkeypatch):
    dense = Regressor.dense

    def wrong(self, motion, out=None):
        columns = dense(self, motion, out)
        columns[9] *= 1.0 + 1e-6  # Izz1
        return columns

    monkeypatch.setattr(Regressor, "dense", wrong)
    result = check(robot("panda"))
    assert not result.passed
    assert min(result.regressor, result.kronecker) > 1e-8


def test_a_wrong_reference_fails_on_its_own(monkeypatch):
    from robot_dyn_id.dynamics import kronecker

    bracket = kronecker.bracket
    monkeypatch.setattr(kronecker, "bracket", lambda twist: -bracket(twist))  # the sign that is lost in print
    result = check(robot("panda"))
    assert not result.passed
    assert result.kronecker > 1e-3
    assert max(result.regressor, result.torque) <= 1e-14


def test_a_wrong_mass_matrix_fails_on_its_own(monkeypatch):
    mass_matrix = Dynamics.mass_matrix
    monkeypatch.setattr(Dynamics, "mass_matrix", lambda self, q: mass_matrix(self, q) * (1.0 + 1e-9))
    result = check(robot("panda"))
    assert not result.passed
    assert result.mass_matrix > 5e-10
    assert max(result.regressor, result.kronecker, result.torque) <= 1e-14


def test_other_ranks_fail():
    result = check(panda_arm())
    assert (result.rank_ours, result.rank_pinocchio) == (43, 43)
    assert result.passed
    assert not replace(result, rank_ours=42).passed


@pytest.mark.parametrize("field", ["regressor", "kronecker", "torque", "mass_matrix"])
@pytest.mark.parametrize("value", [1.1e-10, np.nan], ids=["too large", "not a number"])
def test_every_difference_counts(field, value):
    good = CrossCheck(1e-15, 1e-15, 1e-15, 1e-15, 43, 43, 200)
    assert good.passed
    bad = replace(good, **{field: value})
    assert not bad.passed
    assert bad.max_difference == pytest.approx(value, nan_ok=True)


def test_nothing_compared_is_not_passed():
    empty = np.empty((7, 0))
    assert not cross_check(Regressor(panda_arm()), Motion(empty, empty, empty)).passed
