# SPDX-License-Identifier: Apache-2.0
"""The zero-phase low-pass and the derivative."""

import numpy as np
import pytest

from robot_dyn_id.errors import UsageError
from robot_dyn_id.signals.filtering import LowPass, derivative

RATE = 100.0
T = np.arange(2000) / RATE
MIDDLE = slice(500, 1500)


def response(low_pass, frequency):
    """Gain and phase of a sine in the middle of a long record."""
    out = low_pass.apply(np.sin(2 * np.pi * frequency * T), RATE)[MIDDLE]
    turn = 2 * np.pi * frequency * T[MIDDLE]
    (sine, cosine), *_ = np.linalg.lstsq(np.column_stack([np.sin(turn), np.cos(turn)]), out, rcond=None)
    return np.hypot(sine, cosine), np.arctan2(cosine, sine)


@pytest.mark.parametrize("frequency", [0.5, 2.0, 5.0, 8.0])
def test_a_sine_keeps_its_phase(frequency):
    assert abs(response(LowPass(5.0), frequency)[1]) < 1e-6


@pytest.mark.parametrize("order", [2, 4, 6])
def test_the_gain_is_one_half_at_the_cutoff_and_falls_from_there(order):
    low_pass = LowPass(5.0, order)
    assert response(low_pass, 5.0)[0] == pytest.approx(0.5, abs=1e-3)
    assert response(low_pass, 0.5)[0] == pytest.approx(1.0, abs=1e-3)
    assert response(low_pass, 15.0)[0] < 1.2 * (5.0 / 15.0) ** (2 * order)


def test_a_constant_passes_unchanged_up_to_the_ends():
    np.testing.assert_allclose(LowPass(3.0).apply(np.full((2, 50), 7.0), RATE), 7.0, rtol=1e-9)


@pytest.mark.parametrize("cutoff", [1.0, 5.0, 20.0])
def test_a_disturbance_has_died_away_after_the_settling_time(cutoff):
    low_pass = LowPass(cutoff)
    pulse = np.zeros(4000)
    pulse[2000] = 1.0
    out = np.abs(low_pass.apply(pulse, RATE))
    far = int(2 * low_pass.settling * RATE)  # what windows share
    assert out[: 2000 - far].max(initial=0.0) < 1e-9 * out.max()


@pytest.mark.parametrize(
    "options",
    [
        {"cutoff": 0.0},
        {"cutoff": -1.0},
        {"cutoff": np.nan},
        {"cutoff": np.inf},
        {"cutoff": 1.0, "order": 0},
        {"cutoff": 1.0, "order": 13},
    ],
    ids=str,
)
def test_a_filter_that_is_none_is_refused(options):
    with pytest.raises(UsageError):
        LowPass(**options)


def test_a_cutoff_too_high_for_the_data_is_refused_with_both_numbers():
    with pytest.raises(UsageError, match=r"50 Hz is too high for data at 100 Hz: use at most 40 Hz"):
        LowPass(50.0).apply(np.zeros(100), RATE)


def test_the_derivative_of_a_polynomial_of_eighth_degree_is_exact():
    t = np.linspace(-1.0, 1.0, 41)
    coefficients = np.arange(1.0, 10.0)
    values, slope = np.polyval(coefficients, t), np.polyval(np.polyder(coefficients), t)
    np.testing.assert_allclose(derivative(values, 20.0)[4:-4], slope[4:-4], rtol=1e-10, atol=1e-10)
    ninth = derivative(t**9, 20.0)[4:-4] - 9 * t[4:-4] ** 8
    assert np.abs(ninth).max() > 1e-10  # and not beyond it


def test_the_derivative_of_a_sine_has_no_lag():
    values = np.array([np.sin(2 * np.pi * 3.0 * T), np.cos(2 * np.pi * 3.0 * T)])
    slopes = 2 * np.pi * 3.0 * np.array([np.cos(2 * np.pi * 3.0 * T), -np.sin(2 * np.pi * 3.0 * T)])
    np.testing.assert_allclose(derivative(values, RATE)[:, 4:-4], slopes[:, 4:-4], atol=2e-6)
