# SPDX-License-Identifier: Apache-2.0
"""Gaps that are short against a period of the cut-off are bridged; missing efforts leave the rows to other joints."""

import numpy as np
import pytest
from support.simulated import Simulated, changed, sines

from robot_dyn_id.signals.bridging import bridge
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

ROBOT = Simulated()
STEP = 1e-3
LONGEST = 0.2


def without(recording, *spans):
    """The recording without the samples of some spans [s]."""
    t = recording.samples.t
    return changed(recording, rows=~np.any([(t > start) & (t < stop) for start, stop in spans], axis=0))


def filtered(recording, cutoff=5.0, **options):
    signals = SignalSettings(cutoff, velocity="derivative")
    return FilteredTrials.from_recordings([recording], recording.joint_names, {}, signals, **options)


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=20.0, rate=1000.0, noise=0.05)


@pytest.mark.parametrize("gap", [0.0085, 0.05, 0.19])
def test_noise_is_not_continued_into_a_gap(gap):
    whole, rng = sines(np.arange(2000) * STEP), np.random.default_rng(0)
    noisy = changed(whole, q=lambda q: q + 1e-4 * rng.normal(size=q.shape), tau=lambda x: x + rng.normal(size=x.shape))
    gapped = without(noisy, (1.0, 1.0 + gap)).samples
    found = bridge(gapped, STEP, LONGEST)
    inside = found.motion_missing
    assert np.count_nonzero(inside) == pytest.approx(gap / STEP, abs=2)
    np.testing.assert_allclose(np.diff(found.samples.t), STEP, rtol=1e-6)
    t = found.samples.t[inside]
    truth = sines(t).samples
    assert np.abs(found.samples.q[inside] - truth.q).max() < 2e-4
    assert np.abs(found.samples.tau[inside] - truth.tau).max() < 1.5
    np.testing.assert_array_equal(found.effort_missing, np.repeat(inside[:, None], 2, axis=1))
    outside = np.isin(found.samples.t, gapped.t)
    assert np.array_equal(~outside, inside)


def test_jitter_and_single_samples_are_left_to_the_spline():
    t = np.arange(1000) * STEP + np.random.default_rng(1).uniform(0.0, 0.9 * STEP, 1000)
    samples = sines(np.delete(t, [200, 500])).samples
    found = bridge(samples, STEP, LONGEST)
    assert found.samples is samples or np.array_equal(found.samples.t, samples.t)
    assert not found.effort_missing.any()


def test_efforts_at_a_lower_rate_are_not_missing():
    whole = sines(np.arange(1000) * STEP).samples
    tau = whole.tau.copy()
    tau[np.arange(1000) % 5 > 0, 1] = np.nan
    found = bridge(changed(sines(whole.t), tau=tau).samples, STEP, LONGEST)
    assert not found.effort_missing[:990].any()
    np.testing.assert_allclose(found.samples.tau[:990], whole.tau[:990], atol=1e-3)


def test_short_gaps_cost_no_rows_and_long_ones_their_own(recording):
    """8.5 ms at a cut-off of 5 Hz; 0.15 s are bridged, but give no rows; 0.5 s split the recording."""
    trials = filtered(without(recording, (4.0, 4.0085), (8.0, 8.15), (14.0, 14.5)))
    assert (trials.survey.repairs.bridged, trials.survey.repairs.gaps) == (2, 1)
    assert [round(length, 2) for length in trials.survey.durations] == [14.0, 5.5]
    windows = list(trials)
    assert {window.segment for window in windows} == {0, 1}
    t = np.concatenate([window.t[window.own] for window in windows])
    valid = np.concatenate([window.valid[:, window.own] for window in windows], axis=1)
    assert (valid == valid[0]).all()
    lost = t[~valid[0]]
    assert lost.min() == pytest.approx(8.0, abs=0.04)
    assert lost.max() == pytest.approx(8.15, abs=0.04)


def test_bridged_motion_is_that_of_the_robot(recording):
    gapped = without(recording, (4.0, 4.19))
    (bridged, *_), (whole, *_) = filtered(gapped), filtered(recording)
    inside = (whole.t > 3.5) & (whole.t < 4.7)
    for name, largest in (("q", 1e-5), ("dq", 1e-4), ("ddq", 5e-3)):
        ours, truth = getattr(bridged.motion, name), getattr(whole.motion, name)
        assert np.abs(ours - truth)[:, inside].max() < largest * np.abs(truth).max()


def test_a_missing_effort_masks_its_joint_alone(recording):
    tau, t = recording.samples.tau.copy(), recording.samples.t
    tau[(t > 5.0) & (t < 7.0), 1] = np.nan
    tau[3000, 2] = np.inf
    faulty = changed(recording, tau=tau)
    trials = filtered(faulty)
    assert trials.survey.repairs.total_dropped == 0
    assert trials.survey.repairs.missing["effort"].tolist() == [0, 1999, 1]
    rows = {}
    for tile in trials.problem(ROBOT.regressor, ROBOT.base.independent).tiles():
        rows.setdefault(tile.joint, []).append(tile.block[-1] != 0.0)
    used = [np.concatenate(rows[joint]).mean() for joint in range(3)]
    assert used[0] == used[2] == 1.0
    assert used[1] == pytest.approx(17.0 / 19.0, abs=0.02)


def test_velocities_that_are_missing_are_derivatives(recording):
    dq = recording.samples.dq.copy()
    dq[5000:6000, 0] = np.nan
    faulty, plan = changed(recording, dq=dq), SignalPlan.from_low_pass(1000.0, LowPass(5.0), True)
    for one, other in zip(*(FilteredTrials([x], ROBOT.joints, {}, plan) for x in (faulty, recording)), strict=True):
        assert one.valid.all()
        np.testing.assert_allclose(one.motion.dq, other.motion.dq, atol=2e-3)
        np.testing.assert_allclose(one.motion.ddq, other.motion.ddq, atol=5e-2)
