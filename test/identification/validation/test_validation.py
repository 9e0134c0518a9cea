# SPDX-License-Identifier: Apache-2.0
"""Metrics against numpy's plain formulas, and every rule of the verdict."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.dynamics.crosscheck import CrossCheck
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import find_definition, format_finding
from robot_dyn_id.identification.validation.extrapolation import Excess
from robot_dyn_id.identification.validation.metrics import Fold, HeldOut, JointMetrics, compare
from robot_dyn_id.identification.validation.verdict import (
    Thresholds,
    Verdict,
    judge_cross_check,
    judge_prediction,
    judge_training,
)
from robot_dyn_id.parameters import ResidualProfile
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.ranges import measure_ranges
from robot_dyn_id.signals.trials import FilteredTrials

ROBOT = Simulated()
PLAN = SignalPlan.from_low_pass(50.0, LowPass(5.0), False)


@pytest.fixture(scope="module")
def recording():
    """Long enough for several windows."""
    return ROBOT.record(duration=100.0, rate=50.0, noise=0.5)


def trials_of(recording):
    return FilteredTrials([recording], recording.joint_names, {}, PLAN)


def compared(recording, values=ROBOT.base_values, trained=None):
    return compare([Fold(trials_of(recording), ROBOT.regressor, ROBOT.base.independent, values)], trained)


def joined(recording):
    """Measured torque, raw torque and motion of all samples that are compared."""
    pieces = list(trials_of(recording))
    assert len(pieces) > 1
    measured = np.concatenate([PLAN.low_pass.apply(p.tau, PLAN.rate)[:, p.own] for p in pieces], axis=1)
    raw = np.concatenate([p.tau[:, p.own] for p in pieces], axis=1)
    parts = [p.motion.take(p.own) for p in pieces]
    motion = Motion(*(np.concatenate([getattr(m, n) for m in parts], axis=1) for n in ("q", "dq", "ddq")))
    return measured, raw, motion


def rms(values):
    return np.sqrt((values**2).mean(axis=-1))


def test_a_prediction_is_the_regressor_times_the_parameters(recording):
    _, _, motion = joined(recording)
    full = ROBOT.regressor.torque(motion, ROBOT.parameters)
    ours = ROBOT.regressor.torque(motion, ROBOT.base_values, ROBOT.base.independent)
    np.testing.assert_allclose(ours, full, atol=1e-9 * np.abs(full).max())


def test_metrics_are_those_of_numpy(recording):
    values = 1.1 * ROBOT.base_values  # a model that is wrong enough for every figure to differ
    held_out = compared(recording, values)
    measured, raw, motion = joined(recording)
    predicted = ROBOT.regressor.torque(motion, values, ROBOT.base.independent)
    inertial = np.zeros(len(ROBOT.parameters))
    inertial[:30] = ROBOT.model.inertial_parameters
    nominal = ROBOT.regressor.torque(motion, inertial)
    error = predicted - measured
    expected = {
        "rms": rms(measured),
        "rmse": rms(error),
        "nrmse": rms(error) / rms(measured),
        "correlation": [np.corrcoef(p, m)[0, 1] for p, m in zip(predicted, measured, strict=True)],
        "max_error": np.abs(error).max(axis=1),
        "mean_error": np.abs(error).mean(axis=1),
        "raw_nrmse": rms(predicted - raw) / rms(raw),
        "constant_nrmse": measured.std(axis=1) / rms(measured),
        "nominal_nrmse": rms(nominal - measured) / rms(measured),
        "explained": 1 - (rms(error) / measured.std(axis=1)) ** 2,
    }
    for name, figures in expected.items():
        ours = [getattr(joint, name) for joint in held_out.joints]
        np.testing.assert_allclose(ours, figures, rtol=1e-9, err_msg=name)
    assert [(joint.name, joint.unit) for joint in held_out.joints] == [(name, "N m") for name in ROBOT.joints]
    assert held_out.all_joints_nrmse == pytest.approx(np.linalg.norm(error) / np.linalg.norm(measured))
    difference = np.linalg.norm(nominal - measured)
    assert held_out.nominal_all_joints_nrmse == pytest.approx(difference / np.linalg.norm(measured))
    assert held_out.samples == measured.shape[1]


def test_trained_ranges_are_the_extremes_of_the_used_samples(recording):
    ranges = trials_of(recording).ranges
    _, _, motion = joined(recording)
    np.testing.assert_array_equal(ranges.q_min, motion.q.min(axis=1))
    np.testing.assert_array_equal(ranges.q_max, motion.q.max(axis=1))
    np.testing.assert_array_equal(ranges.dq_max, np.abs(motion.dq).max(axis=1))
    np.testing.assert_array_equal(ranges.ddq_max, np.abs(motion.ddq).max(axis=1))
    with pytest.raises(InputError, match="no sample is left"):
        measure_ranges([])


def test_the_share_outside_the_trained_ranges_is_counted(recording):
    ranges = trials_of(recording).ranges
    assert compared(recording, trained=ranges).outside == 0.0
    assert compared(recording).outside == 0.0
    _, _, motion = joined(recording)
    span = ranges.q_max - ranges.q_min
    narrow = replace(ranges, q_max=ranges.q_max - np.array([0.7, 0.0, 0.0]) * span)
    margin = 0.5 * (narrow.q_max - narrow.q_min)[0]
    beyond = (motion.q[0] > narrow.q_max[0] + margin).mean() / 3  # of three joints' samples
    assert compared(recording, trained=narrow).outside == pytest.approx(beyond)
    for name in ("dq_max", "ddq_max"):
        slower = replace(ranges, **{name: 0.3 * getattr(ranges, name)})
        assert compared(recording, trained=slower).outside > 0.05, name


def test_joints_that_are_slow_compared_with_their_training_are_reported(recording):
    ranges = trials_of(recording).ranges
    assert compared(recording, trained=ranges).slow == ()
    assert compared(recording).slow == ()
    faster = replace(ranges, dq_max=ranges.dq_max * [4.9, 5.1, 1.0])
    ((name, share),) = compared(recording, trained=faster).slow
    assert (name, share) == (ROBOT.joints[1], pytest.approx(1 / 5.1))


def test_the_error_at_rest_is_that_of_slow_samples(recording):
    trained = replace(trials_of(recording).ranges, dq_max=np.array([20.0, 30.0, 40.0]))
    held_out = compared(recording, 0.9 * ROBOT.base_values, trained)
    measured, _, motion = joined(recording)
    error = ROBOT.regressor.torque(motion, 0.9 * ROBOT.base_values, ROBOT.base.independent) - measured
    rest = np.abs(motion.dq) < 0.01 * trained.dq_max[:, None]
    assert rest.any(axis=1).all() and not rest.all(axis=1).any()
    for joint, own, slow in zip(held_out.joints, error, rest, strict=True):
        assert joint.rest_share == pytest.approx(slow.mean())
        assert joint.rest_rmse == pytest.approx(rms(own[slow]))
    assert held_out.moving_nrmse == pytest.approx(rms(error[~rest]) / rms(measured[~rest]))
    unknown = compared(recording)
    assert np.isnan(unknown.moving_nrmse) and not any(joint.rest_share for joint in unknown.joints)


def test_zero_torque_gives_finite_metrics(recording):
    held_out = compared(changed(recording, tau=lambda tau: 0.0 * tau))
    assert all(np.isfinite(joint.nrmse) and joint.correlation == 0.0 for joint in held_out.joints)
    assert held_out.all_joints_nrmse > 1e6


GOOD = JointMetrics("a", "N m", False, 10.0, 0.5, 0.05, 0.99, 1.0, 0.4, 0.06, 0.8, 0.3)
SMALL = replace(GOOD, name="b", rms=0.1, rmse=0.005)
HELD_OUT = HeldOut((GOOD, SMALL), 0.05, 0.3, 1000, 0.0)


AT_REST = replace(GOOD, rest_share=0.7, rest_rmse=0.55, friction=0.6)
STUCK = HeldOut((AT_REST, SMALL), 0.31, 1.0, 1000, 0.0, moving_nrmse=0.05)
"""A joint at rest in most of the samples, whose error there is within its friction, and most of its error."""

FAILED = CrossCheck(1e-3, 0.0, 0.0, 0.0, 10, 10, 100)


def judge(held_out=HELD_OUT, thresholds=Thresholds(), condition_number=50.0, dropped_share=0.0):  # noqa: B008
    return (
        *judge_prediction(held_out, thresholds),
        *judge_training(condition_number, dropped_share, thresholds),
    )


def verdict(**options):
    return Verdict.from_findings(judge(**options)).word


def with_joints(*joints, **changes):
    return replace(HELD_OUT, joints=joints, **changes)


def test_an_error_far_above_that_of_the_training_data_is_named_whatever_the_size():
    """At the speed at which the training data have their largest; not one that hardly matters to the drive."""
    trained = np.array([[0.1, 0.16], [0.002, 0.001]])  # rmse 0.5 and 0.005, of joints whose rated effort is not known
    profile = ResidualProfile(np.array([[0.0, 1.0], [0.0, 1.0]]), trained)
    (finding,) = judge_prediction(HELD_OUT, Thresholds(), profile)
    assert (finding.code, finding.severity) == ("held_out_worse_than_trained", "warning")
    assert finding.joints == ("a",) and "a 3.1 times" in finding.message
    assert judge_prediction(HELD_OUT, Thresholds(), replace(profile, deviations=1.1 * trained)) == ()
    strong = with_joints(replace(GOOD, rated=26.0), SMALL)
    assert judge_prediction(strong, Thresholds(), profile) == ()
    assert judge_prediction(HELD_OUT, Thresholds(limited_ratio=4.0), profile) == ()


def test_without_findings_the_verdict_is_good():
    assert judge() == ()
    assert Verdict.from_findings(()) == Verdict("good", ())


RULES = {
    "all joints": (
        "held_out_error",
        "error",
        (),
        {"held_out": with_joints(GOOD, SMALL, all_joints_nrmse=0.31, nominal_all_joints_nrmse=1.0)},
    ),
    "all joints, at rest within the friction": ("stiction_at_rest", "warning", ("a",), {"held_out": STUCK}),
    "all joints, at rest and in motion": (
        "held_out_error",
        "error",
        (),
        {"held_out": replace(STUCK, moving_nrmse=0.31)},
    ),
    "all joints, at rest beyond the friction": (
        "held_out_error",
        "error",
        (),
        {"held_out": replace(STUCK, joints=(replace(AT_REST, friction=0.5), SMALL))},
    ),
    "all joints, seldom at rest": (
        "held_out_error",
        "error",
        (),
        {"held_out": replace(STUCK, joints=(replace(AT_REST, rest_share=0.3), SMALL))},
    ),
    "constant, at rest within the friction": (
        "joint_not_identifiable",
        "info",
        ("a",),
        {"held_out": with_joints(replace(AT_REST, nrmse=0.8), SMALL)},
    ),
    "not a number": ("held_out_error", "error", (), {"held_out": with_joints(GOOD, all_joints_nrmse=float("nan"))}),
    "constant": (
        "no_better_than_constant",
        "error",
        ("a",),
        {"held_out": with_joints(replace(GOOD, nrmse=0.8), SMALL)},
    ),
    "nominal": (
        "worse_than_urdf",
        "error",
        (),
        {"held_out": replace(HELD_OUT, all_joints_nrmse=0.12, nominal_all_joints_nrmse=0.1)},
    ),
    "small joint, constant": (
        "joint_not_identifiable",
        "warning",
        ("b",),
        {"held_out": with_joints(GOOD, replace(SMALL, nrmse=0.9))},
    ),
    "unidentifiable": (
        "joint_not_identifiable",
        "warning",
        ("a",),
        {"held_out": with_joints(replace(GOOD, nrmse=0.6), SMALL)},
    ),
    "joint": ("joint_held_out_error", "warning", ("b",), {"held_out": with_joints(GOOD, replace(SMALL, nrmse=0.31))}),
    "joint, error below its friction": (
        "joint_held_out_error",
        "info",
        ("b",),
        {"held_out": with_joints(GOOD, replace(SMALL, nrmse=0.31, rmse=0.031, friction=0.04))},
    ),
    "joint, error far below its rated effort": (
        "joint_not_identifiable",
        "info",
        ("b",),
        {"held_out": with_joints(GOOD, replace(SMALL, nrmse=0.9, rmse=0.09, rated=5.0))},
    ),
    "joint, error above friction and rated effort": (
        "joint_not_identifiable",
        "warning",
        ("b",),
        {"held_out": with_joints(GOOD, replace(SMALL, nrmse=0.9, rmse=0.09, rated=4.0, friction=0.08))},
    ),
    "condition": ("condition_number_high", "info", (), {"condition_number": 1001.0}),
    "not excited": ("condition_number_high", "info", (), {"condition_number": float("inf")}),
    "dropped": ("rows_dropped", "warning", (), {"dropped_share": 0.011}),
    "outside": (
        "outside_training",
        "warning",
        ("b",),
        {"held_out": replace(HELD_OUT, outside=0.06, outside_of=(Excess("b", "speed", 0.2),))},
    ),
    "outside, one joint": (
        "outside_training",
        "info",
        ("b",),
        {"held_out": replace(HELD_OUT, outside=0.05, outside_of=(Excess("b", "speed", 0.2),))},
    ),
    "uncertain": ("prediction_uncertain", "info", ("a",), {"held_out": with_joints(replace(GOOD, own_nrmse=0.11))}),
    "slow": ("held_out_too_slow", "warning", ("b",), {"held_out": replace(HELD_OUT, slow=(("b", 0.1),))}),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_alone_gives_its_finding(rule):
    code, severity, joints, options = RULES[rule]
    (finding,) = judge(**options)
    assert (finding.code, finding.severity, finding.joints) == (code, severity, joints)
    assert verdict(**options) == {"error": "bad", "warning": "suspect", "info": "good"}[severity]


@pytest.mark.parametrize(
    "options",
    [
        {"held_out": with_joints(GOOD, SMALL, all_joints_nrmse=0.3)},
        {"held_out": with_joints(replace(GOOD, nrmse=0.3), SMALL)},
        {"held_out": replace(HELD_OUT, all_joints_nrmse=0.109, nominal_all_joints_nrmse=0.1)},
        {"held_out": replace(HELD_OUT, all_joints_nrmse=0.2, nominal_all_joints_nrmse=float("nan"))},
        {"held_out": replace(HELD_OUT, outside=0.05)},
        {"dropped_share": 0.01},
    ],
    ids=str,
)
def test_values_at_a_threshold_are_good(options):
    assert verdict(**options) == "good"


def test_thresholds_can_be_changed():
    strict = Thresholds(bad_nrmse=0.04)
    assert verdict(thresholds=strict) == "bad"
    assert judge(condition_number=1e5, thresholds=Thresholds(condition_number=1e6)) == ()


def test_a_failed_cross_check_is_an_error():
    assert not FAILED.passed
    (finding,) = judge_cross_check(FAILED)
    assert (finding.code, finding.severity) == ("cross_check_failed", "error")


def test_errors_come_before_warnings_and_infos_are_not_reasons():
    findings = (*judge(dropped_share=0.5), *judge_cross_check(FAILED), find_definition("data_unused").found("x"))
    outcome = Verdict.from_findings(findings)
    assert outcome.word == "bad"
    assert outcome.reasons == tuple(format_finding(findings[place]) for place in (1, 0))
