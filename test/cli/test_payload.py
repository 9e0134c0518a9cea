# SPDX-License-Identifier: Apache-2.0
"""The commands `payload` and `gains` as a user gives them."""

import json

import numpy as np
import pytest
import yaml
from support.commands import messages
from support.recording_files import WRENCH, wrench_messages, write_bag
from support.robots import brick, joint, urdf
from support.simulated import ARM, Simulated, changed, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.payload import read_declared, read_payload
from robot_dyn_id.loads.wrench import compute_frame_motion, wrench_regressor
from robot_dyn_id.model.kinematics import find_placement_of

BODY = brick(1.5, (0.05, 0.02, 0.1), (0.1, 0.2, 0.15))
GAINS = np.array([10.0, -8.0, 5.0])


def recorded(seed, body=None, **options):
    robot = Simulated()
    if body is not None:
        robot.parameters[20:30] += body
    return robot.record(seed=seed, rate=50.0, noise=0.02, **options)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("payload")
    (folder / "arm.urdf").write_text(ARM)
    bare, loaded = recorded(1, duration=30.0), recorded(2, BODY, duration=20.0)
    save_npz(folder / "bare.npz", bare)
    save_npz(folder / "loaded.npz", loaded)
    for name, recording in (("bare_current", bare), ("loaded_current", loaded)):
        current = changed(recording, tau=lambda tau: tau / GAINS)
        save_npz(folder / f"{name}.npz", current, tau=current.samples.tau, current=current.samples.tau)
    arguments = ["--robot", str(folder / "arm.urdf"), "--out", str(folder / "bare"), "--json"]
    assert main(["identify", str(folder / "bare.npz"), *arguments]) == 0
    sense(folder, loaded)
    return folder


def sensed(recording, model, link):
    """Readings of a sensor on a link along the motion of seed 2, moments first, shape (6, N)."""
    motion = Motion(*draw_random_fourier(model, 2).evaluate(recording.samples.t)[:3])
    rows = wrench_regressor(compute_frame_motion(model, motion, find_placement_of(model, link)))
    wrench = np.einsum("icn,c->in", rows, -BODY) + np.arange(6)[:, None]
    return wrench + 0.01 * np.random.default_rng(0).normal(size=wrench.shape)


def sense(folder, recording):
    """The same motion with a sensor on the last link: in a `.npz`, and in a bag."""
    wrench = sensed(recording, Simulated().model, "l3")
    save_npz(folder / "sensed.npz", recording, wrench=wrench[[3, 4, 5, 0, 1, 2]].T)
    stamps = [int(1e9 * t) + 10**18 for t in recording.samples.t]
    write_bag(folder / "bag", messages(recording), others=[("/ft", WRENCH, list(wrench_messages(stamps, wrench)))])


def on_arm(files, out, *more):
    return (
        "payload",
        files / "loaded.npz",
        "--robot",
        files / "arm.urdf",
        "--parameters",
        files / "bare" / "parameters.yaml",
        "--link",
        "l3",
        "--out",
        out,
        *more,
    )


@pytest.mark.slow
def test_payload_on_an_arm(files, tmp_path, cli):
    code, out, _ = cli(*on_arm(files, tmp_path, "--json"))
    assert code == 0
    answer = json.loads(out)
    assert abs(answer["mass"] - 1.5) < 4.0 * answer["standard_deviations"]["mass"] < 0.1
    assert 0.0 < answer["fit_error"] < 0.05 and set(answer["fit_errors"]) == set(Simulated().joints)
    assert answer["verdict"] in ("good", "suspect")
    assert read_payload(answer["file"]).mass == answer["mass"]
    assert answer["page"] == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Identified payload: {answer['verdict']}" in page and page.count("data-plot=") == 6
    stored = yaml.safe_load((tmp_path / "payload.yaml").read_text())
    assert stored["urdf"].startswith("<inertial>")
    bare, both = (read_parameters(f / "parameters.yaml") for f in (files / "bare", tmp_path))
    change = both.bodies.standard_parameters - bare.bodies.standard_parameters
    np.testing.assert_allclose(change[20:30], list(answer["parameters"].values()), atol=1e-12)
    code, out, _ = cli(*on_arm(files, tmp_path), "--force")
    assert code == 0
    assert "mass" in out


