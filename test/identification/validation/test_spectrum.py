# SPDX-License-Identifier: Apache-2.0
"""Welch spectra in flat memory: those of known signals, whatever portions they come in."""

import numpy as np
import pytest

from robot_dyn_id.identification.validation.spectrum import LONGEST, SHORTEST, WelchSums

RATE, SAMPLES = 100.0, 20_000


def spectra_of(torques, valid=None, portions=(SAMPLES,), length=256):
    """Spectra of residual and torque of one joint, shape (2, N), added in portions."""
    sums = WelchSums(RATE, length, 1)
    valid = np.ones((1, torques.shape[1]), dtype=bool) if valid is None else valid
    for part in np.split(np.arange(torques.shape[1]), np.cumsum(portions)[:-1]):
        sums.add(0, part, torques[:, None, part], valid[:, part])
    return sums.conclude()


def test_white_noise_has_its_density_and_the_power_of_a_sine_is_kept():
    rng = np.random.default_rng(1)
    t = np.arange(SAMPLES) / RATE
    found = spectra_of(np.stack([rng.normal(0.0, 0.3, SAMPLES), 2.0 * np.sin(2.0 * np.pi * 12.5 * t)]))
    inner = slice(3, -3)
    assert np.median(found.residual[0, inner] ** 2) == pytest.approx(0.3**2 / (RATE / 2.0), rel=0.1)
    power = np.sum(found.measured[0] ** 2) * (found.frequency[1] - found.frequency[0])
    assert power == pytest.approx(2.0, rel=1e-6)  # amplitude^2 / 2
    assert found.frequency[np.argmax(found.measured[0])] == pytest.approx(12.5)
    assert found.frequency[-1] == RATE / 2.0


def test_portions_do_not_matter():
    rng = np.random.default_rng(2)
    torques = rng.normal(size=(2, SAMPLES))
    whole, parts = spectra_of(torques), spectra_of(torques, portions=(1, 700, 3, 9296, 10_000))
    np.testing.assert_allclose(parts.residual, whole.residual, rtol=1e-12)
    assert parts.sections == whole.sections == (SAMPLES - 256) // 128 + 1


def test_gaps_other_segments_and_samples_that_do_not_count_interrupt_the_sections():
    torques = np.random.default_rng(3).normal(size=(2, 1, 512))
    valid = np.ones((1, 512), dtype=bool)
    for segments, numbers, mask, count in (
        ((0, 0), (np.arange(512), np.arange(512, 1024)), valid, 7),
        ((0, 0), (np.arange(512), np.arange(513, 1025)), valid, 6),  # one sample is missing
        ((0, 1), (np.arange(512), np.arange(512, 1024)), valid, 6),
        ((0, 0), (np.arange(512), np.arange(512, 1024)), np.arange(512)[None] != 100, 7 - 1 - 2),
    ):
        sums = WelchSums(RATE, 256, 1)
        for segment, number in zip(segments, numbers, strict=True):
            sums.add(segment, number, torques, mask)
        assert sums.conclude().sections == count


def test_a_joint_without_a_section_has_no_spectrum():
    found = spectra_of(np.zeros((2, 100)), portions=(100,))
    assert found.sections == 0
    assert np.isnan(found.residual).all()


@pytest.mark.parametrize(("seconds", "length"), [(0.1, SHORTEST), (6.0, 128), (1e4, LONGEST)])
def test_the_length_follows_the_recording(seconds, length):
    assert WelchSums.for_stretch(RATE, seconds, 1).length == length
