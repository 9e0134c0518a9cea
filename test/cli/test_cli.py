# SPDX-License-Identifier: Apache-2.0
"""The commands as a user gives them: answers, exit codes, and one line for every bad input."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from tempfile import mkstemp

import numpy as np
import pytest
import yaml
from support.recording_files import joint_state, text_message, write_bag, write_mcap
from support.robots import joint, link, urdf
from support.simulated import ARM, GRIPPER, Simulated, changed, save_npz

from robot_dyn_id import __version__, faults
from robot_dyn_id.cli import main, progress
from robot_dyn_id.dynamics.terms.friction import FRICTION
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.files.parameters import read_parameters

ROBOT = Simulated()
JOINTS = ROBOT.joints
COMMAND = [sys.executable, "-m", "robot_dyn_id"]

HELD_OUT_JOINT = {"name", "rmse", "nrmse", "correlation", "max_error", "unit"}
SUMMARY = {"verdict", "reasons", "held_out", "condition_number", "cross_check", "rows", "warnings", "parameters_file"}


def messages(recording, names=None):
    """(log time, CDR) of every sample."""
    samples = recording.samples
    return [
        (int(1e9 * t) + 10**18, joint_state(int(1e9 * t) + 10**18, names or recording.joint_names, q, dq, tau))
        for t, q, dq, tau in zip(samples.t, samples.q, samples.dq, samples.tau, strict=True)
    ]


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=30.0, rate=50.0, noise=0.1)


@pytest.fixture(scope="module")
def files(tmp_path_factory, recording):
    """A robot, recordings of it in three formats, and what was identified from one."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "arm.urdf").write_text(ARM)
    save_npz(folder / "data.npz", recording)
    save_npz(folder / "other.npz", ROBOT.record(seed=2, duration=15.0, rate=50.0, noise=0.1))
    write_bag(folder / "bag", messages(recording))
    write_mcap(folder / "bare.mcap", messages(recording))
    assert main(["identify", str(folder / "data.npz"), "--robot", str(folder / "arm.urdf"), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def cli(capfd):
    """Run a command in this process: exit code, standard output, standard error."""

    def run(*words):
        capfd.readouterr()
        code = main([str(word) for word in words])
        return code, *capfd.readouterr()

    return run


class TestAnswers:
    """`--json` is one object with the keys that others rely on, and nothing else on standard output."""

    @staticmethod
    def checked(answer):
        assert set(answer) >= SUMMARY
        assert answer["verdict"] in ("good", "suspect", "bad")
        assert set(answer["held_out"]) >= {"all_joints_nrmse", "joints"}
        assert [one["name"] for one in answer["held_out"]["joints"]] == list(JOINTS)
        assert all(set(one) >= HELD_OUT_JOINT for one in answer["held_out"]["joints"])
        assert answer["condition_number"]["scaling"] in ("columns", "none")
        assert set(answer["cross_check"]) >= {"max_difference", "rank_ours", "rank_pinocchio"}
        assert set(answer["rows"]) >= {"used", "dropped"}
        return answer

    @pytest.mark.parametrize("data", ["data.npz", "bag", "bare.mcap"])
    def test_identify(self, files, tmp_path, cli, data):
        code, out, _ = cli("identify", files / data, "--robot", files / "arm.urdf", "--out", tmp_path / "new", "--json")
        assert code == 0
        answer = self.checked(json.loads(out))
        assert (answer["verdict"], answer["warnings"]) == ("good", [])
        assert answer["rows"]["dropped"] == 0
        assert answer["parameters_file"] == str(tmp_path / "new" / "parameters.yaml")
        assert json.loads((tmp_path / "new" / "report.json").read_text()) == answer
        assert (tmp_path / "new" / "report.html").stat().st_size > 10_000
        stored = read_parameters(tmp_path / "new" / "parameters.yaml")
        expected = read_parameters(files / "parameters.yaml")
        np.testing.assert_allclose(stored.values, expected.values, atol=1e-6)

    def test_validate(self, files, tmp_path, cli):
        code, out, _ = cli("validate", files / "other.npz", "--robot", files / "arm.urdf", "--parameters",
                           files / "parameters.yaml", "--out", tmp_path, "--json")  # fmt: skip
        assert code == 0
        answer = self.checked(json.loads(out))
        assert answer["held_out"]["all_joints_nrmse"] < 0.1
        assert json.loads((tmp_path / "report.json").read_text()) == answer

    def test_predict(self, files, tmp_path, cli):
        code, out, _ = cli("predict", files / "other.npz", "--robot", files / "arm.urdf", "--parameters",
                           files / "parameters.yaml", "--out", tmp_path / "tau.npz", "--json")  # fmt: skip
        assert code == 0
        assert json.loads(out) == {"file": str(tmp_path / "tau.npz"), "warnings": []}
        ours, theirs = np.load(tmp_path / "tau.npz"), np.load(files / "other.npz")
        assert set(ours) == {"t", "joint_names", "tau"}
        np.testing.assert_array_equal(ours["t"], theirs["t"])
        assert ours["joint_names"].tolist() == list(JOINTS)
        inside = slice(50, -50)
        error = np.linalg.norm((ours["tau"] - theirs["tau"])[inside])
        assert error < 0.05 * np.linalg.norm(theirs["tau"][inside])

    def test_predictions_along_a_bag_carry_its_stamps(self, files, tmp_path, cli):
        for data in ("bag", "data.npz"):
            code, *_ = cli("predict", files / data, "--robot", files / "arm.urdf", "--parameters",
                           files / "parameters.yaml", "--out", tmp_path / f"{data}.tau.npz")  # fmt: skip
            assert code == 0
        of_bag, of_npz = np.load(tmp_path / "bag.tau.npz"), np.load(tmp_path / "data.npz.tau.npz")
        np.testing.assert_allclose(of_bag["t"] - 1e9, of_npz["t"], atol=1e-6)
        np.testing.assert_allclose(of_bag["tau"], of_npz["tau"], atol=1e-4)

    def test_base(self, files, cli):
        code, out, _ = cli("base", "--robot", files / "arm.urdf", "--json")
        answer = json.loads(out)
        assert code == 0
        assert set(answer) >= {"count", "parameters", "unidentifiable", "joints"}
        assert answer["count"] == len(answer["parameters"]) == len(Simulated(terms=()).base.names)
        assert all(set(one) == {"name", "expression", "unit"} for one in answer["parameters"])
        assert answer["joints"] == list(JOINTS)

    def test_without_json_people_get_a_table(self, files, tmp_path, cli):
        code, out, _ = cli("identify", files / "data.npz", "--robot", files / "arm.urdf", "--out", tmp_path)
        assert code == 0
        assert all(name in out for name in JOINTS)
        assert "verdict: good" in out
        code, out, _ = cli("base", "--robot", files / "arm.urdf")
        assert "Izz1 + " in out

    def test_numbers_that_are_not_finite_are_null(self, files, tmp_path, cli, recording):
        still = changed(recording, q=lambda q: q * [1, 1, 0], dq=lambda dq: dq * [1, 1, 0])
        data = save_npz(tmp_path / "still.npz", still)
        code, out, _ = cli("identify", data, "--robot", files / "arm.urdf", "--out", tmp_path, "--json")
        answer = json.loads(out)
        assert code in (0, 1)
        assert answer["condition_number"]["value"] is None
        assert any("wrist" in warning for warning in answer["warnings"])
        assert np.isinf(read_parameters(tmp_path / "parameters.yaml").standard_deviations).any()

    def test_options_arrive(self, files, tmp_path, cli):
        config = tmp_path / "c.yaml"
        config.write_text("terms: [viscous, coulomb, rotor_inertia]\nthresholds: {condition_number: 1.0e+6}\n")
        code, out, _ = cli(
            "identify", files / "data.npz", files / "other.npz", "--robot", files / "arm.urdf", "--out", tmp_path,
            "--config", config, "--cutoff", 3, "--estimator", "ols", "--friction", "viscous", "--gravity", 0, 0, -9.5,
            "--json",
        )  # fmt: skip
        assert code == 0
        answer, stored = json.loads(out), read_parameters(tmp_path / "parameters.yaml")
        assert answer["held_out_sources"] == [str(files / "other.npz")]
        assert (stored.cutoff_frequency, stored.estimator) == (3.0, "ols")
        assert stored.gravity.tolist() == [0.0, 0.0, -9.5]
        assert set(stored.term_names) == {"viscous", "rotor_inertia"}

    @pytest.mark.parametrize("name", ["asymmetric", "improved_stribeck", "load"])
    def test_friction_by_name(self, name, files, tmp_path, cli):
        config = tmp_path / "c.yaml"
        config.write_text(
            "reversal_speed: auto\nterms: {improved_stribeck: {stribeck_velocity: 0.3}}\n"
            "couplings: {both: {weights: {elbow: 1, wrist: 0.5}, terms: [rotor_inertia]}}\n"
        )
        run = ("--robot", files / "arm.urdf", "--config", config)
        code, _, _ = cli("identify", files / "data.npz", *run, "--out", tmp_path, "--friction", name, "--json")
        assert code == 0
        stored = read_parameters(tmp_path / "parameters.yaml")
        assert set(stored.term_names) == {*FRICTION[name], "rotor_inertia"}
        assert stored.column_names[-1] == "Ir_both"
        constants = dict(zip(stored.term_constant_names, stored.term_constant_values, strict=True))
        assert (constants["coupling.elbow"], constants["coupling.wrist"]) == (1.0, 0.5)
        assert constants.get("improved_stribeck.stribeck_velocity", 0.3) == 0.3
        code, out, _ = cli("base", *run, "--json")
        assert any("Ir_both" in parameter["expression"] for parameter in json.loads(out)["parameters"])
        run = (*run, "--out", tmp_path / "other")
        code, _, error = cli("identify", files / "data.npz", *run, "--friction", "temperature")
        assert code == 3
        assert "data.npz" in error and "term temperature_coulomb needs the temperatures of the joints" in error

    def test_validate_writes_only_where_it_is_told_to(self, files, tmp_path, cli, monkeypatch):
        monkeypatch.chdir(tmp_path)
        words = (
            "validate",
            files / "other.npz",
            "--robot",
            files / "arm.urdf",
            "--parameters",
            files / "parameters.yaml",
        )
        code, out, _ = cli(*words)
        assert (code, list(tmp_path.iterdir())) == (0, [])
        assert "verdict: good" in out and "--out DIR" in out
        code, out, _ = cli(*words, "--out", "there")
        assert code == 0
        assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["report.html", "report.json"]

    def test_a_bad_verdict_exits_with_1(self, files, tmp_path, cli):
        stored = (files / "parameters.yaml").read_text()
        values = yaml.safe_load(stored)
        for name in ("values", "standard_parameters", "term_values"):
            values[name] = [-value for value in values[name]]
        wrong = tmp_path / "wrong.yaml"
        wrong.write_text(yaml.safe_dump(values))
        code, out, _ = cli("validate", files / "other.npz", "--robot", files / "arm.urdf", "--parameters", wrong,
                           "--out", tmp_path, "--json")  # fmt: skip
        assert code == 1
        assert json.loads(out)["verdict"] == "bad"

    def test_the_prior_run_is_replaced_as_a_whole_but_only_if_asked(self, files, tmp_path, cli):
        (tmp_path / "parameters.yaml").write_text("old")
        words = ("identify", files / "data.npz", "--robot", files / "arm.urdf", "--out", tmp_path)
        code, out, err = cli(*words)
        assert (code, out, (tmp_path / "parameters.yaml").read_text()) == (2, "", "old")
        said_one_line(err, "holds parameters.yaml already; choose another output, or --force to replace what is there")
        code, *_ = cli(*words, "--force")
        assert code == 0
        assert (tmp_path / "parameters.yaml").read_bytes() == (files / "parameters.yaml").read_bytes()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["parameters.yaml", "report.html", "report.json"]


def saved(name, **changes):
    """A bad recording made from the good one."""

    def make(folder, recording):
        return [save_npz(folder / name, changed(recording, **changes))]

    return make


def written(name, content):
    def make(folder, recording):
        file = folder / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [file]

    return make


def good(folder, recording):
    return [save_npz(folder / "good.npz", recording)]


def a_bag(names=None, topic="/joint_states", count=None, others=()):
    def make(folder, recording):
        return [write_bag(folder / "bag", messages(recording, names)[:count], topic, others=others)]

    return make


def cut_bag(kind):
    def make(folder, recording):
        if kind == "mcap":
            file = write_mcap(folder / "cut.mcap", messages(recording))
            file.write_bytes(file.read_bytes()[:100])
        else:
            file = next(write_bag(folder / "bag", messages(recording)).glob("*.db3"))
            file.write_bytes(file.read_bytes()[:20_000])
        return [file]

    return make


def with_robot(text):
    def make(folder, recording):
        robot = folder / "other.urdf"
        robot.write_text(text)
        return [*good(folder, recording), "--robot", robot]

    return make


def with_config(text, *words):
    def make(folder, recording):
        config = folder / "config.yaml"
        config.write_text(text)
        return [*good(folder, recording), "--config", config, *words]

    return make


def with_options(*words):
    return lambda folder, recording: [*good(folder, recording), *words]


def twice(*words):
    return lambda folder, recording: [*good(folder, recording), *good(folder, recording), *words]


def below_a_file(folder, recording):
    (folder / "plain").write_text("a file, no folder")
    return [*good(folder, recording), "--out", folder / "plain" / "out"]


def renamed(names):
    return lambda folder, recording: [save_npz(folder / "renamed.npz", replace(recording, joint_names=names))]


def csv(folder, recording, cut=False):
    samples = recording.samples
    header = ",".join(["t", *(f"{c}_{name}" for c in ("q", "tau") for name in recording.joint_names)])
    rows = [",".join(map(repr, row)) for row in np.column_stack([samples.t, samples.q, samples.tau]).tolist()]
    text = "\n".join([header, *rows, ""])
    file = folder / "table.csv"
    file.write_text(text[:-20] if cut else text)
    return [file]


LOOP = urdf(joint("a", "base", "l1"), joint("b", "l1", "l2"), joint("c", "base", "l2"), links=2)
FLOATING = urdf(joint("a", "base", "l1", kind="floating"), joint("b", "l1", "l2"), links=2)
NO_MASS = urdf(joint("a", "base", "l1"), links=1).replace("<mass", "<mess")
NANS = np.full((1500, 3), np.nan)
BIG = {"q": lambda q: q + 1e154}

BAD = {
    "missing file": (lambda *_: ["none.npz"], 3, "none.npz: no such file"),
    "missing bag": (lambda *_: ["none.mcap"], 3, "none.mcap: no such file"),
    "missing robot": (with_options("--robot", "none.urdf"), 3, "none.urdf: cannot read the robot description"),
    "missing config": (with_options("--config", "none.yaml"), 2, "none.yaml: cannot read the configuration"),
    "missing validation": (with_options("--validate", "none.npz"), 3, "none.npz: no such file"),
    "unknown kind": (written("data.txt", "1 2 3"), 3, "data.txt: unknown kind of recording"),
    "empty db3": (written("e.db3", ""), 3, "e.db3: "),
    "empty mcap": (written("e.mcap", ""), 3, "e.mcap: "),
    "empty npz": (written("e.npz", ""), 3, "e.npz: the file is empty"),
    "empty csv": (written("e.csv", ""), 3, "e.csv: the file is empty"),
    "cut db3": (cut_bag("db3"), 3, ".db3: "),
    "cut mcap": (cut_bag("mcap"), 3, "cut.mcap: "),
    "bag without messages": (a_bag(count=0), 3, "bag: no usable JointState message"),
    "bag of texts": (
        lambda folder, recording: [
            write_bag(folder / "bag", [], others=[("/chat", "std_msgs/msg/String", [(1, text_message("hi"))])])
        ],
        3,
        "bag: no usable JointState",
    ),
    "other topic": (lambda f, r: [*a_bag()(f, r), "--topic", "/states"], 3, "no JointState topic /states"),
    "bag without the joints": (a_bag(names=("x", "y", "z")), 3, "none of the robot's joints (shoulder, elbow, wrist)"),
    "other joint names": (renamed(("a", "b", "c")), 3, "it holds a, b, c"),
    "one joint misspelt": (
        lambda f, r: [*with_config("identify: [shoulder, elbow]")(f, r)[1:], *renamed(("shoulder", "elbov", "wrist"))(f, r)],
        3,
        "joint elbow is not in it",
    ),
    "joint not in the URDF": (with_config("identify: [shoulder, elbov]"), 2, "elbov of the configuration is not a"),
    "gain of no joint": (with_config("joints: {elbov: {gain: 2}}"), 2, "elbov of the configuration is not a moving"),
    "broken XML": (with_robot(ARM[:-20]), 3, "other.urdf: broken XML"),
    "not a URDF": (with_robot("<html/>"), 3, "other.urdf: not a URDF: its root element is <html>"),
    "no mass": (with_robot(NO_MASS), 3, "other.urdf: "),
    "floating base": (with_robot(FLOATING), 3, "other.urdf: joint a is floating"),
    "closed loop": (with_robot(LOOP), 3, "other.urdf: closed loop: link l2"),
    "no moving joint": (with_robot(f'<robot name="x">{link("base")}</robot>'), 3, "other.urdf: no joint moves"),
    "zero efforts": (saved("zero.npz", tau=lambda tau: 0.0 * tau), 3, "effort of shoulder, elbow, wrist is constant"),
    "one dead effort": (saved("zero.npz", tau=lambda tau: tau * [1, 0, 1]), 3, "zero.npz"),
    "NaN efforts": (saved("nan.npz", tau=NANS), 3, "1000 effort missing or not finite"),
    "no efforts": (saved("none.npz", tau=None), 3, "no effort is recorded"),
    "currents without gains": (saved("amps.npz", tau=None, current=np.ones((1500, 3))), 3, "shoulder has only a current"),
    "clock going backward": (saved("back.npz", t=lambda t: t[::-1]), 3, "back.npz: only one"),
    "clock going back and forth": (saved("saw.npz", t=lambda t: t - 0.5 * (t % 1.0 > 0.5)), 3, "going backward"),
    "clock standing still": (saved("still.npz", t=lambda t: 0.0 * t), 3, "still.npz: only one sample, or time"),
    "degrees": (saved("deg.npz", q=np.degrees, dq=np.degrees), 3, "look like degrees"),
    "one sample": (saved("one.npz", rows=slice(1)), 3, "one.npz: only one sample"),
    "ten samples": (saved("ten.npz", rows=slice(10)), 3, "ten.npz"),
    "too short": (saved("short.npz", rows=slice(60)), 3, "short.npz"),
    "constant posture": (saved("still.npz", q=lambda q: 0 * q + 0.1, dq=lambda dq: 0 * dq), 3, "no joint moves"),
    "values of 1e154": (saved("big.npz", **BIG), 3, "1000 position implausibly large"),
    "efforts of 1e154": (saved("big.npz", tau=lambda tau: tau * 1e154), 3, "effort implausibly large"),
    "stamps of 1e154": (saved("big.npz", t=lambda t: t * 1e154), 3, "big.npz: only one sample, or time stamps that never"),
    "milliseconds": (saved("ms.npz", t=lambda t: 1e3 * t), 3, "its time stamps are 20 apart in the median: seconds are"),
    "efforts in amperes": (saved("amps.npz", tau=lambda tau: 0.02 * tau), 3, "look like amperes; give gains"),
    "wrong sign": (saved("sign.npz", tau=lambda tau: tau * [1, -1, 1]), 3, "the effort of elbow has the wrong sign"),
    "unknown key": (with_config("cutof: 4"), 2, "config.yaml: the configuration: unknown key 'cutof'; did you mean"),
    "wrong type": (with_config("cutoff: high"), 2, "config.yaml: cutoff: must be a number, not 'high'"),
    "no YAML": (with_config("a: [b"), 2, "config.yaml: not a YAML file"),
    "held and identified": (with_config("{joints: {elbow: {held: 0}}, identify: [elbow]}"), 2, "both held and to be"),
    "all held": (with_config("joints: {shoulder: {held: 0}, elbow: {held: 0}, wrist: {held: 0}}"), 2, "every joint"),
    "validated on the training data": (
        lambda f, r: [saved("same.npz")(f, r)[0], "--validate", f / "same.npz"], 2, "same.npz: cannot be trained on"
    ),
    "joint misspelt in the configuration": (
        with_config("{joints: {elbo: {sign: -1}}}"), 2, "elbo of the configuration is not a moving joint of small; did you mean elbow?"
    ),
    "range the wrong way": (with_options("--train-range", 9, 3), 2, "--train-range 9 3: the first must be less"),
    "range of nothing": (with_options("--train-range", 40, 50), 2, "--train-range 40 50"),
    "range of everything": (with_options("--train-range", 0, 50), 2, "nothing to validate on"),
    "range of two recordings": (twice("--train-range", 0, 9), 2, "--train-range needs one recording"),
    "cutoff above the data": (with_options("--cutoff", 40), 2, "40 Hz is too high for data at 50 Hz"),
    "cutoff of nothing": (with_options("--cutoff", 0), 2, "cut-off frequency must be positive"),
    "gravity is no number": (with_options("--gravity", 0, 0, "nan"), 2, "gravity"),
    "unknown estimator": (with_options("--estimator", "magic"), 2, "invalid choice: 'magic'"),
    "unknown option": (with_options("--magic"), 2, "--magic"),
    "velocities not recorded": (
        lambda f, r: [*with_config("velocity: recorded")(f, r)[1:], *saved("nodq.npz", dq=None)(f, r)],
        2,
        "nodq.npz",
    ),
    "output below a file": (below_a_file, 3, "plain: is a file; give a folder"),
}  # fmt: skip


def said_one_line(err, words):
    """Progress may come first; then exactly one line, which names the offender."""
    lines = err.splitlines()
    assert lines, "nothing was said"
    assert lines[-1].startswith("robot-dyn-id"), err
    assert words in lines[-1], err
    assert not any(line.startswith("robot-dyn-id") for line in lines[:-1]), err
    assert not any(word in err for word in ("Traceback", "Warning", "Error:")), err


@pytest.fixture
def out(tmp_path):
    """An output folder that holds the results of an earlier run."""
    folder = tmp_path / "earlier"
    folder.mkdir()
    for name in ("parameters.yaml", "report.json", "report.html"):
        (folder / name).write_text(f"earlier {name}")
    return folder


CODES = {
    2: {"usage"},
    3: {"input", "model", "motion", "unsafe_data", "convergence", "deadline"},
    4: {"internal"},
    130: {"interrupted"},
}
"""Codes of errors by exit code."""


def reported(stdout, err, exit_code):
    """The error as `--json` reports it, and nothing else on standard output; the line is that of standard error."""
    (name, error), *others = json.loads(stdout).items()
    assert (name, others, set(error)) == ("error", [], {"code", "message", "action", "exit_code"})
    assert error["exit_code"] == exit_code
    assert error["code"] in CODES[exit_code]
    assert err.splitlines()[-1].endswith(error["message"])
    assert error["action"] and "\n" not in error["message"] + error["action"]
    return error


def untouched(folder):
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        name: f"earlier {name}" for name in ("parameters.yaml", "report.json", "report.html")
    }


@pytest.mark.parametrize("name", BAD)
def test_every_bad_input_is_one_line_and_leaves_the_outputs_alone(name, files, out, tmp_path, recording, cli):
    make, expected, words = BAD[name]
    given = make(tmp_path, recording)
    code, stdout, err = cli("identify", "--robot", files / "arm.urdf", "--out", out, *given, "--json", "--force")
    assert code == expected, err
    said_one_line(err, words)
    reported(stdout, err, expected)
    untouched(out)


def damaged(change):
    """The parameter file with something changed in it."""

    def make(files, folder):
        content = yaml.safe_load((files / "parameters.yaml").read_text())
        change(content)
        (folder / "p.yaml").write_text(yaml.safe_dump(content))
        return folder / "p.yaml"

    return make


BAD_PARAMETERS = {
    "missing": (lambda files, folder: folder / "none.yaml", "none.yaml: cannot read the parameters"),
    "a field missing": (damaged(lambda content: content.pop("gravity")), "p.yaml: gravity is missing"),
    "a wrong type": (damaged(lambda content: content.update(values="high")), "p.yaml: values cannot be read"),
    "a wrong length": (damaged(lambda content: content["values"].pop()), "p.yaml: parameter set: values has shape"),
    "something else": (lambda files, folder: files / "arm.urdf", "arm.urdf: not a "),
    "an unknown term": (damaged(lambda c: c.update(term_names=["magic"] * len(c["term_names"]))), "magic"),
}


@pytest.mark.parametrize("verb", ["predict", "validate"])
@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_every_bad_parameter_file_is_one_line(name, verb, files, out, tmp_path, cli):
    make, words = BAD_PARAMETERS[name]
    target = out / "tau.npz" if verb == "predict" else out
    code, stdout, err = cli(verb, files / "other.npz", "--robot", files / "arm.urdf", "--parameters",
                            make(files, tmp_path), "--out", target, "--json", "--force")  # fmt: skip
    assert code == 3, err
    said_one_line(err, words)
    reported(stdout, err, 3)
    untouched(out)


@pytest.mark.parametrize("verb", ["predict", "validate"])
@pytest.mark.parametrize(("change", "expected", "words"), [
    ({"data": "none.npz"}, 3, "none.npz: no such file"),
    ({"robot": "gripper.urdf"}, 3, "robot"),
    ({"data": "one.npz"}, 3, "one.npz"),
    ({"data": "renamed.npz"}, 3, "no joint"),
], ids=str)  # fmt: skip
def test_data_and_robot_must_fit_the_parameters(verb, change, expected, words, files, out, tmp_path, recording, cli):
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    save_npz(tmp_path / "one.npz", changed(recording, rows=slice(1)))
    save_npz(tmp_path / "renamed.npz", replace(recording, joint_names=("a", "b", "c")))
    data = tmp_path / change["data"] if "data" in change else files / "other.npz"
    robot = tmp_path / change["robot"] if "robot" in change else files / "arm.urdf"
    target = out / "tau.npz" if verb == "predict" else out
    code, stdout, err = cli(verb, data, "--robot", robot, "--parameters", files / "parameters.yaml", "--out", target,
                            "--json", "--force")  # fmt: skip
    assert code == expected, err
    said_one_line(err, words)
    reported(stdout, err, expected)
    untouched(out)


def test_predictions_that_cannot_be_written(files, tmp_path, cli):
    (tmp_path / "plain").write_text("a file")
    start = ("predict", files / "other.npz", "--robot", files / "arm.urdf", "--parameters", files / "parameters.yaml")
    for target, expected, words in (
        (tmp_path / "plain" / "tau.npz", 3, "plain: is a file; give a folder"),
        (tmp_path / "tau.csv", 2, "must end in .npz"),
    ):
        code, stdout, err = cli(*start, "--out", target)
        assert (code, stdout) == (expected, "")
        said_one_line(err, words)
    assert [file.name for file in tmp_path.iterdir()] == ["plain"]


@pytest.mark.parametrize("words", [[], ["magic"], ["identify"], ["base"], ["base", "--robot"]], ids=str)
def test_half_a_command_is_wrong_usage(words, cli):
    code, stdout, err = cli(*words)
    assert (code, stdout) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("robot-dyn-id")


REPAIRED = {
    "last row cut in half": (lambda f, r: csv(f, r, cut=True), 0, "1 row dropped: the last row has no line end"),
    "a few values of 1e154": (
        lambda f, r: saved("some.npz", tau=lambda tau: np.where(np.arange(1500)[:, None] == 700, 1e154, tau))(f, r),
        1,
        None,
    ),
    "a stamp of 1e154": (saved("some.npz", t=lambda t: np.where(t == 5.0, 1e154, t)), 0, None),  # held out, then
    "a few NaN": (
        lambda f, r: saved("some.npz", q=lambda q: np.where(np.arange(1500)[:, None] % 500 == 7, np.nan, q))(f, r),
        2,
        None,
    ),
    "stamps that repeat": (
        lambda f, r: saved("some.npz", t=lambda t: np.where(np.arange(1500) % 300 == 7, t - 0.02, t))(f, r),
        4,
        None,
    ),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_what_can_be_repaired_is_counted(name, files, out, tmp_path, recording, cli):
    make, dropped, words = REPAIRED[name]
    given = make(tmp_path, recording)
    code, stdout, err = cli("identify", *given, "--robot", files / "arm.urdf", "--out", out, "--json", "--force")
    assert code == 0, err
    answer = json.loads(stdout)
    assert answer["rows"]["dropped"] == dropped
    assert sum(answer["rows"]["reasons"].values()) == dropped
    assert words is None or any(words in warning for warning in answer["warnings"])
    assert answer["held_out"]["all_joints_nrmse"] < 0.1


@pytest.mark.parametrize("verb", ["predict", "validate"])
def test_repairs_of_the_file_are_told_by_every_verb(verb, files, tmp_path, recording, cli):
    target = tmp_path / "tau.npz" if verb == "predict" else tmp_path
    code, stdout, _ = cli(verb, *csv(tmp_path, recording, cut=True), "--robot", files / "arm.urdf", "--parameters",
                          files / "parameters.yaml", "--out", target, "--json")  # fmt: skip
    assert code == 0
    assert any("1 row dropped" in warning for warning in json.loads(stdout)["warnings"])


def test_a_misspelt_joint_is_pointed_out(files, tmp_path, recording, cli):
    data = renamed(("shoulder", "elbow", "vrist"))(tmp_path, recording)
    _, stdout, _ = cli("identify", *data, "--robot", files / "arm.urdf", "--out", tmp_path, "--json")
    warnings = json.loads(stdout)["warnings"]
    assert "taken to stand still at 0: wrist" in warnings
    assert "recorded, but not a moving joint of the URDF: vrist" in warnings


def command(*words, **options):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, env=environment, timeout=120,
                          check=False, **options)  # fmt: skip


def test_a_process_of_its_own_answers_alike(files, tmp_path, cli):
    words = ["base", "--robot", files / "arm.urdf", "--json"]
    result = command(*words)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == cli(*words)[1]
    assert result.stdout.count("\n") == 1
    result = command("identify", "none.npz", "--robot", files / "arm.urdf", "--out", tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert len(result.stderr.splitlines()) == 1
    said_one_line(result.stderr, "none.npz: no such file")


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory):
    """Two hundred thousand samples: identification takes many seconds."""
    short = ROBOT.record(duration=50.0, noise=0.1)
    samples = short.samples
    tiled = {name: np.tile(getattr(samples, name), (40, 1)) for name in ("q", "dq", "tau")}
    t = np.arange(40 * len(samples)) / 100.0
    return save_npz(tmp_path_factory.mktemp("long") / "long.npz", changed(short, t=samples.t), **{"t": t, **tiled})


# A background job is started with SIGINT ignored, and so would be the processes of these tests.
LISTENING = """import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])"""


@pytest.mark.parametrize(
    ("when", "how"),
    [("surveying", signal.SIGINT), ("estimating", signal.SIGINT), ("finding", signal.SIGTERM)],
    ids=["early", "late", "terminated"],
)
def test_ctrl_c(when, how, files, out, long_recording):
    words = ["identify", long_recording, "--robot", files / "arm.urdf", "--out", out, "--json", "--force"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LISTENING, *COMMAND, *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        said = ""
        for line in process.stderr:
            said += line
            if line.startswith(when):
                break
        time.sleep(0.1)
        process.send_signal(how)
        stdout, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    said_one_line(said + rest, "interrupted, nothing was written")
    reported(stdout, said + rest, 130)
    untouched(out)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_a_library_swallows_is_heeded_at_the_next_step():
    class Callback:
        def __del__(self):  # what is raised here Python only prints
            os.kill(os.getpid(), signal.SIGTERM)

    assert main(["--help"]) == 0
    callback = Callback()
    del callback
    with pytest.raises(KeyboardInterrupt):
        progress("writing")
    assert main(["--help"]) == 0  # another command begins anew
    progress("writing")


# --- faults of the tool itself, and errors for programs ---------------------------------------------------------------


def test_a_fault_of_the_tool_is_one_line_with_a_file_and_an_exit_code_of_its_own(files, cli, monkeypatch, tmp_path):
    def broken(*_):
        raise ZeroDivisionError("no\nmore")

    monkeypatch.setattr("robot_dyn_id.cli.base.base_parameters", broken)
    monkeypatch.setattr(faults, "mkstemp", lambda **given: mkstemp(**given, dir=tmp_path))
    monkeypatch.setenv("SECRET_TOKEN", "tell nobody")
    code, stdout, err = cli("base", "--robot", files / "arm.urdf", "--json")
    assert code == 4
    error = reported(stdout, err, 4)
    (file,) = tmp_path.iterdir()
    assert err == (
        f"robot-dyn-id: internal error (ZeroDivisionError: no more); the traceback is in {file}: please report it\n"
    )
    assert error["code"] == "internal"
    text = file.read_text()
    assert "Traceback (most recent call last)" in text and "in broken" in text
    assert f"robot_dyn_id {__version__}" in text and "numpy " in text
    assert f"command: robot-dyn-id base --robot {files / 'arm.urdf'} --json" in text
    assert "tell nobody" not in text
    code, stdout, _ = cli("base", "--robot", files / "arm.urdf")
    assert (code, stdout) == (4, "")


def test_the_traceback_is_on_standard_error_where_no_file_can_be_written(capsys, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        error = faults.reported(ZeroDivisionError("no more"), ["robot-dyn-id", "base"])
    assert "no folder for temporary files can be written to: the traceback is above" in str(error)
    assert "ZeroDivisionError: no more" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--js"], ["magic", "--json"], ["identify", "--json"], ["base", "--json", "--robot"],
                                   ["base", "--robot", "", "--json"], ["base", "--robot=", "--json"]], ids=str)  # fmt: skip
def test_usage_errors_are_objects_as_well(words, cli):
    code, stdout, err = cli(*words)
    assert code == 2
    assert reported(stdout, err, 2)["code"] == "usage"
    assert len(err.splitlines()) == 1


def test_every_error_has_a_code_and_an_action():
    def below(kind):
        return [kind, *(one for sub in kind.__subclasses__() for one in below(sub))]

    kinds = below(RobotDynIdError)
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert kind("x").summary() == {
            "code": kind.code, "message": "x", "action": kind.advice, "exit_code": kind.exit_code
        }  # fmt: skip
        assert kind.code.replace("_", "").isalpha() and kind.advice and kind.exit_code in (2, 3, 4, 130)
        assert kind("x", "do y").action == "do y"


WITHOUT_ROS = """
import sys
sys.modules["rclpy"] = None
from robot_dyn_id.{module}
"""


@pytest.mark.parametrize(("module", "words"), [
    ("cli import main; sys.exit(main(['demo', '--out', sys.argv[1], '--json']))", "robot-dyn-id: "),
    ("starting import start; start('robot_dyn_id.nodes.torque_residual_monitor')", "torque_residual_monitor: "),
], ids=["demo", "a node"])  # fmt: skip
def test_without_ros_2_the_reason_is_one_line(module, words, tmp_path):
    code = WITHOUT_ROS.format(module=module)
    found = subprocess.run([sys.executable, "-c", code, tmp_path / "run"], capture_output=True, text=True, timeout=60,
                           check=False)  # fmt: skip
    assert found.returncode == 3, found.stderr
    assert found.stderr.splitlines() == [found.stderr.strip()]
    assert found.stderr.startswith(f"{words}the Python package rclpy is not installed or not on the path: source the ")
    assert not found.stdout or json.loads(found.stdout)["error"]["code"] == "input"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["--json"], []], ids=str)