@pytest.mark.parametrize("data", ["sensed.npz", "bag"])
def test_tool_at_a_sensor(files, tmp_path, cli, data):
    code, out, printed = cli(
        "payload", files / data, "--robot", files / "arm.urdf", "--wrench", "--link", "l3", "--out", tmp_path, "--json"
    )
    assert (code, printed) == (0, "")
    answer = json.loads(out)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count("data-plot=") == 12
    assert answer["mass"] == pytest.approx(1.5, rel=2e-3)
    np.testing.assert_allclose(answer["center_of_mass"], [0.05, 0.02, 0.1], atol=1e-3)
    assert answer["sensor_offsets"]["force z"][0] == pytest.approx(5.0, abs=0.05)


SLIDE = urdf(joint("slide", "base", "l1", kind="prismatic", axis="1 0 0", rpy="0 0 0"), links=1)


def test_a_tool_that_never_turns_hides_an_offset_of_its_sensor(tmp_path, cli):
    """The moment of the weight about y is as constant as the offset."""
    robot = Simulated(SLIDE)
    recording = robot.record(seed=2, rate=50.0, duration=20.0)
    (tmp_path / "slide.urdf").write_text(SLIDE)
    save_npz(tmp_path / "slide.npz", recording, wrench=sensed(recording, robot.model, "l1")[[3, 4, 5, 0, 1, 2]].T)
    given = ("--robot", tmp_path / "slide.urdf", "--wrench", "--link", "l1", "--out", tmp_path / "out")
    code, out, printed = cli("payload", tmp_path / "slide.npz", *given, "--json")
    assert code == 0, printed
    answer = json.loads(out)
    codes = {one["code"]: one["severity"] for one in answer["findings"]}
    assert codes["payload_not_identified"] == codes["sensor_offset_not_identified"] == "info"
    assert "mx" in answer["not_excited"]
    assert "moment y" not in answer["sensor_offsets"]


def known_payload(link):
    """The file of the body on a link."""
    return (
        f"link: {link}\nmass: 1.5\ncenter_of_mass: [0.05, 0.02, 0.1]\n"
        f"inertia: {{ixx: {1.5 * 0.0625 / 12}, ixy: 0, iyy: {1.5 * 0.0325 / 12}, ixz: 0, iyz: 0, "
        f"izz: {1.5 * 0.05 / 12}}}\n"
    )


def test_gains(files, tmp_path, cli):
    (tmp_path / "known.yaml").write_text(known_payload("l3"))
    np.testing.assert_allclose(read_payload(tmp_path / "known.yaml").parameters, BODY, atol=1e-12)
    code, out, _ = cli(
        "gains",
        bare=files / "bare_current.npz",
        loaded=files / "loaded_current.npz",
        robot=files / "arm.urdf",
        payload=tmp_path / "known.yaml",
        out=tmp_path / "gains.yaml",
        json=True,
    )
    assert code == 0
    assert json.loads(out)["page"] == str(tmp_path / "gains_report.html")
    page = (tmp_path / "gains_report.html").read_text(encoding="utf-8")
    assert "Gains of the drives: good" in page and page.count("data-plot=") == 6
    found = {one["joint"]: one for one in json.loads(out)["gains"]}
    for name, gain in zip(Simulated().joints, GAINS, strict=True):
        if name in found:
            assert abs(found[name]["gain"] - gain) < 4.0 * found[name]["standard_deviation"]
    assert {"elbow", "wrist"} <= found.keys()
    answer = json.loads(out)
    assert answer["verdict"] == ("suspect" if answer["not_identified"] else "good") and answer["fit_error"] < 0.05
    drives = read_configuration(tmp_path / "gains.yaml").settings.drives
    assert {name: drive.gain * drive.sign for name, drive in drives.items()} == pytest.approx(
        {name: one["gain"] for name, one in found.items()}
    )


