# SPDX-License-Identifier: Apache-2.0
"""`gravity.yaml`: written and read back."""

from dataclasses import replace

import numpy as np
import pytest
from support.low_cost_arm import LowCostArm
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.gravity import read_gravity, write_gravity
from robot_dyn_id.loads.gravity import calibrate_gravity
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.robot import RobotModel

MODEL = RobotModel.from_urdf(ARM)


@pytest.fixture(scope="module")
def found():
    return calibrate_gravity(MODEL, find_holds([LowCostArm(MODEL).record()], MODEL.joint_names))


def test_effort_of_the_file_is_that_of_the_calibration(found, tmp_path):
    write_gravity(tmp_path / "gravity.yaml", MODEL, found)
    q = np.random.default_rng(0).normal(size=(3, 10))
    stored = read_gravity(tmp_path / "gravity.yaml")
    np.testing.assert_array_equal(stored.effort(MODEL, q), found.effort(MODEL, q))


@pytest.mark.parametrize(
    ("key", "wrong"),
    [("joint_names", "joint_names: [shoulder]"), ("gravity", "gravity: [0.0, .nan, 0.0]"), ("held", "")],
)
def test_damaged_files_are_refused(found, tmp_path, key, wrong):
    path = tmp_path / "gravity.yaml"
    write_gravity(path, MODEL, found)
    lines, skip = [], False
    for line in path.read_text().splitlines():
        skip = line.startswith(f"{key}:") or (skip and line.startswith((" ", "-")))
        lines += [] if skip else [line]
    path.write_text("\n".join([*lines, wrong]) + "\n")
    with pytest.raises(InputError):
        read_gravity(path)


def test_rows_for_another_number_of_bodies_are_refused(found, tmp_path):
    write_gravity(tmp_path / "gravity.yaml", MODEL, found)
    stored = read_gravity(tmp_path / "gravity.yaml")
    shorter = replace(stored, by_joint=stored.by_joint[:, :-4])
    with pytest.raises(InputError, match="four numbers for each of 3 bodies"):
        shorter.effort(MODEL, np.zeros((3, 1)))
