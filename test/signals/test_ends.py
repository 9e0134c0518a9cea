# SPDX-License-Identifier: Apache-2.0
"""A motion is filtered and differentiated up to its very ends."""

import numpy as np
import pytest

from robot_dyn_id.signals.ends import filter_with_derivatives, predict_continuation
from robot_dyn_id.signals.filtering import LowPass

CUTOFF = 5.0


def fourier(t, seed):
    """Position and acceleration of harmonics of 0.1 to 0.5 Hz."""
    amplitude, turn = np.random.default_rng(seed).normal(size=(5, 2)), 2 * np.pi * 0.1 * np.arange(1, 6)
    phase = turn[:, None] * t
    q = amplitude[:, 0] @ np.sin(phase) + amplitude[:, 1] @ np.cos(phase)
    return q, -(amplitude[:, 0] * turn**2) @ np.sin(phase) - (amplitude[:, 1] * turn**2) @ np.cos(phase)


def trapezoidal(t, seed):
    """Position and acceleration of moves whose acceleration jumps within 60 ms."""
    rng, fine = np.random.default_rng(seed), np.arange(0.0, t[-1] + 1e-3, 1e-3)
    jumps = np.cumsum(rng.uniform(0.3, 1.0, len(fine) // 300))
    levels = rng.choice([-1.0, 0.0, 1.0], len(jumps) + 1)
    acceleration = np.convolve(levels[np.searchsorted(jumps, fine)], np.hanning(60) / np.hanning(60).sum(), "same")
    velocity = np.cumsum(acceleration - acceleration.mean()) * 1e-3
    q = np.cumsum(velocity - velocity.mean()) * 1e-3
    return np.interp(t, fine, q), np.interp(t, fine, acceleration - acceleration.mean())


def quantized(q, bits):
    step = 2 * np.pi / 2**bits
    return np.round(q / step) * step


@pytest.mark.parametrize("rate", [100.0, 1000.0])
@pytest.mark.parametrize("bits", [12, 20])
@pytest.mark.parametrize(("motion", "largest"), [(fourier, 0.05), (trapezoidal, 0.35)])
def test_accelerations_at_the_ends_are_those_of_the_robot(motion, largest, rate, bits):
    """RMS over the last 0.2 s of either side, relative to the RMS acceleration, over ten motions."""
    low_pass, errors, accelerations = LowPass(CUTOFF), {True: [], False: []}, []
    for seed in range(10):
        t = np.arange(0.0, 8.0 + 0.37 * seed, 1.0 / rate)
        q, acceleration = motion(t, seed)
        for continued, ends in errors.items():
            (found,) = filter_with_derivatives(quantized(q, bits)[None], rate, low_pass, continued, continued)[2]
            last = int(0.2 * rate)
            ends += [(found - acceleration)[:last], (found - acceleration)[-last:]]
        accelerations.append(acceleration)
    power = np.mean(np.concatenate(accelerations) ** 2)
    error, reflected = (np.sqrt(np.mean(np.concatenate(errors[key]) ** 2) / power) for key in (True, False))
    assert error < largest
    assert reflected > 10.0 * error


def test_a_joint_at_rest_stays_at_rest():
    t = np.arange(0.0, 8.0, 0.01)
    q = np.stack([np.full(len(t), 0.7), quantized(0.3 + 1e-4 * np.random.default_rng(0).normal(size=len(t)), 12)])
    after = predict_continuation(q, 100.0, LowPass(CUTOFF))
    np.testing.assert_allclose(after[0], 0.7)
    np.testing.assert_allclose(after[1], q[1].mean(), atol=2e-3)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_few_samples_are_continued_by_a_straight_line(count):
    values = 0.1 * np.arange(count)[None]
    q, dq, ddq = filter_with_derivatives(values, 100.0, LowPass(CUTOFF), True, True)
    np.testing.assert_allclose(q, values, atol=1e-3)
    np.testing.assert_allclose(dq, 10.0 * (count > 1), atol=0.1)
    np.testing.assert_allclose(ddq, 0.0, atol=3.0)
