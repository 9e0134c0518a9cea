# SPDX-License-Identifier: Apache-2.0
"""Faults that residuals show, on simulated arms whose friction the model does not contain exactly."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from mutation.case import cut
from mutation.catalog import FAULTS, clean_case
from mutation.clean import Bench

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.identification.diagnosis import residuals
from robot_dyn_id.identification.diagnosis.residuals import Levels, ResidualHistory, examine_held_out, examine_residuals
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.validation.holdout import exclude_spans
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

TERMS = (Viscous(), Coulomb(), Offset(), RotorInertia())


@pytest.fixture(scope="module")
def arm():
    return Bench.draw("panda", 0)


def fitted(robot, *recordings):
    """Least squares on all recordings, with its data."""
    regressor = Regressor(robot, place_terms_on_joints(robot, TERMS))
    trials = FilteredTrials.from_recordings(recordings, robot.joint_names, {}, SignalSettings())
    base = compute_base_parameters(regressor)
    return IdentifiedModel(
        regressor, base, WeightedLeastSquares().fit(trials.problem(regressor, base.independent))
    ), trials


def codes(findings):
    return {finding.code for finding in findings}


def test_clean_recordings_show_nothing(arm):
    recordings = [arm.record(number, duration=30.0).recording(arm.robot) for number in range(3)]
    model, trials = fitted(arm.robot, *recordings[:2])
    assert examine_residuals(model, trials) == ()
    assert examine_held_out(model, trials.with_recordings(recordings[2:]), np.zeros(0)) == ()


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("warm_up", "friction_drifts"),
        ("offset_drift", "effort_offset_drifts"),
        ("offset_jump", "effort_offset_drifts"),
        ("contact", "contact"),
        ("tool_among", "load_changed"),
        ("load_picked_up", "load_changed"),
    ],
)
def test_faults_of_the_upper_strength_are_named(arm, key, code):
    case = FAULTS[key].apply(arm, 2, np.random.default_rng(0))
    assert code in codes(examine_residuals(*fitted(arm.robot, *case.training)))


def test_the_entry_of_a_contact_leaves_it_out(arm):
    """The times of the finding, as the configuration states them, are those of the contacts."""
    (recording,) = FAULTS["contact"].apply(arm, 2, np.random.default_rng(0)).training
    (contact,) = (one for one in examine_residuals(*fitted(arm.robot, recording)) if one.code == "contact")
    spans = json.loads(re.search(r"`exclude: (.*?)`", contact.action).group(1))
    left = exclude_spans(recording, arm.robot.joint_names, [tuple(span) for span in spans])
    assert "contact" not in codes(examine_residuals(*fitted(arm.robot, left)))
    later = replace(recording, source="later.npz", samples=replace(recording.samples, t=recording.samples.t + 1000.0))
    (same,) = (one for one in examine_residuals(*fitted(arm.robot, later, recording)) if one.code == "contact")
    assert "s of later.npz" in same.message
    assert f'"later.npz": {spans}' in same.action


def test_another_tool_in_held_out_data_is_named(arm):
    case = FAULTS["tool_held_out"].apply(arm, 2, np.random.default_rng(0))
    model, trials = fitted(arm.robot, *case.training)
    (finding,) = examine_held_out(model, trials.with_recordings(case.held_out), np.zeros(0))
    assert finding.code == "load_changed"


def test_drift_of_the_zero_is_measured(arm):
    """A ramp of 2 N m on one joint, within three standard deviations and 10 %."""
    recording = clean_case(arm).training[0]
    samples = recording.samples
    tau = samples.tau.copy()
    tau[:, 4] += 2.0 * (samples.t - samples.t[0]) / np.ptp(samples.t)
    model, trials = fitted(arm.robot, replace(recording, samples=replace(samples, tau=tau)))
    levels = Levels.from_residuals(ResidualHistory.from_trials(model, trials))
    changes, deviations = levels.offset_change[0], levels.deviations[1, 0]
    assert abs(changes[4] - 2.0) < max(3 * deviations[4], 0.2)
    assert (np.abs(np.delete(changes, 4)) < 4 * np.delete(deviations, 4)).all()


def test_short_recordings_are_not_judged(arm):
    model, trials = fitted(arm.robot, cut(clean_case(arm).training[0], 0.2, 0.45))
    levels = Levels.from_residuals(ResidualHistory.from_trials(model, trials))
    assert np.isinf(levels.deviations).all()


def test_a_short_recording_hides_no_offset_between_the_others(arm):
    """Two recordings whose zero differs by 3 N m on one joint, and one that is too short to be judged."""
    first, second = (arm.record(number, duration=30.0).recording(arm.robot) for number in range(2))
    tau = second.samples.tau.copy()
    tau[:, 4] += 3.0
    moved = replace(second, samples=replace(second.samples, tau=tau))
    model, trials = fitted(arm.robot, first, moved, cut(first, 0.0, 0.2))
    levels = Levels.from_residuals(ResidualHistory.from_trials(model, trials))
    assert np.isinf(levels.deviations[:, 2]).all()
    alone = Levels(levels.offset[:2], levels.offset_change, levels.friction_change, levels.deviations[:, :2])
    for found, expected in zip(levels.clearest_difference(), alone.clearest_difference(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert "effort_offset_drifts" in codes(examine_residuals(model, trials))


def test_sums_over_bins_are_those_of_the_samples(arm):
    """Root mean square of the residuals, against filtered samples."""
    model, trials = fitted(arm.robot, clean_case(arm).training[0])
    power, count = 0.0, 0
    for window in trials.along(model.regressor):
        error = trials.plan.low_pass.apply(window.tau, trials.plan.rate)
        error = error - trials.plan.low_pass.apply(model.torque(window.motion), trials.plan.rate)
        power, count = power + (error[:, window.own] ** 2).sum(axis=1), count + window.own.sum()
    np.testing.assert_allclose(ResidualHistory.from_trials(model, trials).rms, np.sqrt(power / count), rtol=1e-9)


@pytest.mark.parametrize("most", [30, 1])
def test_bins_of_long_recordings_are_merged(arm, monkeypatch, most):
    """Memory is bounded, recordings stay apart, and all sums stay the same."""
    model, trials = fitted(arm.robot, *(arm.record(number, duration=20.0).recording(arm.robot) for number in range(2)))
    whole = ResidualHistory.from_trials(model, trials)
    monkeypatch.setattr(residuals, "MAX_BINS", most)
    merged = ResidualHistory.from_trials(model, trials)
    assert len(np.unique(merged.trial)) == 2
    assert len(merged.t) <= max(most, 4) < len(whole.t)
    assert merged.width > whole.width == residuals.BIN_S
    np.testing.assert_allclose(merged.rms, whole.rms, rtol=1e-12)
    np.testing.assert_allclose(merged.load_gram.sum(axis=1), whole.load_gram.sum(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(merged.largest.max(axis=1), whole.largest.max(axis=1))


@pytest.mark.parametrize("hours", [1, 12])
def test_contacts_of_long_recordings_are_found(arm, monkeypatch, hours):
    """Bins of the residuals of a recording of hours, in windows of 100 s, in which the arm touches something twice."""
    model, trials = fitted(arm.robot, cut(clean_case(arm).training[0], 0.2, 0.45))
    (whole,) = list(residuals._bin_sums(model, trials))[:1]
    rng, count, joints = np.random.default_rng(0), 400, len(whole[2])
    begin = trials.recordings[0].samples.t[0]

    def windows(*_):
        for number in range(36 * hours):
            largest = np.abs(rng.normal(size=(joints, count))) + 1.0
            if number in (5, 20):
                largest[2:4, 100] = 15.0
            pairs = zip(whole, residuals._AXES, strict=True)
            sums = [np.repeat(one.take([0], axis=axis), count, axis) for one, axis in pairs]
            sums[0], sums[residuals._LARGEST] = begin + 100.0 * number + np.arange(count) * residuals.BIN_S, largest
            yield tuple(sums)

    monkeypatch.setattr(residuals, "_bin_sums", windows)
    history = ResidualHistory.from_trials(model, trials)
    assert len(history.t) <= residuals.MAX_BINS and len(history.short.t) <= residuals.MAX_SHORT_BINS
    assert history.short.count == 14400 * hours
    expected = 1.0 + 1.6449  # the 0.9 quantile of the magnitude of a normal number is 1.645
    np.testing.assert_allclose(history.short.usual, expected, rtol=0.03)
    (finding,) = residuals._examine_contacts(history)
    assert "525.0 s, 2025.0 s" in finding.message
    assert set(finding.joints) == set(arm.robot.joint_names[2:4])