def test_a_full_disk_behind_standard_output_is_bad_input_and_not_a_fault(words, files):
    with open("/dev/full", "w") as full:
        found = subprocess.run([*COMMAND, "base", "--robot", str(files / "arm.urdf"), *words], stdout=full,
                               stderr=subprocess.PIPE, text=True, timeout=60, check=False)  # fmt: skip
    assert found.returncode == 3
    assert found.stderr == (
        "robot-dyn-id: standard output or a file: cannot be read or written (No space left on device)\n"
    )


@pytest.mark.parametrize("words", [["--json"], []], ids=str)
def test_a_reader_that_has_gone_ends_the_command_quietly(words, files):
    with subprocess.Popen([*COMMAND, "base", "--robot", str(files / "arm.urdf"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (141, "")


@pytest.mark.parametrize("verb", ["predict", "simulate", "export"])
def test_parameters_that_are_not_finite_give_no_output(verb, files, tmp_path, cli):
    content = yaml.safe_load((files / "parameters.yaml").read_text())
    content["values"][3] = math.nan
    content["standard_parameters"][13] = math.inf
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    data = {"predict": [files / "other.npz"], "simulate": [files / "other.npz"], "export": ["--format", "urdf"]}[verb]
    target = tmp_path / ("tau.npz" if verb != "export" else "model.urdf")
    code, stdout, err = cli(verb, *data, "--robot", files / "arm.urdf", "--parameters", tmp_path / "p.yaml", "--out",
                            target, "--json")  # fmt: skip
    assert code == 3, err
    reported(stdout, err, 3)
    assert "finite" in err or "positive definite" in err
    assert not target.exists()


def test_paths_are_relative_to_where_one_stands(files, tmp_path, cli, monkeypatch):
    (tmp_path / "data.npz").write_bytes((files / "data.npz").read_bytes())
    (tmp_path / "arm.urdf").write_text(ARM)
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("identify", "data.npz", "--robot", "arm.urdf", "--out", "run")
    assert code == 0, err
    assert (tmp_path / "run" / "parameters.yaml").exists()
