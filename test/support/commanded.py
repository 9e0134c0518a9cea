# SPDX-License-Identifier: Apache-2.0
"""Simulated arms under position commands, with actuators that are known."""

import numpy as np

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.files.actuators import FORMAT
from robot_dyn_id.kernels.actuators import KINDS
from robot_dyn_id.model.description import hash_description
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.recordings import write_npz
from support.simulated import ARM

MODEL = RobotModel.from_urdf(ARM)

QUICK_DESIGN = {
    "clearance": 0.0,
    "effort_scale": 0.0,
    "acceleration": {"all": 15.0},
    "velocity_limit": dict.fromkeys(MODEL.joint_names, 2.0),
    "search": {"draws": 10, "starts": 1, "finished": 1, "steps": 15},
}
"""Demands on a motion of this arm, found in a second."""

TRUTH = ActuatorModel(
    MODEL.joint_names,
    armature=np.array([0.12, 0.08, 0.02]),
    viscous=np.array([0.4, 0.3, 0.1]),
    coulomb=np.array([0.6, 0.5, 0.2]),
    offset=np.array([0.1, -0.2, 0.05]),
    delay=np.full(3, 0.008),
    kp=np.array([60.0, 50.0, 20.0]),
    kd=np.array([3.0, 2.0, 0.5]),
    limit=np.full(3, np.inf),
)
"""Actuators of the arm that the tests share."""


def command(model, duration=10.0, rate=100.0, seed=0, amplitude=0.5, fastest=3.0):
    """Times and references: chirps of all joints at once, with random phases."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1.0 / rate)
    sweep = 2.0 * np.pi * (0.2 * t + 0.5 * (fastest - 0.2) / duration * t**2)
    fade = np.minimum(1.0, t / 0.5)[:, None]
    n = len(model.joint_names)
    scale, phase = rng.uniform(0.6, 1.0, n), rng.uniform(0.0, 2.0 * np.pi, n)
    wave = np.sin(rng.uniform(0.8, 1.2, n) * sweep[:, None] + phase) + 0.4 * np.sin(2.3 * sweep[:, None] + 2.0 * phase)
    return t, amplitude * fade * scale * wave


def record(model=MODEL, truth=TRUTH, noise=1e-4, seed=0, **command_options):
    """A motion of a simulated robot, without its first second; noise of the encoders [rad], normal."""
    t, reference = command(model, seed=seed, **command_options)
    start = CommandedMotion("simulated", model.joint_names, t, reference, reference)
    q = simulate_commands(model, truth, start)
    q = q + noise * np.random.default_rng(seed + 1000).normal(size=q.shape)
    motion = CommandedMotion(f"run {seed}", model.joint_names, t, q, reference)
    return motion.part(int(np.searchsorted(t, 1.0)), len(t))


def save(path, motion, **gains):
    """Write a motion as `.npz`, with gains."""
    write_npz(path, motion.joint_names, motion.t, q=motion.q, reference=motion.reference, **gains)


def save_actuators(path, actuators=TRUTH, urdf=ARM):
    """Write actuators as `actuators.yaml`, without what simulations do not need."""
    joints = [
        {
            "name": name,
            **{kind: {"value": value} for kind, value in zip(KINDS, column, strict=True) if np.isfinite(value)},
        }
        for name, column in zip(actuators.joint_names, actuators.values.T.tolist(), strict=True)
    ]
    gravity = MODEL.gravity.tolist()
    FORMAT.write(path, {"urdf_sha256": hash_description(urdf), "gravity": gravity, "held": {}, "joints": joints})
    return path
