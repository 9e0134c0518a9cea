# SPDX-License-Identifier: Apache-2.0
"""From windows to rows: the same filter on columns and torques, edges cut, rows thinned."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.dynamics.regressor import Layout
from robot_dyn_id.dynamics.terms import Asymmetric, Coulomb, DoubleCoulomb, LoadCoulomb, Offset, Viscous
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.signals import processing, sharp_columns
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals

ROBOT = Simulated()
RATE = 50.0


def plan(cutoff=4.0, recorded=False, motion_cutoff=None):
    return SignalPlan.from_low_pass(RATE, LowPass(cutoff), recorded, LowPass(motion_cutoff or cutoff))


def pieces(recording, chosen, **options):
    return list(FilteredTrials([recording], recording.joint_names, {}, chosen, **options))


@pytest.fixture(scope="module")
def recording():
    """Long enough for several windows."""
    return ROBOT.record(duration=240.0, rate=RATE, noise=0.2)


@pytest.mark.parametrize(("recorded", "motion_cutoff"), [(False, None), (True, None), (False, 1.6), (True, 6.4)])
def test_windows_filter_like_the_whole_record(recording, recorded, motion_cutoff):
    chosen, samples = plan(recorded=recorded, motion_cutoff=motion_cutoff), recording.samples
    windows = pieces(recording, chosen, keep_edges=True)
    assert len(windows) > 3
    motion_pass = LowPass(motion_cutoff or 4.0)
    q = motion_pass.apply(samples.q.T, RATE)
    dq = motion_pass.apply(samples.dq.T, RATE) if recorded else derivative(q, RATE)
    whole = {"q": q, "dq": dq, "ddq": derivative(dq, RATE)}
    inside = slice(*(side * int(9.0 / motion_pass.cutoff * RATE) for side in (1, -1)))  # ends are continued, see `ends`
    for name, values in whole.items():
        ours = np.concatenate([getattr(p.motion, name)[:, p.own] for p in windows], axis=1)
        assert ours.shape == values.shape
        ours, values = ours[:, inside], values[:, inside]
        np.testing.assert_allclose(ours, values, rtol=0, atol=1e-8 * np.abs(values).max(), err_msg=name)


@pytest.mark.parametrize("motion_cutoff", [None, 6.4])
def test_tiles_are_the_filtered_columns_and_torques_of_the_whole_record(recording, motion_cutoff):
    chosen, regressor = plan(motion_cutoff=motion_cutoff), ROBOT.regressor
    columns = ROBOT.base.independent
    problem = FilteredTrials([recording], recording.joint_names, {}, chosen).problem(regressor, columns)
    motion = pieces(recording, chosen, keep_edges=True)
    whole = type(motion[0].motion)(
        *(np.concatenate([getattr(p.motion, n)[:, p.own] for p in motion], axis=1) for n in ("q", "dq", "ddq"))
    )
    rows = np.arange(len(recording.samples))
    rows = rows[(rows >= chosen.edge) & (rows < len(rows) - chosen.edge) & (rows % chosen.row_stride == 0)]
    dense = chosen.low_pass.apply(regressor.dense(whole)[columns], RATE)[:, :, rows]
    torque = chosen.low_pass.apply(recording.samples.tau.T, RATE)[:, rows]
    layout = Layout.from_columns(regressor, columns)
    tiles = list(problem.tiles())
    for joint, support in enumerate(layout.supports):
        block = np.concatenate([tile.block for tile in tiles if tile.joint == joint], axis=1)
        scale = np.abs(dense[support, joint]).max()
        np.testing.assert_allclose(block[:-1], dense[support, joint], rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(block[-1], torque[joint], rtol=0, atol=1e-8 * np.abs(torque).max())
    assert problem.rate == RATE / chosen.row_stride
    assert problem.names == ROBOT.base.names


@pytest.mark.parametrize("cutoff", [2.5, 10.0])
def test_exact_torques_leave_no_residual_in_spite_of_signs_and_a_low_cutoff(cutoff):
    recording = ROBOT.record(duration=36.0, rate=RATE)
    chosen = plan(cutoff)
    (piece,) = pieces(recording, chosen, keep_edges=True)
    exact = changed(recording, tau=ROBOT.regressor.torque(piece.motion, ROBOT.parameters).T)
    trials = FilteredTrials([exact], exact.joint_names, {}, chosen)
    problem = trials.problem(ROBOT.regressor, ROBOT.base.independent)
    for tile in problem.tiles():
        residual = tile.block[-1] - ROBOT.base_values[problem.supports[tile.joint]] @ tile.block[:-1]
        assert np.abs(residual).max() < 1e-9 * np.abs(tile.block[-1]).max()
    # had the torque alone been filtered, the signs would have been left over
    (piece,) = trials
    unfiltered = ROBOT.regressor.torque(piece.motion, ROBOT.parameters)[:, piece.own]
    left = chosen.low_pass.apply(piece.tau, RATE)[:, piece.own] - unfiltered
    assert np.abs(left).max() > 0.05


def test_edges_are_cut_at_both_ends_of_every_segment(recording):
    t = recording.samples.t + np.where(recording.samples.t < 100.0, 0.0, 5.0)
    chosen = plan()
    windows = pieces(changed(recording, t=t), chosen)
    assert {p.segment for p in windows} == {0, 1}
    for segment, (first, last) in enumerate([(0.0, 99.98), (105.0, 244.98)]):
        times = np.concatenate([p.t[p.own] for p in windows if p.segment == segment])
        assert times[0] == pytest.approx(first + chosen.edge / RATE, abs=1e-6)
        assert times[-1] == pytest.approx(last - chosen.edge / RATE, abs=1e-6)
        np.testing.assert_allclose(np.diff(times), 1 / RATE, atol=1e-9)


@pytest.mark.parametrize(
    ("rate", "cutoff", "stride"), [(100.0, 5.0, 10), (30.0, 5.0, 3), (30.0, 12.0, 1), (1e3, 4.0, 125)]
)
def test_two_rows_are_kept_in_a_period_of_the_cutoff(rate, cutoff, stride):
    assert SignalPlan.from_low_pass(rate, LowPass(cutoff), False).row_stride == stride


def test_segments_of_several_trials_are_numbered_through(recording):
    t = recording.samples.t + np.where(recording.samples.t < 100.0, 0.0, 5.0)
    gapped = changed(recording, t=t)
    numbers = [p.segment for p in FilteredTrials([gapped, recording], recording.joint_names, {}, plan())]
    assert sorted(set(numbers)) == [0, 1, 2]
    assert numbers == sorted(numbers)


def test_a_trial_at_another_rate_is_brought_onto_the_grid():
    slower = ROBOT.record(seed=2, duration=36.0, rate=8.0)
    (piece,) = pieces(slower, plan(2.0), keep_edges=True)
    assert len(piece.t) == pytest.approx(36.0 * RATE, abs=10)
    exact = ROBOT.record(seed=2, duration=36.0, rate=RATE)
    inside = slice(200, -200)
    np.testing.assert_allclose(piece.motion.q.T[inside], exact.samples.q[: len(piece.t)][inside], atol=2e-3)


def test_the_plan_takes_what_the_user_fixed_and_the_rest_from_the_data(recording):
    found = survey([recording], recording.joint_names, {})
    chosen = plan_signals(found, SignalSettings())
    assert (chosen.rate, chosen.low_pass.cutoff) == (found.rate, found.cutoff)
    assert chosen.motion_pass == chosen.low_pass
    fixed = plan_signals(found, SignalSettings(3.0, 2))
    assert fixed.low_pass == fixed.motion_pass == LowPass(3.0, 2)
    fixed = plan_signals(found, SignalSettings(motion_cutoff=1.5))
    assert (fixed.low_pass.cutoff, fixed.motion_pass.cutoff) == (found.cutoff, 1.5)
    assert plan_signals(found, SignalSettings(velocity="recorded")).recorded_velocity
    assert not plan_signals(found, SignalSettings(velocity="derivative")).recorded_velocity


def test_another_motion_filter_leaves_recordings_and_regression_filter(recording):
    trials = FilteredTrials([recording], recording.joint_names, {}, plan())
    other = trials.with_motion(1.6, recorded_velocity=True)
    (first, *_), (second, *_) = trials, other
    assert other.plan.low_pass == trials.plan.low_pass
    np.testing.assert_array_equal(first.tau[:, :500], second.tau[:, :500])
    expected = LowPass(1.6).apply(recording.samples.q.T, RATE)[:, :500]
    np.testing.assert_allclose(second.motion.q[:, 300:500], expected[:, 300:], rtol=0, atol=1e-8)
    without = trials.with_recordings([changed(recording, dq=None)])
    with pytest.raises(UsageError, match="no velocities are recorded"):
        without.with_motion(1.6, recorded_velocity=True)


def test_recorded_velocities_that_are_missing_are_refused_or_replaced(recording):
    found = survey([changed(recording, dq=None)], recording.joint_names, {})
    with pytest.raises(UsageError, match="no velocities are recorded"):
        plan_signals(found, SignalSettings(velocity="recorded"))
    assert not plan_signals(found, SignalSettings(velocity="recorded", velocity_required=False)).recorded_velocity


def test_the_decimated_grid_holds_the_samples_of_the_native_one():
    """And the estimates that follow from it; a whole number of native samples per decimated one."""
    fast = ROBOT.record(duration=40.0, rate=500.0, noise=0.2)
    native = FilteredTrials.from_recordings([fast], fast.joint_names, {}, SignalSettings(5.0))
    coarse = native.decimated()
    assert (coarse.plan.decimation, coarse.plan.native_rate) == (3, pytest.approx(500.0))
    every, some = ({}, {})
    for trials, found in ((native, every), (coarse, some)):
        for window in trials:
            for name in ("q", "dq", "ddq"):
                found.setdefault(name, []).append(getattr(window.motion, name)[:, window.own])
            found.setdefault("t", []).append(window.t[window.own])
            found.setdefault("tau", []).append(trials.plan.low_pass.apply(window.tau, trials.plan.rate)[:, window.own])
    joined = [{name: np.concatenate(parts, axis=-1) for name, parts in found.items()} for found in (every, some)]
    rows = np.flatnonzero(np.isin(np.round(joined[0]["t"], 6), np.round(joined[1]["t"], 6)))
    assert len(rows) > len(joined[1]["t"]) - 10
    shared = np.isin(np.round(joined[1]["t"], 6), np.round(joined[0]["t"][rows], 6))
    for name, largest in (("q", 1e-9), ("dq", 1e-9), ("ddq", 1e-9), ("tau", 1e-4)):
        ours, theirs = joined[1][name][:, shared], joined[0][name][:, rows]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=largest * np.abs(theirs).max(), err_msg=name)
    stride = coarse.plan.row_stride * coarse.plan.decimation
    same_rows = replace(native, plan=replace(native.plan, row_stride=stride))
    full, decimated = (
        WeightedLeastSquares().fit(trials.problem(ROBOT.regressor, ROBOT.base.independent))
        for trials in (same_rows, coarse)
    )
    assert full.rows == decimated.rows
    np.testing.assert_array_less(np.abs(decimated.values - full.values), 0.02 * full.standard_deviations)


@pytest.mark.parametrize("rate", [500.0, 1000.0])
@pytest.mark.parametrize(
    "term", [Coulomb(3e-4), Coulomb(0.003), Coulomb(0.02), Coulomb(0.05), Asymmetric(0.001), DoubleCoulomb()], ids=repr
)
def test_sharp_friction_is_estimated_on_the_decimated_grid_as_at_the_full_rate(term, rate, monkeypatch):
    robot = Simulated(terms=(Viscous(), Offset(), term)[isinstance(term, Asymmetric) :])
    fast = robot.record(duration=20.0, rate=rate, noise=0.2)
    coarse = FilteredTrials.from_recordings([fast], fast.joint_names, {}, SignalSettings(5.0)).decimated()
    stride = coarse.plan.row_stride * coarse.plan.decimation
    native = replace(coarse, plan=replace(coarse.plan, rate=rate, decimation=1, row_stride=stride))

    def estimated(trials):
        return WeightedLeastSquares().fit(trials.problem(robot.regressor, robot.base.independent))

    full = estimated(native)

    def error():
        found = estimated(replace(coarse, store=None))
        assert found.rows == full.rows
        return np.max(np.abs(found.values - full.values) / full.standard_deviations)

    assert error() < 0.02
    if term.step_width < 0.01:  # and not so without
        monkeypatch.setattr(processing, "sharpen_columns", lambda *arguments: None)
        assert error() > 0.05


def test_a_load_dependent_sharp_term_has_its_factor_between_the_samples_too(monkeypatch):
    monkeypatch.setattr(sharp_columns, "MOST_REVERSALS", 5)  # in several parts
    robot = Simulated(terms=(Viscous(), Coulomb(0.003), LoadCoulomb(0.003)))
    fast = robot.record(duration=20.0, rate=500.0, noise=0.2)
    coarse = FilteredTrials.from_recordings([fast], fast.joint_names, {}, SignalSettings(5.0)).decimated()
    stride = coarse.plan.row_stride * coarse.plan.decimation
    native = replace(coarse, plan=replace(coarse.plan, rate=500.0, decimation=1, row_stride=stride))
    full, found = (
        WeightedLeastSquares().fit(trials.problem(robot.regressor, robot.base.independent))
        for trials in (native, coarse)
    )
    np.testing.assert_array_less(np.abs(found.values - full.values), 0.02 * full.standard_deviations)


def test_a_periodic_motion_is_not_decimated():
    fast = ROBOT.record(duration=40.0, rate=500.0)
    trials = FilteredTrials.from_recordings([fast], fast.joint_names, {}, SignalSettings(5.0, period=10.0))
    assert trials.decimated() is trials
