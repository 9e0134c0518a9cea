# SPDX-License-Identifier: Apache-2.0
"""Stamps in other units are refused by name; stamps that jitter while the samples do not are averaged."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from support.simulated import Simulated, at_chunk_size, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.signals.stamps import EvenlyStampedRecording, examine_jitter, require_seconds

ROBOT = Simulated()


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
        require_seconds([healthy, wrong], ROBOT.joints)
    assert [one.code for one in error.value.findings] == ["stamps_not_in_seconds"]
    assert f"{factor:.0e}" in error.value.action


def test_seconds_pass(healthy):
    require_seconds(
        [healthy, changed(healthy, t=lambda t: t + 1.7e9), changed(healthy, t=lambda t: 50.0 * t)], ROBOT.joints
    )


def jittering(recording, share):
    """Stamps of arrival: late by a random time, in order."""
    t = recording.samples.t
    late = np.random.default_rng(0).exponential(share * 0.01, len(t))
    return changed(recording, t=np.maximum.accumulate(t + late) + 1e-7 * np.arange(len(t)))


@pytest.mark.parametrize("share", [0.2, 1.5])
@pytest.mark.parametrize("size", [50, 8192])
def test_jitter_of_arrival_is_averaged(healthy, share, size):
    gap, (finding,) = examine_jitter(jittering(healthy, share), ROBOT.joints)
    assert finding.code == "clock_jitter"
    even = EvenlyStampedRecording(at_chunk_size(jittering(healthy, share), size), gap)
    chunk = Chunk.join(list(even.chunks(ROBOT.joints)))
    np.testing.assert_array_equal(chunk.q, healthy.samples.q)
    inside = slice(100, -100)
    error = (chunk.t - healthy.samples.t)[inside]
    assert error.std() < 0.3 * share * 0.01 and (np.diff(chunk.t) > 0).all()


def test_samples_that_jitter_with_their_stamps_keep_them(healthy):
    t = healthy.samples.t + np.random.default_rng(0).uniform(-3e-3, 3e-3, len(healthy.samples))
    q = np.array([np.interp(t, healthy.samples.t, column) for column in healthy.samples.q.T]).T
    assert examine_jitter(changed(healthy, t=t, q=q), ROBOT.joints) == (0.0, ())
    assert examine_jitter(healthy, ROBOT.joints) == (0.0, ())


def test_stamps_are_not_averaged_across_a_gap(healthy):
    apart = changed(jittering(healthy, 0.2), t=lambda t: t + 1.0 * (np.arange(len(t)) >= 1500))
    gap, _ = examine_jitter(apart, ROBOT.joints)
    chunk = Chunk.join(list(EvenlyStampedRecording(apart, gap).chunks(ROBOT.joints)))
    assert np.diff(chunk.t)[1499] > 0.9
    assert np.abs(chunk.t - apart.samples.t).max() < 0.02
    assert replace(apart) == apart and partial(EvenlyStampedRecording, gap=gap)(apart).source == apart.source
