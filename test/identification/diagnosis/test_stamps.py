# SPDX-License-Identifier: Apache-2.0
"""Stamps in other units are refused by name; stamps that jitter while the samples do not are averaged."""

import numpy as np
import pytest
from support.observations import conclude, corrected
from support.simulated import Simulated, at_chunk_size, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.identification.diagnosis.stamps import EXAMINED, FirstObserver, examine_jitter

ROBOT = Simulated()


def require_seconds(*recordings):
    return [conclude(one, ROBOT.joints, FirstObserver(one.source, ROBOT.joints)) for one in recordings]


def jitter_of(recording):
    return examine_jitter(recording.source, recording.samples.t[:EXAMINED], recording.samples.q[:EXAMINED])


@pytest.fixture(scope="module")
def healthy():
    return ROBOT.record(duration=30.0, noise=0.05)


@pytest.mark.parametrize(
    ("factor", "offset", "unit"),
    [(1e3, 0.0, "milliseconds"), (1e6, 0.0, "microseconds"), (1e9, 0.0, "nanoseconds"), (1e9, 1.7e9, "nanoseconds")],
)
def test_other_units_are_named(healthy, factor, offset, unit):
    wrong = changed(healthy, t=lambda t: factor * (t + offset))
    with pytest.raises(UnsafeDataError, match=unit) as error:
        require_seconds(healthy, wrong)
    assert [one.code for one in error.value.findings] == ["stamps_not_in_seconds"]
    assert f"{factor:.0e}" in error.value.action


def test_seconds_pass(healthy):
    later, slower = changed(healthy, t=lambda t: t + 1.7e9), changed(healthy, t=lambda t: 15.0 * t)
    (first, *_) = require_seconds(healthy, later, slower)
    np.testing.assert_array_equal(first.q, healthy.samples.q)


@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_milliseconds_at_a_high_rate_are_named(start):
    fast = ROBOT.record(duration=2.0, rate=1000.0)
    with pytest.raises(UnsafeDataError, match="milliseconds"):
        require_seconds(changed(fast, t=lambda t: 1e3 * (t + start)))
    require_seconds(changed(fast, t=lambda t: t + start))


@pytest.mark.parametrize("rate", [1.0, 3.0])
def test_a_low_rate_is_not_called_milliseconds(rate):
    slow = ROBOT.record(duration=60.0, rate=rate)
    with pytest.raises(UnsafeDataError) as error:
        require_seconds(slow)
    assert [one.code for one in error.value.findings] == ["sample_rate_low"]
    assert f"{rate:.2g} Hz" in error.value.message


def jittering(recording, share):
    """Stamps of arrival: late by a random time, in order."""
    t = recording.samples.t
    late = np.random.default_rng(0).exponential(share * 0.01, len(t))
    return changed(recording, t=np.maximum.accumulate(t + late) + 1e-7 * np.arange(len(t)))


@pytest.mark.parametrize("share", [0.2, 1.5])
@pytest.mark.parametrize("size", [50, 8192])
def test_jitter_of_arrival_is_averaged(healthy, share, size):
    clock, (finding,) = jitter_of(jittering(healthy, share))
    assert finding.code == "clock_jitter"
    even = corrected(at_chunk_size(jittering(healthy, share), size), clock)
    chunk = Chunk.join(list(even.chunks(ROBOT.joints)))
    np.testing.assert_array_equal(chunk.q, healthy.samples.q)
    inside = slice(100, -100)
    error = (chunk.t - healthy.samples.t)[inside]
    assert error.std() < 0.3 * share * 0.01 and (np.diff(chunk.t) > 0).all()


def test_samples_that_jitter_with_their_stamps_keep_them(healthy):
    t = healthy.samples.t + np.random.default_rng(0).uniform(-3e-3, 3e-3, len(healthy.samples))
    q = np.array([np.interp(t, healthy.samples.t, column) for column in healthy.samples.q.T]).T
    assert jitter_of(changed(healthy, t=t, q=q)) == (None, ())
    assert jitter_of(healthy) == (None, ())


@pytest.mark.parametrize("scale", [0.2, 0.35, 0.5, 1.5])
def test_lateness_with_a_long_tail_does_not_pass_for_lost_samples(healthy, scale):
    """Messages in a queue arrive together: exponential lateness, its mean in samples."""
    late = np.random.default_rng(3).exponential(0.01 * scale, len(healthy.samples))
    stamps = np.maximum.accumulate(healthy.samples.t + late) + 1e-7 * np.arange(len(late))
    clock, findings = jitter_of(changed(healthy, t=stamps))
    assert clock is not None and [finding.code for finding in findings] == ["clock_jitter"]


def test_stamps_are_not_averaged_across_a_gap(healthy):
    apart = changed(jittering(healthy, 0.2), t=lambda t: t + 1.0 * (np.arange(len(t)) >= 1500))
    clock, _ = jitter_of(apart)
    chunk = Chunk.join(list(corrected(apart, clock).chunks(ROBOT.joints)))
    assert np.diff(chunk.t)[1499] > 0.9
    assert np.abs(chunk.t - apart.samples.t).max() < 0.02


@pytest.mark.parametrize("size", [50, 8192])
def test_one_missing_stamp_leaves_the_others(healthy, size):
    late = jittering(healthy, 0.2)
    clock, _ = jitter_of(late)
    rows = [1000, 2000]

    def spoil(t):
        t[rows] = np.nan, t[rows[1]] - 1.0
        return t

    broken = changed(late, t=spoil)
    chunk = Chunk.join(list(corrected(at_chunk_size(broken, size), clock).chunks(ROBOT.joints)))
    assert np.isnan(chunk.t[1000]) and chunk.t[2000] == late.samples.t[2000] - 1.0
    others = ~np.isin(np.arange(len(chunk.t)), rows)
    error = (chunk.t - healthy.samples.t)[others][100:-100]
    assert error.std() < 0.06 * 0.01 and np.isfinite(error).all()


@pytest.mark.parametrize("size", [50, 8192])
def test_stamps_are_better_where_messages_are_lost(healthy, size):
    rng = np.random.default_rng(1)
    true = healthy.samples.t
    kept = np.flatnonzero(rng.random(len(true)) > 0.01)
    lossy = changed(changed(healthy, t=true + rng.uniform(0.0, 4e-3, len(true))), rows=kept)
    clock, (finding,) = jitter_of(lossy)
    assert finding.code == "clock_jitter" and clock.counts_lost
    chunk = Chunk.join(list(corrected(at_chunk_size(lossy, size), clock).chunks(ROBOT.joints)))
    error = (chunk.t - true[kept])[100:-100]
    assert error.std() < 3e-4 and np.abs(error - error.mean()).max() < 1e-3


def test_stamps_that_hide_lost_messages_are_kept(healthy):
    kept = np.flatnonzero(np.random.default_rng(1).random(len(healthy.samples)) > 0.01)
    assert jitter_of(changed(jittering(healthy, 0.2), rows=kept)) == (None, ())
