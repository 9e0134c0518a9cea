# SPDX-License-Identifier: Apache-2.0
"""Predictions along recordings: up to their ends, over short gaps, and nowhere in long ones."""

import numpy as np
import pytest
from support.simulated import ARM, LIFT, TERMS, Simulated, changed

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.prediction.forward_simulation import simulate_efforts
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split

ARMS = {"three joints": ARM, "sliding": LIFT, "seven joints": find_shared_file("urdf/arm7.urdf").read_text()}
RATE = 200.0


@pytest.fixture(scope="module", params=ARMS)
def arm(request):
    """A robot, and the model that was identified from a noisy recording of it with 16-bit encoders."""
    robot = Simulated(ARMS[request.param])
    settings = Settings(terms=TERMS, estimator=WeightedLeastSquares(), velocity="derivative")
    recordings = [encoded(robot.record(seed=seed, duration=20.0, rate=RATE, noise=0.3)) for seed in (1, 2)]
    return robot, identify(
        *split(recordings[:1], robot.joints, recordings[1:]), robot.model, settings, "test"
    ).parameters


def encoded(recording, bits=16):
    step = 2 * np.pi / 2**bits
    return changed(recording, q=lambda q: np.round(q / step) * step, dq=None)


def with_gaps(recording, *spans):
    t = recording.samples.t
    return changed(recording, rows=~np.any([(t > start) & (t < stop) for start, stop in spans], axis=0))


@pytest.mark.slow
def test_errors_at_ends_and_gaps_are_those_inside(arm):
    """Near an end, within a period of the cut-off, at most 1.5 times the RMS inside; finite over short gaps."""
    robot, parameters = arm
    period = 1.0 / parameters.processing.cutoff_frequency
    short, long = 0.8 * period, 3.0 * period
    inside, near, bridged = [], [], []
    for seed in range(11, 17):
        whole = robot.record(seed=seed, duration=12.0, rate=RATE)
        gaps = ((3.0, 3.0 + short), (7.0, 7.0 + long))
        recording = with_gaps(encoded(whole), *gaps)
        t, tau, findings = predict_recording(recording, parameters)
        assert np.isfinite(tau).all()
        assert "samples_not_predicted" not in [one.code for one in findings]
        truth = whole.samples.tau[np.isin(whole.samples.t, t)]
        error = (tau - truth) / scale(truth)
        ends = np.array([0.0, 7.0, 7.0 + long, t[-1]])
        is_near = np.abs(t[:, None] - ends).min(axis=1) < period
        is_bridged = (t > 3.0 - period) & (t < 3.0 + short + period)
        near.append(error[is_near])
        bridged.append(error[is_bridged])
        inside.append(error[~is_near & ~is_bridged])
    rms = [np.sqrt(np.mean(np.concatenate(errors) ** 2)) for errors in (inside, near, bridged)]
    assert rms[1] < 1.5 * rms[0]
    assert rms[2] < 1.5 * rms[0]


def test_failed_reads_and_wrapped_angles_change_no_prediction(arm):
    robot, parameters = arm
    whole = encoded(robot.record(seed=21, duration=12.0, rate=RATE))
    _, truth, _ = predict_recording(whole, parameters)
    turned, failed = robot.model.slides == 0, np.zeros(len(whole.samples), dtype=bool)
    failed[[300, 900, 1501]] = True

    def damaged(q):
        q = np.where(turned, (q + np.pi) % (2.0 * np.pi) - np.pi, q)
        return np.where(failed[:, None], -np.pi, q)

    recording = changed(whole, q=damaged, tau=lambda tau: np.where(failed[:, None], 0.0, tau))
    _, tau, findings = predict_recording(recording, parameters)
    assert "encoder_spikes" in [one.code for one in findings]
    near = np.convolve(failed, np.ones(41), mode="same") > 0  # the positions of failed reads are interpolated
    error = np.abs(tau - truth) / scale(truth)
    assert error[~near].max() < 1e-3
    assert error.max() < 0.3


def scale(tau):
    """RMS torque of each joint."""
    return np.sqrt(np.mean(tau**2, axis=0))


def test_samples_without_positions_are_predicted_over_short_gaps_only(arm):
    robot, parameters = arm
    recording = encoded(robot.record(seed=21, duration=12.0, rate=RATE))
    period = 1.0 / parameters.processing.cutoff_frequency
    q, t = recording.samples.q.copy(), recording.samples.t
    short, long = ((t > start) & (t < start + length * period) for start, length in ((4.0, 0.9), (8.0, 2.0)))
    q[short | long, 0] = np.nan
    _, tau, findings = predict_recording(changed(recording, q=q), parameters)
    np.testing.assert_array_equal(np.isnan(tau).any(axis=1), long)
    (finding,) = [one for one in findings if one.code == "samples_not_predicted"]
    assert f"{np.count_nonzero(long)} of {len(t)} samples" in finding.message
    assert "1 gap longer than" in finding.message


@pytest.mark.slow
def test_a_motion_in_degrees_is_refused_unless_that_is_overruled():
    robot = Simulated(find_shared_file("urdf/arm7.urdf").read_text())
    settings = Settings(terms=TERMS, estimator=WeightedLeastSquares())
    recording = robot.record(duration=20.0, noise=0.3)
    parameters = identify([recording], [], robot.model, settings, "test").parameters
    turned = changed(recording, q=np.degrees, dq=np.degrees)
    with pytest.raises(UnsafeDataError, match="degrees"):
        predict_recording(turned, parameters)
    dynamics = Dynamics.from_parameters(parameters)
    with pytest.raises(UnsafeDataError, match="degrees"):
        simulate_efforts(turned, parameters, dynamics, Settings())
    _, _, findings = predict_recording(turned, parameters, ignore=["positions_in_degrees"])
    assert ("positions_in_degrees", "warning") in {(one.code, one.severity) for one in findings}
