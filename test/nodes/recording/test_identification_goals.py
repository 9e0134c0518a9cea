# SPDX-License-Identifier: Apache-2.0
"""The action ~/identify_recordings: a computation in a process of its own, with progress, a result and an end."""

from pathlib import Path

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray
from robot_dyn_id.action import IdentifyRecordings
from robot_dyn_id.msg import IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from support.goal_client import GoalClient
from support.simulated import ARM, Simulated

from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.recording.identification_goals import choose_results_folder
from robot_dyn_id.nodes.runtime.robot_node import DIAGNOSTICS, LATCHED, RELIABLE
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.report.folder import PARAMETERS

Result = IdentifyRecordings.Result
ABORTED, CANCELED, SUCCEEDED = GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_SUCCEEDED


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """URDF and recording."""
    folder = tmp_path_factory.mktemp("recorded")
    recording = Simulated(ARM).record(noise=0.05)
    (chunk,) = recording.chunks(recording.joint_names)
    stamps = np.round(chunk.t * 1e9).astype(np.int64)
    samples = StampedSamples(stamps, chunk.q, chunk.dq, chunk.tau)
    write_joint_state_bag(folder / "bag", "/joint_states", recording.joint_names, samples)
    (folder / "arm.urdf").write_text(ARM)
    return folder


class Scene:
    def __init__(self, world, data, tmp_path, **parameters):
        self.folder = tmp_path / "identifier"
        given = {"urdf": str(data / "arm.urdf"), "folder": str(self.folder), "listen": False, **parameters}
        words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
        self.node = world.add(Identifier, *words)
        self.client = GoalClient(world, IdentifyRecordings, "identifier/identify_recordings")
        self.parameters = world.heard(ParameterSetMsg, "identified_parameters", LATCHED)
        self.reports = world.heard(IdentificationReport, "identification_report", LATCHED)


def test_a_goal_identifies_with_progress_and_publishes_the_model(world, data, tmp_path):
    scene = Scene(world, data, tmp_path)
    goal = scene.client.send(recordings=[str(data / "bag")])
    world.until(lambda: goal.accepted)
    assert scene.client.is_rejected(recordings=[str(data / "bag")])
    status, result = goal.end()
    assert (status, result.code, result.message) == (SUCCEEDED, Result.SUCCEEDED, "")
    assert result.verdict in ("good", "suspect") and 0.0 < result.held_out_all_joints_nrmse < 0.2
    assert Path(result.parameters_file) == scene.folder / "run_1" / PARAMETERS
    assert Path(result.report_file).exists()
    fractions = [feedback.fraction for feedback in goal.feedback]
    assert fractions == sorted(fractions) and fractions[-1] > 0.5
    assert any(feedback.stage.startswith("estimating") for feedback in goal.feedback)
    world.until(lambda: scene.parameters and scene.reports)
    model = read_parameters(Path(result.parameters_file))
    assert ParameterSet.from_message(scene.parameters[-1]).estimate.values.tobytes() == model.estimate.values.tobytes()
    assert [f.code for f in result.findings] == [f.code for f in scene.reports[-1].findings]
    again = scene.client.send(recordings=[str(data / "bag")], keep_private=True)
    assert Path(again.end()[1].parameters_file).parent.name == "run_2"
    assert len(scene.parameters) == 1


def test_a_goal_is_canceled_within_a_second_and_loses_nothing(world, data, tmp_path):
    scene = Scene(world, data, tmp_path)
    for stage in ("", "surveying", "estimating"):
        goal = scene.client.send(recordings=[str(data / "bag")], folder="results")
        world.until(
            lambda stage=stage, goal=goal: (
                goal.accepted and (not stage or any(feedback.stage.startswith(stage) for feedback in goal.feedback))
            )
        )
        begin = world.time
        goal.cancel()
        status, result = goal.end()
        assert world.time - begin < 2.0  # a second, and the delays of the other process
        assert (status, result.code) == (CANCELED, Result.CANCELED)
        assert not (scene.folder / "results").exists()
    assert scene.parameters == [] and scene.reports == []
    assert (data / "bag").is_dir()
    assert scene.client.send(recordings=[str(data / "bag")], folder="results").end()[0] == SUCCEEDED


def test_goals_that_cannot_be_executed_are_rejected_and_the_reason_is_in_the_diagnostics(world, data, tmp_path):
    scene = Scene(world, data, tmp_path)
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"not a bag")
    diagnostics = world.heard(DiagnosticArray, DIAGNOSTICS.name, RELIABLE)

    def reason():
        values = [one for message in diagnostics[-1:] for one in message.status[0].values if one.key == "last refused"]
        return values[0].value if values else ""

    for goal, words in (
        ({}, "no joint states were received"),
        ({"recordings": [str(tmp_path / "none")]}, "no such file"),
        ({"recordings": [str(data / "bag")], "folder": "../elsewhere"}, "inside the folder"),
    ):
        assert scene.client.is_rejected(**goal)
        world.until(lambda words=words: words in reason(), what=words)
    status, result = scene.client.send(recordings=[str(broken)]).end()
    assert (status, result.code) == (ABORTED, Result.FAILED) and "broken.mcap" in result.message
    assert scene.parameters == []


def test_the_end_of_the_node_ends_the_goal(world, data, tmp_path):
    scene = Scene(world, data, tmp_path)
    goal = scene.client.send(recordings=[str(data / "bag")])
    world.until(lambda: goal.feedback)
    process = scene.node._goals._job._process
    world.remove(scene.node)
    assert goal.end()[0] == ABORTED
    assert process is None or not process.is_alive()


def test_results_stay_inside_the_folder_of_the_node(tmp_path):
    assert choose_results_folder(tmp_path, "") == tmp_path / "run_1"
    (tmp_path / "run_1").mkdir()
    assert choose_results_folder(tmp_path, "") == tmp_path / "run_2"
    assert choose_results_folder(tmp_path, "a/b") == tmp_path / "a" / "b"
    (tmp_path / "run_1" / PARAMETERS).write_text("")
    for name in ("/tmp/x", "../x", "a/../../x", "run_1"):
        with pytest.raises(UsageError, match="folder"):
            choose_results_folder(tmp_path, name)
