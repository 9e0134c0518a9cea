# SPDX-License-Identifier: Apache-2.0
"""Methods of quaternion6r, logistic2r and flexible2r on UR5 and Panda through ordinary commands: docs/papers/README.md."""

import numpy as np
import pytest
from support.commands import run_here
from support.robots import URDFS, panda_arm
from support.simulated import changed, save_npz

from robot_dyn_id.dynamics.regressor import Motion, Regressor, make_joint_coordinates
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.loads.chain import find_centroidal_frames, find_joint_frames, simulate_chain
from robot_dyn_id.loads.payload import transform_parameters
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription, find_root_link
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

NOISE = 1e-3
"""Noise of the wrenches, relative to the RMS of each."""


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    """Models by name, each with a folder that holds its URDF and a configuration of its joints."""
    models = {"ur5": RobotModel.from_file(URDFS["ur5_robot"]), "panda": panda_arm(), "z1": model_of("z1")}
    found = {}
    for name, model in models.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "arm.urdf").write_text(model.urdf)
        (folder / "joints.yaml").write_text(f"identify: [{', '.join(model.joint_names)}]\n")
        found[name] = model, folder
    return found


def simulate_states(model, seed):
    """Recording of a motion without noise, and its exact states."""
    motion, t = draw_random_fourier(model, seed), sample_times(20.0, 50.0)
    quiet = Sensors(np.zeros(len(model.joint_names)), 0.0, 0.0)
    recording = simulate_recording(Regressor(model), model.inertial_parameters, motion, t, quiet, 0)
    return recording, Motion(*motion.evaluate(t)[:3])


def add_noise(wrench, rng):
    """Readings of a sensor, shape (N, 6), forces first, from exact ones, shape (6, N)."""
    sigma = np.maximum(NOISE * np.sqrt(np.mean(wrench**2, axis=1)), 0.01)
    return (wrench + sigma[:, None] * rng.normal(size=wrench.shape)).T


def record_wrenches(model, folder):
    """Recording of a motion with the wrenches of all hinges along the axes of their bodies, forces first."""
    recording, states = simulate_states(model, 3)
    frames = find_centroidal_frames(model)
    rng, wrenches = np.random.default_rng(0), []
    for body, frame in zip(simulate_chain(model, states, frames), frames, strict=True):
        rotation = np.einsum("ijn,kj->ikn", body.rotation, frame.rotation)  # of the joint's frame
        own = np.concatenate([np.einsum("jin,jn->in", rotation, part) for part in (body.wrench[3:], body.wrench[:3])])
        wrenches.append(add_noise(own, rng))
    every = np.stack(wrenches, axis=1)
    save_npz(folder / "all.npz", recording, wrenches=every)
    every[:, 1:] = np.nan
    save_npz(folder / "base.npz", recording, wrenches=every)


def errors_over_sigma(model, bodies):
    """Errors of all identifiable parameters in the frames of the centers, over their standard deviations."""
    errors = []
    truth = zip(find_centroidal_frames(model), model.inertial_parameters.reshape(-1, 10), strict=True)
    for body, (frame, standard) in zip(bodies, truth, strict=True):
        expected = np.linalg.solve(transform_parameters(frame), standard)[[0, 4, 6, 9]]
        entries = zip(body["parameters"].values(), expected, strict=True)
        errors += [(entry[0] - value) / entry[1] for entry, value in entries if entry]
    return errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hinges", "base"),
    [("ur5", 21, (16, 8)), ("panda", 28, (28, 28)), ("z1", 24, (24, 24))],
)
def test_bodies_from_wrenches(arms, name, hinges, base, capfd):
    """All hinges, then one sensor under the base: number of independent inertias, and of those identifiable alone.

    The zeros of the sensors are found too: the mass of a link with a vertical axis is one with that of its sensor.
    """
    model, folder = arms[name]
    record_wrenches(model, folder)
    rest = ("--robot", folder / "arm.urdf", "--config", folder / "joints.yaml", "--principal")
    given = ("--out", folder, "--force")
    code, found = run_here(capfd, "chain", folder / "all.npz", *rest, *given)
    assert code == 0 and found["independent"] == hinges
    assert 4 * len(model.body_names) - len(found["not_identifiable"]) == hinges
    errors = errors_over_sigma(model, found["bodies"])
    assert len(errors) == hinges and np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.4)
    code, found = run_here(capfd, "chain", folder / "base.npz", *rest, *given)
    assert code == 0
    assert (found["independent"], 4 * len(model.body_names) - len(found["not_identifiable"])) == base


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("panda", 28), ("z1", 24)])
def test_intervals_from_one_sensor_under_the_base_contain_the_truth(arms, name, count, capfd):
    """All masses and principal moments, with 1e-5 rad of noise: 95 % intervals, of five motions (20: base_sensor.md).

    Errors of one motion are correlated, so that the share of all of them scatters more than that of as many draws.
    """
    model, folder = arms[name]
    root, errors = find_root_link(RobotDescription(model.urdf).root()), []
    for seed in range(5):
        recording, states = simulate_states(model, seed)
        first, rng = simulate_chain(model, states, find_joint_frames(model))[0], np.random.default_rng(seed)
        moment = first.wrench[:3] + np.cross(first.hinge, first.wrench[3:], axis=0)
        shown = add_noise(-np.concatenate([first.wrench[3:], moment]), rng) + np.arange(6.0)
        noisy = changed(recording, q=lambda q, rng=rng: q + 1e-5 * rng.normal(size=q.shape), dq=None, tau=None)
        save_npz(folder / "sensor.npz", noisy, wrench=shown)
        words = ("chain", folder / "sensor.npz", "--robot", folder / "arm.urdf", "--config", folder / "joints.yaml")
        given = ("--wrench", "base", "--frame", root, "--principal", "--out", folder, "--force")
        code, found = run_here(capfd, *words, *given)
        assert code == 0 and found["independent"] == count and not found["not_identifiable"]
        errors += errors_over_sigma(model, found["bodies"])
    assert len(errors) == 5 * count
    assert 0.88 < np.mean(np.abs(errors) < 1.96) < 0.995


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("ur5", 24), ("panda", 27)])
def test_steps_of_flexible_joints_are_planned(arms, name, count, capfd):
    """The paper's raw criterion needs many steps, from the tip to the base; unit-norm columns need one."""
    model, folder = arms[name]
    steps = {}
    for scaling in ("none", "columns"):
        joints = ", ".join(f"{joint}: {{ratio: 100}}" for joint in model.joint_names)
        config = folder / f"{scaling}.yaml"
        config.write_text(
            f"identify: [{', '.join(model.joint_names)}]\nflexible: {{scaling: {scaling}, joints: {{{joints}}}}}\n"
        )
        code, found = run_here(capfd, "flexible", "--plan", "--robot", folder / "arm.urdf", "--config", config)
        assert code == 0 and not found["plan"]["unidentifiable"]
        steps[scaling] = found["plan"]["steps"]
    assert [len(steps[scaling]) for scaling in ("none", "columns")] == [count, 1]


