# SPDX-License-Identifier: Apache-2.0
"""Two real robots, from the file to the verdict, judged by our own report and by an independent protocol.

The recordings are public: the Franka arm's from unisa-acg/inverse-dynamics-solver (commit 41e196de5ca3, BSD-3-Clause),
the TIAGo's from thanhndv212/figaroh-examples (commit c0b5c7f0fda1, Apache-2.0).
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.signal import butter, filtfilt, sosfiltfilt
from support.commands import run_here

from robot_dyn_id.files.parameters import read_parameters

DATA = os.environ.get("ROBOT_DYN_ID_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")

FER_LIMITS = np.array([45.4, 2.2, 2.9, 1.6, 14.8, 7.1, 21.0]) / 100
TIAGO_LIMITS = np.array([39.1, 25.0, 9.8, 11.3, 15.3]) / 100

GAINS = {"torso_lift_joint": (1.0, 1)}
GAINS |= {f"arm_{i}_joint": (100 * 0.136, 1) for i in (1, 2)}
GAINS |= {f"arm_{i}_joint": (100 * 0.087, -1) for i in (3, 4)}
GAINS |= {f"arm_{i}_joint": (336 * 0.0613, -1) for i in (5, 6, 7)}
"""Gear ratio times motor constant [N m/A], and sign, as the TIAGo's source gives them."""


LEAST_SQUARES = ("--estimator", "weighted", "--friction", "coulomb")

SETS = {
    "fer": ("fer_unisa_bag", ["train_0_16s"], "val_16_24s", (100.0, 5.0, 0.5), 0.021, ()),
    "tiago": ("tiago_figaroh", ["train_7_48s"], "val_48_68s", (100.0, 4.0, 0.4), 0.078, ()),
    "panda": ("panda_gaz2019", ["train_0_14s"], "val_14_21s", (1000.0, 5.0, 0.5), 0.0080, ()),
    "kuka": ("kuka_lwr4_iit", ["train_m1_slow", "train_m3_fast"], "val_m2_slow_repeat", (200.0, 5.0, 1.5), 0.0185, ()),
    "kuka, faster": (
        *("kuka_lwr4_iit", ["train_m1_slow", "val_m2_slow_repeat"], "train_m3_fast", (200.0, 5.0, 1.5), 0.045),
        ("--prior", "model.urdf"),
    ),
}
"""Folder, training files, validation file, (rate [Hz], cut-off [Hz], edge [s]) of the comparison, largest error of all
joints, further options."""


@cache
def measured(name):
    path = Path(str(DATA)) / name
    assert path.exists(), f"ROBOT_DYN_ID_DATA is set, and {name} is not there"
    return str(path)


def independent_nrmse(predicted, measured_file, cutoff, edge):
    """Prediction at its own stamps against the measured torque, resampled to 100 Hz and low-passed, edges cut.

    Returns:
        NRMSE of each joint and of all.
    """
    ours, theirs = np.load(predicted), np.load(measured_file)
    assert ours["t"].tobytes() == theirs["t"].tobytes()
    columns = [list(theirs["joint_names"]).index(name) for name in ours["joint_names"]]
    t = np.arange(theirs["t"][0], theirs["t"][-1], 0.01)
    hat = CubicSpline(ours["t"], ours["tau"])(t)
    numerator, denominator = butter(4, cutoff, fs=100.0)
    tau = filtfilt(numerator, denominator, CubicSpline(theirs["t"], theirs["tau"][:, columns])(t), axis=0)
    keep = slice(round(100 * edge), -round(100 * edge))
    error = np.linalg.norm((hat - tau)[keep], axis=0)
    size = np.linalg.norm(tau[keep], axis=0)
    return error / size, np.linalg.norm(error) / np.linalg.norm(size)


