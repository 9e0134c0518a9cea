# SPDX-License-Identifier: Apache-2.0
"""Zeros of the efforts that differ between recordings."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import ARM, Simulated, changed

from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.identification.diagnosis.zeros import center_rows
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.choice import choose_model
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings
from robot_dyn_id.signals.zeros import EffortZeros

ROBOT = Simulated(ARM, (Viscous(), Coulomb(0.02), Offset()))
NOISE_NM = 0.05
JUMPS_NM = (0.0, 0.3, -0.2)
"""Zeros of the elbow in three recordings, in addition to its offset of 0.2 N m."""
SETTINGS = Settings(cutoff=8.0, motion_cutoff=8.0, velocity="derivative", base_tilt=False)


def record(seed, jump, duration=16.0):
    recording = ROBOT.record(seed, duration=duration, noise=NOISE_NM)
    return replace(changed(recording, tau=lambda tau: tau + np.array([0.0, jump, 0.0])), source=f"run {seed}")


@pytest.fixture(scope="module")
def moved():
    recordings = [record(seed, jump) for seed, jump in enumerate(JUMPS_NM, 1)]
    return identify(recordings, [], ROBOT.model, SETTINGS, "test")


@pytest.fixture(scope="module")
def steady():
    recordings = [record(seed, 0.0) for seed in (1, 2, 3)]
    return identify(recordings, [], ROBOT.model, SETTINGS, "test")


def of(result, code):
    return [finding for finding in result.findings if finding.code == code]


@pytest.mark.slow
def test_zeros_are_found_where_they_differ_and_the_offset_is_their_mean(moved):
    (finding,) = of(moved, "effort_offset_drifts")
    assert finding.joints == ("elbow",)
    zeros = moved.training.zeros
    assert zeros.joints.tolist() == [False, True, False]
    np.testing.assert_allclose(
        zeros.values[:, 1] + moved.parameters.estimate.values[names(moved).index("off2")] - 0.2, JUMPS_NM, atol=0.01
    )
    assert moved.parameters.effort.offset_deviations == pytest.approx([0.0, np.std(JUMPS_NM, ddof=1), 0.0], abs=0.01)


def names(result):
    return list(result.parameters.base.names)


@pytest.mark.slow
def test_the_offset_is_as_uncertain_as_the_zero_of_another_recording_and_nothing_else_is(moved, steady):
    ratio = dict(zip(names(moved), moved.parameters.estimate.standard_deviations, strict=True))
    assert ratio["off2"] == pytest.approx(np.std(JUMPS_NM, ddof=1) * np.sqrt(4 / 3), rel=0.05)
    for name, sigma in zip(names(steady), steady.parameters.estimate.standard_deviations, strict=True):
        if name in ratio and name != "off2" and np.isfinite(sigma):
            assert ratio[name] < 2.0 * sigma


def test_the_variance_of_another_zero_about_the_mean_of_unequally_long_recordings_is_that_of_draws():
    counts, rng = np.array([600.0, 200.0, 200.0, 0.0]), np.random.default_rng(0)
    judged = counts > 0.0
    zeros = rng.normal(0.0, 0.3, (20_000, len(counts)))
    mean = zeros @ counts / counts.sum()
    stated = [
        EffortZeros(np.where(judged, own - center, 0.0)[:, None], judged, counts[:, None]).variances_of_another
        for own, center in zip(zeros[:4000], mean, strict=False)
    ]
    assert np.mean(stated) == pytest.approx(np.var(rng.normal(0.0, 0.3, len(mean)) - mean), rel=0.04)


@pytest.mark.slow
def test_the_offset_has_the_mean_of_all_samples_and_its_uncertainty():
    lengths = (30.0, 12.0, 12.0)
    recordings = [
        record(seed, jump, length) for seed, (jump, length) in enumerate(zip(JUMPS_NM, lengths, strict=True), 1)
    ]
    result = identify(recordings, [], ROBOT.model, SETTINGS, "test")
    zeros = result.training.zeros
    weights = zeros.counts[:, 1] / zeros.counts[:, 1].sum()
    assert weights == pytest.approx(np.array(lengths) / sum(lengths), abs=0.02)
    column = names(result).index("off2")
    assert result.parameters.estimate.values[column] - 0.2 == pytest.approx(weights @ JUMPS_NM, abs=0.01)
    expected = np.std(JUMPS_NM, ddof=1) * np.sqrt(1.0 + weights @ weights)
    assert result.parameters.estimate.standard_deviations[column] == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
def test_the_cross_validated_error_is_that_of_the_noise(moved, steady):
    for one, other in zip(moved.evaluation.held_out.joints, steady.evaluation.held_out.joints, strict=True):
        assert one.rmse == pytest.approx(other.rmse, rel=0.05)


@pytest.mark.slow
def test_the_zero_of_a_held_out_block_is_that_of_the_other_blocks_of_its_recording():
    recordings = [record(seed, jump) for seed, jump in enumerate(JUMPS_NM, 1)]
    trials = FilteredTrials.from_recordings(recordings, ROBOT.joints, {}, SignalSettings(cutoff=8.0))
    options = Options(motion_filter=False, velocity=False, base_tilt=False)
    first = choose_model(trials, ROBOT.model, options)
    block = first.blocks.pieces[0].block
    span = next(piece for piece in first.blocks.pieces if piece.block == block and piece.trial == 1)

    def disturb(recording):
        t = recording.samples.t - recording.samples.t[0]
        inside = (t >= span.start - 0.1) & (t < span.stop + 0.1)
        return changed(recording, tau=lambda tau: tau + np.outer(inside, [0.0, 5.0, 0.0]))

    other = FilteredTrials.from_recordings(
        [recordings[0], disturb(recordings[1]), recordings[2]], ROBOT.joints, {}, SignalSettings(cutoff=8.0)
    )
    second = choose_model(replace(other, plan=trials.plan), ROBOT.model, options)
    assert second.blocks == first.blocks
    for one, two in zip(first.block_models, second.block_models, strict=True):
        if one.block == block:
            np.testing.assert_allclose(one.effort_zeros.values, two.effort_zeros.values, atol=0.02)


def test_centered_rows_give_the_estimate_with_one_offset_for_each_recording():
    recordings = [record(seed, jump) for seed, jump in enumerate(JUMPS_NM, 1)]
    trials = FilteredTrials.from_recordings(recordings, ROBOT.joints, {}, SignalSettings(cutoff=8.0))
    blocks, columns = trials.blocks(), ROBOT.base.independent
    zeros = EffortZeros(np.tile([0.0, 1.0, 0.0], (3, 1)), np.ones(3, dtype=bool), np.ones((3, 3)))
    problem = trials.problem(ROBOT.regressor, columns)
    p = len(columns)

    def gram(one, extra):
        total = np.zeros((p + 3 * extra + 1,) * 2)
        for tile in one.tiles():
            rows = np.zeros((p + 3 * extra + 1, tile.block.shape[1]))
            rows[[*one.supports[tile.joint], -1]] = tile.block
            if extra and tile.joint == 1:
                rows[p + tile.trial] = tile.block.any(axis=0)
            total += rows @ rows.T
        return total

    centered, free = gram(center_rows(problem, zeros), False), gram(problem, True)
    expected = np.linalg.lstsq(free[:-1, :-1], free[:-1, -1], rcond=1e-12)[0]
    found = np.linalg.solve(centered[:-1, :-1], centered[:-1, -1])
    others = np.array(ROBOT.base.names) != "off2"
    np.testing.assert_allclose(found[others], expected[:p][others], rtol=1e-6, atol=1e-8)
    grams = BlockGrams.from_trials(trials, ROBOT.regressor, blocks)
    assert grams.count_divided(range(blocks.count)) == 3


@pytest.mark.slow
def test_validation_and_prediction_state_that_the_zero_is_not_known(moved):
    other = record(9, 0.5)
    (finding,) = of(validate([other], moved.parameters, SETTINGS), "effort_zero_unknown")
    assert finding.joints == ("elbow",)
    mean = moved.parameters.estimate.values[names(moved).index("off2")] - 0.2
    stated = float(finding.message.split("here ")[1].split(")")[0])
    assert stated == pytest.approx(0.5 - mean, abs=0.05)
    codes = [one.code for one in predict_recording(other, moved.parameters)[2]]
    assert "effort_zero_unknown" in codes


@pytest.mark.slow
def test_zeros_that_do_not_differ_are_tried_and_not_taken(steady):
    rows = [row for row in steady.selection.tried if row.step == "effort_zero"]
    assert [row.name for row in rows] == list(ROBOT.joints)
    assert not any(row.chosen for row in rows)
    assert steady.training.zeros is None
    assert not of(steady, "effort_offset_drifts")
    assert not steady.parameters.effort.offset_deviations.size


def test_one_recording_has_one_zero():
    trials = FilteredTrials.from_recordings([record(1, 0.3)], ROBOT.joints, {}, SignalSettings(cutoff=8.0))
    options = Options(motion_filter=False, velocity=False, base_tilt=False, without_blocks=False)
    selection = choose_model(trials, ROBOT.model, options)
    assert selection.trials.zeros is None
    assert "effort_zero" not in {row.step for row in selection.tried}
