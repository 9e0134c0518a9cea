# SPDX-License-Identifier: Apache-2.0
"""Flexible joints: model against an independent form, rank, identification of simulated experiments."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import panda_arm

from robot_dyn_id.dynamics.base_parameters import compute_echelon
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError, ModelError, UsageError
from robot_dyn_id.estimators.stepwise import Equations, Observability, plan_steps, solve_steps
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.flexible import (
    Experiment,
    FlexibleJoint,
    FlexibleModel,
    FlexiblePlant,
    compute_agreements,
    compute_overall,
    find_least_experiments,
    identify_flexible,
    make_pseudo_observations,
    make_pseudo_plan,
)
from robot_dyn_id.flexible.curves import compute_equation_curves
from robot_dyn_id.flexible.experiment import TooSlow, compute_rows_per_second, make_equations
from robot_dyn_id.flexible.rows import list_rows_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.flexible2r.arm import (
    RATIO,
    add_noise,
    list_true_values,
    make_arm,
    make_experiments,
    make_motion_of,
)
from robot_dyn_id.signals.filtering import LowPass

MODEL = make_arm()
JOINTS = ("joint1", "joint2")


@pytest.fixture(scope="module")
def clean():
    return make_experiments(MODEL, [("joint2",), ("joint1", "joint2")])


def relative_error(found):
    truth = list_true_values(MODEL)
    real = truth != 0.0
    return dict(zip(np.array(MODEL.names)[real], np.abs(found[real] / truth[real] - 1.0), strict=True))


def test_regressor_is_the_published_one():
    """Chen et al. 2021, eq. 1 written out: angles from the horizontal, gravity down."""
    q, v, a = np.random.default_rng(1).uniform(-2, 2, (3, 2, 40))
    dense = MODEL.regressor.dense(Motion(q, v, a))[MODEL.base.independent]
    length, g, (c2, s2) = 0.375, 9.81, (np.cos(q[1]), np.sin(q[1]))
    c12, s12, both = np.cos(q.sum(0)), np.sin(q.sum(0)), a.sum(0)
    turning = v[1] ** 2 + 2 * v[0] * v[1]
    upper = [
        g * np.cos(q[0]),
        -g * np.sin(q[0]),
        a[0],
        length * ((2 * a[0] + a[1]) * c2 - turning * s2) + g * c12,
        -length * ((2 * a[0] + a[1]) * s2 + turning * c2) - g * s12,
        both,
    ]
    lower = [
        0 * c2,
        0 * c2,
        0 * c2,
        length * (a[0] * c2 + v[0] ** 2 * s2) + g * c12,
        length * (-a[0] * s2 + v[0] ** 2 * c2) - g * s12,
        both,
    ]
    np.testing.assert_allclose(dense[:6, 0], upper, atol=1e-9)
    np.testing.assert_allclose(dense[:6, 1], lower, atol=1e-9)


def rank(moving, kind, columns, seeds=3):
    """Greatest rank of pseudo-observations of one kind of equation over some seeds."""
    found = []
    for seed in range(seeds):
        rows = [e.expand(len(MODEL.names)) for e in make_pseudo_observations(MODEL, moving, seed) if kind in e.name]
        found.append(Observability.from_rows(np.concatenate(rows)[:, columns]).rank)
    return max(found)


def test_ranks_are_the_published_ones():
    """Ranks in the paper's tables with pseudo-observations of five times the least number of samples."""
    link, offsets = np.arange(10), np.arange(12)
    gravity = np.array([MODEL.names.index(name) for name in ("mx1", "my1", "mx2", "my2", "off1", "off2")])
    motor = np.array([MODEL.names.index(f"{symbol}{j}") for j in "12" for symbol in ("Jm", "fvm", "fcm")])
    assert rank(JOINTS, "link", link) == 10
    assert rank(JOINTS, "link", offsets) == 12
    assert rank(JOINTS, "motor", motor) == 6
    assert rank(None, "link", gravity) == 6


@pytest.mark.parametrize(("still", "expected"), [(0, 4), (1, 6)])
def test_poses_of_one_joint_determine_less(still, expected):
    q = np.random.default_rng(2).uniform(-2, 2, (2, 40))
    q[still] = 0.5
    dense = MODEL.regressor.dense(Motion(q, 0 * q, 0 * q))[MODEL.base.independent]
    rows = dense.reshape(len(dense), -1).T
    assert compute_echelon(rows[:, [0, 1, 3, 4, 10, 11]]).rank == expected


