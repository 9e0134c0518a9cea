# SPDX-License-Identifier: Apache-2.0
"""A simulated arm for the examples: its URDF, and recordings of it with sensor noise.

The arm is 15 % heavier than its URDF states, and its joints have friction: this is what the examples identify.
"""

from pathlib import Path

import numpy as np

import robot_dyn_id as rdi
from robot_dyn_id.excitation import draw_random_fourier

JOINT = """
  <joint name="{name}" type="revolute">
    <parent link="{parent}"/><child link="{child}"/>
    <origin xyz="0 0 0.3" rpy="0.1 0.2 0.3"/><axis xyz="{axis}"/>
    <limit lower="-2" upper="2" velocity="4" effort="50"/>
  </joint>
  <link name="{child}">
    <inertial>
      <origin xyz="0.03 0.02 0.12"/><mass value="{mass}"/>
      <inertia ixx="0.03" ixy="0.001" ixz="0.002" iyy="0.032" iyz="0.001" izz="0.008"/>
    </inertial>
  </link>"""

JOINTS = (
    {"name": "shoulder", "parent": "base", "child": "link1", "axis": "0 0 1", "mass": 4.0},
    {"name": "elbow", "parent": "link1", "child": "link2", "axis": "0 1 0", "mass": 2.5},
    {"name": "wrist", "parent": "link2", "child": "link3", "axis": "1 0 0", "mass": 1.2},
)

MASS_RATIO = 1.15
"""Masses and inertias of the simulated arm over those of its URDF."""

VISCOUS = np.array([1.5, 1.0, 0.4])
"""Viscous friction [N m s/rad]."""

COULOMB = np.array([1.0, 0.8, 0.3])
"""Coulomb friction [N m]."""

NOISE = 0.05
"""Standard deviation of the torque noise [N m]."""


def write_urdf(folder: Path) -> Path:
    """Write `arm.urdf` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "arm.urdf"
    links = "".join(JOINT.format(**joint) for joint in JOINTS)
    file.write_text(f'<robot name="arm">\n  <link name="base"/>{links}\n</robot>\n')
    return file


def friction(dq: np.ndarray) -> np.ndarray:
    """Friction torque at joint velocities [rad/s], shape (N, 3)."""
    return VISCOUS * dq + COULOMB * np.tanh(dq / 0.01)


def simulate(robot: rdi.RobotModel, seed: int, duration: float = 20.0, payload: np.ndarray | None = None) -> dict:
    """Channels of a recording of a random motion within the limits, at 100 Hz.

    Args:
        robot: the model of `arm.urdf`.
        seed: seed of the motion and of the noise.
        duration: duration [s].
        payload: ten inertial parameters of a body fixed to the last joint, in its frame.
    """
    t = np.arange(round(100 * duration)) / 100.0
    q, dq, ddq = (values.T for values in draw_random_fourier(robot, seed).evaluate(t)[:3])
    parameters = MASS_RATIO * robot.inertial_parameters
    if payload is not None:
        parameters[-10:] += payload
    dynamics = rdi.Dynamics(rdi.Regressor(robot), np.arange(len(parameters)), parameters)
    noise = NOISE * np.random.default_rng(seed).normal(size=q.shape)
    tau = dynamics.inverse_dynamics(q, dq, ddq) + friction(dq) + noise
    return {"t": t, "joint_names": np.array(robot.joint_names), "q": q, "dq": dq, "tau": tau}


def write_recording(robot: rdi.RobotModel, file: Path, seed: int, **options) -> Path:
    """Write a recording of the simulated arm as `.npz`; for `options` see `simulate`."""
    np.savez(file, **simulate(robot, seed, **options))
    return file
