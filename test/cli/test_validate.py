# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id validate`."""

import json

import pytest
import yaml
from support.commands import check_answer


def test_validate(files, tmp_path, cli):
    code, out, _ = cli(
        "validate",
        files / "other.npz",
        robot=files / "arm.urdf",
        parameters=files / "parameters.yaml",
        exclude=(5, 6),
        out=tmp_path,
        json=True,
    )
    assert code == 0
    answer = check_answer(json.loads(out))
    assert "times_excluded" in {one["code"] for one in answer["findings"]}
    assert answer["held_out"]["all_joints_nrmse"] < 0.1
    assert json.loads((tmp_path / "report.json").read_text()) == answer


@pytest.mark.slow
def test_validate_writes_only_with_out(files, tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (
        "validate",
        files / "other.npz",
        "--robot",
        files / "arm.urdf",
        "--parameters",
        files,  # the folder of the identification
    )
    code, out, _ = cli(*words)
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert "verdict: good" in out and "--out DIR" in out
    code, out, _ = cli(*words, "--out", "there")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["report.html", "report.json"]


def test_a_bad_verdict_exits_with_1(files, tmp_path, cli):
    stored = (files / "parameters.yaml").read_text()
    values = yaml.safe_load(stored)
    for part, name in (("estimate", "values"), ("bodies", "standard_parameters"), ("terms", "values")):
        values[part][name] = [-value for value in values[part][name]]
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(values))
    code, out, _ = cli(
        "validate", files / "other.npz", robot=files / "arm.urdf", parameters=wrong, out=tmp_path, json=True
    )
    assert code == 1
    assert json.loads(out)["verdict"] == "bad"
