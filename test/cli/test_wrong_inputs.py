# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs of a first try: one line that names the file, joint or value and what to do, and the right exit code."""

from functools import partial

import numpy as np
import pytest
from support.recording_files import JOINTS
from support.simulated import ARM

COMMAND = ("identify", "data.npz", "--robot", "arm.urdf", "--out", "out")


@pytest.fixture
def place(files, tmp_path, monkeypatch):
    """A folder with a robot and a recording, as a user has it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "data.npz").write_bytes((files / "data.npz").read_bytes())
    return tmp_path


def changed(name, **changes):
    with np.load("data.npz") as archive:
        arrays = {**archive}
    arrays |= {key: change(arrays[key]) for key, change in changes.items()}
    np.savez(name, **arrays)


def other_joints():
    changed("other.npz", joint_names=lambda _: np.array(["x", "y", "z"]))


def half(name, source):
    with open(source, "rb") as whole, open(name, "wb") as part:
        content = whole.read()
        part.write(content[: len(content) // 2])


def one_missing(values):
    values = values.copy()
    values[:, 0] = np.nan
    return values


def text(name, content):
    with open(name, "w") as file:
        file.write(content)


def replaced(**words):
    return [words.get(word.replace(".", "_"), word) for word in COMMAND]


CONFIGURATIONS = {  # configuration, words of the line
    "unit for an npz": ("position_unit: deg", ("position_unit", "LeRobot")),
    "a key twice": (
        "cutoff: 3\nthresholds:\n  bad_nrmse: 0.2\n  bad_nrmse: 0.3\n",
        ("c.yaml", "bad_nrmse", "lines 3 and 4", "remove one"),
    ),
    "a threshold in percent": ("thresholds: {bad_nrmse: 30}", ("bad_nrmse", "ratio", "30 % are 0.3")),
    "gravity as a unit vector": (
        "gravity: [0, 0, -1]",
        ("c.yaml: gravity [0.0, 0.0, -1.0] has length 1", "`gravity: [0.0, 0.0, -9.81]`"),
    ),
    "a joint that is fixed in degrees": ("joints: {wrist: {held: 90}}", ("wrist: held at 90 rad", "`held: 1.571`")),
    "a joint that is fixed beyond its range": (
        "joints: {wrist: {held: 400}}",
        ("wrist: held at 400 rad, outside its range from",),
    ),
    "an excluded time outside of the recording": (
        "exclude: [[40, 41]]",
        ("exclude 40 to 41 s", "data.npz lasts from 0 to 30.0 s"),
    ),
    "an excluded time without its own brackets": ("exclude: [40, 41]", ("c.yaml: exclude[0]", "2 numbers")),
    "a sample rate far above that of the recording": (
        "sample_rate: 10000000",
        ("sample_rate 1e+07 Hz", "10 times the 50 Hz of data.npz", "at most 500"),
    ),
    "a motion filter without motion": (
        "motion_cutoff: 0.000001",
        ("motion_cutoff 1e-06 Hz removes all motion of data.npz",),
    ),
    "a sample rate below that of the filter": (
        "{sample_rate: 1, cutoff: 5}",
        ("cut-off 5 Hz is too high for data at 1 Hz",),
    ),
}

CASES = {  # preparation, command line, exit code, words of the line
    "topic of an npz": (None, [*COMMAND, "--topic", "/js"], 2, ("topic", "only for bags")),
    "a factor of another estimator": (
        None,
        [*COMMAND, "--save-factor", "--estimator", "consistent"],
        2,
        ("--estimator consistent", "weighted"),
    ),
    "essential in percent": (
        None,
        [*COMMAND, "--essential", "5", "--estimator", "weighted"],
        2,
        ("essential", "up to 1", "not 5"),
    ),
    "gravity in other units": (
        None,
        [*COMMAND, "--gravity", "0", "0", "-981"],
        2,
        ("981 m/s^2", "`gravity: [0.0, 0.0, -9.81]`"),
    ),
    "gravity of 1e300": (
        None,
        [*COMMAND, "--gravity", "0", "1e300", "1e300"],
        2,
        ("above 30", "`gravity: [0.0, 6.937, 6.937]`"),
    ),
    "an excluded time that ends before it begins": (
        None,
        [*COMMAND, "--exclude", "5", "3"],
        2,
        ("exclude 5 to 3 s", "the first must be less"),
    ),
    "the same recording twice": (None, ["identify", "data.npz", *COMMAND[1:]], 2, ("data.npz", "given twice")),
    "the same recording by another path": (None, ["identify", "./data.npz", *COMMAND[1:]], 2, ("given twice",)),
    "a recording of another robot": (
        other_joints,
        ["identify", "data.npz", "other.npz", *COMMAND[2:]],
        3,
        ("other.npz: none of the robot's joints", "x, y, z", "leave this recording out"),
    ),
    "half of a recording": (lambda: half("half.npz", "data.npz"), replaced(data_npz="half.npz"), 3, ("half.npz",)),
    "half of a robot": (
        lambda: half("half.urdf", "arm.urdf"),
        replaced(arm_urdf="half.urdf"),
        3,
        ("half.urdf: broken XML", "correct the file"),
    ),
    "a recording as the robot": (
        None,
        replaced(arm_urdf="data.npz"),
        3,
        ("data.npz", "robot description", "give a file"),
    ),
    "a robot as the recording": (None, replaced(data_npz="arm.urdf"), 3, ("arm.urdf", "unknown kind", ".parquet")),
    "a joint whose position is missing": (
        lambda: changed("nan.npz", q=one_missing),
        replaced(data_npz="nan.npz"),
        3,
        ("nan.npz", JOINTS[0], "identify: [...]"),
    ),
    "an empty bag folder": (None, replaced(data_npz="."), 3, ("no recording in this folder", ".bag")),
    "the recording as the folder": (None, replaced(out="data.npz"), 3, ("data.npz: is a file; give a folder",)),
    "a table with other names": (
        lambda: text("x.csv", "time,pos_1,torque_1\n0,1,2\n"),
        replaced(data_npz="x.csv"),
        3,
        ("x.csv", "time, pos_1, torque_1", "t,q_<joint>"),
    ),
    **{
        name: (partial(text, "c.yaml", content), [*COMMAND, "--config", "c.yaml"], 2, parts)
        for name, (content, parts) in CONFIGURATIONS.items()
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_input_ends_with_one_line_and_the_right_exit_code(name, place, cli):
    prepare, words, code, parts = CASES[name]
    if prepare is not None:
        prepare()
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    found, out, err = cli(*words)
    line = err.splitlines()[-1]
    assert (found, out) == (code, ""), err
    assert line.startswith("robot-dyn-id") and all(part in line for part in parts), line
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before, "nothing was written"
