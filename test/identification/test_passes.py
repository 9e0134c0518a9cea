# SPDX-License-Identifier: Apache-2.0
"""Passes over raw recordings: two before anything is filtered, whatever is wrong with them."""

from dataclasses import replace

import numpy as np
import pytest
from support.given_parameters import parameter_set
from support.observations import CountedRecording
from support.robots import joint, urdf
from support.simulated import Simulated, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.identification.diagnosis.observation import observation_of
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.correction import correct_channels
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.signals import trials
from robot_dyn_id.workflow.identification import identify, validate

TEXT = urdf(
    joint("a", "base", "l1", kind="continuous"),
    joint("b", "l1", "l2", axis="0 1 0"),
    joint("c", "l2", "l3", kind="continuous", axis="1 0 0"),
    links=3,
)
ROBOT = Simulated(TEXT)


class Filtering(Exception):
    """A pass that filters begins."""


@pytest.fixture(autouse=True)
def stop_at_filtering(monkeypatch):
    def stop(*_):
        raise Filtering

    monkeypatch.setattr(trials, "cut_windows", stop)


def spoiled(recording):
    """A recording with rest, brakes, a wrapped and a frozen encoder, spikes, a limit, jitter and a coarse encoder."""
    samples, rows = recording.samples, np.arange(len(recording.samples))
    rng = np.random.default_rng(0)
    q, tau = samples.q.copy(), samples.tau.copy()
    tau[:, 1] = np.clip(tau[:, 1], *(0.7 * np.array([tau[:, 1].min(), tau[:, 1].max()])))
    tau[[300, 1500], 0] += 500.0
    q[2000:2100, 1] = q[2000, 1]
    q[[500, 901], 1] += 5.0
    q[:, 0] = np.mod(q[:, 0], 2 * np.pi)
    q[:, 2] = 5e-3 * np.round(q[:, 2] / 5e-3)
    rest = np.concatenate([rows[:1000], np.full(800, 1000), rows[1000:]])
    q, tau = q[rest], tau[rest]
    tau[1000:1800] = 0.0
    late = rng.exponential(2e-3, len(rest))
    t = np.maximum.accumulate(np.arange(len(rest)) / 100.0 + late) + 1e-7 * np.arange(len(rest))
    return replace(recording, samples=Chunk(t, q, None, tau))


@pytest.fixture(scope="module")
def sound():
    return ROBOT.record(duration=30.0, noise=0.05)


@pytest.fixture(scope="module")
def parameters():
    return parameter_set(TEXT)


KINDS = {
    "sound": lambda one: one,
    "spoiled": spoiled,
    "currents": lambda one: changed(one, current=one.samples.tau, tau=None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [256, 8192])
def test_two_passes_before_filtering(sound, kind, size):
    recording = KINDS[kind](sound)
    counted, other = (CountedRecording(replace(recording, source=name, chunk_size=size)) for name in "ab")
    with pytest.raises(Filtering):
        identify(ROBOT.model, counted, Settings(exclude=((1.0, 2.0),)), other)
    assert (counted.passes, other.passes) == (2, 1)


def test_two_passes_over_parts_of_one_recording(sound):
    counted = CountedRecording(sound)
    with pytest.raises(Filtering):
        identify(ROBOT.model, counted, train_range=(0.0, 20.0))
    assert counted.passes == 2


@pytest.mark.parametrize("kind", ["sound", "spoiled"])
def test_two_passes_before_a_validation(sound, kind, parameters):
    counted = CountedRecording(KINDS[kind](sound))
    with pytest.raises(Filtering):
        validate(parameters, counted)
    assert counted.passes == 2


def test_all_faults_are_found_in_these_passes(sound):
    read = Read.from_recordings([spoiled(sound)], [], ROBOT.model, Settings())
    (recording,) = read.training
    channels = correct_channels(read.training, ROBOT.joints, {})
    found = {(one.code, *one.joints) for one in (*read.findings, *channels.findings)}
    assert found >= {
        ("positions_wrapped", "a"),
        ("encoder_spikes", "b"),
        ("encoder_frozen", "b"),
        ("position_coarse", "c"),
        ("effort_outliers", "a"),
        ("effort_saturated", "b"),
        ("effort_zero_at_rest", "a", "b", "c"),
        ("clock_jitter",),
    }
    assert observation_of(recording).stillness.spans == ((10.0, 18.0),)
