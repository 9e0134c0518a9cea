# SPDX-License-Identifier: Apache-2.0
"""Chunks, recordings in memory, excerpts."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from support.observations import CountedRecording, corrected
from support.simulated import at_chunk_size, sines

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import Excerpt, KeptSpans, Stored
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.data.stream_store import StreamStore
from robot_dyn_id.errors import InputError

T = np.arange(4.0)
Q = np.arange(8.0).reshape(4, 2)


def test_a_chunk_keeps_its_arrays_from_being_written():
    q = Q.copy()
    chunk = Chunk(T, q)
    with pytest.raises(ValueError, match="read-only"):
        chunk.q[0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        chunk.q = q
    q[0, 0] = 5.0  # the caller's own array stays writeable
    assert len(chunk) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"t": np.zeros(3)},
        {"t": np.zeros((4, 1))},
        {"q": np.zeros(4)},
        {"q": np.zeros((3, 2))},
        {"dq": np.zeros((4, 1))},
        {"tau": np.zeros((3, 2))},
        {"current": np.zeros(4)},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(wrong):
    with pytest.raises(InputError, match="has shape"):
        Chunk(**{"t": T, "q": Q, **wrong})


def test_take_and_join_keep_channels_in_step():
    chunk = Chunk(T, Q, dq=Q + 10, tau=Q + 20)
    halves = [chunk.take(slice(0, 1)), chunk.take(np.array([False, True, True, True]))]
    joined = Chunk.join(halves)
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(chunk, name))
    assert joined.current is None


def test_a_recording_returns_the_requested_columns_in_the_requested_order():
    recording = ArrayRecording("r", ("a", "b"), Chunk(T, Q, tau=Q + 20), chunk_size=3)
    for _ in range(2):  # every pass gives the same samples
        chunks = list(recording.chunks(("b", "a")))
        assert [len(chunk) for chunk in chunks] == [3, 1]
        joined = Chunk.join(chunks)
        np.testing.assert_array_equal(joined.q, Q[:, ::-1])
        np.testing.assert_array_equal(joined.tau, Q[:, ::-1] + 20)
        assert joined.dq is None


def test_a_missing_joint_is_named_with_those_that_are_there():
    recording = ArrayRecording("file.npz", ("a", "b"), Chunk(T, Q))
    with pytest.raises(InputError, match=r"file\.npz: no joint c; it holds a, b"):
        list(recording.chunks(("a", "c")))


@pytest.mark.parametrize("start", [0.0, 7.58])
def test_excerpts_count_from_the_first_stamp_and_share_no_sample(start):
    recording = sines(start + np.arange(100) * 0.1)
    parts = [corrected(recording, Excerpt(*span)) for span in ((0.0, 4.0), (4.0, np.inf))]
    stamps = [Chunk.join(list(part.chunks(("j0",)))).t for part in parts]
    assert [len(t) for t in stamps] == [40, 60]
    np.testing.assert_array_equal(np.concatenate(stamps), recording.samples.t)
    assert parts[0].source == "sines [0 s, 4 s)"
    assert parts[0].joint_names == recording.joint_names


def test_an_excerpt_may_leave_spans_out():
    recording = replace(sines(7.0 + np.arange(100) * 0.1), chunk_size=7)
    part = corrected(recording, Excerpt(0.0, 9.9, ((0.0, 0.55), (2.05, 4.05), (8.05, 9.9))))
    t = Chunk.join(list(part.chunks(("j0",)))).t - 7.0
    np.testing.assert_allclose(t, 0.1 * np.r_[6:21, 41:81], atol=1e-12)
    assert part.source == "sines [0 s, 9.9 s) without [0 s, 0.55 s], [2.05 s, 4.05 s], [8.05 s, 9.9 s]"
    assert part.seams == 1


def test_an_excerpt_waits_for_the_first_stamp_that_is_one():
    recording = sines(5.0 + np.arange(40) * 0.1)
    t = recording.samples.t.copy()
    t[:8] = np.nan
    t[6] = 1e154
    recording = replace(recording, samples=replace(recording.samples, t=t), chunk_size=4)
    kept = Chunk.join(list(corrected(recording, Excerpt(0.0, 1.0)).chunks(("j0",))))
    np.testing.assert_array_equal(kept.t, t[8:18])


@pytest.mark.parametrize("limit", [2**20, 100])
def test_a_stored_recording_is_read_once(limit):
    counted = CountedRecording(at_chunk_size(sines(np.arange(0, 9, 0.01)), 64))
    remembered = corrected(counted, Stored(StreamStore(limit)))
    first, second, third = (list(remembered.chunks(("j1", "j0"))) for _ in range(3))
    assert counted.passes == 1
    for one, other in zip(first, third, strict=True):
        assert one.q.tobytes() == other.q.tobytes()
    assert [len(chunk) for chunk in second] == [64] * 14 + [4]
    assert next(iter(remembered.chunks(("j0",)))).q.shape == (64, 1)
    broken_off = corrected(counted, Stored(StreamStore(limit)))
    next(broken_off.chunks(("j0",)))
    assert len(list(broken_off.chunks(("j0",)))) == 15


def test_spans_of_a_recording_are_those_of_its_stamps():
    recording = replace(sines(7.0 + np.arange(100) * 0.1), chunk_size=7)
    chunks = list(corrected(recording, KeptSpans(((7.55, 9.05), (16.85, 99.0)))).chunks(("j0",)))
    t = Chunk.join(chunks).t - 7.0
    np.testing.assert_allclose(t, 0.1 * np.r_[6:21, 99:100], atol=1e-12)
    assert all(len(chunk) for chunk in chunks)
