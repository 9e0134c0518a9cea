# SPDX-License-Identifier: Apache-2.0
"""Stretches that are left out: efforts by a mask of their joint, positions as samples of all joints."""

import numpy as np
from support.observations import corrected
from support.simulated import sines

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import Excerpt, ExcludedSpan, Exclusions, excluded_mask

T = np.arange(0.0, 10.0, 0.01)
RECORDING = sines(T)
EFFORT = ExcludedSpan("j1", 2.0, 3.0, "effort_frozen")
POSITION = ExcludedSpan("j0", 5.0, 6.0, "encoder_frozen")


def test_efforts_are_masked_and_samples_without_positions_left_out():
    view = corrected(RECORDING, Exclusions((EFFORT,), (POSITION,)))
    chunk = Chunk.join(list(view.chunks(("j0", "j1"))))
    kept = (T < 5.0) | (T > 6.0)
    np.testing.assert_array_equal(chunk.tau, RECORDING.samples.tau[kept])
    np.testing.assert_array_equal(chunk.t, T[kept])
    mask = excluded_mask(view, ("j0", "j1"), T, 0.0)
    np.testing.assert_array_equal(mask, [np.zeros(len(T), dtype=bool), (T >= 2.0) & (T <= 3.0)])


def test_the_mask_has_a_margin_and_the_order_of_the_joints():
    view = corrected(RECORDING, Exclusions((EFFORT,)))
    mask = excluded_mask(view, ("j1", "j0"), T, 0.5)
    np.testing.assert_array_equal(mask[0], (T >= 1.5) & (T <= 3.5))
    assert not mask[1].any()


def test_further_corrections_are_those_of_the_complete_recording():
    part = corrected(RECORDING, Excerpt(1.0, 8.0)).corrected(Exclusions((EFFORT,)))
    assert part.corrections == (Exclusions((EFFORT,)), Excerpt(1.0, 8.0)) and part.source.endswith("[1 s, 8 s)")
    assert excluded_mask(part, ("j0", "j1"), T, 0.0).sum() == ((T >= 2.0) & (T <= 3.0)).sum()
    assert not excluded_mask(RECORDING, ("j0", "j1"), T, 0.0).any()
