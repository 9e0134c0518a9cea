# SPDX-License-Identifier: Apache-2.0
"""Recordings of an arm, bad files, and checks of answers and errors, for tests of commands."""

import json
import os
import re
import sys

import numpy as np
import yaml

from robot_dyn_id.cli import main
from support.processes import run_program
from support.recording_files import joint_state
from support.simulated import Simulated, changed, save_npz

ROBOT = Simulated()
JOINTS = ROBOT.joints
SIMPLE_MODEL = ("--estimator", "weighted", "--friction", "coulomb")
"""Options of a model that is not chosen from the data: the fastest identification."""
COMMAND = [sys.executable, "-m", "robot_dyn_id"]
HELD_OUT_JOINT = {"name", "rmse", "nrmse", "correlation", "max_error", "unit"}
SUMMARY = {"verdict", "reasons", "held_out", "condition_number", "cross_check", "rows", "warnings", "parameters_file"}


def spell(options):
    """Words of options by name: `train_range=(0, 9)`, `json=True`."""
    for name, value in options.items():
        yield f"--{name.replace('_', '-')}"
        yield from () if value is True else value if isinstance(value, tuple) else (value,)


def messages(recording, names=None):
    """(log time, CDR) of every sample."""
    samples = recording.samples
    return [
        (int(1e9 * t) + 10**18, joint_state(int(1e9 * t) + 10**18, names or recording.joint_names, q, dq, tau))
        for t, q, dq, tau in zip(samples.t, samples.q, samples.dq, samples.tau, strict=True)
    ]


def check_answer(answer):
    assert set(answer) >= SUMMARY
    assert answer["verdict"] in ("good", "suspect", "bad")
    assert set(answer["held_out"]) >= {"all_joints_nrmse", "joints"}
    assert [one["name"] for one in answer["held_out"]["joints"]] == list(JOINTS)
    assert all(set(one) >= HELD_OUT_JOINT for one in answer["held_out"]["joints"])
    assert answer["condition_number"]["scaling"] in ("columns", "none")
    assert set(answer["cross_check"]) >= {"max_difference", "rank_ours", "rank_pinocchio"}
    assert set(answer["rows"]) >= {"used", "dropped"}
    return answer


def check_order(text):
    """The sections that every identification prints, in one order: errors, model, uses, verdict, what is next."""
    model = r"^\d+ base parameters \("
    sections = (r"^joint ", r"^all joints:", model, "gravity compensation", "^verdict: ", "^next:", "^    open ")
    places = [re.search(section, text, re.M) for section in sections]
    assert all(places) and [one.start() for one in places] == sorted(one.start() for one in places), text


def saved(name, **changes):
    """A bad recording made from the good one."""

    def make(folder, recording):
        return [save_npz(folder / name, changed(recording, **changes))]

    return make


def csv(folder, recording, cut=False):
    samples = recording.samples
    header = ",".join(["t", *(f"{c}_{name}" for c in ("q", "tau") for name in recording.joint_names)])
    rows = [",".join(map(repr, row)) for row in np.column_stack([samples.t, samples.q, samples.tau]).tolist()]
    text = "\n".join([header, *rows, ""])
    file = folder / "table.csv"
    file.write_text(text[:-20] if cut else text)
    return [file]


def check_error_line(err, words):
    """Progress may come first; then exactly one line, which names the offender."""
    lines = err.splitlines()
    assert lines, "no error line"
    assert lines[-1].startswith("robot-dyn-id"), err
    assert words in lines[-1], err
    assert not any(line.startswith("robot-dyn-id") for line in lines[:-1]), err
    assert not any(word in err for word in ("Traceback", "Warning", "Error:")), err


CODES = {
    2: {"usage"},
    3: {"input", "model", "motion", "unsafe_data", "convergence", "deadline"},
    4: {"internal"},
    130: {"interrupted"},
}
"""Codes of errors by exit code."""


def check_error_object(stdout, err, exit_code):
    """The error as `--json` reports it, and nothing else on standard output; the line is that of standard error."""
    (name, error), *others = json.loads(stdout).items()
    keys = {"code", "message", "action", "exit_code"} | ({"findings"} if error["code"] == "unsafe_data" else set())
    assert (name, others, set(error)) == ("error", [], keys)
    assert error["exit_code"] == exit_code
    assert error["code"] in CODES[exit_code]
    assert err.splitlines()[-1].endswith(error["message"])
    assert error["action"] and "\n" not in error["message"] + error["action"]
    return error


def check_unchanged(folder):
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        name: f"earlier {name}" for name in ("parameters.yaml", "report.json", "report.html")
    }


def damaged(change):
    """The parameter file with something changed in it."""

    def make(files, folder):
        content = yaml.safe_load((files / "parameters.yaml").read_text())
        change(content)
        (folder / "p.yaml").write_text(yaml.safe_dump(content))
        return folder / "p.yaml"

    return make


def run_here(capture, *words):
    """Exit code and JSON of a command in this process."""
    capture.readouterr()
    code = main([*map(str, words), "--json"])
    return code, json.loads(capture.readouterr().out)


def command(*words, **options):
    return run_program(*COMMAND, *words, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, **options)
