# SPDX-License-Identifier: Apache-2.0
"""Spikes of the effort, coarse encoders, and joints that move one way."""

from dataclasses import replace

import numpy as np
import pytest
from support.observations import conclude, corrected
from support.simulated import at_chunk_size, changed, sines

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.identification.diagnosis import spikes
from robot_dyn_id.identification.diagnosis.directions import examine_directions
from robot_dyn_id.identification.diagnosis.resolution import ResolutionObserver, position_step
from robot_dyn_id.identification.diagnosis.spikes import DistanceObserver, SpikeObserver
from robot_dyn_id.signals.cleaning import Drive

JOINTS = ("j0", "j1")


def examine_spikes(recording, drives=None):
    limits = conclude(recording, JOINTS, DistanceObserver(JOINTS, drives or {}))
    return limits, conclude(recording, JOINTS, SpikeObserver(recording.source, JOINTS, limits))


def examine_resolution(recording):
    return conclude(recording, JOINTS, ResolutionObserver(recording.source, JOINTS))


@pytest.fixture
def noisy():
    rng = np.random.default_rng(0)
    return changed(sines(np.arange(0, 40, 0.01)), tau=lambda tau: tau + 0.05 * rng.normal(size=tau.shape))


def efforts(recording):
    return Chunk.join(list(recording.chunks(JOINTS))).tau


def test_noise_steps_and_quantized_efforts_are_not_spikes(noisy):
    assert examine_spikes(noisy)[1] == ()
    stepped = changed(noisy, tau=lambda tau: tau + 5.0 * (np.arange(len(tau)) > 1000)[:, None])
    assert examine_spikes(stepped)[1] == ()
    assert examine_spikes(changed(noisy, tau=lambda tau: np.round(tau)))[1] == ()
    slow = changed(noisy, tau=lambda tau: np.repeat(tau[::10], 10, axis=0))
    assert examine_spikes(slow)[1] == ()


@pytest.mark.parametrize("size", [4000, 500])
def test_spikes_are_replaced_and_nothing_else_is(noisy, size):
    rows = np.array([3, 700, 701, 1503, 3990])

    def hit(tau):
        tau[rows, 1] += 3.0
        return tau

    spiky = at_chunk_size(changed(noisy, tau=hit), size)
    limits, (finding,) = examine_spikes(spiky)
    assert finding.code == "effort_outliers" and finding.joints == ("j1",) and finding.severity == "info"
    repaired, clean = efforts(corrected(spiky, limits)), efforts(noisy)
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
    limits, (finding,) = examine_spikes(spiky)
    assert finding.joints == ("j0",)
    repaired = efforts(corrected(spiky, limits))
    assert np.isnan(repaired[500:510, 0]).all() and abs(repaired[511, 0] - efforts(noisy)[511, 0]) < 0.5


def pick_and_place(rate, noise=0.02, seconds=120.0):
    """Two joints that move for half a second and rest for four, with torques of acceleration, weight and friction."""
    t = np.arange(0.0, seconds, 1.0 / rate)
    number, since = np.divmod(t, 4.5)
    s = np.clip(since / 0.5, 0.0, 1.0)
    way = 10 * s**3 - 15 * s**4 + 6 * s**5
    speed, acceleration = (30 * s**2 - 60 * s**3 + 30 * s**4) / 0.5, (60 * s - 180 * s**2 + 120 * s**3) / 0.25
    sign, names = np.where(number % 2, -1.0, 1.0), ("j0", "j1")
    q, dq, ddq = (sign * way + (number % 2), sign * speed, sign * acceleration)
    tau = 0.8 * ddq + 5.0 * np.sin(q) + 3.0 * np.tanh(dq / 0.01)
    noises = noise * np.random.default_rng(0).normal(size=(len(t), 2))
    columns = [np.column_stack([values, 0.5 * values]) for values in (q, dq, tau)]
    return ArrayRecording("pick and place", names, Chunk(t, columns[0], columns[1], columns[2] + noises))


@pytest.mark.parametrize("rate", [15.0, 30.0, 100.0, 500.0])
def test_torque_of_a_robot_that_rests_most_of_the_time_is_kept(rate):
    recording = pick_and_place(rate)
    assert examine_spikes(recording)[1] == ()


