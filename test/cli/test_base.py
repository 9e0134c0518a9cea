# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id base`."""

import json
import sys

from support.commands import JOINTS
from support.processes import run_program
from support.simulated import Simulated

from robot_dyn_id.files.shared import find_shared_file


def test_base(files, cli):
    code, out, _ = cli("base", "--robot", files / "arm.urdf", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(answer) >= {"count", "parameters", "unidentifiable", "joints"}
    assert answer["count"] == len(answer["parameters"]) == len(Simulated(terms=()).base.names)
    assert all(set(one) == {"name", "expression", "unit"} for one in answer["parameters"])
    assert answer["joints"] == list(JOINTS)


def test_a_robot_by_its_screws_has_the_base_parameters_of_its_urdf(cli):
    robots = [find_shared_file(name) for name in ("config/screws/planar3r.yaml", "urdf/planar3r.urdf")]
    answers = [cli("base", "--robot", robot, "--json") for robot in robots]
    assert answers[0][:2] == answers[1][:2] and answers[0][0] == 0


def test_a_wrong_file_of_screws_is_an_error_of_its_key(tmp_path, cli):
    (tmp_path / "arm.yaml").write_text("screws: [{name: a, axis: [0, 0, 0], point: [0, 0, 0]}]\n")
    code, out, _ = cli("base", "--robot", tmp_path / "arm.yaml", "--json")
    assert code == 3
    assert "screws[0].axis: must be longer than 0" in json.loads(out)["error"]["message"]


def test_an_empty_configuration_changes_nothing_but_friction(files, cli):
    (files / "plain.yaml").write_text("terms: []\n")
    for options in ((), ("--gravity", "0", "0", "0"), ("--pivots", "qr")):
        words = ("base", "--robot", files / "arm.urdf", *options, "--json")
        assert cli(*words)[:2] == cli(*words, "--config", files / "plain.yaml")[:2]


def test_a_start_without_configuration_imports_neither_estimators_nor_formats(files):
    """They and what they import take a third of the time of a start."""
    script = "import sys; from robot_dyn_id.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    words = [sys.executable, "-c", script, "base", "--robot", str(files / "arm.urdf")]
    done = run_program(*words, check=True)
    loaded = done.stderr.split()
    assert "robot_dyn_id.dynamics.base_parameters" in loaded
    assert not {"robot_dyn_id.estimators", "robot_dyn_id.recordings"} & set(loaded)
