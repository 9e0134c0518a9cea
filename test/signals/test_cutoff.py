# SPDX-License-Identifier: Apache-2.0
"""The cut-off follows the motion, whatever the noise, the resolution and the rate of the positions."""

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.signals.cutoff import choose_cutoff, choose_motion_cutoff
from robot_dyn_id.signals.survey import survey

ROBOT = Simulated()
RATES = (100.0, 1000.0)


@pytest.fixture(scope="module", params=RATES)
def recording(request):
    return ROBOT.record(duration=40.0, rate=request.param, noise=0.0, velocity=0.0)


def cutoff(recording, **channels):
    return survey([changed(recording, dq=None, **channels)], recording.joint_names, {}).cutoff


def integrated_noise(q, seed=1):
    """Errors that are integrated white noise, as jitter of the stamps makes them."""
    steps = np.random.default_rng(seed).normal(size=q.shape)
    return 1e-4 * np.cumsum(steps, axis=0) / np.sqrt(len(q) / 40.0)


FAULTS = {
    "12 bit": lambda q, t: np.round(q * 4096 / (2 * np.pi)) * (2 * np.pi) / 4096,
    "16 bit": lambda q, t: np.round(q * 65536 / (2 * np.pi)) * (2 * np.pi) / 65536,
    "white noise": lambda q, t: q + 1e-4 * np.random.default_rng(0).normal(size=q.shape),
    "integrated noise": lambda q, t: q + integrated_noise(q),
    "vibration at 30 Hz": lambda q, t: q + 3e-4 * np.sin(2 * np.pi * 30.0 * t)[:, None],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_noise_is_not_taken_for_motion(recording, fault):
    clean, faulty = cutoff(recording), cutoff(recording, q=lambda q: FAULTS[fault](q, recording.samples.t))
    assert 3.0 < clean < 7.0, "ten times harmonics of 0.1 to 0.5 Hz"
    assert faulty == pytest.approx(clean, rel=0.15)


def test_the_cutoff_is_that_of_most_joints_that_move():
    bandwidth, speed = np.array([0.5, 0.6, 30.0, 40.0]), np.array([1.0, 0.8, 0.5, 0.01])
    assert choose_cutoff(bandwidth, speed, 1000.0) == pytest.approx(6.0)
    assert choose_cutoff(np.array([0.0, 0.7]), np.array([0.0, 1e-3]), 1000.0) == pytest.approx(7.0)
    assert choose_cutoff(np.zeros(2), np.zeros(2), 1000.0) == 2.0, "nothing moves"
    assert choose_cutoff(np.array([5.0]), np.ones(1), 30.0) == pytest.approx(9.0), "0.3 sample rates"


def test_noisy_positions_are_filtered_more_than_the_regression(recording):
    """12-bit encoders: the motion filter is lower, but leaves the motion; 20 bit: both filters are the same."""
    for bits, lower in ((12, True), (20, False)):
        step = 2.0 * np.pi / 2**bits
        found = survey(
            [changed(recording, q=lambda q, step=step: np.round(q / step) * step)], recording.joint_names, {}
        )
        chosen = found.motion_cutoff(recorded_velocity=False)
        assert (chosen < 0.8 * found.cutoff) == lower
        assert chosen >= 4.0 * 0.5 * (1.0 - 1e-9), "four times the highest harmonic, 0.5 Hz"
        assert found.motion_cutoff(recorded_velocity=True) == pytest.approx(found.cutoff), "recorded without noise"


def test_the_window_of_the_spectrum_does_not_widen_a_slow_motion():
    """Harmonics of 0.05 to 0.25 Hz are narrower than the window's lines: 4 bandwidths of the motion, not of these."""
    width, least = 1.0 / 8.0, np.zeros(2)
    slow, fast = (np.full(2, bandwidth + 1.5 * width) for bandwidth in (0.25, 5.0))
    assert choose_motion_cutoff(50.0, slow, least, np.ones(2), width) == pytest.approx(1.0)
    assert choose_motion_cutoff(50.0, fast, least, np.ones(2), width) == pytest.approx(20.0)
    assert choose_motion_cutoff(50.0, np.full(2, 0.1), least, np.ones(2), width) == pytest.approx(0.2), "at most half"
    assert choose_motion_cutoff(3.0, fast, least, np.ones(2), width) == 3.0, "never above the regression filter"
