# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id identify`: its answers, and one line for every bad input."""

import html
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.commands import (
    JOINTS,
    SIMPLE_MODEL,
    check_answer,
    check_error_line,
    check_error_object,
    check_order,
    check_unchanged,
    csv,
    messages,
    saved,
)
from support.recording_files import text_message, write_bag, write_mcap
from support.robots import joint, link, urdf
from support.simulated import ARM, changed, save_npz
from support.temporary_files import count_temporary_files, keep_results

import robot_dyn_id as rdi
from robot_dyn_id.dynamics.terms.friction import FRICTION
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.uses import USES


@pytest.mark.slow
@pytest.mark.parametrize("data", ["data.npz", "bag", "bare.mcap"])
def test_identify(files, tmp_path, cli, data):
    code, out, _ = cli("identify", files / data, "--robot", files / "arm.urdf", "--out", tmp_path / "new", "--json")
    assert code == 0
    answer = check_answer(json.loads(out))
    assert answer["verdict"] == "good"
    assert {one["severity"] for one in answer["findings"]} <= {"info"}
    assert tuple(answer["fit_for"]) == USES
    assert answer["rows"]["dropped"] == 0
    assert answer["parameters_file"] == str(tmp_path / "new" / "parameters.yaml")
    assert json.loads((tmp_path / "new" / "report.json").read_text()) == answer
    assert (tmp_path / "new" / "report.html").stat().st_size > 10_000
    stored = read_parameters(tmp_path / "new" / "parameters.yaml")
    expected = read_parameters(files / "parameters.yaml")
    np.testing.assert_allclose(stored.estimate.values, expected.estimate.values, atol=1e-6)
    keys = ("answer", "figure", "unit", "threshold", "because", "joints")
    for fit in stored.judgment.fit_for:
        assert {key: answer["fit_for"][fit.use][key] for key in keys} == {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in ((key, getattr(fit, key)) for key in keys)
        }


@pytest.mark.slow
def test_it_prints_in_the_order_of_all_identifications_and_what_runs_next(files, tmp_path, cli):
    folder, config = tmp_path / "a folder", tmp_path / "a file.yaml"
    config.write_text("cutoff: 5.0\n")
    robot, options = files / "arm.urdf", ("--config", config)
    words = (files / "data.npz", "--validate", files / "other.npz", "--robot", robot, "--out", folder, *options)
    code, out, _ = cli("identify", *words)
    assert code == 0 and "verdict: good" in out and all(name in out for name in JOINTS)
    check_order(out)
    commands = re.findall(r"^    robot-dyn-id (.*)$", out, re.M)
    assert str(files / "other.npz") in commands[0] and shlex.quote(str(config)) in commands[0]
    assert commands and all(cli(*shlex.split(command))[0] == 0 for command in commands)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--save-factor", "--estimator", "weighted", "--friction", "coulomb")], ids=str)
def test_no_temporary_file_is_left_with_a_result(more, files, tmp_path, cli, monkeypatch):
    before, kept = count_temporary_files(), keep_results(monkeypatch)
    assert cli("identify", files / "data.npz", "--robot", files / "arm.urdf", "--out", tmp_path, *more)[0] == 0
    ((_, during),) = kept
    assert during > before
    assert count_temporary_files() == before


@pytest.mark.slow
def test_numbers_that_are_not_finite_are_null(files, tmp_path, cli, recording):
    still = changed(recording, q=lambda q: q * [1, 1, 0], dq=lambda dq: dq * [1, 1, 0])
    data = save_npz(tmp_path / "still.npz", still)
    code, out, _ = cli("identify", data, "--robot", files / "arm.urdf", "--out", tmp_path, *SIMPLE_MODEL, "--json")
    answer = json.loads(out)
    assert code in (0, 1)
    assert answer["condition_number"]["value"] is None
    assert "wrist" in {joint for one in answer["findings"] for joint in one["joints"]}
    assert np.isinf(read_parameters(tmp_path / "parameters.yaml").estimate.standard_deviations).any()


