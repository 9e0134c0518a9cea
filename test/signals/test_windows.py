# SPDX-License-Identifier: Apache-2.0
"""Windows depend on the samples alone, never on the portions in which they arrive."""

import numpy as np
import pytest
from support.simulated import at_chunk_size, changed, sines

from robot_dyn_id.signals.cleaning import Repairs, clean
from robot_dyn_id.signals.windows import Cut, cut_windows

STEP = 0.01
CUT = Cut(step=STEP, core=64, margin=20)


def cut(recording):
    return list(cut_windows(clean(recording, recording.joint_names, {}, STEP, Repairs()), CUT))


def jittered(start=0.0, count=500, gap_at=300):
    rng = np.random.default_rng(3)
    t = start + np.arange(count) * STEP + np.where(np.arange(count) < gap_at, 0.0, 0.5)
    return sines(t + rng.uniform(0.0, 0.4 * STEP, count))


@pytest.mark.parametrize("start", [0.0, 7.58])
def test_any_portions_give_the_same_bytes(start):
    recording = jittered(start)
    reference = cut(at_chunk_size(recording, 10**6))
    assert len(reference) == 9
    for size in (1, 7, 64, 333):
        for one, other in zip(cut(at_chunk_size(recording, size)), reference, strict=True):
            assert (one.segment, one.start, one.core, one.ends) == (other.segment, other.start, other.core, other.ends)
            for name in ("t", "q", "dq", "tau"):
                assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("start", [0.0, 7.58])
def test_cores_tile_every_segment_from_its_first_stamp(start):
    recording = jittered(start)
    pieces = cut(recording)
    for segment, rows in ((0, slice(0, 300)), (1, slice(300, None))):
        stamps = recording.samples.t[rows]
        own = [w for w in pieces if w.segment == segment]
        times = np.concatenate([w.t[w.core] for w in own])
        numbers = np.concatenate([w.start + np.arange(len(w.t))[w.core] for w in own])
        np.testing.assert_array_equal(numbers, np.arange(len(numbers)))
        np.testing.assert_allclose(times, stamps[0] + numbers * STEP, atol=1e-12)
        assert stamps[-1] - STEP < times[-1] <= stamps[-1]
        assert own[-1].ends


def test_windows_share_their_margins():
    pieces = [w for w in cut(jittered()) if w.segment == 0]
    middle = pieces[1]
    assert middle.core == slice(CUT.margin, CUT.margin + CUT.core)
    assert len(middle.t) == CUT.core + 2 * CUT.margin
    np.testing.assert_allclose(middle.q[:, : 2 * CUT.margin], pieces[0].q[:, -2 * CUT.margin :], atol=1e-12)


def test_jittered_samples_are_brought_onto_the_grid():
    for window in cut(jittered()):
        phase = 2 * np.pi * 0.5 * window.t + np.arange(2)[:, None]
        np.testing.assert_allclose(window.q, np.sin(phase), atol=2e-6)
        np.testing.assert_allclose(window.dq, np.pi * np.cos(phase), atol=6e-6)
        np.testing.assert_allclose(window.tau, 3 * np.sin(phase) + 1, atol=6e-6)


def test_channels_that_are_not_there_stay_away():
    recording = changed(jittered(), dq=None)
    assert all(window.dq is None and window.tau is not None for window in cut(recording))
