# SPDX-License-Identifier: Apache-2.0
"""Repairs: dropped samples are counted identically in every pass, for every chunk size."""

from types import MappingProxyType

import numpy as np
import pytest
from support.simulated import at_chunk_size, changed, sines

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.cleaning import STAMPS, Drive, Repairs, clean, compute_median_step

STEP = 0.01


def cleaned(recording, drives=MappingProxyType({}), **options):
    repairs = Repairs()
    parts = list(clean(recording, recording.joint_names, drives, STEP, repairs, **options))
    return parts, repairs


def faulty():
    """A hundred samples, one fault of each kind (two repeated stamps), a row without efforts, and a gap of 0.2 s."""
    recording = sines(np.arange(100) * STEP)
    t, q, dq, tau = (getattr(recording.samples, name).copy() for name in ("t", "q", "dq", "tau"))
    t[60:] += 0.2
    t[10] = t[11] = t[9]
    t[11] += 0.01 * STEP  # almost repeated: an interpolation would overshoot
    t[20] = t[15]
    t[30] = np.nan
    q[40, 1] = np.nan
    dq[45, 0] = np.inf
    tau[50, 1] = np.nan
    q[70, 0] = 1e154
    q[71, 0] = -1e154
    tau[72, 1] = 1e154
    dq[73, 1] = -1e154
    tau[74] = np.nan
    return changed(recording, t=t, q=q, dq=dq, tau=tau)


FAULTS = {
    "time stamp repeated": 2,
    "time stamp going backward": 1,
    "time stamp not finite": 1,
    "position missing or not finite": 1,
    "position implausibly large": 2,
    "effort missing or not finite": 1,
}
MISSING = {"velocity": [1, 1], "effort": [0, 2]}


@pytest.mark.parametrize("size", [1, 7, 61, 1000])
def test_every_fault_is_dropped_and_counted_whatever_the_chunks(size):
    recording = at_chunk_size(faulty(), size)
    for _ in range(2):
        parts, repairs = cleaned(recording)
        assert repairs.dropped == FAULTS
        assert {channel: counts.tolist() for channel, counts in repairs.missing.items()} == MISSING
        assert (repairs.rows, repairs.total_dropped, repairs.gaps, repairs.bridged) == (100, 8, 1, 0)
        kept = Chunk.join([chunk for _, chunk in parts])
        bad = [10, 11, 20, 30, 40, 70, 71]
        expected = faulty().samples.take(np.setdiff1d(np.arange(100), bad))
        for name in ("t", "q"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(expected, name))
        for name in ("dq", "tau"):
            values = getattr(expected, name)
            plausible = np.where(np.abs(values) < 1e100, values, np.nan)
            np.testing.assert_array_equal(getattr(kept, name), plausible)
        segments = np.concatenate([np.full(len(chunk), segment) for segment, chunk in parts])
        np.testing.assert_array_equal(segments, (kept.t > 0.7).astype(int))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_gaps_that_are_short_enough_do_not_split_a_recording(size):
    for longest, segments, counts in ((0.1, {0, 1}, (1, 0)), (0.3, {0}, (0, 1))):
        parts, repairs = cleaned(at_chunk_size(faulty(), size), longest_gap=longest)
        assert {segment for segment, _ in parts} == segments
        assert (repairs.gaps, repairs.bridged) == counts


def test_a_clean_recording_is_left_as_it_is():
    recording = sines(7.58 + np.arange(100) * STEP)
    parts, repairs = cleaned(recording)
    assert repairs == Repairs(rows=100)
    np.testing.assert_array_equal(Chunk.join([chunk for _, chunk in parts]).q, recording.samples.q)


def test_efforts_may_be_missing_if_they_are_not_needed():
    recording = changed(faulty(), tau=None)
    parts, repairs = cleaned(recording, None)
    assert not any("effort" in reason for reason in repairs.dropped)
    assert parts[0][1].tau is None
    with pytest.raises(InputError, match=r"no effort is recorded; .* tau or current"):
        cleaned(recording)


def electric(current=True, tau=True, effort_is_torque=True):
    q = np.zeros((3, 2))
    samples = Chunk(
        np.arange(3) * STEP, q, tau=np.full((3, 2), 5.0) if tau else None, current=q + 2.0 if current else None
    )
    return ArrayRecording("e", ("a", "b"), samples, effort_is_torque=effort_is_torque)


@pytest.mark.parametrize(
    ("recording", "drives", "expected"),
    [
        (electric(), {}, (5, 5)),
        (electric(), {"a": Drive(10.0, -1.0)}, (-20, 5)),
        (electric(tau=False), {"a": Drive(10.0), "b": Drive(3.0, -1.0)}, (20, -6)),
        (electric(current=False), {"a": Drive(10.0, -1.0)}, (5, 5)),
        (electric(current=False, effort_is_torque=False), {"a": Drive(10.0, -1.0)}, (-50, 5)),
        (electric(current=False), {"b": Drive(None, -1.0)}, (5, -5)),
        (electric(current=False, effort_is_torque=False), {"b": Drive(None, -1.0)}, (5, -5)),
    ],
    ids=["no gain", "current", "only currents", "torque already", "unknown unit", "sign alone", "sign, unknown unit"],
)
def test_gains_and_signs(recording, drives, expected):
    ((_, chunk),), _ = cleaned(recording, drives)
    np.testing.assert_array_equal(chunk.tau, np.tile(expected, (3, 1)))


def test_a_current_without_a_gain_is_refused_by_name():
    with pytest.raises(InputError, match="only currents of b are recorded"):
        cleaned(electric(tau=False), {"a": Drive(1.0)})


def test_the_median_step_is_that_of_the_same_samples_whatever_the_chunks():
    t = np.cumsum(np.where(np.arange(STAMPS + 30_000) < STAMPS, 0.01, 0.001))
    steps = {compute_median_step(at_chunk_size(sines(t, 1), size), ("j0",)) for size in (999, 24_576, 10**6)}
    assert len(steps) == 1
    assert steps.pop() == pytest.approx(0.01)


@pytest.mark.parametrize(("t", "words"), [([0.0], "only 1 sample,"), ([0.0, 0.0, 0.0], "never advance")])
def test_a_clock_that_does_not_advance_is_refused(t, words):
    with pytest.raises(InputError, match=words):
        compute_median_step(sines(np.array(t)), ("j0",))
