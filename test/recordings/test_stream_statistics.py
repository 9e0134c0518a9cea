# SPDX-License-Identifier: Apache-2.0
"""Rate, jitter and silence of a stream: equal to those of the whole, however it is cut into batches."""

import numpy as np
import pytest
from support.recording_files import joint_state, text_message

from robot_dyn_id.recordings.joint_states import read_header_stamps
from robot_dyn_id.recordings.stream_statistics import StreamStatistics

MS = 1_000_000


def regular(count=5000, seed=0):
    """Stamps every millisecond with noise, and later arrivals with more of it."""
    rng = np.random.default_rng(seed)
    stamps = 10**18 + np.arange(count) * MS + rng.integers(0, 100_000, count)
    return stamps + rng.integers(200_000, 900_000, count), stamps


@pytest.mark.parametrize("cuts", [[], [1], [1, 2, 3, 1000], list(range(0, 5000, 7)), [4999]])
def test_batches_make_no_difference(cuts):
    arrivals, stamps = regular()
    found = StreamStatistics()
    for part in zip(np.split(arrivals, cuts), np.split(stamps, cuts), strict=True):
        found = found.after(*part)
    steps = np.diff(stamps) / 1e9
    assert found.count == 5000
    assert found.rate == pytest.approx(4999 / ((arrivals[-1] - arrivals[0]) / 1e9), rel=1e-3)
    assert found.jitter == pytest.approx(steps.std(ddof=1), rel=1e-9)
    assert found.longest == steps.max()


def test_jitter_of_arrivals_where_there_are_no_stamps_or_they_stand():
    arrivals, _ = regular()
    expected = (np.diff(arrivals) / 1e9).clip(0).std(ddof=1)
    for stamps in (None, np.zeros_like(arrivals)):
        assert StreamStatistics().after(arrivals, stamps).jitter == pytest.approx(expected, rel=0.01)


def test_rate_is_that_of_the_stamps_however_late_a_batch_arrives():
    stamps = 10**18 + np.arange(500) * MS
    arrivals = np.maximum(stamps, stamps[0] + 40 * MS)  # a queue that fills up before it is read
    assert StreamStatistics().after(arrivals, stamps).rate == pytest.approx(1000.0, rel=1e-9)
    assert StreamStatistics().after(arrivals, None).rate > 1050.0


def test_a_first_stamp_of_zero_is_a_stamp():
    arrivals, stamps = regular()
    found = StreamStatistics().after(arrivals, stamps - stamps[0])
    assert found.jitter == pytest.approx((np.diff(stamps) / 1e9).std(ddof=1), rel=1e-9)


def test_an_interruption_is_no_interval():
    arrivals, stamps = regular(2000)
    later = 10**9 * 60
    paused = StreamStatistics().after(arrivals[:1000], stamps[:1000]).interrupted()
    paused = paused.after(arrivals[1000:] + later, stamps[1000:] + later)
    assert (paused.count, paused.stamps.count) == (2000, 1998)
    assert paused.longest < 0.002
    assert paused.rate == pytest.approx(1000, rel=1e-2)


def test_a_clock_that_is_set_back_is_no_interval():
    arrivals, stamps = regular(2000)
    stamps[1000:] -= 10**15
    found = StreamStatistics().after(arrivals, stamps)
    assert found.stamps.count == 1998
    assert found.longest < 0.002


def test_nothing_and_a_single_message():
    empty = StreamStatistics()
    one = empty.after(*(times[:1] for times in regular()))
    for found, count in ((empty, 0), (one, 1), (empty.interrupted(), 0)):
        assert (found.count, found.rate, found.jitter, found.longest) == (count, 0.0, 0.0, 0.0)


def test_stamps_are_read_from_bytes_of_either_order():
    stamps = [0, 1, 1_700_000_000_123_456_789, 2**31 * 10**9 - 1]
    messages = [joint_state(stamp, ("a",), [0.0], little_endian=order) for stamp in stamps for order in (True, False)]
    np.testing.assert_array_equal(read_header_stamps(messages), np.repeat(stamps, 2))
    assert read_header_stamps([messages[2][:4], text_message("x")[:2]]).tolist() == [0, 0]
