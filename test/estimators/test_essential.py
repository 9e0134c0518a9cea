# SPDX-License-Identifier: Apache-2.0
"""Bootstrap, essential parameters, identifiability, and the model's own torque_deviation elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from support.linear_problems import SUPPORTS, TRUTH, arm, arm_problem, noisy, problem, rows
from support.simulated import TERMS, changed

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import Separable, WeightedLeastSquares
from robot_dyn_id.estimators.bootstrap import bootstrap_estimate
from robot_dyn_id.estimators.essential import eliminate_parameters, reduce_to_essential
from robot_dyn_id.files.configuration import parse_configuration
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.fit.identifiability import suggest_motions
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.extrapolation import compute_torque_deviation
from robot_dyn_id.report.summary import summarize_identification

PINNED = Settings(terms=TERMS, estimator=WeightedLeastSquares())


def codes_of(estimate):
    return [(one.code, one.severity) for one in estimate.findings]


@pytest.mark.parametrize("correlation_time", [0.0, 0.1], ids=["white", "colored"])
def test_the_bootstrap_says_what_the_sandwich_says(correlation_time):
    task = arm_problem(noisy(1, correlation_time))
    kept = [replace(tile, block=tile.block.copy()) for tile in task.tiles()]
    task = replace(task, tiles=lambda: (replace(tile, block=tile.block.copy()) for tile in kept))
    estimate = WeightedLeastSquares().fit(task)
    drawn = bootstrap_estimate(WeightedLeastSquares(autoregressive_order=0), task, estimate, 60)
    ratio = drawn.standard_deviations / estimate.standard_deviations
    print(np.median(ratio), ratio.min(), ratio.max())
    assert 0.8 < np.median(ratio) < 1.2  # 60 draws: 9 % each
    np.testing.assert_allclose(np.sqrt(np.diag(drawn.covariance)), drawn.standard_deviations, rtol=1e-9)
    assert np.all((drawn.intervals[:, 0] < estimate.values) & (estimate.values < drawn.intervals[:, 1]))
    assert codes_of(drawn) == [*codes_of(estimate), ("bootstrap_deviations", "info")]


def test_essential_parameters_lose_the_intervals_of_the_bootstrap():
    task = arm_problem(changed(noisy(1), rows=slice(0, 500)))
    estimate = WeightedLeastSquares(autoregressive_order=0).fit(task)
    drawn = bootstrap_estimate(WeightedLeastSquares(autoregressive_order=0), task, estimate, 20)
    robot, _ = arm()
    _, reduced = reduce_to_essential(robot.base, drawn, eliminate_parameters(drawn, task.names))
    assert reduced.intervals is None
    assert codes_of(reduced) == [*codes_of(drawn), ("intervals_lost", "info")]
    _, reduced = reduce_to_essential(robot.base, estimate, eliminate_parameters(estimate, task.names))
    assert codes_of(reduced) == codes_of(estimate), "there were none"


@pytest.mark.slow
def test_it_draws_for_estimators_of_constants_too():
    task = arm_problem(changed(noisy(1), rows=slice(0, 1500)))
    estimate = Separable(grid=4).fit(task)
    ratio = bootstrap_estimate(Separable(grid=4), task, estimate, 20).standard_deviations / estimate.standard_deviations
    assert 0.7 < np.median(ratio) < 1.3
    with pytest.raises(UsageError, match=r"draws must be 0 .none. or 20 to 100000, not 5"):
        bootstrap_estimate(Separable(), task, estimate, 5)


def test_elimination_is_least_squares_without_the_column():
    """Values, second moments and F against the whole and the reduced problem solved afresh."""
    columns, torques = rows(noise=(1.0, 1.0))
    task = problem(columns, torques)
    estimate = WeightedLeastSquares(autoregressive_order=0).fit(task)
    found = eliminate_parameters(estimate, task.names)
    assert [step.name for step in found.left_out] == ["p4"]  # -0.02: lost in the noise
    stack = np.zeros((800, 8))
    for joint, support in enumerate(SUPPORTS):
        stack[400 * joint : 400 * (joint + 1), support] = columns[joint] / estimate.residual_rms[joint]
    tau = np.concatenate([t / s for t, s in zip(torques, estimate.residual_rms, strict=True)])
    fewer = np.delete(stack, 4, axis=1)
    reduced, whole = (np.linalg.lstsq(w, tau, rcond=None)[0] for w in (fewer, stack))
    sigma = np.sqrt(np.diag(np.linalg.inv(fewer.T @ fewer)))
    assert np.all(np.abs(found.values - reduced) < 0.05 * sigma)
    shift = reduced - np.delete(whole, 4)
    moment = np.delete(np.delete(np.linalg.inv(stack.T @ stack), 4, 0), 4, 1) + np.outer(shift, shift)
    np.testing.assert_allclose(found.standard_deviations, np.sqrt(np.diag(moment)), rtol=0.05)
    np.testing.assert_allclose(np.diag(found.covariance), found.standard_deviations**2, rtol=1e-12)
    squares = [np.sum((tau - w @ np.linalg.lstsq(w, tau, rcond=None)[0]) ** 2) for w in (fewer, stack)]
    (step,) = found.left_out
    assert (step.value, step.standard_deviation) == (estimate.values[4], estimate.standard_deviations[4])
    assert step.statistic == pytest.approx((squares[0] - squares[1]) / (squares[1] / 792), rel=0.1)
    assert step.residual_growth == pytest.approx(np.sqrt(squares[0] / squares[1]) - 1.0, rel=0.1)


def test_intervals_hold_although_what_is_left_out_is_not_zero():
    """100 draws in which p4 is as large as its standard deviation, and confused with p5."""
    columns, _ = rows()
    for w, support in zip(columns, SUPPORTS, strict=True):
        p4, p5 = np.searchsorted(support, (4, 5))
        w[:, p5] += 3.0 * w[:, p4]
    truth, shares = np.where(np.arange(8) == 4, 0.1, TRUTH), []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        torques = [w @ truth[support] + rng.normal(size=400) for w, support in zip(columns, SUPPORTS, strict=True)]
        task = problem(columns, torques)
        found = eliminate_parameters(WeightedLeastSquares(autoregressive_order=0).fit(task), task.names)
        held = np.abs(found.values - truth[found.kept]) < 1.96 * found.standard_deviations
        if 4 not in found.kept:
            shares.append((held[found.kept == 5].all(), held.mean()))
    assert len(shares) > 50
    assert np.all(np.mean(shares, axis=0) > 0.9)


def test_what_the_data_need_is_kept_by_the_test():
    task = problem(*rows(noise=(0.1, 0.1)))
    found = eliminate_parameters(WeightedLeastSquares().fit(task), task.names, limit=1e-6)
    assert found.objected is not None
    assert set(np.flatnonzero(np.abs(TRUTH) > 0.1)) <= set(found.kept)


@pytest.mark.slow
def test_the_reduced_set_goes_the_whole_way(tmp_path):
    robot, _ = arm()
    whole = identify([noisy(1)], [noisy(99)], robot.model, PINNED, "0")
    settings = replace(parse_configuration({"essential": 0.3, "estimator": "weighted"}).settings, terms=TERMS)
    result = identify([noisy(1)], [noisy(99)], robot.model, settings, "0")
    names = [step.name for step in result.essential.left_out]
    assert names
    assert set(result.parameters.base.names) == set(whole.parameters.base.names) - set(names)
    assert set(result.parameters.estimate.status) <= {"good", "weak"}
    left = [one for one in result.identifiable if one.name in names]
    assert "left out" in {one.status for one in left} <= {"left out", "structural"}
    assert all(one.base for one in left), "a torque does depend on them"
    errors = [one.evaluation.held_out.all_joints_nrmse for one in (result, whole)]
    assert errors[0] < 1.02 * errors[1]
    write_parameters(tmp_path / "p.yaml", result.parameters)
    again = read_parameters(tmp_path / "p.yaml")
    assert validate([noisy(98)], again, Settings()).held_out.all_joints_nrmse < 0.1
    summary = summarize_identification(result, "p.yaml")
    assert [step["name"] for step in summary["essential"]["left_out"]] == names
    with pytest.raises(UsageError, match="essential together with estimator consistent"):
        settings = parse_configuration({"essential": 0.3, "estimator": "consistent"}).settings
        identify([noisy(1)], [noisy(99)], robot.model, settings, "0")
    with pytest.raises(UsageError, match="essential: must be 0"):
        parse_configuration({"essential": -1.0})


def test_directions_that_the_data_do_not_show_go_first():
    still = changed(noisy(1), q=lambda q: q * [1, 1, 0], dq=lambda dq: dq * [1, 1, 0])
    task = arm_problem(still)
    found = eliminate_parameters(WeightedLeastSquares().fit(task), task.names)
    assert {"fv3", "fc3"} <= {step.name for step in found.left_out}
    assert np.all(np.isfinite(found.values))


def test_the_motion_that_helps_is_that_of_the_column():
    robot, _ = arm()
    names = robot.regressor.names
    advice = {"fv2": "move elbow in both directions", "Izz1": "accelerate shoulder harder", "off1": "record longer"}
    texts = suggest_motions(robot.regressor, [names.index(name) for name in advice])
    for text, words in zip(texts, advice.values(), strict=True):
        assert text.startswith(words)
    assert suggest_motions(robot.regressor, []) == ()


@pytest.mark.slow
def test_every_parameter_is_reported():
    robot, _ = arm()
    still = changed(noisy(1), q=lambda q: q * [1, 1, 0], dq=lambda dq: dq * [1, 1, 0])
    result = identify([still], [noisy(99)], robot.model, PINNED, "0")
    found = {entry.name: entry for entry in result.identifiable}
    assert tuple(found) == robot.regressor.names
    assert found["fv1"].status == "good"
    assert found["fv1"].advice == ""
    assert found["fv3"].status == "not excited"
    assert "wrist" in found["fv3"].advice
    for name in robot.base.unidentifiable:
        assert (found[name].status, found[name].base) == ("structural", "")


def test_the_models_own_torque_deviation_is_that_of_draws():
    robot, _ = arm()
    estimate = WeightedLeastSquares().fit(arm_problem(noisy(1)))
    samples = noisy(1).samples.take(slice(0, 50))
    states = Motion(samples.q.T, samples.dq.T, np.zeros_like(samples.q.T))
    ours = compute_torque_deviation(robot.regressor, robot.base.independent, estimate.covariance, states)
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(np.zeros(len(estimate.values)), estimate.covariance, 2000, method="eigh")
    torques = [robot.regressor.torque(states, draw, robot.base.independent) for draw in draws]
    np.testing.assert_allclose(ours, np.std(torques, axis=0), rtol=0.12)


@pytest.mark.slow
def test_validation_says_that_the_motion_is_not_the_trained_one():
    """Trained on small motions, which hardly excite the inertias."""
    robot, _ = arm()
    small = [robot.record(seed=seed, duration=20.0, noise=0.5, share=0.1) for seed in (3, 5)]
    result = identify(small[:1], small[1:], robot.model, PINNED, "0")
    large = validate([noisy(1)], result.parameters, Settings())
    severities = {one.code: one.severity for one in large.findings}
    assert (severities["outside_training"], severities["prediction_uncertain"]) == ("warning", "info")
    known = identify([noisy(2)], [noisy(99)], robot.model, PINNED, "0").parameters
    codes = {one.code for one in validate([noisy(1)], known, Settings()).findings}
    assert not codes & {"outside_training", "prediction_uncertain"}
