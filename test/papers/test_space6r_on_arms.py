# SPDX-License-Identifier: Apache-2.0
"""The method of the space manipulator's paper on other arms through ordinary commands; see docs/papers/README.md."""

import numpy as np
import pytest
from support.commands import run_here
from support.robots import panda_arm
from support.simulated import save_npz

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.excitation import MotionLimits, draw_random_fourier
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.term_values import read_term_values
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

VELOCITY = 0.06
TERMS = f"""improved_stribeck: {{stribeck_velocity: {VELOCITY}, fci: 6.0, dfi: 3.0, kva: 5.0, kvb: 0.2, kvc: 0.3}}
rotor_inertia: {{Ir: 0.4}}
"""


def files(folder, model):
    """Two recordings of the arm with Stribeck friction, its URDF, and a slow trajectory."""
    (folder / "arm.urdf").write_text(model.urdf)
    (folder / "terms.yaml").write_text(TERMS)
    valued = read_term_values(folder / "terms.yaml", model)
    regressor = Regressor(model, tuple((at, term) for at, term, _ in valued))
    parameters = np.concatenate([model.inertial_parameters, *(values for *_, values in valued)])
    for seed, name in ((1, "data"), (2, "other")):
        sensors = Sensors(np.full(len(model.joint_names), 0.1), 1e-6, 1e-4)
        motion = draw_random_fourier(model, seed, share=0.5)
        save_npz(
            folder / f"{name}.npz",
            simulate_recording(regressor, parameters, motion, sample_times(20.0, 200.0), sensors, seed),
        )
    limits = MotionLimits.from_model(model, (1e3,), jerk=(1e6,))
    stored = StoredExcitation.from_excitation(model, limits, draw_random_fourier(model, 3, share=0.3), "")
    write_trajectory(folder / "trajectory.yaml", stored)


@pytest.mark.slow
def test_identified_stribeck_friction_is_simulated_and_validated(tmp_path, capfd):
    files(tmp_path, panda_arm())
    robot = ("--robot", tmp_path / "arm.urdf")
    config = ("--config", find_shared_file("config/identification/space6r.yaml"))
    identified = ("identify", tmp_path / "data.npz", *robot, *config, "--validate", tmp_path / "other.npz")
    code, found = run_here(capfd, *identified, "--out", tmp_path / "run")
    assert code == 0 and found["held_out"]["all_joints_nrmse"] < 0.05
    parameters = read_parameters(tmp_path / "run" / "parameters.yaml")
    velocities = [
        value
        for constant, value in zip(parameters.terms.constant_names, parameters.terms.constant_values, strict=True)
        if constant == "improved_stribeck.stribeck_velocity"
    ]
    assert velocities == pytest.approx([VELOCITY] * len(velocities), rel=0.1)
    known = (*robot, "--parameters", tmp_path / "run" / "parameters.yaml")
    code, moved = run_here(
        capfd, "simulate", *known, "--trajectory", tmp_path / "trajectory.yaml", "--out", tmp_path / "moved.npz"
    )
    assert code == 0 and max(moved["largest_distance"].values()) < 5e-3
    code, validated = run_here(capfd, "validate", tmp_path / "moved.npz", *known)
    error = validated["held_out"]["all_joints_nrmse"]
    assert error < found["held_out"]["all_joints_nrmse"], "the torque of forward dynamics is that of the model"
