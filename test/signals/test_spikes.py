# SPDX-License-Identifier: Apache-2.0
"""Spikes of the effort, coarse encoders, and joints that move one way."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import at_chunk_size, changed, sines

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.signals.directions import examine_directions
from robot_dyn_id.signals.resolution import examine_resolution, position_step
from robot_dyn_id.signals.spikes import DespikedRecording, examine_spikes

JOINTS = ("j0", "j1")


@pytest.fixture
def noisy():
    rng = np.random.default_rng(0)
    return changed(sines(np.arange(0, 40, 0.01)), tau=lambda tau: tau + 0.05 * rng.normal(size=tau.shape))


def efforts(recording):
    return Chunk.join(list(recording.chunks(JOINTS))).tau


def test_noise_steps_and_quantized_efforts_are_not_spikes(noisy):
    assert examine_spikes(noisy, JOINTS) == ()
    stepped = changed(noisy, tau=lambda tau: tau + 5.0 * (np.arange(len(tau)) > 1000)[:, None])
    assert examine_spikes(stepped, JOINTS) == ()
    assert examine_spikes(changed(noisy, tau=lambda tau: np.round(tau)), JOINTS) == ()
    slow = changed(noisy, tau=lambda tau: np.repeat(tau[::10], 10, axis=0))
    assert examine_spikes(slow, JOINTS) == ()


@pytest.mark.parametrize("size", [4000, 500])
def test_spikes_are_replaced_and_nothing_else_is(noisy, size):
    rows = np.array([3, 700, 701, 1503, 3990])

    def hit(tau):
        tau[rows, 1] += 3.0
        return tau

    spiky = at_chunk_size(changed(noisy, tau=hit), size)
    (finding,) = examine_spikes(spiky, JOINTS)
    assert finding.code == "effort_outliers" and finding.joints == ("j1",) and finding.severity == "info"
    repaired, clean = efforts(DespikedRecording(spiky)), efforts(noisy)
    assert np.abs(repaired - clean)[rows, 1].max() < 0.5
    others = np.ones(clean.shape, dtype=bool)
    others[rows, 1] = False
    np.testing.assert_array_equal(repaired[others], clean[others])


def test_spikes_next_to_missing_efforts_are_found(noisy):
    def hit(tau):
        tau[500:510, 0] = np.nan
        tau[511, 0] += 4.0
        return tau

    spiky = changed(noisy, tau=hit)
    assert examine_spikes(spiky, JOINTS)[0].joints == ("j0",)
    repaired = efforts(DespikedRecording(spiky))
    assert np.isnan(repaired[500:510, 0]).all() and abs(repaired[511, 0] - efforts(noisy)[511, 0]) < 0.5


@pytest.mark.parametrize("bits", [8, 9, 10, 11])
def test_steps_of_a_coarse_encoder_are_measured(bits):
    step = 2 * np.pi / 2**bits
    coarse = changed(
        sines(np.arange(0, 40, 0.01)), q=lambda q: np.column_stack([step * np.round(q[:, 0] / step), q[:, 1]])
    )
    (finding,) = examine_resolution(coarse, JOINTS)
    assert finding.code == "position_coarse" and finding.joints == ("j0",)
    assert position_step(coarse.samples.q[:, 0]) == pytest.approx(step, rel=1e-6)


def test_fine_encoders_and_joints_at_rest_are_not_coarse():
    step = 2 * np.pi / 2**13
    fine = changed(
        sines(np.arange(0, 40, 0.01)), q=lambda q: np.column_stack([step * np.round(q[:, 0] / step), 0 * q[:, 1]])
    )
    assert examine_resolution(fine, JOINTS) == ()
    uneven = replace(
        fine,
        samples=replace(fine.samples, q=np.column_stack([0.1 * np.sqrt(np.arange(4000) // 100), fine.samples.q[:, 1]])),
    )
    assert examine_resolution(uneven, JOINTS) == ()


def test_joints_that_turn_back_move_both_ways():
    t = np.arange(0, 20, 0.01)
    q = np.stack([np.sin(t), 0.3 * t + 0.1 * np.sin(t), 0.3 * t + np.sin(t), 1e-3 * t])
    (finding,) = examine_directions(("turns", "creeps", "drifts", "rests"), q, np.zeros(len(t)))
    assert finding.code == "one_way_motion" and finding.joints == ("creeps",)


def test_a_new_segment_is_no_motion():
    q = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 1, 100)])[None]
    assert examine_directions(("forward",), q, np.repeat([0, 1], 100))[0].joints == ("forward",)
