# SPDX-License-Identifier: Apache-2.0
"""The stepwise planner on equations with known structure, and the estimator of that name."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import URDFS, panda_arm

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.stepwise import (
    Equations,
    Group,
    Observability,
    determine,
    make_prescribed_plan,
    plan_steps,
    solve_steps,
)
from robot_dyn_id.estimators.stepwise.estimator import plan_joints, solve_as_planned, solve_joint_by_joint
from robot_dyn_id.model.robot import RobotModel

RNG = np.random.default_rng(3)
GROUPS = tuple(Group(name, np.array(columns)) for name, columns in {"a": [0, 1], "b": [2], "c": [3]}.items())
TRUTH = np.array([2.0, -1.0, 0.5, 3.0])


def equations(name, columns, noise=0.0, count=200, rows=None):
    matrix = np.zeros((count, 4))
    matrix[:, columns] = RNG.normal(size=(count, len(columns))) if rows is None else rows
    return Equations.from_rows(name, name, matrix, matrix @ TRUTH + noise * RNG.normal(size=count))


def test_well_conditioned_equations_are_solved_at_once():
    plan = plan_steps(GROUPS, [[equations("all", [0, 1, 2, 3])]], 4)
    assert [step.groups for step in plan.steps] == [("a", "b", "c")]


def test_collinear_groups_are_split_where_other_data_show_one_alone():
    pair = RNG.normal(size=(200, 1)) + [0.0, 0.05] * RNG.normal(size=(200, 2))
    near = equations("both", [2, 3], 0.01, rows=pair)
    alone = equations("alone", [2], 1e-4)
    plan = plan_steps(GROUPS[1:], [[near, alone]], 4, limit=2.0)
    assert [step.groups for step in plan.steps] == [("b",), ("c",)]
    assert plan.steps[1].known == ("b",)
    assert "not together with more" in str(plan)


def test_a_prescribed_order_is_kept_and_what_cannot_be_solved_so_is_refused():
    data = [equations("first", [0, 1]), equations("second", [0, 1, 2]), equations("third", [2, 3])]
    order = [(["a"], ["first"]), (["b"], ["second"])]
    plan = make_prescribed_plan(GROUPS, data, 4, order)
    assert [(step.groups, step.equations, step.known) for step in plan.steps] == [
        (("a",), ("first",), ()),
        (("b",), ("second",), ("a",)),
    ]
    assert plan.unidentifiable == ("c",)
    assert "a prescribed order" in str(plan)
    assert "not identified: c: not in the order" in str(plan)
    np.testing.assert_allclose(solve_steps(plan, GROUPS, data, 4).values[:3], TRUTH[:3])
    for wrong, words in (
        ([(["b"], ["second"])], "step 1: a is in its equations"),
        ([(["d"], ["first"])], "step 1: d is not there"),
        ([(["a"], ["fourth"])], "step 1: fourth is not there"),
        ([(["a", "b"], ["first"])], "step 1, a, b: rank 2 of 3"),
        ([(["a", "a"], ["first"])], "a is in the order twice"),
        ([*order, (["a"], ["first"])], "a is in the order twice"),
    ):
        with pytest.raises(UsageError, match=words):
            make_prescribed_plan(GROUPS, data, 4, wrong)


def test_a_step_of_a_prescribed_order_in_bad_condition_says_no_more_than_that():
    pair = RNG.normal(size=(200, 1)) + [0.0, 0.01] * RNG.normal(size=(200, 2))
    near = equations("both", [2, 3], rows=pair)
    text = str(make_prescribed_plan(GROUPS[1:], [near], 4, [(["b", "c"], ["both"])]))
    assert text.splitlines()[-1] == "     condition of unit-norm columns above 10"
    assert "no data show less" not in text
    assert "are split" not in text


def test_groups_that_are_not_distinguishable_are_named():
    same = np.repeat(RNG.normal(size=(200, 1)), 2, axis=1)
    plan = plan_steps(GROUPS, [[equations("first", [0, 1]), equations("same", [2, 3], rows=same)]], 4)
    assert plan.unidentifiable == ("b", "c")
    solution = solve_steps(plan, GROUPS, [equations("first", [0, 1])], 4)
    np.testing.assert_allclose(solution.values[:2], TRUTH[:2])
    assert np.isnan(solution.values[2:]).all()
    assert np.isinf(solution.standard_deviations[2:]).all()


def test_steps_carry_the_covariance_of_earlier_ones():
    draws = []
    for _ in range(150):
        apart = np.tile(np.eye(2), (25, 1))
        data = [equations("first", [0, 1], 0.2, 50, apart), equations("second", [0, 1, 2, 3], 0.1, 60)]
        plan = plan_steps(GROUPS, [data], 4, limit=1.001)
        solution = solve_steps(plan, GROUPS, data, 4)
        error = solution.values - TRUTH
        draws.append(error @ np.linalg.solve(solution.covariance, error))
    assert len(plan.steps) == 2
    # squared Mahalanobis distances of four errors, with estimated noise: mean near 4 of chi-squared
    assert 3.5 < np.mean(draws) < 4.8


def test_determine_is_the_schur_complement_of_the_joint_solution():
    """With the known parameters' own rows added, a step is what solving both at once gives, if those rows show all."""
    rows = np.column_stack([RNG.normal(size=(30, 4)), np.zeros(30)])
    rows[:, -1] = rows[:, :-1] @ TRUTH
    prior = np.diag([0.0, 0.0, 0.3, 0.2])
    values, covariance = determine(rows, np.array([0, 1]), TRUTH, prior)
    inverse = np.linalg.pinv(rows[:, :2])
    expected = inverse @ (np.eye(30) + rows[:, 2:4] @ prior[2:, 2:] @ rows[:, 2:4].T) @ inverse.T
    np.testing.assert_allclose(covariance[:2, :2], expected, rtol=1e-9)
    np.testing.assert_allclose(covariance[:2, 2:], -inverse @ rows[:, 2:4] @ prior[2:, 2:], rtol=1e-9)
    np.testing.assert_allclose(values, TRUTH, rtol=1e-9)


