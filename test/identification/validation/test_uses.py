# SPDX-License-Identifier: Apache-2.0
"""Answers about the uses of a model: scales against closed forms, thresholds, findings that lower an answer."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.simulated import TERMS, Simulated, changed, estimator_of

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import Offset, Viscous
from robot_dyn_id.dynamics.terms.dahl import Dahl
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.export import export_model
from robot_dyn_id.findings import find_definition
from robot_dyn_id.identification.assembly import make_tracked, replace_covariance
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.prediction.feed_forward import FeedForward
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.metrics import Fold, HeldOut, JointMetrics, compare
from robot_dyn_id.identification.validation.rollout import Rollouts, simulate_rollouts
from robot_dyn_id.identification.validation.scales import (
    ErrorHistogram,
    compute_gravity_deviation,
    compute_inertia_deviation,
    find_friction_levels,
    rate_effort,
)
from robot_dyn_id.identification.validation.uses import (
    ModelScales,
    estimate_capacity,
    judge_uses,
    list_criteria,
    list_unloaded,
    report_criteria,
)
from robot_dyn_id.parameters import Ranges
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.plant import CompiledDynamics
from robot_dyn_id.simulation.plant_lanes import PlantLanes
from robot_dyn_id.uses import USES

PAGE = Path(__file__).parents[3] / "docs" / "trust.md"
ROBOT = Simulated()
PLAN = SignalPlan.from_low_pass(100.0, LowPass(5.0), False)


@pytest.fixture(scope="module")
def trials():
    recording = ROBOT.record(duration=20.0, noise=0.01)
    return FilteredTrials([recording], recording.joint_names, {}, PLAN)


@pytest.fixture(scope="module")
def identified():
    recordings = [ROBOT.record(seed, duration=20.0, noise=0.05) for seed in (1, 2)]
    settings = Settings(terms=TERMS, estimator=estimator_of("weighted"))
    return identify(recordings[:1], recordings[1:], ROBOT.model, settings, "1")


@pytest.fixture(scope="module")
def poses(trials):
    return next(iter(trials)).motion.take(slice(500, 700, 10))


def test_friction_is_what_the_joint_resists_in_both_directions(trials, poses):
    levels = find_friction_levels(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values, poses, trials.ranges)
    speed = 0.1 * trials.ranges.dq_max
    coulomb = ROBOT.regressor.term_columns[3].term
    expected = 1.5 * speed + 1.0 * coulomb.columns(speed, speed, speed)[0]  # fv and fc of `support.simulated`
    np.testing.assert_allclose(levels, expected, rtol=1e-9)


def test_deviation_of_the_gravity_torque_is_that_of_the_rows_at_rest(poses):
    covariance = np.diag(np.linspace(0.01, 1.0, len(ROBOT.base_values)))
    rest = Motion(poses.q, np.zeros_like(poses.q), np.zeros_like(poses.q))
    rows = ROBOT.regressor.dense(rest)[ROBOT.base.independent]
    expected = np.sqrt(np.einsum("ink,i,ink->nk", rows, np.diag(covariance), rows).mean(axis=1))
    found = compute_gravity_deviation(ROBOT.regressor, ROBOT.base.independent, covariance, poses)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_deviation_of_the_inertia_is_relative_to_the_mass_matrix(poses):
    dynamics = Dynamics(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values)
    covariance = np.zeros((len(ROBOT.base_values),) * 2)
    last = ROBOT.base.names.index("Ixx3")  # the wrist turns about its own x axis
    covariance[last, last] = 0.1**2
    found = compute_inertia_deviation(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values, covariance, poses)
    own = np.median(0.1 / dynamics.mass_matrix(poses.q.T)[:, 2, 2])
    assert found[2] == pytest.approx(own, rel=1e-9)


def test_an_inertia_that_is_not_positive_is_not_known(poses):
    values = -ROBOT.base_values
    covariance = np.eye(len(values))
    found = compute_inertia_deviation(ROBOT.regressor, ROBOT.base.independent, values, covariance, poses)
    assert np.isinf(found).all()


def test_quantiles_of_errors_are_those_of_the_samples():
    errors = np.random.default_rng(0).standard_normal((2, 50_000)) * np.array([[1.0], [1e-3]])
    histogram = ErrorHistogram.empty(2)
    for part in np.array_split(errors, 7, axis=1):
        histogram.add(part, np.ones(part.shape, dtype=bool))
    exact = np.quantile(np.abs(errors), 0.999, axis=1)
    found = histogram.quantile(0.999)
    assert np.all((found >= 0.99 * exact) & (found <= 1.07 * exact))
    assert np.isnan(ErrorHistogram.empty(1).quantile(0.5)).all()


def test_the_rated_effort_is_the_limit_unless_the_torque_contradicts_it():
    limits = np.array([87.0, np.inf, 0.0, 1000.0, 5.0])
    peak = np.array([30.0, 30.0, 30.0, 2.0, 6.0])
    np.testing.assert_array_equal(rate_effort(limits, peak), [87.0, 30.0, 30.0, 20.0, 6.0])


@pytest.mark.parametrize("mass", [0.0, 0.3])
def test_the_apparent_load_is_the_mass_that_the_model_has_not(trials, mass):
    """A load at the last link that the model does not know shows as its mass, in every block."""
    tip = 10 * (len(ROBOT.model.body_names) - 1)
    loaded = ROBOT.parameters.copy()
    loaded[tip] += mass
    held_out = compare([Fold(trials, ROBOT.regressor, ROBOT.base.independent, ROBOT.base.mapping @ loaded)])
    assert held_out.apparent_load == pytest.approx(mass, abs=0.02)
    capacity = estimate_capacity(held_out)
    torques = [joint.load_torque for joint in held_out.joints]
    assert capacity == pytest.approx(min(j.rated / t for j, t in zip(held_out.joints, torques, strict=True) if t > 0.5))


def test_a_joint_that_the_model_does_not_explain_shows_no_payload(trials):
    """Its effort is small noise, so that small errors would hide a load that it does not feel."""
    rng, tip = np.random.default_rng(3), 10 * (len(ROBOT.model.body_names) - 1)
    noise = rng.normal(size=len(trials.recordings[0].samples.t))
    still = changed(trials.recordings[0], tau=lambda tau: np.column_stack([*tau.T[:-1], 0.01 * noise]))
    loaded = ROBOT.parameters.copy()
    loaded[tip] += 0.3
    loaded = ROBOT.base.mapping @ loaded
    fold = Fold(replace(trials, recordings=(still,)), ROBOT.regressor, ROBOT.base.independent, loaded)
    held_out = compare([fold], explained=0.5)
    last = held_out.joints[-1]
    assert last.explained < 0.5 and last.load_torque == 0.0
    assert held_out.apparent_load == pytest.approx(0.3, abs=0.03)
    assert estimate_capacity(held_out) > 10.0 * last.rated, "not the rated effort of the joint that carries nothing"
    assert np.isnan(estimate_capacity(compare([fold], explained=1.1))), "no joint is left"


def test_rollouts_of_the_true_robot_stay_and_those_of_a_wrong_one_leave(trials):
    true = Dynamics(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values)
    rollouts = simulate_rollouts([(true, trials)])
    assert rollouts.count > 5 and not rollouts.problem
    assert rollouts.errors.shape == (3, 3) and np.all(rollouts.errors[0] < 1e-3)
    assert np.all(rollouts.errors[1] < 0.05)
    wrong = Dynamics(ROBOT.regressor, ROBOT.base.independent, 1.3 * ROBOT.base_values)
    assert np.all(simulate_rollouts([(wrong, trials)]).errors[1].max() > 10 * rollouts.errors[1].max())


def test_rollouts_cover_the_whole_recording(trials):
    """Three of eight blocks are simulated, one of each third; wrong models of the others change nothing."""
    true = Dynamics(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values)
    wrong = Dynamics(ROBOT.regressor, ROBOT.base.independent, 1.5 * ROBOT.base_values)
    blocks = trials.blocks(8)
    parts = [trials.block_only(number, blocks) for number in range(8)]
    simulated = {1, 4, 6}
    mixed = simulate_rollouts([(true if number in simulated else wrong, part) for number, part in enumerate(parts)])
    expected = simulate_rollouts([(true, parts[number]) for number in sorted(simulated)])
    np.testing.assert_array_equal(mixed.errors, expected.errors)
    assert mixed.count == expected.count > 3


def test_a_simulation_that_diverges_counts_only_at_horizons_in_the_recording(trials, monkeypatch):
    def diverge(self, effort, duration):
        self.diverged[:] = True

    short = changed(trials.recordings[0], rows=slice(0, 160))  # no rollout reaches the last horizon
    few = FilteredTrials([short], short.joint_names, {}, PLAN)
    monkeypatch.setattr(PlantLanes, "advance", diverge)
    rollouts = simulate_rollouts([(Dynamics(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values), few)])
    assert np.isinf(rollouts.errors[0]).all() and np.isnan(rollouts.errors[2]).all() and rollouts.count > 0


def test_a_model_without_forward_dynamics_has_no_rollouts(trials):
    broken = Dynamics(ROBOT.regressor, ROBOT.base.independent, -ROBOT.base_values)
    rollouts = simulate_rollouts([(broken, trials)])
    assert rollouts.count == 0 and "not positive definite" in rollouts.problem and np.isnan(rollouts.errors).all()


ARM = JointMetrics(
    *("arm", "N m", False, 10.0, 0.5, 0.05, 0.99, 1.0, 0.4, 0.06, 0.8, 0.3),
    **{"peak": 20.0, "detectable": 1.5, "rated": 50.0, "friction": 1.0, "load_torque": 5.0, "dynamic_rms": 3.0},
)
SMALL_LOADS = {"peak": 0.6, "detectable": 0.4, "rated": 5.0, "friction": 0.2, "load_torque": 1.0, "dynamic_rms": 0.3}
TIP = replace(ARM, name="tip", rms=0.3, rmse=0.1, **SMALL_LOADS)
HELD_OUT = HeldOut((ARM, TIP), 0.05, 0.3, 1000, 0.0, apparent_load=0.05)
SMALL = Rollouts(np.full((3, 2), 0.005), 9)
SCALES = ModelScales(np.array([0.1, 0.02]), np.array([0.5, -0.05]), np.array([0.05, 0.1]), SMALL)
TRAINED = Ranges(np.array([-1.0, -1.0]), np.array([1.0, 1.0]), np.ones(2), np.ones(2))
NAMES = ("arm", "tip")


def judged(held_out=HELD_OUT, scales=SCALES, findings=(), thresholds=Thresholds()):  # noqa: B008
    criteria = list_criteria(held_out, scales, TRAINED, thresholds)
    return {one.fit.use: one for one in judge_uses(NAMES, criteria, findings, list_unloaded(held_out))}


def test_a_good_model_is_fit_for_every_use():
    found = judged()
    assert tuple(found) == USES
    for one in found.values():
        assert (one.fit.answer, one.fit.because, one.fit.joints) == ("yes", (), ())
        assert one.joints == {"arm": "yes", "tip": "yes"}
    criteria = list_criteria(HELD_OUT, SCALES, TRAINED, Thresholds())
    assert report_criteria(criteria, SMALL) == ()


def test_small_torques_are_judged_in_newton_meters():
    """Half of what feedback has to supply is error; it is 2 % of the rated effort of the tip."""
    weak = with_tip(dynamic_rms=0.19)["held_out"]
    fit = judged(weak)["feed_forward"].fit
    assert (fit.answer, fit.figure, fit.unit, fit.threshold) == ("yes", 0.1, "N m", pytest.approx(0.1))
    assert judged(weak, thresholds=Thresholds(rated_share=0.01))["feed_forward"].fit.joints == ("tip",)


def test_tracking_is_limited_up_to_what_gravity_compensation_alone_does():
    strict = Thresholds(rated_share=0.0)
    errors = {0.14: "yes", 0.16: "limited", 0.29: "limited", 0.31: "no"}
    assert {
        error: judged(**with_tip(rmse=error), thresholds=strict)["feed_forward"].fit.answer for error in errors
    } == (errors)


def test_an_answer_that_the_figure_does_not_explain_states_its_reason():
    """`no 0.4 of 1` is a contradiction without the finding that it rests on."""
    found = judged(findings=(find_definition("gain_inconsistent").found("tip", ["tip"], "warning"),))
    assert all(one.reason == "because of gain_inconsistent" for one in found.values())
    assert all(one.reason == "" for one in judged().values())
    assert judged(**with_tip(rmse=1e3))["gravity_compensation"].reason == ""


def test_an_answer_names_the_finding_and_the_time_of_its_figure():
    far = judged(**rollout(0.005, 0.5, math.nan))["forward_simulation"]
    assert (far.fit.answer, far.code, far.joint, far.after) == ("limited", "rollout_error_high", "tip", 1.0)
    off = judged(**rollout(0.5, 0.5, math.nan))["forward_simulation"]
    assert (off.fit.answer, off.code, off.after) == ("no", "rollout_diverges", 0.1)
    assert all(one.code == "" for one in judged().values())
    assert judged(**with_tip(rmse=1e3))["gravity_compensation"].code == "gravity_error_high"


def with_tip(**changes):
    return {"held_out": replace(HELD_OUT, joints=(ARM, replace(TIP, **changes)))}


def with_scales(**changes):
    return {"scales": replace(SCALES, **changes)}


def rollout(*errors):
    return with_scales(rollouts=Rollouts(np.array([[0.005, e] for e in errors]), 9))


CASES = {
    "drifts": ("gravity_compensation", with_tip(rmse=0.21), "limited", "gravity_error_high"),
    "drifts far": ("gravity_compensation", with_tip(rmse=0.61), "no", "gravity_error_high"),
    "gravity": (
        "gravity_compensation",
        with_scales(gravity_deviation=np.array([0.1, 0.11])),
        "limited",
        "gravity_uncertain",
    ),
    "wrong zero": ("gravity_compensation", with_scales(constant=np.array([0.5, -0.21])), "limited", "offset_large"),
    "wrong zero, far": ("gravity_compensation", with_scales(constant=np.array([0.5, 60.0])), "no", "offset_large"),
    "commanded zero": ("feed_forward", with_scales(constant=np.array([0.5, -0.16])), "limited", "offset_large"),
    "torque": ("feed_forward", with_tip(rmse=0.16), "limited", "torque_error_high"),
    "torque, far": ("feed_forward", with_tip(rmse=0.31), "no", "torque_error_high"),
    "inertia": (
        "computed_torque",
        with_scales(inertia_deviation=np.array([0.1, 0.3])),
        "limited",
        "inertia_uncertain",
    ),
    "inertia, far": (
        "computed_torque",
        with_scales(inertia_deviation=np.array([0.1, 80.0])),
        "limited",
        "inertia_uncertain",
    ),
    "no inertia": (
        "computed_torque",
        with_scales(inertia_deviation=np.array([0.1, np.inf])),
        "no",
        "inertia_uncertain",
    ),
    "1 s": ("forward_simulation", rollout(0.005, 0.21, 9.0), "limited", "rollout_error_high"),
    "1 s, diverges": ("forward_simulation", rollout(0.005, np.inf, np.inf), "limited", "rollout_error_high"),
    "0.1 s": ("forward_simulation", rollout(0.021, 0.1, 0.1), "no", "rollout_diverges"),
    "not simulated": ("forward_simulation", rollout(np.nan, np.nan, np.nan), "no", "rollout_not_computed"),
    "contacts": ("collision_detection", with_tip(detectable=0.51), "limited", "contact_threshold_high"),
    "contacts at unknown weight": (
        "collision_detection",
        with_scales(gravity_deviation=np.array([0.1, 0.8])),
        "no",
        "gravity_uncertain",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_figure_limits_its_use_on_its_joint(case):
    use, options, answer, code = CASES[case]
    one = judged(**options)[use]
    assert (one.fit.answer, one.fit.because, one.fit.joints) == (answer, (code,), ("tip",))
    assert one.joints == {"arm": "yes", "tip": answer}
    criteria = list_criteria(options.get("held_out", HELD_OUT), options.get("scales", SCALES), TRAINED, Thresholds())
    findings = {one.code: one for one in report_criteria(criteria, SMALL)}
    assert findings[code].severity == "info"


def test_a_model_whose_joints_carry_no_load_is_not_fit_for_payloads():
    held_out = replace(
        HELD_OUT, joints=tuple(replace(joint, load_torque=1e-40) for joint in HELD_OUT.joints), apparent_load=1e40
    )
    assert np.isnan(estimate_capacity(held_out))
    fit = judged(held_out)["payload"].fit
    assert fit.answer == "no"
    assert np.isnan(fit.figure)


def test_the_apparent_load_limits_payload_estimation():
    capacity = min(50.0 / 5.0, 5.0 / 1.0)
    assert estimate_capacity(HELD_OUT) == capacity
    fit = judged(replace(HELD_OUT, apparent_load=0.11))["payload"].fit
    assert (fit.answer, fit.figure, fit.unit, fit.threshold) == ("limited", 0.11, "kg", pytest.approx(0.1))
    criteria = list_criteria(replace(HELD_OUT, apparent_load=0.11), SCALES, TRAINED, Thresholds())
    assert [one.code for one in report_criteria(criteria, SMALL)] == ["payload_resolution_low"]
    assert judged(replace(HELD_OUT, apparent_load=np.nan))["payload"].fit.answer == "no"


def test_a_weight_that_is_not_known_limits_payload_estimation():
    """Errors are small where a motion of a second has been, whatever the torque is elsewhere."""
    scales = replace(SCALES, gravity_deviation=np.array([0.5, 0.06]))
    fit = judged(scales=scales)["payload"].fit
    assert (fit.answer, fit.figure, fit.because) == ("limited", 2.0 * 0.06 / 1.0, ("weight_uncertain",))
    assert judged(scales=replace(SCALES, gravity_deviation=np.array([0.1, 5.0])))["payload"].fit.answer == "yes"
    criteria = list_criteria(HELD_OUT, scales, TRAINED, Thresholds())
    assert "weight_uncertain" in {one.code for one in report_criteria(criteria, SMALL)}


def test_findings_lower_the_uses_that_they_concern():
    indefinite = find_definition("mass_matrix_indefinite").found("x")
    found = judged(findings=[indefinite])
    assert {use for use, one in found.items() if one.fit.answer == "no"} == {"computed_torque", "forward_simulation"}
    assert found["computed_torque"].fit.because == ("mass_matrix_indefinite",)
    slow = find_definition("held_out_too_slow").found("x", ["tip"])
    limited = judged(findings=[slow])["feed_forward"]
    assert (limited.fit.answer, limited.fit.joints) == ("limited", ("tip",))
    assert judged(findings=[slow])["gravity_compensation"].fit.answer == "yes"
    information = find_definition("outside_training").found("x")
    assert all(one.fit.answer == "yes" for one in judged(findings=[information]).values())


def test_an_error_excludes_every_use():
    found = judged(findings=[find_definition("held_out_error").found("x")])
    assert {(one.fit.answer, one.fit.because) for one in found.values()} == {("no", ("held_out_error",))}


def test_because_names_what_the_answer_rests_on_only():
    tip = with_tip(rmse=0.61)  # feed-forward: no; a slow motion alone would limit it
    fit = judged(**tip, findings=[find_definition("held_out_too_slow").found("x", ["arm"])])["feed_forward"].fit
    assert (fit.answer, fit.because, fit.joints) == ("no", ("torque_error_high",), ("tip",))


def test_a_short_recording_has_no_long_rollouts(trials):
    short = changed(trials.recordings[0], rows=slice(0, 160))
    few = FilteredTrials([short], short.joint_names, {}, PLAN)
    rollouts = simulate_rollouts([(Dynamics(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values), few)])
    assert np.isfinite(rollouts.errors[0]).all() and np.isnan(rollouts.errors[2]).all()


def test_more_deviation_makes_a_parameter_weak(identified):
    parameters = identified.parameters
    good = replace_covariance(parameters, 1e-12 * np.eye(len(parameters.base.names)))
    assert set(good.estimate.status) == {"good"}
    weak = replace_covariance(parameters, 1e4 * np.eye(len(parameters.base.names)))
    assert set(weak.estimate.status) == {"weak"}


def test_a_tracked_set_is_not_judged(identified):
    parameters = identified.parameters
    assert {one.use for one in parameters.judgment.fit_for} == set(USES)
    assert (
        make_tracked(parameters, 1.01 * parameters.estimate.values, parameters.estimate.covariance).judgment.fit_for
        == ()
    )


def test_rollouts_start_with_the_states_of_friction(monkeypatch):
    """With presliding, a rollout that starts in the middle of a stroke needs the deflections of its start."""
    arm = Simulated(terms=(Viscous(), Dahl(), Offset()))
    recording = arm.record(duration=15.0)
    plan = SignalPlan.from_low_pass(100.0, LowPass(10.0), False)
    trials = FilteredTrials([recording], recording.joint_names, {}, plan)
    dynamics = Dynamics(arm.regressor, arm.base.independent, arm.base_values)
    known = simulate_rollouts([(dynamics, trials)]).errors[0]
    assert np.all(known < 1e-3)
    plain = CompiledDynamics.slip
    monkeypatch.setattr(CompiledDynamics, "slip", lambda self, states=None: plain(self))
    assert simulate_rollouts([(dynamics, trials)]).errors[0].max() > 3 * known.max()


def test_the_table_of_thresholds_is_complete():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: float(value) for name, value in rows} == vars(Thresholds())


def without_weight(recording):
    """The recording of a driver that subtracts the weight before it reports efforts."""
    q = recording.samples.q.T
    weight = ROBOT.regressor.torque(Motion(q, 0 * q, 0 * q), ROBOT.parameters)
    return changed(recording, tau=lambda tau: tau - weight.T)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gravity_compensated", "auto"])
def test_a_model_without_gravity_is_not_fit_for_weights(kind):
    """Whether the efforts are stated to contain no weight, or found to."""
    recordings = [without_weight(ROBOT.record(seed, duration=20.0, noise=0.05)) for seed in (1, 2)]
    settings = Settings(terms=TERMS, estimator=estimator_of("weighted"), effort_kind=kind)
    result = identify(recordings[:1], recordings[1:], ROBOT.model, settings, "1")
    (finding,) = [one for one in result.findings if one.code == "effort_gravity_compensated"]
    assert finding.severity == ("warning" if kind == "auto" else "info")
    assert result.parameters.effort.kind == "gravity_compensated" and not result.parameters.robot.gravity.any()
    assert result.parameters.effort.robot_compensates == ("gravity",)  # implied
    for evaluation in (result.evaluation, validate(recordings[1:], result.parameters, settings)):
        answers = {one.fit.use: one.fit.answer for one in evaluation.uses}
        assert {answers[use] for use in ("gravity_compensation", "forward_simulation", "payload")} == {"no"}
        assert answers["feed_forward"] != "no"


def test_a_driver_that_adds_nothing_contradicts_efforts_that_are_found_to_contain_no_weight():
    recording = without_weight(ROBOT.record(1, duration=20.0, noise=0.05))
    settings = Settings(terms=TERMS, estimator=estimator_of("weighted"), robot_compensates=("none",))
    with pytest.raises(UsageError, match="gravity_compensated and robot_compensates \\[none\\]"):
        identify([recording], [], ROBOT.model, settings, "1")


@pytest.mark.slow
@pytest.mark.parametrize("ignore", [(), ("urdf_contradicted",)])
def test_efforts_in_another_unit_command_no_torques(ignore):
    """kgf cm: the prediction is as good as that of N m, and only the masses of the URDF contradict it."""
    recordings = [changed(ROBOT.record(seed, duration=20.0, noise=0.05), tau=lambda tau: 10.2 * tau) for seed in (1, 2)]
    settings = Settings(terms=TERMS, estimator=estimator_of("weighted"), ignore=ignore)
    result = identify(recordings[:1], recordings[1:], ROBOT.model, settings, "1")
    assert result.evaluation.held_out.all_joints_nrmse < 0.1
    assert result.parameters.judgment.verdict == ("suspect" if ignore else "bad")
    assert {one.fit.answer for one in result.evaluation.uses} <= ({"limited", "no"} if ignore else {"no"})
    if not ignore:
        with pytest.raises(InputError, match="weight in the efforts"):
            export_model("python", result.parameters)
        with pytest.raises(InputError, match="weight in the efforts"):
            FeedForward.from_parameters(result.parameters, ("none",))


def test_a_joint_whose_effort_shows_no_payload_has_no_answer_about_it():
    """As long as another joint weighs it; a finding about the joint itself still counts, and so does the whole arm."""
    blind = with_tip(load_torque=0.0)
    found = judged(**blind)
    assert found["payload"].joints == {"arm": "yes", "tip": "-"} and found["payload"].fit.answer == "yes"
    assert all(one.joints == {"arm": "yes", "tip": "yes"} for use, one in found.items() if use != "payload")
    coarse = replace(blind["held_out"], apparent_load=1e3)
    assert judged(coarse)["payload"].joints == {"arm": "no", "tip": "-"}
    assert judged(coarse)["payload"].fit.joints == ()  # all that could
    finding = find_definition("gain_inconsistent").found("tip", ["tip"], "warning")
    assert judged(**blind, findings=(finding,))["payload"].joints == {"arm": "yes", "tip": "no"}
    neither = replace(HELD_OUT, joints=tuple(replace(one, load_torque=0.0) for one in HELD_OUT.joints))
    assert judged(neither)["payload"].joints == {"arm": "no", "tip": "no"}
