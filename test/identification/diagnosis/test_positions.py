# SPDX-License-Identifier: Apache-2.0
"""Wrapped angles are continued and spikes of encoders left out, whatever the chunks; sound positions stay as they are."""

import numpy as np
import pytest
from support.observations import conclude, samples_of
from support.observations import corrected as with_corrections
from support.robots import joint, urdf
from support.simulated import LIFT, Simulated, at_chunk_size, changed

from robot_dyn_id.identification.diagnosis import positions
from robot_dyn_id.identification.diagnosis.positions import PositionObserver

TEXT = urdf(
    joint("a", "base", "l1", kind="continuous"),
    joint("b", "l1", "l2", axis="0 1 0"),
    joint("c", "l2", "l3", kind="continuous", axis="1 0 0"),
    links=3,
)
ROBOT = Simulated(TEXT)


@pytest.fixture(scope="module")
def sound():
    return ROBOT.record(duration=20.0, noise=0.05)


def positions_of(recording, robot=ROBOT):
    return conclude(recording, robot.joints, PositionObserver(recording.source, robot.model))


def corrected(recording, robot=ROBOT):
    found = positions_of(recording, robot)
    continued = samples_of(with_corrections(recording, found.faults)).q
    return continued, {one.code: one for one in found.findings}


def test_sound_positions_are_left_alone(sound):
    found = positions_of(sound)
    assert not found.faults and found.findings == ()
    np.testing.assert_array_equal(found.ranges, np.ptp(sound.samples.q, axis=0))


@pytest.mark.parametrize("size", [100, 8192])
def test_wrapped_angles_are_continued_into_the_limits(sound, size):
    wrapped = at_chunk_size(changed(sound, q=lambda q: np.mod(q, 2 * np.pi)), size)
    q, found = corrected(wrapped)
    turns = (q - sound.samples.q) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns[:1]) + 0.0 * turns, atol=1e-9)
    assert turns[0, 1] == pytest.approx(0.0)  # the only joint with limits
    assert found.keys() == {"positions_wrapped"}
    assert "b" in found["positions_wrapped"].joints


def test_noise_around_a_boundary_is_continued(sound):
    noise = 1e-3 * np.random.default_rng(0).normal(size=len(sound.samples))
    resting = changed(sound, q=lambda q: np.column_stack([noise, q[:, 1:]]))
    q, found = corrected(changed(resting, q=lambda q: np.mod(q, 2 * np.pi)))
    assert np.ptp(q[:, 0]) == pytest.approx(np.ptp(noise))
    assert "a" in found["positions_wrapped"].joints


@pytest.mark.parametrize("size", [100, 8192])
def test_spikes_of_an_encoder_are_left_out(sound, size):
    rows = [3, 400, 401, 900, 903, 1998]

    def spoil(q):
        q[rows, 1] += 5.0
        return q

    q, found = corrected(at_chunk_size(changed(sound, q=spoil), size))
    (missing,) = np.nonzero(np.isnan(q[:, 1]))
    assert missing.tolist() == rows
    assert np.isfinite(q[:, [0, 2]]).all()
    finding = found["encoder_spikes"]
    assert finding.joints == ("b",) and "5 b (at 0.03 s, 4.00 s, 9.00 s" in finding.message


def test_few_steps_are_kept(sound, monkeypatch):
    def spoil(q):
        q[[3, 400, 401, 900], 1] += 5.0
        q[1000:, 1] += 2.0
        return np.mod(q, 2 * np.pi)

    spoiled = at_chunk_size(changed(sound, q=spoil), 300)
    q, found = corrected(spoiled)
    monkeypatch.setattr(positions, "MOST_JUMPS", 16)
    again, same = corrected(spoiled)
    np.testing.assert_array_equal(again, q)
    assert same == found and found.keys() == {"encoder_spikes", "encoder_jumps", "positions_wrapped"}


def test_a_jump_that_does_not_return_is_reported_and_kept(sound):
    lost = changed(sound, q=lambda q: q + 2.0 * (np.arange(len(q)) >= 700)[:, None] * [0, 1, 0])
    q, found = corrected(lost)
    np.testing.assert_array_equal(q, lost.samples.q)
    assert found["encoder_jumps"].joints == ("b",) and "at 7.00 s" in found["encoder_jumps"].message


def test_noise_and_lengths_are_not_wrapped(sound):
    noise = np.random.default_rng(0).normal(size=sound.samples.q.shape)
    assert not positions_of(changed(sound, q=1.5 * noise)).faults.wraps
    lift = Simulated(LIFT)
    long = changed(
        lift.record(duration=10.0), q=lambda q: np.column_stack([np.mod(20.0 * q[:, 0], 2 * np.pi), q[:, 1]])
    )
    assert not positions_of(long, lift).faults.wraps