def test_options_arrive(files, tmp_path, cli):
    config = tmp_path / "c.yaml"
    config.write_text("terms: [viscous, coulomb, rotor_inertia]\nthresholds: {condition_number: 1.0e+6}\n")
    code, out, _ = cli(
        "identify",
        files / "data.npz",
        validate=files / "other.npz",
        robot=files / "arm.urdf",
        out=tmp_path,
        config=config,
        cutoff=3,
        estimator="ols",
        friction="viscous",
        gravity=(0, 0, -9.5),
        json=True,
    )
    assert code == 0
    answer, stored = json.loads(out), read_parameters(tmp_path / "parameters.yaml")
    assert answer["held_out_sources"] == [str(files / "other.npz")]
    assert answer["held_out"]["method"] == stored.judgment.held_out_method == "recordings"
    assert (stored.processing.cutoff_frequency, stored.provenance.estimator) == (3.0, "ols")
    assert stored.robot.gravity.tolist() == [0.0, 0.0, -9.5]
    assert set(stored.terms.names) == {"viscous", "rotor_inertia"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["improved_stribeck", "load"])
def test_friction_by_name(name, files, tmp_path, cli):
    config = tmp_path / "c.yaml"
    config.write_text(
        "reversal_speed: auto\nterms: {improved_stribeck: {stribeck_velocity: 0.3}}\n"
        "couplings: {both: {weights: {elbow: 1, wrist: 0.5}, terms: [rotor_inertia]}}\n"
    )
    run = ("--robot", files / "arm.urdf", "--config", config)
    code, _, _ = cli("identify", files / "data.npz", *run, "--out", tmp_path, "--friction", name, "--json")
    assert code == 0
    stored = read_parameters(tmp_path / "parameters.yaml")
    assert set(stored.terms.names) == {*FRICTION[name], "rotor_inertia"}
    assert stored.base.column_names[-1] == "Ir_both"
    constants = dict(zip(stored.terms.constant_names, stored.terms.constant_values, strict=True))
    assert (constants["coupling.elbow"], constants["coupling.wrist"]) == (1.0, 0.5)
    assert constants.get("improved_stribeck.stribeck_velocity", 0.3) == 0.3
    code, out, _ = cli("base", *run, "--json")
    assert any("Ir_both" in parameter["expression"] for parameter in json.loads(out)["parameters"])
    run = (*run, "--out", tmp_path / "other")
    code, _, error = cli("identify", files / "data.npz", *run, "--friction", "temperature")
    assert code == 3
    assert "data.npz" in error and "term temperature_coulomb needs the temperatures of the joints" in error


@pytest.mark.slow
def test_the_prior_run_is_replaced_as_a_whole_but_only_with_force(files, tmp_path, cli):
    (tmp_path / "parameters.yaml").write_text("old")
    words = ("identify", files / "data.npz", "--robot", files / "arm.urdf", "--out", tmp_path)
    code, out, err = cli(*words)
    assert (code, out, (tmp_path / "parameters.yaml").read_text()) == (2, "", "old")
    check_error_line(err, "holds parameters.yaml already; choose another output, or --force to replace what is there")
    code, *_ = cli(*words, "--force")
    assert code == 0
    assert (tmp_path / "parameters.yaml").read_bytes() == (files / "parameters.yaml").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["parameters.yaml", "report.html", "report.json"]


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
    def words_of(folder, recording):
        other = changed(recording, tau=lambda tau: 1.001 * tau)
        return [save_npz(folder / "other.npz", other), *good(folder, recording), *words]

    return words_of


def below_a_file(folder, recording):
    (folder / "plain").write_text("a file, no folder")
    return [*good(folder, recording), "--out", folder / "plain" / "out"]


