# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id bench`."""

import json

import pytest
from support.processes import run_python

from robot_dyn_id.bench.growth import GrowthPoint
from robot_dyn_id.bench.measuring import BenchFigure
from robot_dyn_id.cli import bench


@pytest.mark.slow
def test_the_whole_command_is_measured(cli):
    code, out, err = cli("bench", "command", "--samples", "1200", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["goals"] == []
    (goal,) = answer["command"]
    assert goal["samples"] == 1200 and goal["seconds"] > 0.1 and goal["at_most"] == 10.0
    assert goal["met"] is (goal["seconds"] <= 10.0)
    assert err.splitlines()[0] == "identify, 1200 samples"


def test_every_recording_has_a_limit_of_its_own_which_may_be_missed(monkeypatch, cli):
    monkeypatch.setattr(bench, "_command", lambda samples: {2000: 10.5, 40_000: 10.5})
    code, out, _ = cli("bench", "command", "--samples", "40000", "--json")
    assert code == 0
    found = [(goal["at_most"], goal["met"]) for goal in json.loads(out)["command"]]
    assert found == [(10.0, False), (20.0, True)]
    printed = cli("bench", "command", "--samples", "40000")[1].splitlines()
    assert "(at most 10, missed)" in printed[0] and "(at most 20)" in printed[1]


@pytest.mark.slow
def test_kernels_are_measured_against_their_peers(cli):
    code, out, _ = cli("bench", "speed", "--quick", "--samples", "300", "--json")
    assert code == 0
    goals = {goal["name"]: goal for goal in json.loads(out)["goals"]}
    loop = goals["stacked regressor against a Python loop over Pinocchio"]
    assert loop["ratio"] > 1.0 and loop["goal"] == 7.0 and loop["met"] is (loop["ratio"] >= 7.0)
    assert all(goal["ratio"] or goal["why"] for goal in goals.values())


def test_results_are_kept_and_compared_with_the_last(monkeypatch, cli, tmp_path):
    value = 1.0
    monkeypatch.setattr(bench, "measure_kernels", lambda *_: [BenchFigure("kernel", value, "ms", 5.0, True, 0.01)])
    monkeypatch.setattr(bench, "measure_fleet", lambda *_: [])  # its times would be compared, too
    monkeypatch.setattr(bench, "measure_growth", lambda *_: {"samples": [GrowthPoint(10, 1.0, 2.0)]})
    out = tmp_path / "bench"
    assert json.loads(cli("bench", "speed", "--out", out, "--json")[1])["compared_with"] is None
    assert "uPlot" in (out / "growth.html").read_text()
    code, _, err = cli("bench", "speed", "--out", out, "--json")
    assert code == 2 and "holds" in err
    value = 2.0
    answer = json.loads(cli("bench", "speed", "--out", out, "--force", "--json")[1])
    assert [(one["name"], one["before"], one["now"]) for one in answer["slower"]] == [("kernel", 1.0, 2.0)]
    again = json.loads(cli("bench", "speed", "--out", out, "--force", "--json")[1])
    assert [one["before"] for one in again["slower"]] == [1.0]  # a slower figure does not replace the earlier one
    assert cli("bench", "speed", "--out", out, "--force", "--accept-slower")[0] == 0
    assert "nothing got slower" in cli("bench", "speed", "--last", out / "bench.json")[1]
    assert cli("bench", "speed", "--accept-slower")[0] == 2


def test_wrong_words_and_files_are_refused(cli, tmp_path):
    assert cli("bench", "estimators", "--quick")[0] == 2
    (tmp_path / "other.json").write_text("{}")
    code, out, _ = cli("bench", "speed", "--last", tmp_path / "other.json", "--json")
    assert code == 3 and "other.json" in json.loads(out)["error"]["message"]


@pytest.mark.slow
def test_a_start_loads_no_library_that_it_does_not_need():
    heavy = ("scipy.stats", "scipy.signal", "scipy.optimize", "scipy.ndimage", "scipy.interpolate", "matplotlib")
    program = (
        "import sys, importlib\n"
        "for verb in ('identify', 'base', 'predict', 'validate'): importlib.import_module(f'robot_dyn_id.cli.{verb}')\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = run_python(program, check=True)
    assert done.stdout.strip() == "[]"


def test_help_needs_no_numerical_library():
    program = (
        "import sys\nfrom robot_dyn_id.cli import main\nmain(['--help'])\n"
        "assert not {'numpy', 'scipy', 'numba', 'importlib.metadata'} & set(sys.modules)"
    )
    run_python(program, check=True)
