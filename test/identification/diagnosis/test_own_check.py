# SPDX-License-Identifier: Apache-2.0
"""A check is one file: its finding is on the page of findings, and `ignore:` overrules it (CONTRIBUTING, "a check")."""

from importlib import import_module

import pytest
from support.simulated import Simulated

from robot_dyn_id import findings
from robot_dyn_id.errors import UnsafeDataError, UsageError
from robot_dyn_id.identification import diagnosis
from robot_dyn_id.identification.diagnosis.health import examine, refuse
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.report.findings_page import write_markdown
from robot_dyn_id.signals.survey import survey

CHECK = '''
"""Check that a recording is long enough for a warm robot."""

from robot_dyn_id.findings import Definition, Section

ROBOT_COLD = Definition(
    "robot_cold",
    Section.HEALTH,
    "error",
    "The recording is shorter than 20 s: gears are cold.",
    "warm the robot up, and record for longer",
    overrulable=True,
    check="rows",
)


def check_warmth(survey):
    """Findings about the length of the recordings."""
    seconds = sum(one.duration for one in survey.trials)
    return [ROBOT_COLD.found(f"the recording has {seconds:.0f} s")] if seconds < 20.0 else []
'''


@pytest.fixture
def check_warmth(tmp_path, monkeypatch):
    """The function of the file, which lies in the folder of the checks until the test has ended."""
    (tmp_path / "warmth.py").write_text(CHECK)
    monkeypatch.setattr(diagnosis, "__path__", [*diagnosis.__path__, str(tmp_path)])
    known = {one.code: one for one in findings.list_definitions()}  # imports all modules, which are then in both
    monkeypatch.setattr(findings, "_definitions", known)
    return import_module("robot_dyn_id.identification.diagnosis.warmth").check_warmth


def test_a_check_is_one_file(check_warmth):
    robot = Simulated()
    recording = robot.record(duration=10.0, noise=0.05)
    observed = survey([recording], recording.joint_names, {})
    found = [*examine(observed, robot.model), *check_warmth(observed)]  # the line that `examine` would have
    with pytest.raises(UnsafeDataError, match="the recording has 10 s; warm the robot up"):
        refuse(found, (), ("monday.npz",))
    (overruled,) = refuse(found, Settings(ignore=("robot_cold",)).ignore, ("monday.npz",))
    assert (overruled.code, overruled.severity) == ("robot_cold", "warning")
    assert "| `robot_cold` | error, may be overruled | The recording is shorter than 20 s" in write_markdown()


def test_without_the_file_there_is_no_such_finding():
    assert "robot_cold" not in write_markdown()
    with pytest.raises(UsageError, match="'robot_cold' cannot be overruled"):
        Settings(ignore=("robot_cold",))