def renamed(names):
    return lambda folder, recording: [save_npz(folder / "renamed.npz", replace(recording, joint_names=names))]


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
    "other topic": (lambda f, r: [*a_bag()(f, r), "--topic", "/states"], 3, "no topic /states of joint states"),
    "bag without the joints": (a_bag(names=("x", "y", "z")), 3, "none of the robot's joints (shoulder, elbow, wrist)"),
    "other joint names": (renamed(("a", "b", "c")), 3, "it holds a, b, c"),
    "one joint misspelt": (
        lambda f, r: [
            *with_config("identify: [shoulder, elbow]")(f, r)[1:],
            *renamed(("shoulder", "elbov", "wrist"))(f, r),
        ],
        3,
        "the robot has no joint elbov, and the recording has no elbow",
    ),
    "letters of a joint exchanged": (
        renamed(("shoulder", "eblow", "wrist")),
        3,
        "the robot has no joint eblow, and the recording has no elbow: correct",
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
    "dead efforts": (saved("zero.npz", tau=lambda tau: tau * [0, 0, 0]), 3, "zero.npz"),
    "NaN efforts": (saved("nan.npz", tau=NANS), 3, "1500 effort missing or not finite"),
    "no efforts": (saved("none.npz", tau=None), 3, "no effort is recorded"),
    "clock going backward": (saved("back.npz", t=lambda t: t[::-1]), 3, "back.npz: the time stamps never advance"),
    "clock going back and forth": (saved("saw.npz", t=lambda t: t - 0.5 * (t % 1.0 > 0.5)), 3, "going backward"),
    "clock that does not advance": (
        saved("still.npz", t=lambda t: 0.0 * t),
        3,
        "still.npz: the time stamps never advance",
    ),
    "degrees": (saved("deg.npz", q=np.degrees, dq=np.degrees), 3, "positions_in_degrees"),
    "noise": (
        saved("noise.npz", q=lambda q: np.random.default_rng(0).normal(size=q.shape), dq=None),
        3,
        "the positions of shoulder, elbow, wrist are noise",
    ),
    "one sample": (saved("one.npz", rows=slice(1)), 3, "one.npz: only 1 sample"),
    "ten samples": (saved("ten.npz", rows=slice(10)), 3, "ten.npz"),
    "too short": (
        lambda f, r: [*saved("short.npz", rows=slice(60))(f, r), "--cutoff", 1],
        3,
        "short.npz: the longest uninterrupted stretch lasts 1.18 s",
    ),
    "constant posture": (saved("still.npz", q=lambda q: 0 * q + 0.1, dq=lambda dq: 0 * dq), 3, "no joint moves"),
    "values of 1e154": (saved("big.npz", **BIG), 3, "1500 position implausibly large"),
    "efforts of 1e154": (saved("big.npz", tau=lambda tau: tau * 1e154), 3, "effort implausibly large"),
    "efforts of 1e300": (saved("big.npz", tau=lambda tau: tau * 1e300), 3, "effort implausibly large"),
    "positions of 1e300": (saved("big.npz", q=lambda q: q * 1e300), 3, "position implausibly large"),
    "stamps of 1e154": (
        saved("big.npz", t=lambda t: t * 1e154),
        3,
        "big.npz: time stamps are 2e+152 apart in the median, from 0 on, which no unit of time explains",
    ),
    "milliseconds": (
        saved("ms.npz", t=lambda t: 1e3 * t),
        3,
        "ms.npz: time stamps are 20 apart in the median, from 0 on: they appear to be in milliseconds",
    ),
    "wrong sign": (saved("sign.npz", tau=lambda tau: tau * [1, -1, 1]), 3, "effort_sign"),
    "unknown key": (with_config("cutof: 4"), 2, "config.yaml: unknown key 'cutof'; did you mean"),
    "wrong type": (with_config("cutoff: high"), 2, "config.yaml: cutoff: must be a number, not 'high'"),
    "no YAML": (with_config("a: [b"), 2, "config.yaml: not a YAML file"),
    "held and identified": (with_config("{joints: {elbow: {held: 0}}, identify: [elbow]}"), 2, "both held and to be"),
    "all held": (with_config("joints: {shoulder: {held: 0}, elbow: {held: 0}, wrist: {held: 0}}"), 2, "every joint"),
    "validated on the training data": (
        lambda f, r: [saved("same.npz")(f, r)[0], "--validate", f / "same.npz"],
        2,
        "same.npz: cannot be trained on",
    ),
    "joint misspelt in the configuration": (
        with_config("{joints: {elbo: {sign: -1}}}"),
        2,
        "elbo of the configuration is not a moving joint of small; did you mean elbow?",
    ),
    "range the wrong way": (with_options("--train-range", 9, 3), 2, "training range 9 to 3 s: the first must be less"),
    "range of nothing": (with_options("--train-range", 40, 50), 2, "training range 40 to 50 s"),
    "range of everything": (with_options("--train-range", 0, 50), 2, "nothing to validate on"),
    "range of two recordings": (twice("--train-range", 0, 9), 2, "training range requires a single recording"),
    "cutoff above the data": (with_options("--cutoff", 40), 2, "40 Hz is too high for data at 50 Hz"),
    "cutoff of nothing": (with_options("--cutoff", 0), 2, "cut-off frequency must be positive"),
    "gravity that is not a number": (with_options("--gravity", 0, 0, "nan"), 2, "gravity"),
    "unknown estimator": (with_options("--estimator", "magic"), 2, "invalid choice: 'magic'"),
    "unknown option": (with_options("--magic"), 2, "--magic"),
    "velocities not recorded": (
        lambda f, r: [*with_config("velocity: recorded")(f, r)[1:], *saved("nodq.npz", dq=None)(f, r)],
        2,
        "nodq.npz",
    ),
    "output below a file": (below_a_file, 3, "plain: is a file; give a folder"),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", BAD)
def test_every_bad_input_is_one_line_and_leaves_the_outputs_alone(name, files, out, tmp_path, recording, cli):
    make, expected, words = BAD[name]
    given = make(tmp_path, recording)
    code, stdout, err = cli("identify", "--robot", files / "arm.urdf", "--out", out, *given, "--json", "--force")
    assert code == expected, err
    check_error_line(err, words)
    check_error_object(stdout, err, expected)
    check_unchanged(out)


REPAIRED = {
    "last row cut in half": (lambda f, r: csv(f, r, cut=True), 0, "1 row dropped: the last row has no line end"),
    "a few values of 1e154": (
        lambda f, r: saved("some.npz", tau=lambda tau: np.where(np.arange(1500)[:, None] == 700, 1e154, tau))(f, r),
        0,
        "some.npz: single efforts far from those around them are replaced: 1 elbow, 1 shoulder, 1 wrist",
    ),
    "a stamp of 1e154": (saved("some.npz", t=lambda t: np.where(t == 5.0, 1e154, t)), 1, None),
    "a few NaN": (
        lambda f, r: saved("some.npz", q=lambda q: np.where(np.arange(1500)[:, None] % 500 == 7, np.nan, q))(f, r),
        3,
        None,
    ),
    "stamps that repeat": (
        lambda f, r: saved("some.npz", t=lambda t: np.where(np.arange(1500) % 300 == 7, t - 0.02, t))(f, r),
        0,
        "some.npz: time stamps jitter by 2.8 ms though the samples are equally spaced; they are averaged",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPAIRED)
def test_what_can_be_repaired_is_counted(name, files, out, tmp_path, recording, cli):
    make, dropped, words = REPAIRED[name]
    given = make(tmp_path, recording)
    words_of_run = ("--robot", files / "arm.urdf", "--out", out, *SIMPLE_MODEL, "--json", "--force")
    code, stdout, err = cli("identify", *given, *words_of_run)
    assert code == 0, err
    answer = json.loads(stdout)
    assert answer["rows"]["dropped"] == dropped
    assert sum(answer["rows"]["reasons"].values()) == dropped
    assert words is None or any(words in warning for warning in answer["warnings"])
    assert answer["held_out"]["all_joints_nrmse"] < 0.1


@pytest.mark.slow
def test_a_short_recording_at_a_low_rate_is_not_good(files, tmp_path, recording, cli):
    """Half of the sample rate is below some motion filters that are tried at higher rates."""
    data = saved("short.npz", rows=slice(60))(tmp_path, recording)
    code, stdout, err = cli("identify", *data, "--robot", files / "arm.urdf", "--out", tmp_path, "--json")
    assert code in (0, 1), err
    answer = json.loads(stdout)
    assert answer["verdict"] != "good"
    assert "too_little_motion" in {one["code"] for one in answer["findings"]}


@pytest.mark.parametrize("name", ["vrist", "arm_wrist"])
def test_a_misspelt_joint_is_pointed_out(files, tmp_path, recording, cli, name):
    data = renamed(("shoulder", "elbow", name))(tmp_path, recording)
    code, _, error = cli("identify", *data, "--robot", files / "arm.urdf", "--out", tmp_path)
    assert code == 3 and f"has no joint {name}, and the recording has no wrist" in error and "`held`" in error


@pytest.mark.slow
def test_a_joint_of_another_name_is_not_taken_for_one_that_is_missing(files, tmp_path, recording, cli):
    data = renamed(("shoulder", "elbow", "gripper"))(tmp_path, recording)
    words = ("--robot", files / "arm.urdf", "--out", tmp_path, *SIMPLE_MODEL, "--json")
    _, stdout, _ = cli("identify", *data, *words)
    findings = {one["code"]: one["joints"] for one in json.loads(stdout)["findings"]}
    assert findings["joints_assumed_fixed"] == ["wrist"]
    assert findings["joints_unknown"] == ["gripper"]


@pytest.mark.slow
def test_paths_are_relative_to_where_one_stands(files, tmp_path, cli, monkeypatch):
    (tmp_path / "data.npz").write_bytes((files / "data.npz").read_bytes())
    (tmp_path / "arm.urdf").write_text(ARM)
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("identify", "data.npz", "--robot", "arm.urdf", "--out", "run", *SIMPLE_MODEL)
    assert code == 0, err
    assert (tmp_path / "run" / "parameters.yaml").exists()


# --- commands on the page ------------------------------------------------------------------------------------------


def commands_of(page):
    return [
        shlex.split(html.unescape(found))
        for found in re.findall(r'<code class="command"[^>]*>(.*?)</code>', page.read_text())
    ]


def test_the_commands_of_the_page_run_as_they_are_shown(files, cli):
    commands = commands_of(files / "report.html")
    steps = {tuple(words[1:3]): words for words in commands}
    assert all(words[0] == "robot-dyn-id" for words in commands) and ("predict", str(files / "data.npz")) in steps
    for words in commands:
        if words[1] in ("predict", "export"):
            assert words[words.index("--robot") + 1] == str(files / "arm.urdf")
            assert cli(*words[1:])[0] == 0 and Path(words[-1]).is_file()
        elif words[1:3] == ["node", "identifier"]:
            assert f"parameters:={files / 'parameters.yaml'}" in words
        elif words[1] == "payload":
            assert words[words.index("--parameters") + 1] == str(files / "parameters.yaml")


@pytest.mark.slow
def test_the_page_of_a_result_without_files_uses_the_robot_of_its_parameters(files, cli, tmp_path):
    result = rdi.identify(rdi.load_robot(files / "arm.urdf"), rdi.open_recording(files / "data.npz"))
    result.save(tmp_path / "run")
    ran = 0
    for words in commands_of(tmp_path / "run" / "report.html"):
        if words[1] in ("predict", "export"):
            assert words[words.index("--robot") + 1] == str(tmp_path / "run" / "parameters.yaml")
            assert cli(*words[1:])[0] == 0
            ran += 1
    assert ran
    code, _, err = cli("base", robot=tmp_path / "nowhere" / "parameters.yaml")
    assert code == 3 and "nowhere" in err
