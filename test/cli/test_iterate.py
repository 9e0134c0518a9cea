# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id iterate`, and `identify` of logistic strokes, on seven axes."""

import re

import numpy as np
import pytest
from support.commands import run_here
from support.robots import panda_arm

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.forms.logistic import Logistic
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.recordings import write_npz
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording


@pytest.fixture(scope="module")
def arm():
    return panda_arm()


@pytest.fixture
def files(arm, tmp_path):
    """Folder with the URDF, and a configuration of plain least squares of the moving joints."""
    (tmp_path / "arm.urdf").write_text(arm.urdf)
    text = f"identify: [{', '.join(arm.joint_names)}]\nterms: []\nestimator: {{name: ridge}}\n"
    (tmp_path / "config.yaml").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_a_rehearsed_iteration_ends_with_a_model_that_follows_better(arm, files, capsys):
    motion = draw_random_fourier(arm, 0, period=3.0, harmonics=3, share=0.5)
    limits = MotionLimits.from_model(arm, (100.0,))
    write_trajectory(files / "trajectory.yaml", StoredExcitation.from_excitation(arm, limits, motion, "a test"))
    robot, given = ("--robot", files / "arm.urdf", "--config", files / "config.yaml"), ("--out", files / "run")
    words = ("iterate", *robot, "--trajectory", files / "trajectory.yaml", *given, "--trials", 2, "--exponent", 0.9)
    gains = ("--proportional", *[100.0] * len(arm.joint_names), "--derivative", 20.0)
    code, found = run_here(capsys, *words, *gains)
    assert code == 0 and found["trials"] == len(found["tracking_errors"]) >= 2, found
    assert min(found["tracking_errors"]) < 0.2 * found["tracking_errors"][0], found
    assert read_parameters(found["parameters_file"]).robot.joint_names == arm.joint_names
    (files / "terms.yaml").write_text("viscous: {fv: 20.0}\n")
    _, rubbed = run_here(capsys, *words, *gains, "--terms", files / "terms.yaml", "--force")
    assert rubbed["tracking_errors"][0] > 1.05 * found["tracking_errors"][0], "friction that the start does not know"
    (files / "arm.urdf").write_text(re.sub('effort="[^"]*"', 'effort="0.001"', arm.urdf))
    _, weak = run_here(capsys, *words, *gains, "--limit-effort", "--force")
    assert not weak.get("tracking_errors") or weak["tracking_errors"][0] > 1.05 * found["tracking_errors"][0], weak
    assert run_here(capsys, *words, "--parameters", "p.yaml", "--terms", files / "terms.yaml", "--force")[0] == 2
    code, found = run_here(capsys, *words, "--proportional", 1.0, 2.0, "--force")
    assert code == 2 and "gains has 2 values" in found["error"]["message"]


@pytest.mark.slow
def test_steps_are_planned_through_identify(arm, files, capsys):
    names, regressor = arm.joint_names, Regressor(arm)
    sensors = Sensors(np.full(len(names), 0.02), 1e-5, None)
    for name, seed in (("motion", 0), ("held_out", 1)):
        motion, t = draw_random_fourier(arm, seed, period=5.0, share=0.5), sample_times(5.0, 200.0)
        recording = simulate_recording(regressor, arm.inertial_parameters, motion, t, sensors, seed)
        chunk = Chunk.join(list(recording.chunks(names)))
        write_npz(files / f"{name}.npz", names, chunk.t, q=chunk.q, tau=chunk.tau)
    config = (files / "config.yaml").read_text().replace("name: ridge", "name: stepwise, order: planned")
    (files / "planned.yaml").write_text(config)
    robot = ("--robot", files / "arm.urdf", "--config", files / "planned.yaml", "--out", files / "planned")
    _, found = run_here(capsys, "identify", files / "motion.npz", "--validate", files / "held_out.npz", *robot)
    assert found["held_out"]["all_joints_nrmse"] < 0.02, found


@pytest.mark.slow
def test_strokes_are_identified_from_the_angle(arm, files, capsys):
    """With 1e-3 rad of noise; the torque is mostly weight, which derivatives fit too."""
    n = len(arm.joint_names)
    lower, upper = np.maximum(arm.limits.lower, -2.0), np.minimum(arm.limits.upper, 2.0)
    motion = Logistic((lower + upper) / 2.0, 3.0, 1, tuple(reversed(range(n))), np.full(n, 0.8), np.full(n, 14.0))
    names, regressor = arm.joint_names, Regressor(arm)
    t = sample_times(motion.duration, 200.0)
    for name, seed, noise in (("strokes", 0, 1e-3), ("held_out", 1, 0.0)):
        sensors = Sensors(np.full(n, 0.02), noise, None)
        recording = simulate_recording(regressor, arm.inertial_parameters, motion, t, sensors, seed)
        chunk = Chunk.join(list(recording.chunks(names)))
        write_npz(files / f"{name}.npz", names, chunk.t, q=chunk.q, tau=chunk.tau)
    config = (files / "config.yaml").read_text()
    errors = {}
    for velocity in ("derivative", "logistic"):
        (files / f"{velocity}.yaml").write_text(f"{config}velocity: {velocity}\ncutoff: 8.0\nmotion_cutoff: 8.0\n")
        robot = ("--robot", files / "arm.urdf", "--config", files / f"{velocity}.yaml")
        words = ("identify", files / "strokes.npz", *robot)
        _, found = run_here(capsys, *words, "--validate", files / "held_out.npz", "--out", files / velocity)
        assert found["signals"]["velocity"] == velocity, found
        errors[velocity] = found["held_out"]["all_joints_nrmse"]
    assert max(errors.values()) < 2e-3, errors
