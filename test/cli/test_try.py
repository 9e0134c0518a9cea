# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id try`: from nothing to a table of uses, and every command that it shows runs; the same in README."""

import contextlib
import hashlib
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pinocchio
import pytest
import yaml
from support.commands import check_order

import robot_dyn_id as rdi
from robot_dyn_id.cli import main
from robot_dyn_id.errors import UsageError
from robot_dyn_id.report.advice import DESIGNED_FOR, STEPS
from robot_dyn_id.workflow.examples import load_example

README = Path(__file__).resolve().parents[2] / "README.md"

BAG_SHA256 = "6794c9dc89628d775bd77bfaee3ed73e0a7d7716401886e17e06d81ea3b7f299"
"""Hash of the published file."""

DENAVIT_HARTENBERG = (  # a, alpha, d of each joint, as the manufacturer publishes them (Craig)
    (0.0, 0.0, 0.333),
    (0.0, -np.pi / 2, 0.0),
    (0.0, np.pi / 2, 0.316),
    (0.0825, np.pi / 2, 0.0),
    (-0.0825, -np.pi / 2, 0.384),
    (0.0, np.pi / 2, 0.0),
    (0.088, np.pi / 2, 0.0),
)


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """Folder of a run as an installation without further packages makes it, and what it printed."""
    folder = tmp_path_factory.mktemp("try")
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.chdir(folder)
        assert main(["try", "franka"]) == 0
    return folder, printed.getvalue()


@pytest.mark.slow
def test_it_ends_with_the_verdict_and_with_what_to_do_next(tried):
    folder, printed = tried
    report = json.loads((folder / "franka/report.json").read_text())
    assert report["verdict"] in ("good", "suspect")
    check_order(printed)
    verbs = re.findall(r"^    robot-dyn-id (\S+)", printed.partition("\nnext:\n")[2], re.M)
    fit = [step for step in STEPS if not step.needs and report["fit_for"][step.use]["answer"] != "no"]
    designed = DESIGNED_FOR & set(report["fit_for"]["computed_torque"]["because"])
    assert verbs == ["identify", *(step.command[0] for step in fit), *(["design"] if designed else [])]


@pytest.mark.slow
def test_the_shown_commands_run_as_they_are_printed(tried, monkeypatch):
    folder, printed = tried
    monkeypatch.chdir(folder)
    commands = re.findall(r"^    robot-dyn-id ((?:predict|export) .*)$", printed, re.M)
    assert commands and all(main(shlex.split(command)) == 0 for command in commands)


@pytest.mark.slow
def test_the_shown_identification_gives_the_same_model(tried, monkeypatch):
    folder, printed = tried
    monkeypatch.chdir(folder)
    (command,) = re.findall(r"^    robot-dyn-id (identify .*)$", printed, re.M)
    assert main(shlex.split(command)) == 0
    one, other = (yaml.safe_load((folder / name / "parameters.yaml").read_text()) for name in ("franka", "franka/run"))
    assert one["estimate"] == other["estimate"]


@pytest.mark.slow
def test_the_readme_shows_what_the_first_command_prints(tried):
    """Lines in their order, without their spaces; `...` stands for others."""
    text = README.read_text(encoding="utf-8")
    shown = re.search(r"^```text\n(joint .*?)^```", text, re.M | re.S)[1]
    printed = [" ".join(line.split()) for line in tried[1].splitlines()]
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    place, skip = 0, False
    for line in lines:
        if line == "...":
            skip = True
            continue
        matches = [
            number
            for number, other in enumerate(printed[place:], place)
            if (other.startswith(line.removesuffix(" ...")) if line.endswith(" ...") else other == line)
        ]
        assert matches and (skip or matches[0] == place), line
        place, skip = matches[0] + 1, False


@pytest.mark.slow
def test_the_example_of_the_readme_runs(tried, monkeypatch, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 11
    monkeypatch.chdir(tried[0])
    names = {}
    exec(code, names)
    assert "verdict: good" in capsys.readouterr().out
    assert (tried[0] / "run/report.html").exists()
    assert names["tau"].shape == (7,) and names["M"].shape == (7, 7)
    np.testing.assert_allclose(names["tau"], names["M"] @ names["ddq"] + names["h"], rtol=1e-9, atol=1e-9)


def test_only_the_files_are_copied_on_request(tmp_path, capsys):
    assert main(["try", "franka", "--data", "--out", str(tmp_path / "files"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    robot, recording = rdi.load_robot(answer["robot"]), rdi.open_recording(answer["recording"])
    assert set(robot.joint_names) == set(recording.joint_names)
    assert {path.name for path in (tmp_path / "files").iterdir()} == {
        "panda_exciting_trajectory.db3",
        "franka.urdf",
        "LICENSE.panda_exciting_trajectory",
    }
    assert "BSD 3-Clause License" in (tmp_path / "files/LICENSE.panda_exciting_trajectory").read_text()


def test_an_unknown_example_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="franka"):
        load_example("frank")


def test_the_recording_is_the_published_one():
    assert hashlib.sha256(load_example("franka").recording_file.read_bytes()).hexdigest() == BAG_SHA256


@pytest.mark.parametrize("with_masses", [True, False])
def test_the_robot_has_the_published_kinematics(with_masses):
    example = load_example("franka", with_masses)
    model = pinocchio.buildModelFromXML(example.description.text)
    data = model.createData()
    for q in np.random.default_rng(0).uniform(-2.0, 2.0, (5, 7)):
        pinocchio.forwardKinematics(model, data, q)
        pose = np.eye(4)
        for number, ((a, alpha, d), angle) in enumerate(zip(DENAVIT_HARTENBERG, q, strict=True), start=1):
            c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
            pose = pose @ [
                [c, -s, 0.0, a],
                [s * ca, c * ca, -sa, -d * sa],
                [s * sa, c * sa, ca, d * ca],
                [0.0, 0.0, 0.0, 1.0],
            ]
            np.testing.assert_allclose(data.oMi[number].homogeneous, pose, atol=1e-12)


def test_masses_are_those_of_the_installed_package():
    example = load_example("franka", with_masses=True)
    if not example.masses:
        pytest.skip("example-robot-data is not installed")
    model = pinocchio.buildModelFromXML(example.description.text)
    assert sum(inertia.mass for inertia in model.inertias) == pytest.approx(16.79, abs=0.02)
    bare = pinocchio.buildModelFromXML(load_example("franka").description.text)  # whatever is installed
    assert sum(inertia.mass for inertia in bare.inertias) == 0.0