def test_condition_numbers_are_named_and_units_change_only_the_raw_one():
    rows = RNG.normal(size=(100, 3))
    plain, scaled = Observability.from_rows(rows), Observability.from_rows(rows * [1.0, 1e3, 1e-3])
    assert np.isclose(plain.condition_numbers["columns"], scaled.condition_numbers["columns"])
    assert scaled.condition_numbers["none"] > 1e5
    assert "raw" in str(plain)
    assert "unit-norm" in str(plain)


@pytest.mark.parametrize(
    ("options", "words"), [({"scaling": "rows"}, "scaling"), ({"limit": 0.5}, "limit"), ({"limit": np.nan}, "limit")]
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        plan_steps(GROUPS, [[equations("all", [0, 1, 2, 3])]], 4, **options)


def test_bad_equations_are_refused():
    with pytest.raises(InputError, match="not finite"):
        equations("torn", [0], noise=np.nan)
    with pytest.raises(UsageError, match="needs equations"):
        plan_steps(GROUPS, [[]], 4)
    with pytest.raises(UsageError, match="share"):
        plan_steps((*GROUPS, GROUPS[0]), [[equations("all", [0, 1, 2, 3])]], 4)
    data = [equations("all", [0, 1, 2, 3])]
    plan = plan_steps(GROUPS, [data], 4)
    with pytest.raises(InputError, match="no data for all"):
        solve_steps(plan, GROUPS, [equations("other", [0])], 4)
    with pytest.raises(InputError, match="rows for 4 parameters"):
        solve_steps(plan, GROUPS, [replace(data[0], count=3)], 4)


def arm_factors(proximal_error=0.0):
    """Two joints: the distal one shows the last two parameters, the proximal one all."""
    rng = np.random.default_rng(5)
    blocks = []
    for support in ([0, 1, 2, 3], [2, 3]):
        rows = rng.normal(size=(100, len(support)))
        blocks.append(np.column_stack([rows, rows @ TRUTH[support]]))
    blocks[0][:, -1] += proximal_error * rng.normal(size=100)
    triangles = tuple(np.linalg.qr(block, mode="r") for block in blocks)
    return Factors(4, (np.arange(4), np.array([2, 3])), triangles, np.array([100, 100]))


def test_joint_by_joint_is_exact_without_noise():
    np.testing.assert_allclose(solve_joint_by_joint(arm_factors(), np.ones(2)).values, TRUTH, rtol=1e-9)


def test_a_wrong_proximal_torque_does_not_reach_the_distal_link():
    weights = np.ones(2)
    together, apart = (solve(arm_factors(50.0), weights).values for solve in (Factors.solve, solve_joint_by_joint))
    np.testing.assert_allclose(apart[2:], TRUTH[2:], rtol=1e-9)
    assert np.abs(together[2:] - TRUTH[2:]).max() > 0.1


@pytest.mark.parametrize("arm", ["ur5_robot", "panda"])
def test_the_steps_of_any_arm_are_planned_by_rank_and_condition(arm):
    """Every link of a chain is a group; the steps give the parameters of exact rows, and all of them."""
    model = panda_arm() if arm == "panda" else RobotModel.from_file(URDFS[arm])
    regressor = Regressor(model)
    base = compute_base_parameters(regressor)
    motion = draw_random_motion(model, 60)
    rows = regressor.dense(motion)[base.independent]  # (p, joints, N)
    truth = base.mapping @ model.inertial_parameters
    supports, triangles = [], []
    for joint in range(rows.shape[1]):
        own = rows[:, joint].T
        support = np.flatnonzero(np.abs(own).max(axis=0) > 1e-9)
        noisy = own @ truth + 1e-3 * RNG.normal(size=len(own))
        supports.append(support)
        triangles.append(np.linalg.qr(np.column_stack([own[:, support], noisy]), mode="r"))
    counts = np.full(len(supports), len(own))
    factors = Factors(len(truth), tuple(supports), tuple(triangles), counts)
    weights = np.full(len(supports), 1e3)
    plan, groups, _ = plan_joints(factors, weights)
    assert not plan.unidentifiable and len(groups) >= len(model.joint_names)
    solution = solve_as_planned(factors, weights)
    deviations = np.sqrt(np.diag(solution.inverse))
    assert np.all(np.abs(solution.values - truth) < 5.0 * deviations)
    assert np.abs(solution.values - truth).max() < 0.05 * np.abs(truth).max()
