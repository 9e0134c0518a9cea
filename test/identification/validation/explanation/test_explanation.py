# SPDX-License-Identifier: Apache-2.0
"""The explanation of identified models: figures that agree with the data, the metrics, and each other."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.altered import altered
from support.simulated import ARM, GRIPPER, LIFT, TERMS, Simulated, changed

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Coulomb, Dahl, RotorInertia, Viscous
from robot_dyn_id.dynamics.torque_parts import CAUSES
from robot_dyn_id.findings import find_definition, list_definitions
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.explanation import explain
from robot_dyn_id.identification.validation.explanation.health import (
    CHECKS,
    LOOK,
    NOT_CHECKED,
    PASSED,
    TRAINING_CHECKS,
    explain_health,
)
from robot_dyn_id.identification.validation.explanation.joints import SCATTER_SAMPLES
from robot_dyn_id.report.summary import summarize_explanation, summarize_identification

FRICTION = '<dynamics damping="1.2" friction="0.7"/></joint>'
MODELS = {
    "arm": (ARM, TERMS, True),
    "prismatic": (LIFT, (*TERMS, RotorInertia()), True),
    "mimic": (GRIPPER, TERMS, False),
    "presliding": (ARM, (Viscous(), Dahl()), False),
}
"""Robot, terms, and whether a recording is held out; else the model is cross-validated."""


@cache
def identified(name="arm"):
    text, terms, held_out = MODELS[name]
    robot = Simulated(text.replace("</joint>", FRICTION), terms)
    others = [robot.record(2, noise=0.1)] if held_out else []
    return identify([robot.record(1, noise=0.1)], others, robot.model, Settings(terms=terms), "test")


def explained(name="arm"):
    result = identified(name)
    return result, explain(result.evaluation, result.parameters, result.training)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_causes_add_up_to_the_prediction_at_every_sample(name):
    result, explanation = explained(name)
    trace = result.evaluation.trace
    for number, joint in enumerate(explanation.joints):
        series = joint.series
        total = sum(getattr(series, cause) for cause in CAUSES)
        assert np.abs(total - series.predicted).max() < 1e-12 * np.abs(series.predicted).max()
        np.testing.assert_array_equal(series.predicted, trace.predicted[number])
        np.testing.assert_array_equal(series.residual, trace.measured[number] - trace.predicted[number])
        for cause in CAUSES:
            used = getattr(series, cause)[series.valid]
            assert joint.rms[cause] == pytest.approx(np.sqrt(np.mean(used**2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_samples_that_are_shown_have_the_error_of_all(name):
    result, explanation = explained(name)
    for joint, metrics in zip(explanation.joints, result.evaluation.held_out.joints, strict=True):
        shown = joint.series.residual[joint.series.valid]
        assert np.sqrt(np.mean(shown**2)) == pytest.approx(metrics.rmse, rel=0.05)
        assert joint.error_of_rated == pytest.approx(metrics.rmse / 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm", "mimic"])
def test_the_band_contains_most_held_out_samples_of_a_true_model(name):
    """Training residuals are less than held-out ones, which friction enlarges at reversals: less than 95 %."""
    _, explanation = explained(name)
    for joint in explanation.joints:
        assert 0.75 < joint.coverage_95 <= 1.0
        assert np.all(joint.series.half_width > 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm", "mimic"])
def test_a_wrong_prediction_leaves_its_band(name):
    """Neither a recording that was held out nor a block of the cross-validation widens the band that judges it."""
    result, before = explained(name)
    trace = result.evaluation.trace
    judged = trace.fold == trace.fold[-1]
    wrong = trace.predicted + judged * 5.0 * np.abs(trace.residual).max(axis=1)[:, None]
    evaluation = replace(result.evaluation, trace=replace(trace, predicted=wrong))
    for joint, sound in zip(explain(evaluation, result.parameters).joints, before.joints, strict=True):
        series = joint.series
        np.testing.assert_allclose(series.half_width[judged], sound.series.half_width[judged])
        assert np.mean(np.abs(series.residual[judged]) <= series.half_width[judged]) < 0.5
        assert joint.coverage_95 < sound.coverage_95


def test_a_validation_has_no_band_without_residuals_and_a_stated_error():
    result, _ = explained()
    arm = Simulated(ARM.replace("</joint>", FRICTION))
    silent = altered(
        result.parameters,
        residuals={"speeds": np.zeros(0), "deviations": np.zeros(0)},
        judgment={"held_out_nrmse": np.full(len(result.parameters.robot.joint_names), np.nan)},
    )
    evaluation = validate([arm.record(3, noise=0.1)], silent, Settings(terms=TERMS))
    for joint in explain(evaluation, silent).joints:
        assert np.isnan(joint.coverage_95) and np.isnan(joint.series.half_width).all()


@pytest.mark.slow
def test_a_validation_has_the_band_of_the_identification():
    """That of the residuals that the set holds; of an older set, that of the held-out error that it states."""
    result, explanation = explained()
    arm = Simulated(ARM.replace("</joint>", FRICTION))
    again = validate([arm.record(2, noise=0.1)], result.parameters, Settings(terms=TERMS))
    for one, other in zip(explanation.joints, explain(again, result.parameters).joints, strict=True):
        np.testing.assert_allclose(one.series.half_width, other.series.half_width, rtol=1e-9)
        assert other.coverage_95 == one.coverage_95
    older = altered(result.parameters, residuals={"speeds": np.zeros(0), "deviations": np.zeros(0)})
    evaluation = validate([arm.record(3, noise=0.1)], older, Settings(terms=TERMS))
    found = explain(evaluation, older)
    assert all(0.9 < joint.coverage_95 <= 1.0 for joint in found.joints)
    assert found.motion_source == "held-out data"
    assert found.coverage_95 == pytest.approx(np.mean([joint.coverage_95 for joint in found.joints]))


@pytest.mark.slow
def test_the_band_follows_noise_that_depends_on_the_speed():
    """Noise that grows with the speed, and noise that is largest at rest: one sigma for all would cover neither."""
    arm = Simulated(ARM)
    rng = np.random.default_rng(4)
    for law in (lambda speed: 0.05 + 0.4 * speed, lambda speed: 0.05 + 0.6 * np.exp(-speed / 0.1)):

        def noisy(recording, law=law):
            samples = recording.samples
            size = law(np.abs(samples.dq))
            return changed(recording, tau=samples.tau + size * rng.normal(size=size.shape))

        training, other = (noisy(arm.record(seed)) for seed in (1, 2))
        result = identify([training], [other], arm.model, Settings(terms=TERMS), "test")
        explanation = explain(result.evaluation, result.parameters)
        assert 0.92 < explanation.coverage_95 < 0.99
        for joint, dq in zip(explanation.joints, result.evaluation.trace.motion.dq, strict=True):
            inside = np.abs(joint.series.residual) <= joint.series.half_width
            slow, fast = (np.abs(dq) < np.quantile(np.abs(dq), 0.2)), (np.abs(dq) > np.quantile(np.abs(dq), 0.8))
            assert inside[slow].mean() > 0.85 and inside[fast].mean() > 0.85
            assert np.ptp(joint.series.half_width) > 0.5 * joint.series.half_width.min()


def test_samples_over_the_motion_are_those_of_the_trace():
    result, explanation = explained()
    trace = result.evaluation.trace
    for number, joint in enumerate(explanation.joints):
        scatter = joint.scatter
        assert len(scatter.t) <= SCATTER_SAMPLES
        at = np.searchsorted(trace.t, scatter.t)
        np.testing.assert_array_equal(scatter.position, trace.motion.q[number, at])
        np.testing.assert_array_equal(scatter.speed, trace.motion.dq[number, at])
        others = sum(getattr(joint.series, cause)[at] for cause in CAUSES if cause != "friction")
        np.testing.assert_allclose(scatter.friction, trace.measured[number, at] - others, atol=1e-12)


def test_spectra_hold_the_power_of_the_residual():
    result, explanation = explained()
    for joint, metrics in zip(explanation.joints, result.evaluation.held_out.joints, strict=True):
        spectrum = joint.spectrum
        power = np.sum(spectrum.residual**2) * (spectrum.frequency[1] - spectrum.frequency[0])
        assert np.sqrt(power) == pytest.approx(metrics.raw_nrmse * metrics.rms, rel=0.2)
        assert spectrum.cutoff == result.evaluation.plan.low_pass.cutoff


def test_parameters_are_compared_with_the_urdf_where_it_states_them():
    result, explanation = explained()
    parameters, rows = result.parameters, {row.name: row for row in explanation.parameters}
    model = Regressor.from_parameters(parameters).model
    for name, row in rows.items():
        number = parameters.base.names.index(name)
        sigma = parameters.estimate.standard_deviations[number]
        assert row.significance == pytest.approx(abs(parameters.estimate.values[number]) / sigma)
        if name.startswith("off"):
            assert np.isnan([row.urdf, row.difference]).all()
            continue
        inertial = parameters.base.mapping[number, : 10 * len(model.body_names)] @ model.inertial_parameters
        expected = 1.2 if name.startswith("fv") else 0.7 if name.startswith("fc") else inertial
        assert row.urdf == pytest.approx(expected)
        assert row.difference == pytest.approx((parameters.estimate.values[number] - row.urdf) / sigma)
    assert {joint.friction_urdf.damping for joint in explanation.joints} == {1.2}


def test_friction_of_several_terms_is_not_compared_term_by_term():
    _, explanation = explained("presliding")
    for row in explanation.parameters:
        assert np.isfinite(row.urdf) == row.name.startswith(("m", "I"))


def test_rotors_that_the_data_separate_are_the_rest_and_others_are_merged():
    result, explanation = explained("prismatic")
    own = {name for name in result.parameters.base.names if name.startswith("Ir")}
    for number, joint in enumerate(explanation.joints):
        merged = any(f"Ir{number + 1}" in text for text in joint.merged)
        assert merged != (f"Ir{number + 1}" in own)
        assert joint.rest_terms == (() if merged else ("rotor_inertia",))
    assert [joint.unit for joint in explanation.joints] == ["N", "N m"]


class TestExcitation:
    """Coverage of the ranges."""

    def test_shares_of_the_ranges_are_those_of_the_limits(self):
        result, explanation = explained()
        for number, joint in enumerate(explanation.excitation):
            assert joint.used_position == pytest.approx(np.ptp(joint.trained_positions) / 5.0)
            assert joint.used_speed == pytest.approx(result.parameters.ranges.dq_max[number] / 4.0)

    @pytest.mark.slow
    def test_reversals_and_rest_are_those_of_the_motion(self):
        arm = Simulated(ARM)
        still = arm.record(1, noise=0.1, still=(2,))
        result = identify([still], [], arm.model, Settings(terms=TERMS), "test")
        explanation = explain(result.evaluation, result.parameters)
        velocity = result.evaluation.trace.motion.dq[0]
        fast = velocity[np.abs(velocity) > 0.01 * result.parameters.ranges.dq_max[0]]
        assert explanation.excitation[0].reversals == np.count_nonzero(np.diff(np.sign(fast)))
        assert explanation.excitation[0].rest < 0.1
        assert explanation.motion_source == "training data"
        sparse = replace(result.evaluation.trace, t=100.0 * result.evaluation.trace.t)
        found = explain(replace(result.evaluation, trace=sparse), result.parameters)
        assert found.excitation[0].reversals is None


class TestHealth:
    """Checks of the data."""

    def test_every_check_finds_something(self):
        assert {one.check for one in list_definitions()} == {"", *CHECKS}

    def test_every_check_is_listed_whatever_it_found(self):
        _, explanation = explained()
        assert [row.check for row in explanation.health] == list(CHECKS)
        assert all(row.found for row in explanation.health)
        (effort,) = (row.found for row in explanation.health if "distinct" in row.found)
        assert re.fullmatch(r"at least \d+ distinct values of every joint", effort)

    @pytest.mark.slow
    def test_a_fault_of_the_training_data_names_its_reason(self):
        """Figures are those of the training data, not of the shorter recording that was held out."""
        arm = Simulated(ARM)
        holes = changed(arm.record(1, noise=0.1), t=lambda t: np.where(np.arange(len(t)) % 40 == 7, np.nan, t))
        short = changed(arm.record(2, noise=0.1), **{key: lambda x: x[:1200] for key in ("t", "q", "dq", "tau")})
        result = identify([holes], [short], arm.model, Settings(terms=TERMS), "test")
        rows = {row.check: row for row in explain(result.evaluation, result.parameters, result.training).health}
        assert "50 of 2000 samples dropped (50 time stamp not finite)" in rows["rows"].found
        assert rows["positions"].result == PASSED
        found = json.dumps(summarize_identification(result, "p.yaml")["data_health"])
        assert "of 2000 samples" in found and "of 1200 samples" not in found

    def test_what_nothing_checked_has_not_passed(self):
        result, explanation = explained()
        rows = {row.check: row for row in explanation.health}
        unverified = [one for one in result.findings if one.code == "gain_unverifiable"]
        assert (rows["sign and unit"].result == PASSED) == (not unverified)
        findings = [one for one in result.findings if one.definition.check != "sign and unit"]
        limits = np.full(len(result.parameters.robot.joint_names), 5.0)
        bare = result.training.with_recordings([changed(one.recording, dq=None) for one in result.training.recordings])
        assert {one.check: one.result for one in explain_health(bare, findings, limits)}["velocity"] == NOT_CHECKED
        info = find_definition("gain_unverifiable").found("friction explains it", ("elbow",), "info")
        judged = {one.check: one.result for one in explain_health(result.training, [*findings, info], limits)}
        assert judged["sign and unit"] == NOT_CHECKED
        validated = {one.check: one.result for one in explain_health(result.training, findings, limits, False)}
        assert {name for name, word in validated.items() if word == NOT_CHECKED} >= TRAINING_CHECKS

    def test_clipping_is_not_checked_without_effort_limits(self):
        result, explanation = explained()
        (row,) = [row for row in explanation.health if row.check == "clipping"]
        survey = result.training.survey
        largest = np.maximum(np.abs(survey.tau_min), np.abs(survey.tau_max)).max()
        assert row.result == PASSED and f"up to {largest / 5.0:.0%} of the limit" in row.found
        joints = result.parameters.robot.joint_names
        for limits, unlimited in ((np.array([5.0, np.inf, 5.0]), joints[1]), (np.zeros(3), ", ".join(joints))):
            rows = {one.check: one for one in explain_health(result.training, (), limits)}
            assert rows["clipping"].result == NOT_CHECKED and unlimited in rows["clipping"].found
        saturated = find_definition("effort_saturated").found("at its limit", joints[:1])
        rows = {one.check: one for one in explain_health(result.training, [saturated], np.zeros(3))}
        assert rows["clipping"].result == LOOK


def test_the_json_has_no_curves_and_no_numbers_that_are_not_finite():
    result, explanation = explained()
    summary = summarize_explanation(explanation)
    text = json.dumps(summary, allow_nan=False)
    assert len(text) < 60_000
    assert summarize_identification(result, "p.yaml")["links"] == summary["links"]
    assert summary["torque_by_cause"]["elbow"]["rms"]["gravity"] == explanation.joints[1].rms["gravity"]
    assert Coulomb.cause == "friction"