def test_spikes_of_a_robot_that_rests_most_of_the_time_are_replaced():
    clean = pick_and_place(500.0)

    def hit(tau):
        tau[[1200, 5000, 5001], 0] += 30.0
        return tau

    limits, (finding,) = examine_spikes(changed(clean, tau=hit))
    repaired = efforts(corrected(changed(clean, tau=hit), limits))
    assert finding.joints == ("j0",) and np.abs(repaired - efforts(clean)).max() < 0.5


@pytest.mark.parametrize("size", [1, 7, 701, 1503])
def test_spikes_do_not_depend_on_the_chunks(noisy, size):
    def hit(tau):
        tau[[3, 700, 701, 1502, 3990], 1] += 3.0
        return tau

    spiky = changed(noisy, tau=hit)
    limits, findings = examine_spikes(spiky)
    assert examine_spikes(at_chunk_size(spiky, size)) == (limits, findings)
    parts = corrected(at_chunk_size(spiky, size), limits)
    np.testing.assert_array_equal(efforts(parts), efforts(corrected(spiky, limits)))


def test_currents_are_examined_where_efforts_are_made_of_them(noisy):
    current = efforts(noisy).copy()
    current[[700, 1503]] += 3.0
    both = changed(noisy, current=current)
    assert examine_spikes(both)[1] == ()
    drives = {"j1": Drive(2.0)}
    limits, (finding,) = examine_spikes(both, drives)
    assert finding.joints == ("j1",)
    repaired = Chunk.join(list(corrected(both, limits).chunks(JOINTS)))
    assert np.abs(repaired.current - efforts(noisy))[:, 1].max() < 0.5
    np.testing.assert_array_equal(repaired.tau, efforts(noisy))
    np.testing.assert_array_equal(repaired.current[:, 0], current[:, 0])


@pytest.mark.parametrize("bits", [8, 9, 10, 11])
def test_steps_of_a_coarse_encoder_are_measured(bits):
    step = 2 * np.pi / 2**bits
    coarse = changed(
        sines(np.arange(0, 40, 0.01)), q=lambda q: np.column_stack([step * np.round(q[:, 0] / step), q[:, 1]])
    )
    (finding,) = examine_resolution(coarse)
    assert finding.code == "position_coarse" and finding.joints == ("j0",)
    assert position_step(coarse.samples.q[:, 0]) == pytest.approx(step, rel=1e-6)


def test_fine_encoders_and_joints_at_rest_are_not_coarse():
    step = 2 * np.pi / 2**13
    fine = changed(
        sines(np.arange(0, 40, 0.01)), q=lambda q: np.column_stack([step * np.round(q[:, 0] / step), 0 * q[:, 1]])
    )
    assert examine_resolution(fine) == ()
    uneven = replace(
        fine,
        samples=replace(fine.samples, q=np.column_stack([0.1 * np.sqrt(np.arange(4000) // 100), fine.samples.q[:, 1]])),
    )
    assert examine_resolution(uneven) == ()


def test_joints_that_turn_back_move_both_ways():
    t = np.arange(0, 20, 0.01)
    q = np.stack([np.sin(t), 0.3 * t + 0.1 * np.sin(t), 0.3 * t + np.sin(t), 1e-3 * t])
    (finding,) = examine_directions(("turns", "creeps", "drifts", "rests"), q, np.zeros(len(t)))
    assert finding.code == "one_way_motion" and finding.joints == ("creeps",)


def test_a_new_segment_is_no_motion():
    q = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 1, 100)])[None]
    assert examine_directions(("forward",), q, np.repeat([0, 1], 100))[0].joints == ("forward",)


def test_the_median_of_known_samples_is_that_of_samples_of_which_some_are_missing():
    values = np.round(np.random.default_rng(0).normal(size=(300, 3)), 1)
    missing = np.concatenate([values, np.full((9, 3), np.nan)])
    np.testing.assert_array_equal(spikes.running_median(values)[:290], spikes.running_median(missing)[:290])


def test_sampled_rows_do_not_keep_those_between_them():
    sampled = spikes.SampledRows()
    for _ in range(40):
        sampled.add(np.zeros((8192, 3, 2)))
    assert all(part.base is None or part.base.nbytes <= part.nbytes for part in sampled.rows)
    assert sum(map(len, sampled.rows)) <= spikes.SAMPLED