def test_one_direction_of_motion_hides_the_offsets_in_coulomb_friction():
    q, v, a = np.random.default_rng(2).uniform(-2, 2, (3, 2, 60))
    dense = MODEL.regressor.dense(Motion(q, 0.5 + np.abs(v), a))[MODEL.base.independent]
    assert compute_echelon(dense.reshape(len(dense), -1).T).rank == 10


def test_stiffness_is_refused_together_with_the_motor_in_raw_columns_and_not_in_scaled_ones():
    blind = make_arm(torque_sensor=False)
    rows = next(e for e in make_pseudo_observations(blind, JOINTS) if e.name.endswith("motor of joint1"))
    columns = np.array([blind.names.index(name) for name in ("Jm1", "fvm1", "fcm1", "K1")])
    observability = Observability.from_rows(rows.expand(len(blind.names))[:, columns])
    assert observability.condition_numbers["none"] > 1e5
    assert observability.condition_numbers["columns"] < 10


def test_plan_before_any_data_splits_the_link_side():
    plan = make_pseudo_plan(MODEL)
    assert not plan.unidentifiable
    order = {group: number for number, step in enumerate(plan.steps) for group in step.groups}
    assert order["gravity of joint2"] < order["gravity of joint1"] < order["inertia of joint1"]
    assert order["offset of joint1"] < order["spring of joint1"]
    assert find_least_experiments(MODEL) == ("all joints moving",)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [10.0, np.inf])
def test_every_parameter_comes_back_from_clean_experiments(clean, limit):
    found = identify_flexible(MODEL, clean, limit=limit).solution
    assert len(found.plan.steps) == 1 if limit == np.inf else len(found.plan.steps) > 1
    errors = relative_error(found.values)
    assert len(errors) == 22
    assert max(errors.values()) < 1e-3


@pytest.mark.slow
def test_noisy_experiments_stay_within_the_error_limits_and_the_reported_sigma(clean):
    squares, scores = [], []
    for seed in range(0, 60, 10):
        result = identify_flexible(MODEL, add_noise(clean, seed))
        squares.append([error**2 for error in relative_error(result.solution.values).values()])
        scores.append((result.solution.values - list_true_values(MODEL)) / result.solution.standard_deviations)
    rms = dict(zip(relative_error(result.solution.values), np.sqrt(np.mean(squares, axis=0)), strict=True))
    limits = {"fv": 0.02, "fc": 0.02, "K": 0.001, "mx": 0.002, "Jm": 0.02, "Izz": 0.08}
    for symbol, most in limits.items():
        assert max(rms[f"{symbol}1"], rms[f"{symbol}2"]) < most, symbol
    assert np.abs(scores).max() < 4.5
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.3


@pytest.mark.slow
def test_without_torque_sensors_the_motors_determine_the_stiffness(clean):
    blind = make_arm(torque_sensor=False)
    silent = [replace(one, tau=np.full_like(one.tau, np.nan)) for one in clean]
    found = identify_flexible(blind, silent).solution
    truth = list_true_values(blind)
    at = [blind.names.index(name) for name in ("K1", "K2", "Jm1", "Jm2", "mx1", "mx2", "fv1", "fc2")]
    np.testing.assert_allclose(found.values[at], truth[at], rtol=5e-3)


@pytest.mark.slow
def test_without_motor_torque_the_motor_is_named_as_unidentified(clean):
    found = identify_flexible(MODEL, [replace(one, motor_tau=None) for one in clean])
    assert found.solution.plan.unidentifiable == ("motor of joint1", "motor of joint2")
    assert "Jm1          not identified" in str(found)
    errors = relative_error(found.solution.values)
    assert max(error for name, error in errors.items() if "m" not in name.replace("mx", "").replace("my", "")) < 1e-3


