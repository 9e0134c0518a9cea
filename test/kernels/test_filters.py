# SPDX-License-Identifier: Apache-2.0
"""Low-pass filters, checked against those of SciPy."""

import numpy as np
import pytest
from scipy.signal import butter, lfilter, sosfilt, sosfiltfilt, sosfreqz

from robot_dyn_id.kernels import filters
from robot_dyn_id.kernels.filters import design_butterworth_sections, filter_autoregressive, filter_both_ways

RATE = 1000.0


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("cutoff", [5.0, 60.0, 440.0])
def test_filter_is_that_of_scipy(order, cutoff):
    signals = np.random.default_rng(order).normal(size=(2, 3, 700)).cumsum(axis=-1)
    expected = sosfiltfilt(butter(order, cutoff, fs=RATE, output="sos"), signals, padtype="odd", padlen=300)
    found = filter_both_ways(design_butterworth_sections(order, cutoff, RATE), signals, 300)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


def test_the_gain_is_one_at_rest_and_half_the_power_at_the_cutoff():
    sections = np.insert(design_butterworth_sections(5, 20.0, RATE), 3, 1.0, axis=1)
    _, gain = sosfreqz(sections, worN=[0.0, 20.0, 499.9], fs=RATE)
    np.testing.assert_allclose(np.abs(gain) ** 2, [1.0, 0.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_constants_stay_at_any_length(length):
    kept = filter_both_ways(design_butterworth_sections(4, 3.0, RATE), np.full((2, length), 7.0), length - 1)
    np.testing.assert_allclose(kept, 7.0, rtol=1e-12)


def test_without_numba_the_result_is_the_same(monkeypatch):
    signals = np.random.default_rng(0).normal(size=(3, 200))
    sections = design_butterworth_sections(3, 30.0, RATE)
    expected = filter_both_ways(sections, signals, 50)
    monkeypatch.setattr(filters, "COMPILED", False)
    np.testing.assert_allclose(filter_both_ways(sections, signals, 50), expected, atol=1e-12)


def test_the_filter_starts_in_the_state_of_rest():
    sections = design_butterworth_sections(4, 10.0, RATE)
    work = np.random.default_rng(1).normal(size=(50, 2))
    rows = np.insert(sections, 3, 1.0, axis=1)
    rest = np.stack([1.0 - sections[:, 0], sections[:, 2] - sections[:, 4]], axis=1)[:, :, None]
    expected = sosfilt(rows, work, axis=0, zi=rest * work[0])[0]
    filters.run_sections(sections, False, work, np.empty((3, len(sections), 2)))
    np.testing.assert_allclose(work, expected, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("order", [0, 1, 5])
def test_an_autoregression_in_pieces_is_that_of_scipy(order, compiled, monkeypatch):
    monkeypatch.setattr(filters, "COMPILED", compiled and filters.COMPILED)
    rng = np.random.default_rng(order)
    coefficients = np.append(1.0, 0.3 * rng.uniform(-1.0, 1.0, size=order))
    values = rng.normal(size=(3, 60))
    found, past = [], np.zeros((order, 3))
    for piece in np.split(values, [2, 30], axis=1):  # the first is shorter than the memory
        filtered, past = filter_autoregressive(coefficients, piece, past)
        found.append(filtered)
    np.testing.assert_allclose(np.hstack(found), lfilter([1.0], coefficients, values, axis=1), atol=1e-12)
