# SPDX-License-Identifier: Apache-2.0
"""The command `gravity` as a user gives it."""

import json

import numpy as np
import pytest
from support.commands import run_here
from support.low_cost_arm import LowCostArm
from support.simulated import ARM, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.gravity import read_gravity
from robot_dyn_id.files.joint_trajectory import read_joint_trajectory
from robot_dyn_id.loads.gravity import KnownWeight, list_nominal_bodies
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.robot import RobotModel

MODEL = RobotModel.from_urdf(ARM)
LINK, MASS, CENTER = "l3", 0.8, (0.05, 0.0, 0.1)


@pytest.fixture(scope="module")
def arm():
    return LowCostArm(MODEL, seed=1, same_total=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory, arm):
    folder = tmp_path_factory.mktemp("gravity")
    (folder / "arm.urdf").write_text(ARM)
    bare = arm.record()
    added = KnownWeight.at_link(MODEL, find_holds([bare], MODEL.joint_names), MASS, LINK, np.array(CENTER)).added
    save_npz(folder / "bare.npz", bare)
    save_npz(folder / "loaded.npz", arm.record(added=added))
    return folder


def run(files, capsys, out, *more):
    return run_here(capsys, "gravity", files / "bare.npz", "--robot", files / "arm.urdf", "--out", out, *more)


def error_in_drive_units(file, arm):
    q = np.random.default_rng(5).uniform(-2.0, 2.0, (3, 200))
    true, found = arm.effort(q), read_gravity(file).effort(MODEL, q)
    return np.sqrt(((found - true)[1:] ** 2).mean(axis=1) / (true[1:] ** 2).mean(axis=1))


def test_without_a_scale_no_masses_are_written(files, capsys, tmp_path, arm):
    code, answer = run(files, capsys, tmp_path)
    assert code == 0
    assert not answer["scale_known"]
    assert "bodies" not in answer
    assert "gain" not in answer["joints"][1]
    assert [path.name for path in tmp_path.iterdir()] == ["gravity.yaml"]
    assert {"gravity_scale_unknown", "gravity_joint_without_weight"} <= {f["code"] for f in answer["findings"]}
    assert error_in_drive_units(answer["file"], arm).max() < 0.05


@pytest.mark.parametrize(
    "scale",
    [
        ("--trust-urdf-mass",),
        ("--known-mass", str(MASS), "--known-link", LINK, "--known-center", *map(str, CENTER), "--loaded"),
    ],
    ids=["urdf", "weight"],
)
def test_with_a_scale_a_urdf_with_these_masses_is_written(files, capsys, tmp_path, arm, scale):
    more = (*scale, str(files / "loaded.npz")) if scale[-1] == "--loaded" else scale
    code, answer = run(files, capsys, tmp_path, *more)
    assert code == 0
    assert answer["scale_known"]
    for entry, gain in zip(answer["joints"][1:], arm.gains[1:], strict=True):
        assert abs(entry["gain"] - gain) < 4.0 * entry["gain_standard_deviation"]
    written = list_nominal_bodies(RobotModel.from_file(answer["urdf_file"]))
    np.testing.assert_allclose(written[:, 0], [body["mass"] for body in answer["bodies"]], rtol=1e-9)
    moments = [body["first_moments"] for body in answer["bodies"]]
    np.testing.assert_allclose(written[:, 1:], moments, atol=1e-9)


@pytest.mark.parametrize(
    "more",
    [
        ("--known-mass", "1"),
        ("--loaded", "loaded.npz", "--known-mass", "1"),
        ("--trust-urdf-mass", "--loaded", "loaded.npz", "--known-mass", "1", "--known-link", LINK),
    ],
)
def test_incomplete_or_double_scales_are_wrong_usage(files, capsys, tmp_path, more):
    code, answer = run(files, capsys, tmp_path, *more)
    assert code == answer["error"]["exit_code"] == 2


@pytest.mark.slow
def test_plan_is_a_joint_trajectory(files, capsys, tmp_path):
    arguments = ["--robot", str(files / "arm.urdf"), "--plan", "--out", str(tmp_path), "--json"]
    assert main(["gravity", *arguments]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = read_joint_trajectory(answer["trajectory_file"])
    assert rows.seconds[-1] == pytest.approx(answer["seconds"])
    assert rows.joint_names == MODEL.joint_names
    assert dict(zip(rows.joint_names, rows.positions[0], strict=True)) == answer["start"]
    assert main(["gravity", str(files / "bare.npz"), *arguments]) == 2


def test_nothing_to_calibrate_is_wrong_usage(files, tmp_path):
    assert main(["gravity", "--robot", str(files / "arm.urdf"), "--out", str(tmp_path)]) == 2


def test_base_link_cannot_carry_the_weight(files, capsys, tmp_path):
    loaded = ("--loaded", str(files / "loaded.npz"), "--known-mass", "1", "--known-link", "base")
    code, _ = run(files, capsys, tmp_path, *loaded)
    assert code == 3


def test_calibration_of_another_robot_is_refused(files, capsys, tmp_path):
    _, answer = run(files, capsys, tmp_path)
    tilted = RobotModel.from_urdf(ARM, gravity=(0.0, 5.0, -8.0))
    with pytest.raises(InputError):
        read_gravity(answer["file"]).effort(tilted, np.zeros((3, 1)))
