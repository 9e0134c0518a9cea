# SPDX-License-Identifier: Apache-2.0
"""Blocked cross-validation: every sample is predicted by a model that has not used it."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import TERMS, Simulated, changed

from robot_dyn_id.errors import ConvergenceError, InputError
from robot_dyn_id.estimators import ESTIMATORS, WeightedLeastSquares
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.cross_validation import count_blocks, cross_validate
from robot_dyn_id.identification.validation.metrics import Fold, compare
from robot_dyn_id.progress import ignore_progress

ROBOT = Simulated()
SETTINGS = Settings(estimator=WeightedLeastSquares(), terms=TERMS, cutoff=4.0)


def run(*recordings, held_out=(), settings=SETTINGS):
    return identify(recordings, held_out, ROBOT.model, settings, "test")


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=40.0, noise=0.5)


@pytest.fixture(scope="module")
def result(recording):
    return run(recording)


@pytest.mark.slow
def test_the_model_is_fitted_to_all_recordings(recording, result):
    """Cross-validation judges it, and does not change it."""
    other = run(recording, held_out=[ROBOT.record(seed=2, noise=0.5)])
    np.testing.assert_array_equal(result.parameters.estimate.values, other.parameters.estimate.values)
    assert result.rows == other.rows
    assert result.parameters.provenance.sources == ("simulation",)
    methods = [one.evaluation.held_out.method for one in (result, other)]
    assert methods == ["cross_validation", "recordings"]
    assert [one.parameters.judgment.held_out_method for one in (result, other)] == methods


def test_every_fold_is_the_identification_without_its_block(result):
    trials = result.training
    blocks = trials.blocks(5)
    used = [{w.trial: w.t[w.used] for w in trials.without_block(number, blocks)} for number in range(5)]

    def fit(part):
        problem = part.problem(ROBOT.regressor, ROBOT.base.independent)
        return replace(result.model, estimate=WeightedLeastSquares().fit(problem))

    data, findings = cross_validate(trials, fit, 5, ignore_progress)
    assert findings == ()
    assert len(data.folds) == 5
    for number, fold in enumerate(data.folds):
        judged = np.concatenate([w.t[w.used] for w in fold.trials])
        assert set(blocks.numbers(0, judged)) == {number}
        distance = np.abs(judged[:, None] - used[number][0][None, ::5]).min()
        assert distance >= 1.0 / 4.0 - 0.06  # a period of the cut-off
    assert compare(data.folds).all_joints_nrmse == result.evaluation.held_out.all_joints_nrmse


@pytest.mark.slow
def test_its_error_is_that_of_new_recordings(result):
    """Within the spread of short recordings, and above the error on the data that were fitted."""
    fresh = [ROBOT.record(seed=seed, duration=40.0, noise=0.5) for seed in range(2, 6)]
    errors = [run(*result.training.recordings, held_out=[one]).evaluation.held_out.all_joints_nrmse for one in fresh]
    ours = result.evaluation.held_out.all_joints_nrmse
    assert ours == pytest.approx(np.mean(errors), rel=0.25)


def test_a_model_that_only_fits_noise_is_not_flattered():
    """Five seconds for 20 parameters: the residual of the fit is far below the error that cross-validation reports."""
    short = run(ROBOT.record(duration=5.0, noise=2.0))
    trained = compare([Fold.from_model(short.training, short.model)]).all_joints_nrmse
    assert short.evaluation.held_out.all_joints_nrmse > 1.2 * trained


@pytest.mark.slow
def test_several_trials_of_different_speed_share_the_blocks():
    trials = [ROBOT.record(seed=seed, duration=20.0, noise=0.1) for seed in (1, 2)]
    slow = changed(trials[1], t=lambda t: 4.0 * t, dq=lambda dq: dq / 4.0)
    result = run(trials[0], slow)
    data, _ = cross_validate(result.training, lambda part: result.model, 5, ignore_progress)
    assert all({w.trial for w in fold.trials if w.used.any()} == {0, 1} for fold in data.folds)


def test_a_block_without_which_nothing_is_identified_is_reported(result):
    calls = []

    def fit(part):
        calls.append(part)
        if len(calls) == 2:
            raise ConvergenceError("the parameters still move")
        return result.model

    data, (finding,) = cross_validate(result.training, fit, 5, ignore_progress)
    assert len(data.folds) == 4
    assert (finding.code, finding.severity) == ("block_not_validated", "warning")
    assert "1 of 5 blocks" in finding.message

    def never(part):
        raise InputError("no rows")

    with pytest.raises(InputError, match="no rows"):
        cross_validate(result.training, never, 5, ignore_progress)


def test_expensive_estimators_have_fewer_blocks():
    assert count_blocks(WeightedLeastSquares()) == 5
    assert count_blocks(ESTIMATORS["pso"]()) == count_blocks(ESTIMATORS["robust"]()) == 2


@pytest.mark.slow
def test_periods_are_left_out_as_a_whole():
    """Four periods of 10 s: averages over the other three predict each of them."""
    settings = replace(SETTINGS, estimator=ESTIMATORS["period_averaged"](), period=10.0)
    result = run(ROBOT.record(duration=50.0, noise=0.1), settings=settings)
    pieces = result.training.blocks(5).pieces
    assert len(pieces) == 4
    for piece in pieces[1:-1]:
        assert piece.duration == pytest.approx(10.0 - 1.0 / 4.0)
    assert result.evaluation.held_out.method == "cross_validation"
    assert "block_not_validated" not in {one.code for one in result.findings}
    assert result.evaluation.held_out.all_joints_nrmse < 0.05
