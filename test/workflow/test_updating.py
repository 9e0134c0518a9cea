# SPDX-License-Identifier: Apache-2.0
"""Identification from recordings and a factor: none of the samples counts twice."""

from dataclasses import replace

import pytest
from support.simulated import Simulated

from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.workflow.identification import DataSelection
from robot_dyn_id.workflow.updating import identify_with_factor

ARM = Simulated()
ROBOT = RobotDescription(ARM.text, "arm")
CONFIGURATION = Configuration(
    settings=Settings(estimator=WeightedLeastSquares(), cutoff=5.0, sample_rate=100.0, velocity="derivative")
)


def updated(recordings, earlier=None, held_out=()):
    return identify_with_factor(ROBOT, CONFIGURATION, DataSelection(recordings, held_out), earlier)


@pytest.fixture(scope="module")
def recordings():
    return [replace(ARM.record(seed, 8.0, noise=0.1), source=f"r{seed}") for seed in (1, 2)]


@pytest.fixture(scope="module")
def earlier(recordings):
    return updated(recordings[:1]).factor


def cut(recording, first, last, source):
    samples = recording.samples
    parts = {
        name: getattr(samples, name)[first:last]
        for name in ("t", "q", "dq", "tau")
        if getattr(samples, name) is not None
    }
    return replace(recording, source=source, samples=replace(samples, **parts))


def test_a_recording_of_the_factor_is_not_added_again(recordings, earlier):
    with pytest.raises(InputError, match="cannot be added"):
        updated([replace(recordings[0], source="copy")], earlier)
    with pytest.raises(InputError, match="cannot be added"):
        updated([recordings[1], cut(recordings[0], 200, 600, "cut")], earlier)


def test_a_recording_of_the_factor_is_not_held_out(recordings, earlier):
    with pytest.raises(InputError, match="cannot be held out"):
        updated(recordings[1:], earlier, held_out=recordings[:1])


@pytest.mark.slow
def test_a_small_overlap_is_reported(recordings, earlier):
    first = cut(recordings[1], 0, 300, "first")
    found = updated([cut(recordings[1], 200, 800, "rest")], updated([first], earlier).factor)
    codes = [finding.code for finding in found.result.evaluation.findings]
    assert {"recording_repeated", "held_out_in_training"} <= set(codes)
    assert updated(recordings[1:], earlier).factor.sources == ("r1", "r2")