def test_an_arm_of_seven_joints_with_three_flexible_ones_comes_back_from_exact_states():
    arm = RobotModel.from_file(find_shared_file("urdf/arm7.urdf"))
    flexible = (FlexibleJoint("joint2", 80.0), FlexibleJoint("joint4", -100.0, torque_sensor=False))
    model = FlexibleModel(arm, (*flexible, FlexibleJoint("joint6", 50.0)))
    plan = make_pseudo_plan(model)
    assert not plan.unidentifiable
    assert {group for step in plan.steps for group in step.groups} == {group.name for group in model.groups}
    assert {"motor of joint2", "spring of joint4", "rotor of joint7"} <= {group.name for group in model.groups}
    truth = np.random.default_rng(4).uniform(0.5, 2.0, len(model.names))
    data = [e for moving in (None, arm.joint_names) for e in make_pseudo_observations(model, moving, 0, 200)]
    exact = []
    for one in data:
        rows = one.expand(len(truth))[:, :-1]
        exact.append(Equations.from_rows(one.name, one.family, rows, rows @ truth))
    # the spring of a joint without a sensor is known from nothing but its motor's torque, which gives the scale
    found = solve_steps(plan_steps(model.groups, [exact], len(truth)), model.groups, exact, len(truth))
    np.testing.assert_allclose(found.values, truth, rtol=1e-5)


def test_slow_samples_and_their_neighbors_count_as_nothing():
    """A sine of 0.2 Hz: the rest is fast enough, and separated from slow samples by the filter's memory."""
    rate, low_pass = 500.0, LowPass(8.0)
    t = np.arange(5 * 500) / rate
    q = np.array([np.sin(0.4 * np.pi * t)] * 2)
    quiet = Experiment("sine", rate, q, 0 * q, periodic=True)
    motion = quiet.states(low_pass).link
    slow = np.abs(motion.dq[0]) < 0.3
    kept = quiet.steady(q[0], motion.q[0], motion.dq[0], 0.1, low_pass)
    assert not (kept & slow).any()
    reach = np.flatnonzero(kept)[:, None] - np.flatnonzero(slow)
    assert 1.0 / 32.0 < np.abs(reach).min() / rate < 4.0 / 32.0
    # with a hard sign the noise of the velocity decides: three standard deviations of it
    noise = np.random.default_rng(1).normal(0.0, 1e-4, q.shape)
    rough = replace(quiet, q=q + noise)
    shaken = rough.states(low_pass).link
    sigma = np.std(shaken.dq[0] - motion.dq[0])
    assert not rough.steady(rough.q[0], shaken.q[0], shaken.dq[0], 0.0, low_pass)[
        np.abs(shaken.dq[0]) < 2 * sigma
    ].any()
    assert rough.steady(rough.q[0], shaken.q[0], shaken.dq[0], 0.0, low_pass).mean() > 0.9


@pytest.fixture(scope="module")
def followed():
    """Motion of both joints that the links follow exactly, one period at 5 kHz: longer than a block of samples."""
    smooth = make_arm(0.02)
    return smooth, FlexiblePlant(smooth, list_true_values(smooth)).along("both", make_motion_of(JOINTS), 5.0, 5000.0)


def test_links_that_follow_exactly_fulfil_the_equations_of_the_model(followed):
    """Every equation of the model, sample by sample, at states whose derivatives are the motion's own."""
    smooth, both = followed
    truth, t = list_true_values(smooth), np.arange(25000) / 5000.0
    motion = Motion(*make_motion_of(JOINTS).evaluate(t)[:3])
    np.testing.assert_array_equal(both.q, motion.q)
    states = replace(both.states(LowPass(50.0)), link=motion)
    rows = {f"{row.kind} of {row.joint}": row for row in list_rows_of(smooth, states)}
    assert set(rows) == {f"{kind} of {name}" for kind in ("link", "spring", "motor") for name in JOINTS}
    for name in ("link of joint1", "link of joint2"):
        np.testing.assert_allclose(rows[name].rows @ truth, rows[name].target, atol=1e-9)
    for name in ("spring of joint1", "spring of joint2"):  # the motor's angle is filtered: behind the reversals
        np.testing.assert_allclose(rows[name].rows @ truth, rows[name].target, atol=5e-2)


