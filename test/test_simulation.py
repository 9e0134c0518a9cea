"""Simulated recordings: exact torque, and noise of the stated statistics."""

import numpy as np
import pytest
from simulated import Simulated

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.regressor import Motion
from robot_dyn_id.simulation import Sensors, coloured_noise, simulated_recording


@pytest.mark.parametrize("correlation_time", [0.0, 0.1, 0.5])
def test_noise_has_its_size_and_correlation_time(correlation_time):
    rate, sigma = 100.0, np.array([0.5, 2.0])
    noise = coloured_noise(sigma, 400_000, rate, correlation_time, np.random.default_rng(0))
    assert np.allclose(noise.std(axis=1), sigma, rtol=0.05)
    lag = max(1, round(rate * correlation_time))
    correlation = [np.corrcoef(row[lag:], row[:-lag])[0, 1] for row in noise]
    assert np.allclose(correlation, np.exp(-1.0) if correlation_time else 0.0, atol=0.04)


def test_noise_is_stationary_from_the_first_sample_on():
    starts = [coloured_noise(np.ones(50), 2, 100.0, 0.5, np.random.default_rng(seed))[:, 0] for seed in range(40)]
    assert np.std(starts) == pytest.approx(1.0, rel=0.06)


def test_without_noise_the_recording_is_the_model():
    arm, motion = Simulated(), random_fourier(Simulated().model, 1)
    sensors = Sensors(np.zeros(3), position=0.0, velocity=0.0)
    recording = simulated_recording(arm.regressor, arm.parameters, motion, 3.0, 50.0, sensors, 1)
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
