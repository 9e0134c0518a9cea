# SPDX-License-Identifier: Apache-2.0
"""Bad parameter files, and data that do not fit them, under every command that reads them."""

import json
import math
from dataclasses import replace

import pytest
import yaml
from support.commands import check_error_line, check_error_object, check_unchanged, csv, damaged
from support.simulated import GRIPPER, changed, save_npz

BAD_PARAMETERS = {
    "missing": (lambda files, folder: folder / "none.yaml", "none.yaml: cannot read the parameters"),
    "an empty folder": (lambda files, folder: folder, "a folder without parameters.yaml"),
    "a field missing": (damaged(lambda content: content["robot"].pop("gravity")), "p.yaml: robot: gravity is missing"),
    "a wrong type": (
        damaged(lambda content: content["estimate"].update(values="high")),
        "estimate.values: must be a list",
    ),
    "a wrong length": (
        damaged(lambda content: content["estimate"]["values"].pop()),
        "parameter set: estimate.values has shape",
    ),
    "something else": (lambda files, folder: files / "arm.urdf", "arm.urdf: not a "),
    "an unknown term": (damaged(lambda c: c["terms"].update(names=["magic"] * len(c["terms"]["names"]))), "magic"),
}


@pytest.mark.parametrize("verb", ["predict", "validate"])
@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_every_bad_parameter_file_is_one_line(name, verb, files, out, tmp_path, cli):
    make, words = BAD_PARAMETERS[name]
    target = out / "tau.npz" if verb == "predict" else out
    code, stdout, err = cli(
        verb,
        files / "other.npz",
        robot=files / "arm.urdf",
        parameters=make(files, tmp_path),
        out=target,
        json=True,
        force=True,
    )
    assert code == 3, err
    check_error_line(err, words)
    check_error_object(stdout, err, 3)
    check_unchanged(out)


@pytest.mark.parametrize("verb", ["predict", "validate"])
@pytest.mark.parametrize(
    ("change", "expected", "words"),
    [
        ({"data": "none.npz"}, 3, "none.npz: no such file"),
        ({"robot": "gripper.urdf"}, 3, "robot"),
        ({"data": "one.npz"}, 3, "one.npz"),
        ({"data": "renamed.npz"}, 3, "no joint"),
    ],
    ids=str,
)
def test_data_and_robot_must_fit_the_parameters(verb, change, expected, words, files, out, tmp_path, recording, cli):
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    save_npz(tmp_path / "one.npz", changed(recording, rows=slice(1)))
    save_npz(tmp_path / "renamed.npz", replace(recording, joint_names=("a", "b", "c")))
    data = tmp_path / change["data"] if "data" in change else files / "other.npz"
    robot = tmp_path / change["robot"] if "robot" in change else files / "arm.urdf"
    target = out / "tau.npz" if verb == "predict" else out
    code, stdout, err = cli(
        verb, data, "--robot", robot, "--parameters", files / "parameters.yaml", "--out", target, "--json", "--force"
    )
    assert code == expected, err
    check_error_line(err, words)
    check_error_object(stdout, err, expected)
    check_unchanged(out)


@pytest.mark.parametrize("verb", ["predict", "validate"])
def test_repairs_of_the_file_are_reported_by_every_command(verb, files, tmp_path, recording, cli):
    target = tmp_path / "tau.npz" if verb == "predict" else tmp_path
    code, stdout, _ = cli(
        verb,
        *csv(tmp_path, recording, cut=True),
        robot=files / "arm.urdf",
        parameters=files / "parameters.yaml",
        out=target,
        json=True,
    )
    assert code == 0
    (finding,) = [one for one in json.loads(stdout)["findings"] if one["code"] == "samples_dropped"]
    assert ": 1 row dropped: " in finding["message"]


@pytest.mark.parametrize("verb", ["predict", "simulate", "export"])
def test_parameters_that_are_not_finite_give_no_output(verb, files, tmp_path, cli):
    content = yaml.safe_load((files / "parameters.yaml").read_text())
    content["estimate"]["values"][3] = math.nan
    content["bodies"]["standard_parameters"][13] = math.inf
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    data = {"predict": [files / "other.npz"], "simulate": [files / "other.npz"], "export": ["--format", "urdf"]}[verb]
    target = tmp_path / ("tau.npz" if verb != "export" else "model.urdf")
    code, stdout, err = cli(
        verb, *data, "--robot", files / "arm.urdf", "--parameters", tmp_path / "p.yaml", "--out", target, "--json"
    )
    assert code == 3, err
    check_error_object(stdout, err, 3)
    assert "finite" in err or "positive definite" in err
    assert not target.exists()
