# SPDX-License-Identifier: Apache-2.0
"""The demo, as its user runs it: all nodes over DDS in one process, and what it must show."""

import json

import pytest
from support.commands import check_order
from support.processes import HANG_S, run_python

from robot_dyn_id.cli import demo
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.recordings import open_recording

pytestmark = pytest.mark.real_time

PATIENT_DEMO = f"""
import sys
from robot_dyn_id.cli import demo, main
demo.STAGE_TIMEOUT_S = {0.5 * HANG_S}  # the arm is simulated in real time, also on a busy computer
sys.exit(main(["demo", "--out", sys.argv[1]]))
"""


def test_a_twin_that_does_not_follow_is_reported_and_ends_nothing(world, monkeypatch):
    monkeypatch.setattr(demo, "STAGE_TIMEOUT_S", 0.3)
    report = demo._follow_with_twin(world, 200.0, lambda trial, topics: None)
    assert report == "the twin did not follow the robot: joint states: not within 0.3 s"


@pytest.mark.slow
def test_the_demo_shows_what_it_promises(tmp_path):
    folder = tmp_path / "run"
    done = run_python(PATIENT_DEMO, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads((folder / "report.json").read_text())
    check_order(done.stdout)
    assert answer["verdict"] == "good"
    assert answer["noise_free_nrmse"] <= 0.01
    assert min(answer["twin"]["acceleration"]) >= 0.99
    assert min(answer["twin"]["effort"]) >= 0.9
    assert abs(answer["twin"]["lag"]) < 0.05
    assert answer["cross_check"]["passed"]
    assert answer["cross_check"]["rank_ours"] == answer["cross_check"]["rank_pinocchio"] == 43
    assert answer["run_folder"] == str(folder)
    assert "recording" in done.stderr  # progress while it works
    assert "REHEARSAL" not in done.stderr and "checked for collisions" not in done.stderr
    warned = [line for line in done.stderr.splitlines() if line.startswith("[WARN]")]
    expected = ("already registered", "waiting for identified_parameters", "no joint states", "wrong gains")
    assert not [line for line in warned if any(words in line for words in expected)], "nothing is wrong"
    assert read_parameters(folder / "parameters.yaml").judgment.verdict == "good"
    assert {path.name for path in folder.iterdir()} == set(demo.OUTPUTS), "all that is written is claimed"
    assert len(open_recording(folder / "training").joint_names) == 7
    assert open_recording(folder / "twin", f"{answer['namespace']}/twin/joint_states").topic
    assert all(joint.startswith(demo.JOINT_PREFIX) for joint in open_recording(folder / "training").joint_names)
    assert (folder / "report.html").stat().st_size > 100_000
