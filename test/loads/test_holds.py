# SPDX-License-Identifier: Apache-2.0
"""Poses held at rest, and the directions from which joints reached them."""

import numpy as np
import pytest

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import InputError
from robot_dyn_id.loads.holds import find_holds

STEP = 2 * np.pi / 4096
"""Step of a 12-bit encoder [rad]."""


def recording(q, tau):
    t = 0.02 * np.arange(len(q))
    return ArrayRecording("arm", ("a", "b"), Chunk(t, q, tau=tau))


def test_holds_have_the_mean_drive_and_the_direction_of_the_last_motion():
    up, down = np.linspace(0.0, 1.0, 50), np.linspace(1.0, 0.3, 50)
    a = np.concatenate([up, np.full(50, 1.0), down, np.full(50, 0.3)])
    b = np.concatenate([np.zeros(50), np.zeros(50), np.linspace(0.0, 0.5, 50), np.full(50, 0.5)])
    drive = np.column_stack([np.repeat([9.0, 2.0, 9.0, 4.0], 50), np.ones(200)])
    q = np.column_stack([a, b]) + STEP * np.random.default_rng(0).integers(0, 2, (200, 2))
    holds = find_holds([recording(q, drive)], ("a", "b"))
    assert len(holds) == 2
    np.testing.assert_allclose(holds.q, [[1.0, 0.3], [0.0, 0.5]], atol=STEP)
    np.testing.assert_allclose(holds.drive, [[2.0, 4.0], [1.0, 1.0]])
    np.testing.assert_array_equal(holds.direction, [[1, -1], [0, 1]])


def test_encoder_noise_of_one_step_is_no_motion():
    rng = np.random.default_rng(0)
    q = np.concatenate([np.linspace(0.0, 1.0, 50), np.full(100, 1.0)])
    q = np.column_stack([q + STEP * rng.integers(0, 2, 150), np.linspace(0, 1, 150).clip(0, 0.3)])
    assert len(find_holds([recording(np.round(q / STEP) * STEP, np.zeros((150, 2)))], ("a", "b"))) == 1


def test_constant_motion_has_no_hold():
    q = np.linspace(0.0, 1.0, 100)[:, None] * np.ones(2)
    with pytest.raises(InputError):
        find_holds([recording(q, np.zeros((100, 2)))], ("a", "b"))


def test_positions_alone_are_refused():
    q = np.zeros((10, 2))
    with pytest.raises(InputError):
        find_holds([ArrayRecording("arm", ("a", "b"), Chunk(np.arange(10.0), q))], ("a", "b"))


def test_samples_in_reverse_order_are_refused_and_those_behind_the_clock_left_out():
    q = np.concatenate([np.linspace(0.0, 1.0, 50), np.full(100, 1.0)])[:, None] * np.ones(2)
    t, drive = 0.02 * np.arange(150), np.ones((150, 2))
    with pytest.raises(InputError, match="never advance"):
        find_holds([ArrayRecording("back", ("a", "b"), Chunk(t[::-1], q, tau=drive))], ("a", "b"))
    again = Chunk(np.concatenate([t, t]), np.concatenate([q, q]), tau=np.concatenate([drive, 9.0 * drive]))
    np.testing.assert_array_equal(find_holds([ArrayRecording("twice", ("a", "b"), again)], ("a", "b")).drive, 1.0)
