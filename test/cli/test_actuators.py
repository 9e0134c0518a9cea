# SPDX-License-Identifier: Apache-2.0
"""The command `actuators` as a user gives it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record, save
from support.commands import run_here
from support.simulated import ARM

from robot_dyn_id.cli import main
from robot_dyn_id.files.actuators import read_actuators
from robot_dyn_id.kernels.actuators import COULOMB, KD, KP, VISCOUS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("actuators")
    (folder / "arm.urdf").write_text(ARM)
    save(folder / "train.npz", record(duration=6.0, rate=50.0), kp=TRUTH.kp, kd=TRUTH.kd)
    save(folder / "other.npz", record(seed=1, duration=6.0, rate=50.0), kp=TRUTH.kp, kd=TRUTH.kd)
    turned = record(seed=3, duration=6.0, rate=50.0)
    turned = replace(turned, q=np.degrees(turned.q), reference=np.degrees(turned.reference))
    save(folder / "degrees.npz", turned, kp=TRUTH.kp, kd=TRUTH.kd)
    save(folder / "without.npz", record(seed=2, duration=6.0, rate=50.0))
    return folder


def run(files, capsys, out, *more):
    return run_here(capsys, "actuators", files / "train.npz", "--robot", files / "arm.urdf", "--out", out, *more)


@pytest.mark.slow
def test_actuators_of_a_simulated_arm_are_found_and_validated(files, capsys, tmp_path):
    code, answer = run(files, capsys, tmp_path, "--validate", files / "other.npz")
    assert code == 0
    assert answer["verdict"] == "good"
    assert answer["fit_for"] == {"simulation_under_position_commands": "yes"}
    assert answer["held_out"]["rms_error"]["whole"] < 3e-4  # the noise is 1e-4
    assert answer["held_out"]["rms_error"].keys() == {"1 s", "5 s", "whole"}
    for joint, armature, coulomb in zip(answer["joints"], TRUTH.armature, TRUTH.coulomb, strict=True):
        assert joint["armature"]["value"] == pytest.approx(armature, rel=0.02)
        assert joint["coulomb"]["value"] == pytest.approx(coulomb, rel=0.02)
        assert joint["delay"]["value"] == pytest.approx(0.008, abs=5e-4)
        low, high = joint["armature"]["interval"]
        assert low < joint["armature"]["value"] < high
        assert "interval" not in joint["kp"]  # given by the recording
        assert "limit" not in joint
    assert {"actuator_limit_unknown", "actuator_one_temperature"} <= {f["code"] for f in answer["findings"]}


@pytest.mark.slow
def test_the_file_is_read_back_to_the_bit(files, capsys, tmp_path):
    _, answer = run(files, capsys, tmp_path)
    stored = read_actuators(answer["file"])
    assert stored.model(ARM).joint_names == MODEL.joint_names
    for number, joint in enumerate(answer["joints"]):
        for kind in ("armature", "viscous", "coulomb", "offset", "delay", "kp", "kd"):
            assert getattr(stored.actuators, kind)[number] == joint[kind]["value"]
        assert np.isinf(stored.actuators.limit[number])


@pytest.mark.slow
def test_without_another_recording_the_verdict_is_suspect(files, capsys, tmp_path):
    code, answer = run(files, capsys, tmp_path)
    assert (code, answer["verdict"]) == (0, "suspect")
    assert answer["fit_for"] == {"simulation_under_position_commands": "limited"}


@pytest.mark.slow
def test_unknown_gains_are_estimated_and_the_scale_is_named(files, capsys, tmp_path):
    words = ("actuators", files / "without.npz", "--robot", files / "arm.urdf", "--out", tmp_path)
    code, answer = run_here(capsys, *words)
    found = read_actuators(answer["file"]).actuators.values
    assert code == 0
    np.testing.assert_allclose(found[KP], TRUTH.kp, rtol=0.01)
    np.testing.assert_allclose(found[KD], TRUTH.kd + TRUTH.viscous, rtol=0.02)
    np.testing.assert_allclose(found[COULOMB], TRUTH.coulomb, rtol=0.05)
    assert not found[VISCOUS].any()
    assert {"actuator_scale_of_links", "actuator_damping_in_gain"} <= {f["code"] for f in answer["findings"]}


@pytest.mark.slow
def test_the_table_names_every_joint_and_the_verdict(files, capsys, tmp_path):
    words = ["actuators", files / "train.npz", "--robot", files / "arm.urdf", "--out", tmp_path]
    assert main([str(word) for word in [*words, "--validate", files / "other.npz"]]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*MODEL.joint_names, "armature", "kg m^2", "all joints"))
    assert "verdict: good" in out


WRONG = {
    "a word that is not a number": (("--kp", "a"), 2, "--kp a: expected a number or NAME=NUMBER"),
    "two numbers": (("--kp", "1", "2"), 2, "give one number for all joints"),
    "an unknown joint": (("--kp", "shouldr=1"), 2, "no joint is called shouldr"),
    "a name that fits no joint": (("--types", "hip"), 2, "no joint is called hip"),
    "a negative gain": (("--kp", "shoulder=-1"), 2, "kp of shoulder must be a positive number"),
    "the same recording held out": (("--validate", "train.npz"), 2, "cannot be identified from and validated on"),
}


@pytest.mark.parametrize(("more", "expected", "text"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_refused_in_one_line(files, capsys, tmp_path, more, expected, text):
    more = [str(files / word) if word.endswith(".npz") else word for word in more]
    words = ["actuators", str(files / "train.npz"), "--robot", str(files / "arm.urdf"), "--out", str(tmp_path), *more]
    assert main([*words, "--json"]) == expected
    assert text in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize(
    "names", [("degrees.npz",), ("train.npz", "--validate", "degrees.npz")], ids=["train", "held out"]
)
def test_positions_in_degrees_are_refused_with_the_cure(files, capsys, tmp_path, names):
    words = [files / name if name.endswith(".npz") else name for name in names]
    words = ["actuators", *words, "--robot", files / "arm.urdf", "--out", tmp_path / "run", "--json"]
    assert main([str(word) for word in words]) == 3
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert "degrees.npz: positions of shoulder, elbow, wrist reach" in message
    assert "in degrees; convert positions and velocities to radians, commanded ones too, or correct the" in message
    assert not (tmp_path / "run").exists()


def test_a_recording_without_commanded_positions_is_refused(files, capsys, tmp_path):
    motion = record(duration=2.0)
    np.savez(tmp_path / "bare.npz", t=motion.t, q=motion.q, joint_names=np.array(motion.joint_names))
    words = ["actuators", tmp_path / "bare.npz", "--robot", files / "arm.urdf", "--out", tmp_path / "run", "--json"]
    assert main([str(word) for word in words]) == 3
    assert "no commanded positions" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert not (tmp_path / "run").exists()
