# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id bench`."""

import json

from robot_dyn_id.cli import bench


def test_the_whole_command_is_measured(cli):
    code, out, err = cli("bench", "command", "--samples", "1200", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["goals"] == []
    (goal,) = answer["command"]
    assert goal["samples"] == 1200 and goal["seconds"] > 0.1 and goal["at_most"] == 10.0
    assert goal["met"] is (goal["seconds"] <= 10.0)
    assert err.count("identify, 1200 samples") == 2  # the first one may compile


def test_every_recording_has_a_limit_of_its_own_which_may_be_missed(monkeypatch, cli):
    monkeypatch.setattr(bench, "_command", lambda samples: {2000: 10.5, 40_000: 10.5})
    code, out, _ = cli("bench", "command", "--samples", "40000", "--json")
    assert code == 0
    found = [(goal["at_most"], goal["met"]) for goal in json.loads(out)["command"]]
    assert found == [(10.0, False), (20.0, True)]
    printed = cli("bench", "command", "--samples", "40000")[1].splitlines()
    assert "(at most 10, missed)" in printed[0] and "(at most 20)" in printed[1]
