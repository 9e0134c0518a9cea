# SPDX-License-Identifier: Apache-2.0
"""Simulated recordings: exact torque, and noise of the stated statistics."""

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.simulation.sensors import (
    Sensors,
    add_sensor_errors,
    draw_colored_noise,
    resample_residuals,
    sample_times,
    simulate_recording,
)


@pytest.mark.parametrize("correlation_time", [0.0, 0.1, 0.5])
def test_noise_has_its_size_and_correlation_time(correlation_time):
    rate, sigma = 100.0, np.array([0.5, 2.0])
    noise = draw_colored_noise(sigma, 400_000, rate, correlation_time, np.random.default_rng(0))
    assert np.allclose(noise.std(axis=1), sigma, rtol=0.05)
    lag = max(1, round(rate * correlation_time))
    correlation = [np.corrcoef(row[lag:], row[:-lag])[0, 1] for row in noise]
    assert np.allclose(correlation, np.exp(-1.0) if correlation_time else 0.0, atol=0.04)


def test_noise_is_stationary_from_the_first_sample_on():
    starts = [draw_colored_noise(np.ones(50), 2, 100.0, 0.5, np.random.default_rng(seed))[:, 0] for seed in range(40)]
    assert np.std(starts) == pytest.approx(1.0, rel=0.06)


def test_resampled_residuals_keep_their_size_and_correlations():
    """Size, correlation between joints, and in time as far as a block reaches: (1 - lag / block) of it is left."""
    rng, block, lag = np.random.default_rng(1), 200, 20
    first = draw_colored_noise(np.ones(1), 5000, 100.0, 0.2, rng)[0]
    residuals = np.array([first, 0.5 * first + 2.0])
    noise = resample_residuals(residuals, 1_000_030, block, rng)
    assert noise.shape == (2, 1_000_030)
    assert np.allclose(noise[1], 0.5 * noise[0] + 2.0)
    assert np.allclose(noise.mean(axis=1), residuals.mean(axis=1), atol=0.02)
    assert np.allclose(noise.std(axis=1), residuals.std(axis=1), rtol=0.02)
    expected = np.corrcoef(first, np.roll(first, lag))[0, 1] * (1 - lag / block)
    assert np.corrcoef(noise[0, lag:], noise[0, :-lag])[0, 1] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("block", [0, 101])
def test_blocks_that_the_residuals_do_not_fill_are_refused(block):
    with pytest.raises(UsageError, match="cannot be drawn from 100 residuals"):
        resample_residuals(np.zeros((2, 100)), 50, block, np.random.default_rng(0))


def test_encoders_and_residuals_are_in_the_recording():
    arm, motion, count = Simulated(), draw_random_fourier(Simulated().model, 1), 150
    residuals = np.random.default_rng(2).normal(size=(3, 40))
    exact = Sensors(np.zeros(3), position=0.0, velocity=None)
    real = Sensors(np.zeros(3), position=0.0, velocity=None, resolution=1e-3, residuals=residuals, block=0.2)
    clean, noisy = (
        simulate_recording(arm.regressor, arm.parameters, motion, sample_times(3.0, 50.0), sensors, 1).samples
        for sensors in (exact, real)
    )
    steps = noisy.q / 1e-3
    assert np.allclose(steps, np.round(steps), atol=1e-9)
    assert 0.4e-3 < np.abs(noisy.q - clean.q).max() <= 0.5e-3 + 1e-12
    distance = np.abs((noisy.tau - clean.tau)[:, None] - residuals.T[None]).max(axis=2)
    assert distance.shape == (count, 40)
    assert distance.min(axis=1).max() < 1e-12, "some error is not a residual"


def test_without_noise_the_recording_is_the_model():
    arm, motion = Simulated(), draw_random_fourier(Simulated().model, 1)
    sensors = Sensors(np.zeros(3), position=0.0, velocity=0.0)
    recording = simulate_recording(arm.regressor, arm.parameters, motion, sample_times(3.0, 50.0), sensors, 1)
    (chunk,) = recording.chunks(arm.joints)
    q, dq, ddq, _ = motion.evaluate(np.arange(150) / 50.0)
    assert np.array_equal(chunk.q, q.T)
    assert np.array_equal(chunk.dq, dq.T)
    assert np.array_equal(chunk.tau, arm.regressor.torque(Motion(q, dq, ddq), arm.parameters).T)


def test_a_seed_is_a_recording():
    arm = Simulated()
    one, same, other = (arm.record(seed, duration=2.0, noise=0.1) for seed in (1, 1, 2))
    assert np.array_equal(one.samples.tau, same.samples.tau)
    assert not np.array_equal(one.samples.tau, other.samples.tau)


def test_too_short_is_refused():
    arm = Simulated()
    with pytest.raises(UsageError, match="only 1 samples"):
        arm.record(1, duration=0.01)


def test_true_samples_through_sensors():
    rng = np.random.default_rng(1)
    true = Chunk(np.arange(20_000) / 500.0, *rng.normal(size=(3, 20_000, 2)))
    ideal = Sensors(np.zeros(2), 0.0, 0.0)
    shown = add_sensor_errors(("a", "b"), true, ideal, 1).samples
    assert all(np.array_equal(getattr(shown, key), getattr(true, key)) for key in ("t", "q", "dq", "tau"))
    coarse = add_sensor_errors(("a", "b"), true, Sensors(np.array([2.0, 0.5]), 0.0, None, resolution=0.01), 1).samples
    assert coarse.dq is None
    assert np.abs(coarse.q - true.q).max() <= 0.005 + 1e-12
    assert np.allclose((coarse.tau - true.tau).std(axis=0), [2.0, 0.5], rtol=0.03)
    with pytest.raises(UsageError, match="velocities and efforts"):
        add_sensor_errors(("a", "b"), Chunk(true.t, true.q), ideal, 1)
