# SPDX-License-Identifier: Apache-2.0
"""The straight line: split, identify, validate, predict."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.parameter_sets import assert_same
from support.simulated import ARM, GRIPPER, LIFT, SMALL, TERMS, Simulated, at_chunk_size, changed, estimator_of

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import RotorInertia
from robot_dyn_id.errors import InputError, UnsafeDataError, UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.assembly import compute_column_deviations, replace_values
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import find_held_out_method, split
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.summary import summarize_identification
from robot_dyn_id.signals.cleaning import Drive

JOINTS = ("shoulder", "elbow", "wrist")


def run(robot, *recordings, held_out=(), settings=None):
    """Identify with the terms of the simulated robot unless the settings name others."""
    training, rest = split(recordings, robot.joints, held_out)
    settings = settings or Settings(estimator=estimator_of("weighted"))
    pinned = settings if settings.terms is not None else replace(settings, terms=TERMS)
    return identify(training, rest, robot.model, pinned, "test")


@pytest.fixture(scope="module")
def robot():
    return Simulated()


@pytest.fixture(scope="module")
def recording(robot):
    return robot.record(duration=40.0, noise=0.1)


@pytest.fixture(scope="module")
def identified(robot, recording):
    return run(robot, recording)


def stamps(recordings):
    return [Chunk.join(list(r.chunks(r.joint_names))).t for r in recordings]


class TestSplit:
    """Split into training and held-out data."""

    def test_all_trials_are_trained_on_and_none_is_held_out(self, recording):
        first, second, third = (replace(recording, source=name) for name in "abc")
        for trials in ([first], [first, second, third]):
            assert split(trials, JOINTS) == (trials, [])

    def test_the_method_follows_from_the_data(self, recording):
        other = replace(recording, source="b")
        for held_out, train_range, method in (
            ([], None, "cross_validation"),
            ([other], None, "recordings"),
            ([], (5.0, 30.0), "range"),
            ([other], (5.0, 30.0), "recordings"),
        ):
            assert find_held_out_method(*split([recording], JOINTS, held_out, train_range)) == method

    def test_validation_data_leave_all_trials_for_training(self, recording):
        other = replace(recording, source="b")
        assert split([recording], JOINTS, [other]) == ([recording], [other])
        assert split([recording, recording], JOINTS, [other]) == ([recording, recording], [other])

    @pytest.mark.parametrize("start", [0.0, 7.58])
    def test_a_range_counts_from_the_first_stamp(self, recording, start):
        moved = changed(recording, t=lambda t: t + start)
        train, rest = split([moved], JOINTS, train_range=(5.0, 30.0))
        assert [len(t) for t in stamps(train)] == [2500]
        assert [len(t) for t in stamps(rest)] == [500, 1000]
        assert stamps(rest)[0][0] == start
        (train,), (rest,) = split([moved], JOINTS, train_range=(0.0, 30.0))
        assert (stamps([train])[0][0], stamps([rest])[0][0]) == (start, pytest.approx(start + 30.0))

    def test_a_range_with_validation_data(self, recording):
        other = replace(recording, source="b")
        (train,), rest = split([recording], JOINTS, [other], (0.0, 10.0))
        assert rest == [other]
        assert len(stamps([train])[0]) == 1000

    @pytest.mark.parametrize(
        ("wanted", "words"),
        [
            ((5.0, 5.0), "the first must be less than the second"),
            ((9.0, 5.0), "training range 9 to 5 s: the first"),
            ((float("nan"), 5.0), "the first must be less"),
            ((50.0, 60.0), "is only 40.0 s long"),
            ((0.0, 100.0), "leaves nothing to validate on: give held-out"),
        ],
    )
    def test_invalid_ranges_are_refused(self, recording, wanted, words):
        with pytest.raises(UsageError, match=words):
            split([recording], JOINTS, train_range=wanted)

    def test_a_range_needs_one_recording(self, recording):
        with pytest.raises(UsageError, match="training range requires a single recording"):
            split([recording, recording], JOINTS, train_range=(0.0, 10.0))


def assert_recovered(robot, result, most=4.0):
    """Every parameter within some standard deviations of the truth, and the torque almost that of the truth."""
    estimate = result.estimate
    off = np.abs(estimate.values - robot.base_values) / estimate.standard_deviations
    assert np.all(off < most), dict(zip(robot.base.names, np.round(off, 1), strict=True))
    assert (off < 1.96).mean() > 0.75
    motion = Motion(*draw_random_fourier(robot.model, 77).evaluate(np.linspace(0.0, 10.0, 200))[:3])
    truth = robot.regressor.torque(motion, robot.parameters)
    full = np.concatenate([result.parameters.bodies.standard_parameters, result.parameters.terms.values])
    ours = robot.regressor.torque(motion, full)
    assert np.linalg.norm(ours - truth) < 0.02 * np.linalg.norm(truth)


OTHERS = ("pso", "ga", "period_averaged", "closed_loop_output_error")
RECOVERING = [name for name in ESTIMATORS if name not in OTHERS]
"""Searches stop somewhere near; there are not three periods to train on; and no reference under a PD law."""


@pytest.mark.slow
@pytest.mark.parametrize("estimator", RECOVERING)
def test_the_truth_is_recovered_within_its_sigmas(robot, recording, estimator):
    result = run(robot, recording, settings=Settings(estimator=estimator_of(estimator), period=10.0))
    assert_recovered(robot, result)
    assert result.parameters.provenance.estimator == estimator
    summary = summarize_identification(result, "parameters.yaml")
    assert bool(summary["regularized_towards"]) == bool(result.estimate.regularized_towards)
    assert len(summary["constants"]) == (3 if estimator in ("separable", "map_constants", "lm", *SMALL) else 0)


def test_a_result_carries_parameters_evaluation_and_data(robot, recording, identified):
    parameters, evaluation = identified.parameters, identified.evaluation
    assert evaluation.verdict.word == "good"
    assert {finding.severity for finding in evaluation.findings} <= {"info"}
    assert evaluation.cross_check.passed
    assert evaluation.held_out.all_joints_nrmse < 0.05
    assert parameters.judgment.verdict == "good"
    assert parameters.robot.joint_names == robot.joints
    assert parameters.base.names == robot.base.names
    assert parameters.robot.urdf == ARM
    assert parameters.provenance.sources == identified.held_out_sources == ("simulation",)
    assert parameters.judgment.held_out_method == evaluation.held_out.method == "cross_validation"
    assert parameters.provenance.software_version == "test"
    assert parameters.processing.sample_rate == pytest.approx(100.0)
    np.testing.assert_array_equal(
        parameters.estimate.standard_deviations, np.sqrt(np.diag(parameters.estimate.covariance))
    )
    full = np.concatenate([parameters.bodies.standard_parameters, parameters.terms.values])
    np.testing.assert_allclose(parameters.base.mapping @ full, parameters.estimate.values, rtol=0, atol=1e-12)
    inside = recording.samples.q
    assert np.all(parameters.ranges.q_min >= inside.min(axis=0) - 1e-3)
    assert np.all(parameters.ranges.q_max <= inside.max(axis=0) + 1e-3)
    assert identified.rows[1] == 0
    assert identified.rows[0] > len(parameters.base.names)


ROBOTS = {
    "prismatic": (LIFT, {}),
    "mimic": (GRIPPER, {}),
    "held": (ARM, {"joints": ("shoulder", "wrist"), "held": {"elbow": 0.7}}),
    "tilted base": (ARM, {"gravity": (2.0, -4.0, -8.0)}),
    "no gravity": (ARM, {"gravity": (0.0, 0.0, 0.0)}),
}


@pytest.fixture(scope="module", params=ROBOTS)
def other(request):
    """Name of a robot, the robot, and what was identified."""
    text, options = ROBOTS[request.param]
    robot = Simulated(text, **options)
    return request.param, robot, run(robot, robot.record(duration=40.0, noise=0.03))


@pytest.mark.slow
def test_other_robots(other):
    name, robot, result = other
    assert_recovered(robot, result)
    assert result.evaluation.cross_check.passed
    assert result.parameters.robot.gravity.tolist() == list(ROBOTS[name][1].get("gravity", (0.0, 0.0, -9.81)))
    if name == "prismatic":
        units = dict(zip(result.parameters.base.names, result.parameters.base.units, strict=True))
        assert (units["fc1"], units["fc2"], units["fv1"], units["fv2"]) == ("N", "N m", "N s/m", "N m s")
        assert [joint.unit for joint in result.evaluation.held_out.joints] == ["N", "N m"]
    if name == "mimic":
        assert result.parameters.robot.joint_names == ("turn", "finger")
        assert len(result.parameters.robot.body_names) == 3
    if name == "held":
        assert dict(
            zip(result.parameters.robot.held_joint_names, result.parameters.robot.held_joint_positions, strict=True)
        ) == {"elbow": 0.7}


@pytest.mark.slow
def test_a_parameter_set_is_self_contained_for_prediction(other, tmp_path):
    _, robot, result = other
    write_parameters(tmp_path / "p.yaml", result.parameters)
    new = robot.record(seed=9)
    t, tau, findings = predict_recording(new, read_parameters(tmp_path / "p.yaml"))
    assert all(finding.code == "outside_training" for finding in findings)  # a random one is
    np.testing.assert_array_equal(t, new.samples.t)
    inside = slice(100, -100)
    error = np.linalg.norm((tau - new.samples.tau)[inside])
    assert error < 0.02 * np.linalg.norm(new.samples.tau[inside])


@pytest.mark.slow
def test_a_held_joint_held_elsewhere_is_another_robot():
    options = {"joints": ("shoulder", "wrist"), "held": {"elbow": 0.7}}
    recording = Simulated(ARM, **options).record(duration=40.0)
    model = RobotModel.from_urdf(ARM, options["joints"], {"elbow": -0.7})
    values = [
        identify(
            *split([recording], m.joint_names), m, Settings(estimator=estimator_of("weighted")), "test"
        ).parameters.estimate.values
        for m in (RobotModel.from_urdf(ARM, **options), model)
    ]
    assert np.abs(values[0] - values[1]).max() > 0.1


@pytest.mark.slow
def test_several_trials(robot):
    trials = [replace(robot.record(seed=seed, duration=20.0, noise=0.1), source=f"t{seed}") for seed in (1, 2, 3)]
    result = run(robot, *trials)
    assert_recovered(robot, result)
    assert result.parameters.provenance.sources == result.held_out_sources == ("t1", "t2", "t3")
    one = run(robot, trials[0], held_out=trials[2:])
    assert one.held_out_sources == ("t3",)
    assert one.parameters.judgment.held_out_method == "recordings"
    assert np.median(result.estimate.standard_deviations / one.estimate.standard_deviations) < 0.85


@pytest.mark.slow
def test_currents_with_gains_and_signs(robot, recording, identified):
    gains, tau = np.array([10.0, -4.0, 2.0]), recording.samples.tau
    drives = {n: Drive(abs(g), np.sign(g)) for n, g in zip(JOINTS, gains, strict=True)}
    electric = changed(recording, tau=None, current=tau / gains)
    for data in (electric, replace(changed(recording, tau=tau / gains), effort_is_torque=False)):
        result = run(robot, data, settings=Settings(drives=drives, estimator=estimator_of("weighted")))
        np.testing.assert_allclose(
            result.parameters.estimate.values, identified.parameters.estimate.values, rtol=0, atol=1e-9
        )
    turned = changed(recording, tau=tau * [1, -1, 1])
    with pytest.raises(UnsafeDataError) as refusal:
        run(robot, turned)
    assert [(one.code, one.joints) for one in refusal.value.findings] == [("effort_sign", ("elbow",))]
    result = run(
        robot, turned, settings=Settings(drives={"elbow": Drive(sign=-1.0)}, estimator=estimator_of("weighted"))
    )
    np.testing.assert_array_equal(result.parameters.estimate.values, identified.parameters.estimate.values)


def test_gaps_and_invalid_rows_are_left_out(robot, recording):
    tau = recording.samples.tau.copy()
    tau[::200] = np.nan
    result = run(robot, changed(recording, tau=tau, t=lambda t: t + 3.0 * (t > 12.0)))
    assert_recovered(robot, result)
    assert result.training.survey.repairs.gaps == 1
    assert result.rows[1] == 20  # every 200th of 4000
    assert result.evaluation.verdict.word == "suspect"


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_unexcited_parameters_are_reported(robot, recording):
    still = changed(recording, q=lambda q: q * [1, 1, 0] + [0, 0, 0.3], dq=lambda dq: dq * [1, 1, 0])
    result = run(robot, still)
    parameters = result.parameters
    status = dict(zip(parameters.base.names, parameters.estimate.status, strict=True))
    assert status["fv3"] == "not excited"
    assert status["fv1"] == "good"
    np.testing.assert_array_equal(
        np.isinf(parameters.estimate.standard_deviations), np.array(parameters.estimate.status) == "not excited"
    )
    findings = {one.code: one for one in result.evaluation.findings}
    assert findings["joint_barely_moves"].joints == ("wrist",)
    assert findings["not_excited"].joints == ("wrist",)
    assert parameters.estimate.condition_number == np.inf
    assert result.evaluation.verdict.word != "good"


@pytest.mark.slow
def test_smoothing_widths_are_estimated_on_request(robot, recording):
    parameters = run(robot, recording, settings=Settings(estimator=ESTIMATORS["separable"]())).parameters
    assert set(parameters.terms.constant_names) == {"coulomb.smoothing_width"}
    assert len(set(parameters.terms.constant_values)) > 1
    assert np.all(parameters.terms.constant_values < 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_validate_gives_the_figures_of_the_identification(robot, noise):
    trials = [robot.record(seed=seed, noise=noise) for seed in (1, 2)]
    result = run(robot, trials[0], held_out=trials[1:], settings=Settings(cutoff=4.0))
    again = validate([trials[1]], result.parameters, Settings())
    first = result.evaluation.held_out
    expected = [joint.own_nrmse for joint in first.joints]  # the stored covariance is symmetric to the last bit
    assert [joint.own_nrmse for joint in again.held_out.joints] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(again.held_out.spectra.residual, first.spectra.residual, rtol=1e-9)
    # a parameter set has no unconstrained values
    found, stored = replace(again.held_out, spectra=None), replace(first, spectra=None, unconstrained_nrmse=None)
    assert found.with_uncertainty(np.zeros(3)) == stored.with_uncertainty(np.zeros(3))
    assert again.verdict.word == result.evaluation.verdict.word


@pytest.mark.slow
def test_late_efforts_are_moved_to_the_motion_in_validate(recording, identified):
    """Validation compensates a delay as identification does, and reports it."""
    punctual = validate([recording], identified.parameters, Settings())
    late = changed(recording, tau=CubicSpline(recording.samples.t + 0.08, recording.samples.tau)(recording.samples.t))
    evaluation = validate([late], identified.parameters, Settings())
    assert "effort_delayed" in {one.code for one in evaluation.findings}
    assert evaluation.held_out.all_joints_nrmse < 1.2 * punctual.held_out.all_joints_nrmse


def test_a_wrong_model_is_judged_bad(recording, identified):
    wrong = replace_values(identified.parameters, -identified.parameters.estimate.values)
    evaluation = validate([recording], wrong, Settings())
    assert evaluation.verdict.word == "bad"
    assert "worse_than_urdf" in {one.code for one in evaluation.findings if one.severity == "error"}


def test_a_prediction_never_reads_the_effort(robot, identified):
    recording = robot.record(seed=5, noise=0.1)
    samples = recording.samples
    without = changed(recording, tau=None)
    wild = changed(recording, tau=lambda tau: np.full_like(tau, np.nan))
    reference = predict_recording(recording, identified.parameters)
    for other in (without, wild):
        t, tau, findings = predict_recording(other, identified.parameters)
        assert (t.tobytes(), tau.tobytes(), findings) == (reference[0].tobytes(), reference[1].tobytes(), reference[2])
    assert reference[1].shape == samples.q.shape


def test_predictions_are_at_the_stamps_of_the_data(robot, identified):
    recording = robot.record(seed=5)
    rng = np.random.default_rng(0)
    picked = np.sort(rng.choice(np.arange(2000), 1800, replace=False))  # holes and jitter
    sparse = changed(recording, rows=picked)
    t, tau, findings = predict_recording(sparse, identified.parameters)
    np.testing.assert_array_equal(t, sparse.samples.t)
    assert all(finding.code == "outside_training" for finding in findings)  # another one is
    whole = predict_recording(recording, identified.parameters)[1]
    error = (tau - whole[picked])[200:-200]
    assert np.abs(error).max() < 0.05 * np.abs(whole).max()


def test_samples_without_motion_are_predicted_as_nan(robot, identified):
    recording = robot.record(seed=5)
    gapped = changed(recording, rows=np.r_[0:500, 600:2000])
    q = gapped.samples.q.copy()
    q[1000:1100] = np.nan  # a hole longer than a gap
    _, tau, findings = predict_recording(changed(gapped, q=q), identified.parameters)
    np.testing.assert_array_equal(np.isnan(tau).any(axis=1), np.isnan(q).any(axis=1))
    (finding,) = [one for one in findings if one.code == "samples_not_predicted"]
    assert finding.message.startswith("100 of 1900 samples")


@pytest.mark.slow
def test_two_runs_give_the_same_bytes(robot, recording, identified):
    assert_same(run(robot, recording).parameters, identified.parameters)
    twice = [predict_recording(recording, identified.parameters)[1].tobytes() for _ in range(2)]
    assert twice[0] == twice[1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [37, 1000, 10**6])
def test_the_size_of_the_chunks_does_not_matter(robot, recording, identified, size):
    chopped = at_chunk_size(recording, size)
    assert_same(run(robot, chopped).parameters, identified.parameters)
    other = predict_recording(chopped, identified.parameters)[1]
    assert other.tobytes() == predict_recording(recording, identified.parameters)[1].tobytes()


def test_columns_are_found_by_name(robot, recording, identified):
    order = [2, 0, 1]
    samples = recording.samples
    mixed = ArrayRecording(
        "simulation",
        tuple(JOINTS[i] for i in order),
        Chunk(samples.t, samples.q[:, order], samples.dq[:, order], samples.tau[:, order]),
    )
    assert_same(run(robot, mixed).parameters, identified.parameters)


def test_too_short_a_recording_is_refused_with_the_time_it_needs(robot, recording):
    short = changed(recording, rows=slice(0, 100))
    with pytest.raises(InputError, match=r"the longest uninterrupted stretch lasts 0\.99 s; a cut-off of 4 Hz needs"):
        run(robot, short, settings=Settings(cutoff=4.0))


@pytest.mark.slow
def test_too_little_to_validate_on_is_refused(robot, recording):
    with pytest.raises(InputError, match="short: too short to validate on"):
        short = replace(changed(recording, rows=slice(0, 100)), source="short")
        run(robot, recording, held_out=[short], settings=Settings(cutoff=4.0))


@pytest.mark.slow
def test_terms_of_the_settings_are_those_of_the_result(robot, recording):
    parameters = run(robot, recording, settings=Settings(terms=())).parameters
    assert parameters.terms.names == ()
    assert parameters.base.names == Simulated(terms=()).base.names
    assert Regressor(robot.model, place_terms_on_joints(robot.model, ())).names == parameters.base.column_names


@pytest.mark.slow
def test_a_term_that_shows_only_in_combination_has_no_sigma_of_its_own(robot, recording):
    parameters = run(robot, recording, settings=Settings(terms=(*TERMS, RotorInertia()))).parameters
    columns = parameters.base.column_names[30:]
    alone = np.array([name in parameters.base.names for name in columns])
    assert not alone[columns.index("Ir1")]
    assert alone[columns.index("fv1")]
    np.testing.assert_array_equal(np.isinf(parameters.terms.standard_deviations), ~alone)
    mapping = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]])  # the first is named after a column of its sum
    found = compute_column_deviations(mapping, np.array([0, 1]), np.array([0.1, 0.2]))
    np.testing.assert_array_equal(found, [np.inf, 0.2, np.inf, np.inf])
