# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id predict`."""

import json

import numpy as np
from support.commands import JOINTS, check_error_line


def test_predict(files, tmp_path, cli):
    code, out, _ = cli(
        "predict",
        files / "other.npz",
        robot=files / "arm.urdf",
        parameters=files / "parameters.yaml",
        out=tmp_path / "tau.npz",
        json=True,
    )
    assert code == 0
    assert json.loads(out) == {"file": str(tmp_path / "tau.npz"), "findings": [], "warnings": []}
    ours, theirs = np.load(tmp_path / "tau.npz"), np.load(files / "other.npz")
    assert set(ours) == {"t", "joint_names", "tau", "units"}
    assert ours["units"].tolist() == ["N m"] * len(JOINTS)
    np.testing.assert_array_equal(ours["t"], theirs["t"])
    assert ours["joint_names"].tolist() == list(JOINTS)
    inside = slice(50, -50)
    error = np.linalg.norm((ours["tau"] - theirs["tau"])[inside])
    assert error < 0.05 * np.linalg.norm(theirs["tau"][inside])


def test_predictions_along_a_bag_carry_its_stamps(files, tmp_path, cli):
    for data in ("bag", "data.npz"):
        code, *_ = cli(
            "predict",
            files / data,
            robot=files / "arm.urdf",
            parameters=files / "parameters.yaml",
            out=tmp_path / f"{data}.tau.npz",
        )
        assert code == 0
    of_bag, of_npz = np.load(tmp_path / "bag.tau.npz"), np.load(tmp_path / "data.npz.tau.npz")
    np.testing.assert_allclose(of_bag["t"] - 1e9, of_npz["t"], atol=1e-6)
    np.testing.assert_allclose(of_bag["tau"], of_npz["tau"], atol=1e-4)


def test_predictions_that_cannot_be_written(files, tmp_path, cli):
    (tmp_path / "plain").write_text("a file")
    start = ("predict", files / "other.npz", "--robot", files / "arm.urdf", "--parameters", files / "parameters.yaml")
    for target, expected, words in (
        (tmp_path / "plain" / "tau.npz", 3, "plain: is a file; give a folder"),
        (tmp_path / "tau.csv", 2, "must end in .npz"),
    ):
        code, stdout, err = cli(*start, "--out", target)
        assert (code, stdout) == (expected, "")
        check_error_line(err, words)
    assert [file.name for file in tmp_path.iterdir()] == ["plain"]
