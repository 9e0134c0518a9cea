# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id simulate`: along a trajectory, under recorded efforts, and what it refuses."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.altered import altered
from support.commands import SIMPLE_MODEL
from support.simulated import ARM, GRIPPER, Simulated, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.excitation import MotionLimits, draw_random_fourier
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.recordings import open_recording

STRONG = ARM.replace('effort="5"', 'effort="500"')
ROBOT = Simulated(STRONG)
DURATION, RATE = 8.0, 200.0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A robot, what was identified of it, a trajectory, and the model along it."""
    folder = tmp_path_factory.mktemp("simulate")
    (folder / "arm.urdf").write_text(STRONG)
    save_npz(folder / "data.npz", ROBOT.record(duration=30.0, rate=100.0, noise=0.05))
    arguments = ["identify", str(folder / "data.npz"), "--robot", str(folder / "arm.urdf"), "--out", str(folder)]
    assert main([*arguments, *SIMPLE_MODEL]) == 0
    motion = draw_random_fourier(ROBOT.model, 5, period=DURATION)
    stored = StoredExcitation.from_excitation(
        ROBOT.model, MotionLimits.from_model(ROBOT.model, (1e3,), jerk=(1e6,)), motion, ""
    )
    write_trajectory(folder / "trajectory.yaml", stored)
    assert (
        main(
            [
                *words(folder, "--trajectory", folder / "trajectory.yaml", "--out", folder / "along.npz"),
                "--rate",
                f"{RATE:g}",
            ]
        )
        == 0
    )
    return folder


def words(folder, *more):
    robot = ("--robot", folder / "arm.urdf", "--parameters", folder / "parameters.yaml")
    return [str(word) for word in ("simulate", *robot, *more)]


@pytest.fixture
def simulate(files, capfd):
    """Run the command: exit code, standard output, standard error."""

    def run(*more):
        capfd.readouterr()
        code = main(words(files, *more))
        return code, *capfd.readouterr()

    return run


def loaded(file):
    with np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.slow
def test_the_model_follows_a_trajectory(files):
    found = loaded(files / "along.npz")
    assert set(found) == {"t", "joint_names", "q", "dq", "tau"}
    assert found["joint_names"].tolist() == list(ROBOT.joints)
    np.testing.assert_allclose(found["t"], np.arange(len(found["t"])) / RATE, atol=1e-12)
    q, dq, ddq, _ = draw_random_fourier(ROBOT.model, 5, period=DURATION).evaluate(found["t"])
    assert found["t"][-1] == pytest.approx(DURATION)
    assert np.abs(found["q"] - q.T).max() < 1e-2
    dynamics = Dynamics.from_parameters(read_parameters(files / "parameters.yaml"))
    expected = dynamics.inverse_dynamics(q.T, dq.T, ddq.T)
    fast = np.abs(dq.T) > 0.3  # where Coulomb friction slides
    assert np.linalg.norm((found["tau"] - expected)[fast]) < 0.02 * np.linalg.norm(expected[fast])


def test_what_is_identified_from_the_simulation_is_the_model_again(files, tmp_path):
    robot, out = str(files / "arm.urdf"), str(tmp_path)
    assert main(["identify", str(files / "along.npz"), "--robot", robot, "--out", out, *SIMPLE_MODEL]) == 0
    given, again = (read_parameters(folder / "parameters.yaml") for folder in (files, tmp_path))
    assert again.base.names == given.base.names
    inertial = given.base.independent < 10 * len(given.robot.body_names)
    error, size = np.abs(again.estimate.values - given.estimate.values), np.abs(given.estimate.values[inertial]).max()
    assert error[inertial].max() < 0.01 * size
    model, copy = (Dynamics.from_parameters(parameters) for parameters in (given, again))
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 100, 3))
    expected = model.inverse_dynamics(*states)
    assert np.linalg.norm(copy.inverse_dynamics(*states) - expected) < 0.01 * np.linalg.norm(expected)


@pytest.mark.slow
def test_a_bag_holds_the_same(files, tmp_path, simulate):
    code, out, _ = simulate(
        "--trajectory", files / "trajectory.yaml", "--rate", RATE, "--out", tmp_path / "bag", "--json"
    )
    answer = json.loads(out)
    assert (code, answer["file"]) == (0, str(tmp_path / "bag"))
    (finding,) = answer["findings"]
    assert finding["code"] == "outside_training", "faster than what it was identified from"
    recording, expected = open_recording(tmp_path / "bag"), loaded(files / "along.npz")
    chunks = list(recording.chunks(ROBOT.joints))
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_allclose(np.concatenate([getattr(c, name) for c in chunks]), expected[name], atol=1e-9)


@pytest.mark.slow
def test_recorded_efforts_drive_the_model(files, tmp_path, simulate):
    """Against an integrator of its own with the smooth law, for as long as rounding and friction leave them together."""
    code, out, _ = simulate(files / "along.npz", "--out", tmp_path / "free.npz", "--json")
    answer, found, given = json.loads(out), loaded(tmp_path / "free.npz"), loaded(files / "along.npz")
    assert code == 0 and set(answer) >= {"file", "warnings", "findings"}
    (passed,) = [one for one in answer["findings"] if one["code"] == "position_limits_passed"]
    assert (passed["severity"], passed["joints"]) == ("info", ["elbow"])
    np.testing.assert_allclose(found["t"], given["t"], atol=1e-9)
    np.testing.assert_allclose(found["tau"], given["tau"], atol=1e-9)
    dynamics = Dynamics.from_parameters(read_parameters(files / "parameters.yaml"))

    def rates(t, state):
        tau = [np.interp(t, given["t"], column) for column in given["tau"].T]
        return np.concatenate([state[3:], dynamics.forward_dynamics(state[:3], state[3:], tau)])

    first = np.concatenate([found["q"][0], found["dq"][0]])
    times = found["t"][: int(0.5 * RATE)]
    expected = solve_ivp(rates, (0.0, times[-1]), first, t_eval=times, rtol=1e-8, atol=1e-10, method="LSODA").y.T
    moved = np.abs(expected[-1, :3] - first[:3]).max()
    assert moved > 0.05
    assert np.abs(found["q"][: len(times)] - expected[:, :3]).max() < 0.02 * moved


def test_beginning_again_keeps_the_model_near_the_recording(files, tmp_path, simulate):
    far = {}
    for name, more in {"never": (), "often": ("--restart", 0.1)}.items():
        code, out, err = simulate(files / "along.npz", *more, "--out", tmp_path / f"{name}.npz", "--json")
        answer = json.loads(out)
        far[name] = max(answer["largest_distance"].values())
        drifts = any(one["code"] == "simulation_drifts" for one in answer["findings"])
        assert (code, drifts) == (0, name == "never")
        assert ("at least every" in err and "--restart S" in err) == drifts
        assert all(text in err for text in answer["warnings"])
    assert far["often"] < 0.05 < far["never"]


@pytest.mark.slow
def test_weak_motors_leave_the_trajectory_and_that_is_reported(files, tmp_path, capfd):
    weak = altered(read_parameters(files / "parameters.yaml"), robot={"urdf": ARM, "urdf_sha256": urdf_hash(ARM)})
    (tmp_path / "arm.urdf").write_text(ARM)
    write_parameters(tmp_path / "parameters.yaml", weak)
    code = main([*words(tmp_path, "--trajectory", files / "trajectory.yaml", "--out", tmp_path / "weak.npz"), "--json"])
    out, _ = capfd.readouterr()
    findings = {one["code"]: one for one in json.loads(out)["findings"]}
    assert code == 0
    assert "trajectory_of_other_urdf" in findings
    assert "of the time at its limit of 5" in findings["trajectory_not_followed"]["message"]
    assert np.abs(loaded(tmp_path / "weak.npz")["tau"]).max() <= 5.0


def indefinite(parameters):
    values = parameters.estimate.values.copy()
    inertial = parameters.base.independent < 10 * len(parameters.robot.body_names)
    values[inertial] *= -1.0
    return replace_values(parameters, values)


CHANGED = {
    "indefinite": (indefinite, "the identified mass matrix is not positive definite"),
    "another robot's": (
        lambda p: altered(p, robot={"urdf": ARM, "urdf_sha256": urdf_hash(ARM)}),
        "the parameters are those of another URDF",
    ),
    "bad": (
        lambda p: altered(p, judgment={"verdict": "bad", "reasons": ("no",)}),
        "the verdict on the parameters is bad",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_models_that_have_no_forward_dynamics_are_refused(name, files, tmp_path, capfd):
    change, expected_words = CHANGED[name]
    (tmp_path / "arm.urdf").write_text(STRONG)
    write_parameters(tmp_path / "parameters.yaml", change(read_parameters(files / "parameters.yaml")))
    code = main(words(tmp_path, "--trajectory", files / "trajectory.yaml", "--out", tmp_path / "out.npz"))
    out, err = capfd.readouterr()
    assert (code, out, len(err.splitlines())) == (3, "", 1)
    assert expected_words in err
    assert not (tmp_path / "out.npz").exists()


WRONG = {
    "neither": ((), "a.npz", 2, "give either DATA"),
    "both": (("data.npz", "--trajectory", "trajectory.yaml"), "a.npz", 2, "give either DATA"),
    "rate of data": (("data.npz", "--rate", 100), "a.npz", 2, "--rate is for --trajectory"),
    "restart of a trajectory": (
        ("--trajectory", "trajectory.yaml", "--restart", 1),
        "a.npz",
        2,
        "--restart is for DATA",
    ),
    "temperature of data": (("data.npz", "--temperature", 40), "a.npz", 2, "--temperature is for --trajectory"),
    "temperatures": (
        ("--trajectory", "trajectory.yaml", "--temperature", 1, 2, 3, 4),
        "a.npz",
        2,
        "temperature: give one number or one for each",
    ),
    "restart": (("data.npz", "--restart", 0), "a.npz", 2, "restart: 0 s; it must be positive"),
    "rate": (("--trajectory", "trajectory.yaml", "--rate", -1), "a.npz", 2, "rate: -1 Hz"),
    "another format": (("--trajectory", "trajectory.yaml"), "a.csv", 2, "give FILE.npz, or a new folder"),
    "no trajectory": (("--trajectory", "arm.urdf"), "a.npz", 3, "arm.urdf: not a trajectory file"),
    "no data": (("none.npz",), "a.npz", 3, "none.npz: no such file"),
    "no efforts": (("still.npz",), "a.npz", 3, "still.npz"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_one_line(name, files, tmp_path, simulate):
    given, out, expected, expected_words = WRONG[name]
    t = np.arange(500) / 100.0
    np.savez(files / "still.npz", t=t, q=np.sin(t)[:, None] * np.ones(3), joint_names=np.array(ROBOT.joints))
    named = [files / word if str(word).endswith((".npz", ".yaml", ".urdf")) else word for word in given]
    code, stdout, err = simulate(*named, "--out", tmp_path / out)
    assert (code, stdout) == (expected, ""), err
    assert expected_words in err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_bag_is_not_overwritten(files, tmp_path, simulate):
    (tmp_path / "bag").mkdir()
    code, _, err = simulate("--trajectory", files / "trajectory.yaml", "--out", tmp_path / "bag")
    assert (code, len(err.splitlines())) == (2, 1) and "bag: exists" in err


def test_a_trajectory_of_another_robot_is_refused(tmp_path, simulate):
    other = Simulated(GRIPPER).model
    stored = StoredExcitation.from_excitation(
        other, MotionLimits.from_model(other, (1e3,), jerk=(1e6,)), draw_random_fourier(other, 1), ""
    )
    write_trajectory(tmp_path / "other.yaml", stored)
    code, _, err = simulate("--trajectory", tmp_path / "other.yaml", "--out", tmp_path / "a.npz")
    assert code == 3 and "design one for it" in err
