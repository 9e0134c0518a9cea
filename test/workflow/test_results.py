# SPDX-License-Identifier: Apache-2.0
"""Memory and temporary files of a result: freed by its users, and after an error."""

import importlib

import pytest
from support.simulated import ARM, Simulated

from robot_dyn_id.cli import main
from robot_dyn_id.data.corrected import Stored
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.identification import pipeline
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings

CONFIGURATION = Configuration(settings=Settings(estimator=WeightedLeastSquares(), cutoff=5.0))


class Decoded:
    """A recording that is decoded in every pass, as a bag is."""

    def __init__(self, recording):
        self._recording = recording

    def __getattr__(self, name):
        return getattr(self._recording, name)


@pytest.fixture(scope="module")
def data():
    return DataSelection([Decoded(Simulated().record(duration=8.0, noise=0.1))])


def test_a_closed_result_keeps_no_samples_and_can_still_be_saved(data, tmp_path):
    result = identify_recordings(RobotDescription(ARM, "arm"), CONFIGURATION, data)
    stores = [result.decoded, result.identification.training.store]
    assert all(store._stored for store in stores)
    result.close()
    assert not any(store._stored for store in stores)
    assert result.save(tmp_path / "run")["verdict"] == result.evaluation.verdict.word
    assert not any(store._stored for store in stores)


def test_the_passes_of_a_fit_are_counted(data):
    stages = []
    identify_recordings(RobotDescription(ARM, "arm"), CONFIGURATION, data, stages.append).close()
    fit = [stage.detail for stage in stages if stage.text.startswith("estimating ")]
    assert fit == ["", *(f"pass {number} over the data" for number in range(1, len(fit)))] and len(fit) > 1


def test_an_error_frees_what_was_decoded(data, monkeypatch):
    stores = []

    def broken(training, *_):
        for recording in training:
            assert list(recording.chunks(recording.joint_names))
            stores.extend(stored.store for stored in recording.those(Stored))
        assert stores and all(store._stored for store in stores)
        raise InputError("broken")

    monkeypatch.setattr(pipeline, "identify", broken)
    with pytest.raises(InputError, match="broken"):
        identify_recordings(RobotDescription(ARM, "arm"), CONFIGURATION, data)
    assert not any(store._stored for store in stores)


def test_a_try_whose_results_cannot_be_written_closes_them(monkeypatch, tmp_path):
    class Result:
        closed = False

        def save(self, folder, files):
            raise InputError(f"{folder}: cannot be written")

        def close(self):
            self.closed = True

    result = Result()
    monkeypatch.setattr(importlib.import_module("robot_dyn_id.cli.try"), "identify_recordings", lambda *_: result)
    assert main(["try", "franka", "--out", str(tmp_path)]) == 3
    assert result.closed
