# SPDX-License-Identifier: Apache-2.0
"""Gains of drives in recordings: `kp` and `kd` of `.npz`, `kp_` and `kd_` columns of `.csv`."""

import numpy as np
import pytest

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import open_recording, streamed_npz

GAINS = {"kp": {"a": 20.0, "b": 40.0}, "kd": {"a": 1.0, "b": 2.0}}

TABLE = "t,q_a,q_b,reference_a,reference_b,kp_a,kp_b,kd_a,kd_b\n" + "0.01,1,2,3,4,20,40,1,2\n0.02,1,2,3,4,20,40,1,2\n"


def write(path, **more):
    q = np.ones((5, 2))
    np.savez(path, t=np.arange(5.0), q=q, reference=q, joint_names=np.array(["a", "b"]), **more)
    return path


@pytest.mark.parametrize("held", [2**26, 1], ids=["in memory", "read in parts"])
def test_gains_of_archives_are_read(tmp_path, monkeypatch, held):
    monkeypatch.setattr(streamed_npz, "HELD", held)
    path = write(tmp_path / "r.npz", kp=np.array([20.0, 40.0]), kd=np.array([1.0, 2.0]))
    recording = open_recording(path)
    assert recording.gains == GAINS
    assert recording.findings(["a", "b"]) == ()
    assert open_recording(write(tmp_path / "without.npz")).gains == {}


def test_gains_of_tables_are_read(tmp_path):
    (tmp_path / "r.csv").write_text(TABLE)
    recording = open_recording(tmp_path / "r.csv")
    assert recording.gains == GAINS
    assert recording.findings(["a", "b"]) == ()


WRONG = {
    "one number": {"kp": np.array(20.0)},
    "of other joints": {"kp": np.ones(3)},
    "negative": {"kd": np.array([1.0, -2.0])},
    "not finite": {"kd": np.array([1.0, np.nan])},
}


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
def test_gains_of_archives_that_cannot_be_used_are_refused(tmp_path, more):
    with pytest.raises(InputError, match=next(iter(more))):
        open_recording(write(tmp_path / "r.npz", **more))


@pytest.mark.parametrize(
    "table",
    [TABLE.replace("4,20,40,1,2\n0.02", "4,21,40,1,2\n0.02"), TABLE.replace("kp_a", "kp_c")],
    ids=["changes", "other"],
)
def test_gains_of_tables_that_change_or_are_of_other_joints_are_refused(tmp_path, table):
    (tmp_path / "r.csv").write_text(table)
    with pytest.raises(InputError, match=r"kp_[ac] must be the same number"):
        open_recording(tmp_path / "r.csv")
