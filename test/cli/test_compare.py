# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id compare`."""

import html
import json

import pytest


@pytest.fixture(scope="module")
def runs(files, tmp_path_factory):
    from robot_dyn_id.cli import main

    folder = tmp_path_factory.mktemp("runs")
    words = ("--robot", str(files / "arm.urdf"), "--estimator", "weighted", "--friction", "coulomb")
    for name, data in (("monday", "data.npz"), ("friday", "other.npz")):
        assert main(["identify", str(files / data), *words, "--out", str(folder / name)]) == 0
    return folder


@pytest.mark.slow
def test_compare(runs, files, tmp_path, cli):
    words = ("compare", runs / "monday", runs / "friday/parameters.yaml", "--data", files / "other.npz")
    code, out, _ = cli(*words, "--out", tmp_path / "there", "--json")
    assert code == 0
    answer = json.loads(out)
    assert json.loads((tmp_path / "there/comparison.json").read_text()) == answer
    assert answer["reference"] == "monday" and [one["name"] for one in answer["differences"]] == ["friday"]
    assert len(answer["errors"]) == 3 and all(max(row["rms_error"]) < 0.2 for row in answer["errors"])
    difference = answer["differences"][0]
    assert difference["degrees"] == len(difference["parameters"]) > 10 and not difference["not_compared"]
    page = (tmp_path / "there/comparison.html").read_text()
    assert page.count('<div data-plot="') == 3 + 2 * 3 and "friday" in page
    code, out, _ = cli(*words)
    assert code == 0 and "chi-square" in out and "friday" in out and "all joints" in out
    (note,) = answer["trained_notes"]
    assert note.startswith("friday: 100% of the samples of ") and note in out and note in html.unescape(page)


@pytest.mark.parametrize(
    ("words", "expected", "text"),
    [
        (("monday",), 2, "give two or more"),
        (("monday", "sunday"), 3, "sunday"),
        (("monday", "friday", "--topic", "states"), 2, "--topic: has no effect without --data"),
        (("monday", "friday", "--data", "none.npz"), 3, "none.npz"),
    ],
)
def test_wrong_inputs(runs, cli, monkeypatch, words, expected, text):
    monkeypatch.chdir(runs)
    code, _, error = cli("compare", *words)
    assert (code, text in error) == (expected, True), error