def test_a_payload_says_nothing_about_the_joints_behind_it(files, tmp_path, cli):
    robot = Simulated()
    robot.parameters[10:20] += BODY
    loaded = robot.record(seed=2, rate=50.0, noise=0.02, duration=20.0)
    save_npz(tmp_path / "loaded.npz", changed(loaded, tau=lambda tau: tau / GAINS))
    (tmp_path / "known.yaml").write_text(known_payload("l2"))
    given = ("--bare", files / "bare_current.npz", "--loaded", tmp_path / "loaded.npz")
    known = ("--robot", files / "arm.urdf", "--payload", tmp_path / "known.yaml")
    code, out, _ = cli("gains", *given, *known, "--out", tmp_path / "gains.yaml", "--json")
    answer = json.loads(out)
    assert code == 0
    (finding,) = [one for one in answer["findings"] if one["code"] == "gain_not_identified"]
    assert (finding["severity"], finding["joints"]) == ("info", ["wrist"])


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["--link", "nowhere"], 3, "no link is called nowhere"),
        (["--wrench"], 2, "either --parameters"),
        (["--reaction"], 2, "--reaction"),
        (["--definitions", "/nonexistent"], 2, "definitions: only for bags"),
        (["--topic", "/joint_states"], 2, "topic: only for bags"),
        (["--config", "reference.yaml"], 2, "reference_topic: only for bags"),
    ],
)
def test_mistakes_in_one_line(files, tmp_path, cli, words, code, named, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reference.yaml").write_text("reference_topic: /joint_states_desired\n")
    found, _, printed = cli(*on_arm(files, tmp_path), *words)
    assert found == code
    assert len(printed.strip().splitlines()) == 1
    assert named in printed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("mass: 1", "link is missing"),
        ("link: l3\nmass: 1\ncenter_of_mass: [0, 0, 0]", "inertia is missing"),
        ("link: l3\nmass: heavy\ncenter_of_mass: [0, 0, 0]\ninertia: {}", "mass: must be a number, not 'heavy'"),
        (
            "link: l3\nmass: 1\ncenter_of_mass: [0, 0, 0]\ninertia: {ixx: 1, iyy: 1, izz: 3, ixy: 0, ixz: 0, iyz: 0}",
            "triangle",
        ),
        (
            "link: l3\nmass: .inf\ncenter_of_mass: [0, 0, 0]\ninertia: {ixx: 1, iyy: 1, izz: 1, ixy: 0, ixz: 0, iyz: 0}",
            "must be finite",
        ),
        (f"link: l3\nmass: {'9' * 400}\ncenter_of_mass: [0, 0, 0]\ninertia: {{}}", "must be"),
    ],
)
def test_wrong_payload_files(files, tmp_path, cli, text, named):
    (tmp_path / "known.yaml").write_text(text)
    code, _, printed = cli(
        "gains",
        bare=files / "bare.npz",
        loaded=files / "loaded.npz",
        robot=files / "arm.urdf",
        payload=tmp_path / "known.yaml",
        out=tmp_path / "g.yaml",
    )
    assert code == 3
    assert named in printed


@pytest.mark.parametrize(
    ("words", "code", "accepted", "degrees"),
    [
        ([1.5], 0, True, 1),
        ([1.5, 0.05, 0.02, 0.1], 0, True, 4),
        (["known.yaml"], 0, True, 10),
        (["light.yaml"], 1, False, 1),
        ([0], 1, False, 10),
        ([1.5, 0.05, -0.02, 0.1], 1, False, 4),
    ],
)
def test_a_declared_payload(files, tmp_path, cli, words, code, accepted, degrees):
    (files / "known.yaml").write_text(known_payload("l3"))
    (files / "light.yaml").write_text("mass: 1.2\n")
    given = [files / word if str(word).endswith("yaml") else word for word in words]
    found, out, printed = cli(*on_arm(files, tmp_path, "--json"), "--declared", *given)
    assert found == code, printed
    answer = json.loads(out)
    test = answer["declared"]
    assert (test["accepted"], test["degrees_of_freedom"]) == (accepted, degrees)
    assert (test["p_value"] >= test["significance"]) == accepted
    assert ("payload_declared_wrong" in [one["code"] for one in answer["findings"]]) == (not accepted)
    difference, sigma = test["differences"]["mass"]
    assert difference == pytest.approx(1.5 - test["mass"], abs=4.0 * sigma)
    if words == [0]:
        assert test["part"] == "mass, center of mass and inertia"
    assert yaml.safe_load((tmp_path / "payload.yaml").read_text())["declared"] == test


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("mass: 1.5\ncentre_of_mass: [0.05, 0.02, 0.1]", "center_of_mass"),
        ("mass: 1.5\ncom: [0.05, 0.02, 0.1]", "com"),
        ("format: robot_dyn_id payload 99\nmass: 1.5", "format"),
        ("format: robot_dyn_id payload\nformat_version: 99\nmass: 1.5", "format_version is 99"),
        ("format: robot_dyn_id trajectory\nformat_version: 2\n" + known_payload("l3"), "not a payload file"),
        (known_payload("l3") + "weight: 15", "weight"),
        ("mass: 1.5\ncenter_of_mass: [0, 0, 0, 1, 0, 1, 0, 0, 1]", "center_of_mass"),
        ("mass: 1.5\ninertia: {ixx: 1, iyy: 1, izz: 1, ixy: 0, ixz: 0, iyz: 0}", "without center_of_mass"),
    ],
)
def test_a_declaration_that_would_not_be_tested_is_refused(tmp_path, text, named):
    (tmp_path / "declared.yaml").write_text(text)
    with pytest.raises(InputError, match=named):
        read_declared(tmp_path / "declared.yaml", "l3")