LOGISTIC = """terms:
  viscous:
  coulomb: {smoothing_width: 0.02}
velocity: logistic
reversal_speed: auto
estimator: weighted
"""

DESIGNED = {"ur5": 4.0, "panda": 4.0, "z1": 4.0, "kinova": 8.0, "iiwa14": 4.0}
"""Arms whose strokes are designed, and the period of their strokes [s]: slow joints need a longer one."""


def model_of(name):
    """The arm without its gripper."""
    if name == "panda":
        return panda_arm()
    path = URDFS.get({"ur5": "ur5_robot"}.get(name, name)) or find_shared_file(f"urdf/{name}.urdf")
    whole = RobotModel.from_file(path)
    return RobotModel.from_file(path, [joint for joint in whole.joint_names if "ripper" not in joint])


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNED)
def test_designed_strokes_are_identified_from_the_angle(tmp_path, name, capfd):
    """Strokes, transit and all, with 1e-3 rad of noise; a Fourier motion with 1e-5 rad validates, by derivatives.

    Exit code 1 of the design: collisions are not checked.
    """
    model = model_of(name)
    joints = model.joint_names
    (tmp_path / "arm.urdf").write_text(model.urdf)
    config, demands = tmp_path / "config.yaml", tmp_path / "demands.yaml"
    config.write_text(f"identify: [{', '.join(joints)}]\n")
    demands.write_text(
        f"period: {DESIGNED[name]}\nclearance: 0.0\nsearch: {{draws: 1, starts: 1, finished: 1, steps: 1}}\n"
    )
    robot = ("--robot", tmp_path / "arm.urdf")
    words = ("design", *robot, "--form", "logistic", "--design", demands, "--config", config)
    code, found = run_here(capfd, *words, "--out", tmp_path / "motion")
    assert code == 1 and found["collision_check"] == "not_checked"
    assert found["condition_number"]["value"] < 30.0
    designed = read_trajectory(found["trajectory_file"]).excitation
    assert designed.name == "logistic" and len(designed.centers) == 2
    at = make_joint_coordinates(model)
    regressor = Regressor(model, (*((one, Viscous()) for one in at), *((one, Coulomb(0.02)) for one in at)))
    truth = np.concatenate([1.2 * model.inertial_parameters, np.full(len(joints), 2.0), np.full(len(joints), 1.0)])
    other = draw_random_fourier(model, 2, 10.0, share=0.3)
    for file, motion, length, noise in (("strokes", designed, designed.duration, 1e-3), ("other", other, 20.0, 1e-5)):
        sensors = Sensors(np.full(len(joints), 0.02), noise, None)
        t = sample_times(length, 100.0)
        save_npz(tmp_path / f"{file}.npz", simulate_recording(regressor, truth, motion, t, sensors, 1))
    config.write_text(config.read_text() + LOGISTIC)
    words = ("identify", tmp_path / "strokes.npz", "--validate", tmp_path / "other.npz", *robot, "--config", config)
    code, found = run_here(capfd, *words, "--out", tmp_path / "run")
    assert code == 0 and found["held_out"]["all_joints_nrmse"] < 0.1
    (finding,) = [one for one in found["findings"] if one["code"] == "strokes_used"]
    assert all(f"{joint} " in finding["message"] for joint in joints) and " 0%" not in finding["message"]
