# SPDX-License-Identifier: Apache-2.0
"""The method of planar3r on an arm of seven axes, through ordinary commands, in a small form: docs/papers/README.md."""

from functools import partial

import numpy as np
import pytest
from support.commands import run_here
from support.robots import URDFS, panda_arm

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

TERMS = (Viscous(), Coulomb(0.02))

CONFIGURATION = """\
identify: [{joints}]
terms:
  viscous:
  coulomb: {{smoothing_width: 0.02}}
velocity: derivative
estimator: stepwise
reversal_speed: 0.05
rest_speed: 0.001
"""

DESIGN = """\
period: {period}
clearance: 0.0
search: {{draws: 4, starts: 1, finished: 1, steps: 2}}
"""


class Arm:
    """An arm that is heavier than its URDF by 20 %, and its sensors."""

    def __init__(self, model, folder):
        self.regressor = Regressor(model, place_terms_on_joints(model, TERMS))
        friction = [
            2.0 if name.startswith("fv") else 1.0 for name in self.regressor.names[10 * len(model.body_names) :]
        ]
        self.truth = np.array([*1.2 * model.inertial_parameters, *friction])
        n = len(model.joint_names)
        self.sensors = Sensors(np.full(n, 0.1), 1e-6, 1e-4)
        self.folder = folder

    def record(self, name, motion, seconds, seed):
        """Recording of a motion as a file."""
        t = sample_times(seconds, 100.0)
        made = simulate_recording(self.regressor, self.truth, motion, t, self.sensors, seed)
        file = self.folder / f"{name}.npz"
        np.savez(file, t=made.samples.t, q=made.samples.q, tau=made.samples.tau, joint_names=made.joint_names)
        return file


@pytest.mark.slow
def test_one_joint_at_a_time_identifies_an_arm(tmp_path, capsys):
    model = panda_arm()
    urdf, configuration, demands = URDFS["panda"], tmp_path / "config.yaml", tmp_path / "design.yaml"
    configuration.write_text(CONFIGURATION.format(joints=", ".join(model.joint_names)))
    demands.write_text(DESIGN.format(period=2.0))

    run = partial(run_here, capsys)
    inertial = tmp_path / "joints.yaml"
    inertial.write_text(f"identify: [{', '.join(model.joint_names)}]\nterms: {{}}\n")
    code, base = run("base", "--robot", urdf, "--config", inertial, "--pivots", "rref")
    assert code == 0 and base["count"] == 43
    words = ("--robot", urdf, "--form", "sequential_sine", "--design", demands, "--config", configuration)
    code, found = run("design", *words, "--out", tmp_path / "motion")
    assert code == 1 and found["collision_check"] == "not_checked" and found["condition_number"]["value"] < 100.0
    motion = read_trajectory(found["trajectory_file"]).excitation
    assert len(motion.centers) == 2
    arm = Arm(model, tmp_path)
    recorded = arm.record("sines", motion, motion.duration, 0)
    other = arm.record("other", draw_random_fourier(model, 1, 10.0), 10.0, 1)
    code, result = run(
        *("identify", recorded, "--validate", other, "--robot", urdf, "--config", configuration),
        *("--out", tmp_path / "run"),
    )
    assert code == 0 and result["held_out"]["all_joints_nrmse"] < 0.05
    code, simulated = run(
        *("simulate", "--robot", urdf, "--parameters", result["parameters_file"], "--trajectory"),
        *(found["trajectory_file"], "--rate", 100, "--out", tmp_path / "forward.npz"),
    )
    assert code == 0 and np.isfinite(np.load(simulated["file"])["tau"]).all()


@pytest.mark.slow
def test_the_same_files_give_a_model_that_can_be_simulated(tmp_path, capsys):
    """The mass matrix of `stepwise` is indefinite on Z1, and `simulate` refuses it; that of `consistent` is not."""
    whole = RobotModel.from_file(URDFS["z1"])
    model = RobotModel.from_file(URDFS["z1"], [name for name in whole.joint_names if "ripper" not in name])
    configuration, demands = tmp_path / "config.yaml", tmp_path / "design.yaml"
    configuration.write_text(CONFIGURATION.format(joints=", ".join(model.joint_names)))
    demands.write_text(DESIGN.format(period=3.0))
    run, urdf = partial(run_here, capsys), URDFS["z1"]
    words = ("--robot", urdf, "--form", "sequential_sine", "--design", demands, "--config", configuration)
    _, found = run("design", *words, "--out", tmp_path / "motion")
    motion = read_trajectory(found["trajectory_file"]).excitation
    arm = Arm(model, tmp_path)
    recorded = arm.record("sines", motion, motion.duration, 0)
    other = arm.record("other", draw_random_fourier(model, 1, 10.0), 10.0, 1)
    codes = {}
    for estimator in ("stepwise", "consistent"):
        identified = ("identify", recorded, "--validate", other, "--robot", urdf, "--config", configuration)
        _, result = run(*identified, "--estimator", estimator, "--out", tmp_path / estimator)
        known = ("simulate", "--robot", urdf, "--parameters", result["parameters_file"])
        path = ("--trajectory", found["trajectory_file"], "--rate", 100, "--out", tmp_path / f"{estimator}.npz")
        codes[estimator] = run(*known, *path)[0]
    assert codes == {"stepwise": 3, "consistent": 0}
    parameters = read_parameters(tmp_path / "consistent" / "parameters.yaml")
    states = draw_random_fourier(model, 1, 10.0, share=0.5).evaluate(sample_times(10.0, 100.0))
    q, dq, ddq = states[:3]
    tau = arm.regressor.torque(Motion(q, dq, ddq), arm.truth)
    accelerations = Dynamics.from_parameters(parameters).forward_dynamics(q.T, dq.T, tau.T).T
    fast = np.abs(dq) > 0.1
    found = [np.corrcoef(a[own], t[own])[0, 1] for a, t, own in zip(accelerations, ddq, fast, strict=True)]
    assert min(found[:3]) > 0.99 and min(found[:5]) > 0.9