def test_the_link_of_a_declared_file_is_that_of_the_result_by_default(tmp_path):
    (tmp_path / "declared.yaml").write_text(known_payload("l3").removeprefix("link: l3\n"))
    declared = read_declared(tmp_path / "declared.yaml", "flange")
    assert declared.link == "flange"
    np.testing.assert_allclose(declared.parameters, BODY, atol=1e-12)


def test_the_payload_of_an_earlier_run_does_not_stay_where_there_is_none(files, tmp_path, cli):
    assert cli(*on_arm(files, tmp_path))[0] == 0
    assert {file.name for file in tmp_path.iterdir()} == {"payload.yaml", "parameters.yaml", "report.html"}
    save_npz(tmp_path / "empty.npz", recorded(3, duration=20.0))
    words = [tmp_path / "empty.npz" if word == files / "loaded.npz" else word for word in on_arm(files, tmp_path)]
    code, out, _ = cli(*words, "--json", "--force", "--declared", 0)
    assert code == 0
    assert "file" not in json.loads(out)
    assert {file.name for file in tmp_path.iterdir()} == {"empty.npz", "report.html"}
    assert "Test of a declared payload" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_no_tool_is_declared_and_none_is_at_the_sensor(files, tmp_path, cli):
    recording = recorded(2, duration=20.0)
    noise = np.random.default_rng(3).normal(size=(len(recording.samples.t), 6))
    answers = []
    for sign in (1.0, -1.0):  # one of them has a mass below zero
        save_npz(tmp_path / "empty.npz", recording, wrench=np.arange(6) + sign * 0.01 * noise)
        given = ("--robot", files / "arm.urdf", "--wrench", "--link", "l3", "--out", tmp_path / "out", "--force")
        code, out, printed = cli("payload", tmp_path / "empty.npz", *given, "--declared", 0, "--json")
        assert code == 0, printed
        answers.append(json.loads(out))
    assert all(answer["declared"]["accepted"] for answer in answers)
    (without,) = [answer for answer in answers if "file" not in answer]
    assert without["sensor_offsets"]["force z"][0] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["-1.0"], 2, "--declared: a declared payload has a mass of 0 or more"),
        (["nan"], 2, "--declared: a declared payload has a mass of 0 or more"),
        ([1.0, 2.0], 2, "1, 4 or 10 numbers"),
        ([1.0, 0, 0], 2, "1, 4 or 10 numbers"),
        (["heavy", 1.0], 2, "--declared"),
        (["absent.yaml"], 3, "absent.yaml"),
        ([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 5], 2, "not a physically possible body"),
    ],
)
def test_nonsense_is_not_declared(files, tmp_path, cli, words, code, named):
    found, _, printed = cli(*on_arm(files, tmp_path), "--declared", *words)
    assert found == code, printed
    assert named in printed
    assert len(printed.strip().splitlines()) == 1
