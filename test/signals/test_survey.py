# SPDX-License-Identifier: Apache-2.0
"""Survey of recordings in one pass: rate, bandwidth, cut-off, and quality of the recorded velocity."""

from dataclasses import replace

import numpy as np
import pytest
from support.observations import CountedRecording
from support.simulated import Simulated, at_chunk_size, changed, sines

from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.signals import survey as module
from robot_dyn_id.signals.survey import survey

ROBOT = Simulated()


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=40.0, noise=0.1)


def surveyed(*recordings, **options):
    return survey(recordings, recordings[0].joint_names, {}, **options)


def late_velocity(recording, delay, seed=1):
    """Velocity with a delay of `delay` [s]."""
    return draw_random_fourier(ROBOT.model, seed).evaluate(recording.samples.t - delay)[1].T


@pytest.mark.parametrize("rate", [30.0, 100.0, 500.0])
def test_rate_and_bandwidth(rate):
    found = surveyed(ROBOT.record(rate=rate, duration=40.0))
    assert found.rate == pytest.approx(rate, rel=1e-6)
    assert np.all((found.bandwidth > 0.15) & (found.bandwidth < 0.7)), "harmonics of 0.1 to 0.5 Hz"
    assert found.cutoff == pytest.approx(10 * np.median(found.bandwidth))
    assert found.durations == (pytest.approx(40.0 - 1 / rate),)


def test_the_cutoff_follows_the_motion(recording):
    faster = ROBOT.record(duration=40.0, period=4.0)
    assert 1.5 < surveyed(faster).cutoff / surveyed(recording).cutoff < 3.5


def test_ranges_and_counts(recording):
    found, samples = surveyed(recording), recording.samples
    np.testing.assert_array_equal(found.q_min, samples.q.min(axis=0))
    np.testing.assert_array_equal(found.q_max, samples.q.max(axis=0))
    np.testing.assert_array_equal(found.tau_min, samples.tau.min(axis=0))
    np.testing.assert_array_equal(found.tau_max, samples.tau.max(axis=0))
    assert np.all(found.zero_rows == 0.0)
    assert np.all(found.tau_distinct >= 1000)
    assert found.repairs.rows == 4000


def test_a_good_recorded_velocity_is_trusted(recording):
    found = surveyed(recording)
    np.testing.assert_allclose(found.velocity_gain, 1.0, atol=0.01)
    np.testing.assert_allclose(found.velocity_lag, 0.0, atol=1e-3)
    noisy = changed(recording, q=lambda q: q + 1e-4 * np.random.default_rng(0).normal(size=q.shape))
    assert surveyed(noisy).recorded_velocity, "the derivative of these positions is noisier"


@pytest.mark.parametrize("delay", [0.13, -0.05, 0.02])
def test_a_delayed_velocity_is_detected_with_its_lag(recording, delay):
    found = surveyed(changed(recording, dq=late_velocity(recording, delay)))
    np.testing.assert_allclose(found.velocity_lag, delay, rtol=0.15)
    np.testing.assert_allclose(found.velocity_gain, 1.0, atol=0.03)
    assert not found.recorded_velocity


def test_a_velocity_of_another_size_is_not_trusted(recording):
    found = surveyed(changed(recording, dq=lambda dq: 0.9 * dq))
    np.testing.assert_allclose(found.velocity_gain, 0.9, atol=0.01)
    assert not found.recorded_velocity


def test_a_velocity_noisier_than_the_derivative_is_not_trusted(recording):
    noise = 0.05 * np.random.default_rng(0).normal(size=recording.samples.q.shape)
    found = surveyed(changed(recording, dq=lambda dq: dq + noise))
    assert not found.quieter_recorded.any()
    assert not found.recorded_velocity


def test_no_velocity(recording):
    found = surveyed(changed(recording, dq=None))
    assert not found.has_velocity
    assert not found.recorded_velocity
    np.testing.assert_allclose(found.bandwidth, surveyed(recording).bandwidth, atol=0.15)


def test_a_joint_at_rest_has_no_bandwidth(recording):
    found = surveyed(changed(recording, q=lambda q: q * [1, 0, 1], dq=lambda dq: dq * [1, 0, 1]))
    assert found.bandwidth[1] == 0.0
    assert np.all(found.bandwidth[[0, 2]] > 0.0)


def test_the_hash_is_that_of_the_samples_whatever_the_chunks(recording):
    hashes = {surveyed(at_chunk_size(recording, size)).sha256 for size in (100, 8192)}
    assert hashes == {surveyed(recording).sha256}
    for name in ("q", "dq", "tau"):
        values = getattr(recording.samples, name).copy()
        values[1234, 1] = np.nextafter(values[1234, 1], 9.0)
        assert surveyed(changed(recording, **{name: values})).sha256 not in hashes, name


def test_several_trials_are_surveyed_together(recording):
    other = replace(ROBOT.record(seed=2, duration=12.0), source="other")
    found = surveyed(recording, other)
    assert found.sources == ("simulation", "other")
    assert found.durations == pytest.approx((39.99, 11.99))
    assert np.all(found.q_max >= np.maximum(recording.samples.q, 0).max(axis=0))


def test_trials_of_different_rates_do_not_count_as_gaps(recording):
    slower = ROBOT.record(seed=2, duration=12.0, rate=10.0)
    assert surveyed(recording, recording, slower).repairs.gaps == 0


def test_missing_efforts_are_accepted_only_if_not_needed(recording):
    assert np.all(surveyed(changed(recording, tau=None), need_effort=False).tau_max == 0.0)
    with pytest.raises(InputError, match="no effort"):
        surveyed(changed(recording, tau=None))


def test_recordings_without_usable_samples_are_refused_with_the_counts():
    recording = sines(np.arange(100) * 0.01)
    with pytest.raises(InputError, match=r"sines: no usable sample \(100 effort missing or not finite\)"):
        surveyed(changed(recording, tau=lambda tau: tau * np.nan))
    with pytest.raises(InputError, match="too short: 5 usable samples"):
        surveyed(changed(recording, rows=slice(5), q=lambda q: q))


def test_joints_without_positions_are_named(recording):
    def lose(q):
        q[:, 1] = np.nan
        return q

    with pytest.raises(InputError, match="positions of elbow are never recorded; name the other joints"):
        surveyed(changed(recording, q=lose))


def test_recordings_whose_passes_do_not_begin_together_are_surveyed_alike(recording, monkeypatch):
    recordings = [CountedRecording(at_chunk_size(recording, size)) for size in (100, 999)]
    together = surveyed(*recordings)
    assert [one.passes for one in recordings] == [1, 1]
    monkeypatch.setattr(module, "MOST_BEGUN", 1)
    apart = surveyed(*recordings)
    assert [one.passes for one in recordings] == [3, 3]
    assert (apart.sha256, apart.steps, apart.rests) == (together.sha256, together.steps, together.rests)