def test_blocks_of_samples_are_the_whole(followed):
    """Against filters of all samples at once."""
    smooth, both = followed
    low_pass, size = LowPass(8.0), len(smooth.names)
    found = {one.name: one for one in make_equations(smooth, both, low_pass)}
    stride = round(both.rate / compute_rows_per_second(low_pass))
    for row in list_rows_of(smooth, both.states(low_pass)):
        if row.kind == "spring":
            whole = both.low_passed(np.column_stack([row.rows, row.target]).T, low_pass)[:, ::stride]
            one = found[f"both: spring of {row.joint}"]
            triangle = one.expand(size)
            expected = whole @ whole.T
            np.testing.assert_allclose(triangle.T @ triangle, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
            assert one.count == whole.shape[1]


def test_a_motion_that_rests_at_neither_end_is_not_biased_by_the_ends(followed):
    """From 1 to 3.1 s without noise; with all samples the inertias would be wrong by more than their size."""
    smooth, both = followed
    truth, part = list_true_values(smooth), slice(5000, 15500, 10)
    sides = {side: getattr(both, side)[:, part] for side in ("q", "tau", "motor_q", "motor_tau")}
    cut = replace(both, **sides, rate=500.0, periodic=False)
    poses = FlexiblePlant(smooth, truth).poses("poses", np.random.default_rng(1).uniform(0.6, 1.6, (2, 20)))
    result = identify_flexible(smooth, [poses, cut])
    np.testing.assert_allclose(result.solution.values, truth, rtol=1e-3, atol=1e-6)
    assert not result.unidentified
    assert max(one.nrmse for one in result.fit) < 1e-4
    with pytest.raises(InputError, match=r"0\.06 s are too short for a low-pass of 8 Hz"):
        make_equations(smooth, replace(cut, **{k: v[:, :30] for k, v in sides.items()}), LowPass(8.0))


def test_agreement_is_the_share_of_the_torque_that_is_wrong(followed):
    smooth, both = followed
    found, truth = make_equations(smooth, both, LowPass(8.0)), list_true_values(smooth)
    assert max(one.nrmse for one in compute_agreements(smooth, found, truth)) < 1e-3
    soft = truth.copy()
    soft[smooth.names.index("K1")] /= 2.0
    wrong = {one.equation: one for one in compute_agreements(smooth, found, soft)}
    assert wrong["both: spring of joint1"].nrmse == pytest.approx(0.5, abs=0.05)
    assert wrong["both: spring of joint2"].nrmse < 1e-3
    assert compute_overall(list(wrong.values()), "spring") < 0.5
    unknown = np.where(np.array(smooth.names) == "K1", np.nan, truth)
    blind = {one.equation: one for one in compute_agreements(smooth, found, unknown)}
    assert np.isnan(blind["both: spring of joint1"].nrmse)
    assert blind["both: motor of joint1"].nrmse < 1e-3


def test_curves_are_both_sides_of_the_equations(followed):
    smooth, both = followed
    truth = list_true_values(smooth)
    poses = FlexiblePlant(smooth, truth).poses("poses", np.random.default_rng(1).uniform(0.6, 1.6, (2, 20)))
    curves = {one.equation: one for one in compute_equation_curves(smooth, [both, poses], LowPass(8.0), truth)}
    assert {name.split(": ")[1] for name in curves} == {
        f"{kind} of {name}" for kind in ("link", "spring", "motor") for name in JOINTS
    }
    for one in curves.values():
        assert len(one.t) == len(one.measured) == len(one.predicted)
        assert np.nanstd(one.predicted - one.measured) < 1e-3 * np.nanstd(one.measured)
        assert one.at_rest == one.equation.startswith("poses")
    assert curves["both: link of joint1"].t[-1] == pytest.approx(5.0, abs=0.1)
    assert curves["poses: link of joint1"].t.tolist() == list(range(20))
    assert np.isnan(curves["both: link of joint1"].measured).any(), "samples whose friction is unknown"
    unknown = np.where(np.array(smooth.names) == "K1", np.nan, truth)
    assert set(curves) - {
        one.equation for one in compute_equation_curves(smooth, [both, poses], LowPass(8.0), unknown)
    } == {
        "both: spring of joint1",
        "poses: spring of joint1",
    }
    blind = replace(smooth, joints=tuple(replace(one, torque_sensor=False) for one in smooth.joints))
    values = np.array([dict(zip(smooth.names, truth, strict=True))[name] for name in blind.names])
    (link,) = [
        one
        for one in compute_equation_curves(blind, [both], LowPass(8.0), values)
        if one.equation == "both: link of joint1"
    ]
    both_known = np.isfinite(link.measured)
    sensed = curves["both: link of joint1"].measured  # with the offset of the sensor
    assert np.corrcoef(link.measured[both_known], sensed[both_known])[0, 1] > 0.999
    assert np.nanstd(link.predicted - link.measured) < 1e-3 * np.nanstd(link.measured)


def test_the_speed_that_was_needed_is_reported_for_every_equation(followed):
    smooth, both = followed
    slow = []
    lazy = replace(both, q=0.5 + 1e-3 * (both.q - 0.5), motor_q=50.0 + 1e-3 * (both.motor_q - 50.0), name="lazy")
    assert {one.name for one in make_equations(smooth, lazy, LowPass(8.0), slow)} == {
        f"lazy: spring of {j}" for j in JOINTS
    }
    assert [one.group for one in slow] == [f"{kind} of {name}" for kind in ("friction", "motor") for name in JOINTS]
    link, motor = slow[0], slow[2]
    assert isinstance(link, TooSlow)
    assert link.fastest < link.width == pytest.approx(0.06)
    assert motor.width == pytest.approx(0.06 * RATIO)
    with pytest.raises(InputError, match=r"every motion is too slow.*lazy: link of joint1 reaches .*smoothing widths"):
        identify_flexible(smooth, [replace(lazy, motor_q=None)])


def test_joints_that_stand_give_no_equations():
    q = np.full((2, 1000), 0.5) + np.array([[0.0], [1e-5]]) * np.sin(np.arange(1000) / 50)
    found = make_equations(MODEL, Experiment("still", 500.0, q, 0 * q, RATIO * q, 0 * q), LowPass(8.0))
    assert {one.name for one in found} == {"still: spring of joint1", "still: spring of joint2"}


@pytest.mark.slow
def test_rest_of_the_plant_is_its_statics(clean):
    static = clean[0]
    deflection = static.motor_q / RATIO - static.q
    np.testing.assert_allclose(static.tau - [[0.8], [-0.6]], deflection * [[1.2e4], [0.8e4]], rtol=1e-9)
    np.testing.assert_allclose(static.motor_tau * RATIO, static.tau - [[0.8], [-0.6]], rtol=1e-9)


@pytest.mark.slow
def test_what_cannot_be_is_refused(clean):
    with pytest.raises(UsageError, match="ratio"):
        FlexibleJoint("joint1", 0.0)
    with pytest.raises(ModelError, match="joint9 is not a joint"):
        FlexibleModel(MODEL.model, (FlexibleJoint("joint9", 100.0),))
    with pytest.raises(UsageError, match="differ"):
        FlexibleModel(MODEL.model, (FlexibleJoint("joint1", 100.0),) * 2)
    with pytest.raises(InputError, match="different names"):
        identify_flexible(MODEL, [clean[0], clean[0]])
    with pytest.raises(InputError, match="samples"):
        replace(clean[0], motor_q=clean[0].motor_q[:, :-1])
    torn = clean[0].tau.copy()
    torn[1, 3] = np.nan
    with pytest.raises(InputError, match="tau of joint 2"):
        replace(clean[0], tau=torn)
    with pytest.raises(InputError, match="2 of them flexible"):
        identify_flexible(MODEL, [replace(clean[0], motor_q=clean[0].motor_q[:1])])
    with pytest.raises(InputError, match="no torque is measured"):
        identify_flexible(
            make_arm(torque_sensor=False),
            [replace(one, motor_tau=None, tau=np.full_like(one.tau, np.nan)) for one in clean],
        )
    with pytest.raises(InputError, match="all of whose joints"):
        one = FlexibleModel(MODEL.model, (FlexibleJoint("joint2", 100.0),))
        FlexiblePlant(one, np.zeros(len(one.names)))


@pytest.mark.slow
def test_the_raw_criterion_goes_from_the_tip_of_an_arm_to_its_base():
    """Seven flexible joints of a Panda: outer links first, as Chen et al. do; unit-norm columns need one step."""
    robot = panda_arm()
    model = FlexibleModel(robot, tuple(FlexibleJoint(name, 100.0) for name in robot.joint_names))
    plan = make_pseudo_plan(model, scaling="none")
    assert not plan.unidentifiable
    for kind in ("gravity", "inertia"):
        found = [int(g[-1]) for step in plan.steps for g in reversed(step.groups) if g.startswith(f"{kind} of")]
        assert found == sorted(found, reverse=True) and len(found) >= 6, kind
    assert len(make_pseudo_plan(model).steps) == 1