def reported(answer):
    return np.array([joint["nrmse"] for joint in answer["held_out"]["joints"]]), answer["held_out"]["all_joints_nrmse"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("measured")


@pytest.mark.slow
def test_franka_from_the_bag_itself(folder, capfd):
    robot = measured("fer_unisa_bag/model.urdf")
    bag, held_out = (measured(f"fer_unisa_bag/{name}") for name in ("panda_exciting_trajectory.db3", "val_16_24s.npz"))
    words = ("identify", bag, "--robot", robot, "--out", folder / "fer", "--train-range", 0, 16)
    code, answer = run_here(capfd, *words, *LEAST_SQUARES)
    assert code == 0
    assert answer["verdict"] in ("good", "suspect")
    assert answer["mass_matrix_indefinite"] > 0.5  # 16 s of slow motion do not excite all inertias
    assert "mass_matrix_indefinite" in {one["code"] for one in answer["findings"]}
    joints, together = reported(answer)
    assert [joint["name"] for joint in answer["held_out"]["joints"]] == [f"fer_joint{i}" for i in range(1, 8)]
    assert {joint["unit"] for joint in answer["held_out"]["joints"]} == {"N m"}
    assert np.all(joints <= FER_LIMITS), joints
    assert together <= 0.025
    assert answer["cross_check"]["max_difference"] <= 1e-10

    predicted = folder / "fer.npz"
    parameters = ("--parameters", folder / "fer" / "parameters.yaml")
    code, _ = run_here(capfd, "predict", held_out, "--robot", robot, *parameters, "--out", predicted)
    assert code == 0
    joints, together = independent_nrmse(predicted, held_out, 5.0, 0.5)
    print("independent", joints, together)
    assert np.all(joints <= FER_LIMITS), joints
    assert together <= 0.025


@pytest.mark.slow
def test_tiago_from_motor_currents(folder, capfd):
    robot, train, held_out = (
        measured(f"tiago_figaroh/{name}") for name in ("model.urdf", "train_7_48s.npz", "val_48_68s.npz")
    )
    config = folder / "tiago.yaml"
    lines = [f"  {name}: {{gain: {gain}, sign: {sign}}}" for name, (gain, sign) in GAINS.items()]
    config.write_text("\n".join(["joints:", *lines, ""]))
    code, answer = run_here(
        capfd,
        "identify",
        train,
        "--robot",
        robot,
        "--out",
        folder / "tiago",
        "--config",
        config,
        "--validate",
        held_out,
        *LEAST_SQUARES,
        "--cutoff",
        4,  # that of the limits
    )
    assert code == 0
    assert answer["verdict"] == "suspect"
    joints, together = reported(answer)
    units = {joint["name"]: joint["unit"] for joint in answer["held_out"]["joints"]}
    assert units.pop("torso_lift_joint") == "N"
    assert set(units.values()) == {"N m"}
    assert np.all(joints[:5] <= TIAGO_LIMITS), joints
    unidentifiable = {one["joints"][0] for one in answer["findings"] if one["code"] == "joint_not_identifiable"}
    assert unidentifiable >= {"arm_5_joint", "arm_6_joint", "arm_7_joint"}
    assert not unidentifiable & {"arm_1_joint", "arm_2_joint", "arm_3_joint", "arm_4_joint"}
    parameters = read_parameters(folder / "tiago" / "parameters.yaml")
    assert set(parameters.judgment.unexplained_joints) == unidentifiable
    torso = parameters.robot.joint_names.index("torso_lift_joint") + 1
    units = dict(zip(parameters.base.names, parameters.base.units, strict=True))
    assert (units[f"fc{torso}"], units[f"fv{torso}"]) == ("N", "N s/m")

    predicted = folder / "tiago.npz"
    where = ("--parameters", folder / "tiago" / "parameters.yaml")
    code, _ = run_here(capfd, "predict", held_out, "--robot", robot, *where, "--out", predicted)
    assert code == 0
    joints, together = independent_nrmse(predicted, held_out, 4.0, 0.4)
    print("independent", joints, together)
    assert np.all(joints[:5] <= TIAGO_LIMITS), joints
    assert together <= 0.112


def low_passed(t, values, grid, cutoff, rate):
    """Values on a uniform grid through a zero-phase low-pass."""
    on_grid = np.column_stack([np.interp(grid, t, column) for column in values.T])
    sections = butter(4, cutoff, fs=rate, output="sos")
    return sosfiltfilt(sections, on_grid, axis=0, padlen=min(len(grid) - 1, int(3 * rate / cutoff)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_plain_command_predicts_what_it_was_not_trained_on(name, tmp_path, capfd):
    """Predicted and measured torque through the same low-pass, against an upper limit of the error of all joints."""
    where, trained, held_out, (rate, cutoff, edge), limit, options = SETS[name]
    robot = measured(f"{where}/model.urdf")
    data = [measured(f"{where}/{file}.npz") for file in trained]
    options = [measured(f"{where}/{word}") if word.endswith(".urdf") else word for word in options]
    code, answer = run_here(capfd, "identify", *data, "--robot", robot, "--out", tmp_path / "run", *options)
    assert code == 0
    assert answer["held_out"]["method"] == "cross_validation"
    assert answer["physically_consistent"]
    assert answer["mass_matrix_indefinite"] == 0.0
    words = ("--robot", robot, "--parameters", tmp_path / "run/parameters.yaml", "--out", tmp_path / "predicted.npz")
    code, _ = run_here(capfd, "predict", measured(f"{where}/{held_out}.npz"), *words)
    assert code == 0
    ours, theirs = np.load(tmp_path / "predicted.npz"), np.load(measured(f"{where}/{held_out}.npz"))
    order = [list(ours["joint_names"]).index(joint) for joint in theirs["joint_names"]]
    assert np.isfinite(ours["tau"]).all()
    grid = np.arange(theirs["t"][0], theirs["t"][-1], 1.0 / rate)
    keep = slice(int(edge * rate), len(grid) - int(edge * rate))
    predicted = low_passed(ours["t"], ours["tau"][:, order], grid, cutoff, rate)[keep]
    torque = low_passed(theirs["t"], theirs["tau"], grid, cutoff, rate)[keep]
    assert np.linalg.norm(predicted - torque) / np.linalg.norm(torque) <= limit
