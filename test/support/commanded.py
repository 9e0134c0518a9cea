# SPDX-License-Identifier: Apache-2.0
"""Simulated arms under position commands, with actuators that are known."""

from dataclasses import fields, replace

import numpy as np

from robot_dyn_id.actuators.actuator_set import ActuatedRobot, ActuatorJudgment, ActuatorSet
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.actuators.uncertainty import ActuatorUncertainty
from robot_dyn_id.files.actuators import write_actuators
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB, DELAY, KINDS, LOWER_STOP
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


def command(model, duration=10.0, rate=100.0, seed=0, amplitude=0.5, fastest=3.0, center=0.0):
    """Times and references: chirps of all joints at once about a pose, with random phases."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1.0 / rate)
    sweep = 2.0 * np.pi * (0.2 * t + 0.5 * (fastest - 0.2) / duration * t**2)
    fade = np.minimum(1.0, t / 0.5)[:, None]
    n = len(model.joint_names)
    scale, phase = rng.uniform(0.6, 1.0, n), rng.uniform(0.0, 2.0 * np.pi, n)
    wave = np.sin(rng.uniform(0.8, 1.2, n) * sweep[:, None] + phase) + 0.4 * np.sin(2.3 * sweep[:, None] + 2.0 * phase)
    return t, center + amplitude * fade * scale * wave


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


GOOD = ActuatorJudgment("good", (), "yes")
"""Judgment that lets actuators be simulated."""


def make_uncertainty(actuators=TRUTH):
    """Uncertainty of armature and friction, value by value, and of one delay of all joints."""
    shape = len(KINDS), len(actuators.joint_names)
    index = np.full(shape, -1)
    index[[ARMATURE, COULOMB]] = np.arange(2 * shape[1]).reshape(2, -1)
    index[DELAY] = 2 * shape[1]
    half, between = (np.where(index >= 0, share * actuators.values, np.nan) for share in (0.1, 0.05))
    between[DELAY] = np.nan
    correlation = np.eye(2 * shape[1] + 1)
    correlation[0, -1] = correlation[-1, 0] = -1.0 / 3.0
    return ActuatorUncertainty(index, actuators.values - half, actuators.values + half, between, correlation)


def make_actuator_set(actuators=TRUTH, urdf=ARM, judgment=GOOD, uncertainty=None):
    """Actuators of the arm with an uncertainty, by default that of `make_uncertainty`."""
    nothing = np.zeros(0)
    robot = ActuatedRobot("arm", hash_description(urdf), (), nothing, MODEL.gravity, (), nothing)
    return ActuatorSet(robot, actuators, uncertainty or make_uncertainty(actuators), judgment)


def save_actuators(path, *arguments, **options):
    """Write the actuators of `make_actuator_set` as `actuators.yaml`."""
    write_actuators(path, make_actuator_set(*arguments, **options))
    return path


def make_awkward_actuators():
    """Actuators with held joints, other links, ends, infinite intervals, and numbers without a short text."""
    rng, third = np.random.default_rng(0), 1.0 / 3.0
    values = np.abs(rng.normal(size=(len(KINDS), 2)))
    values[LOWER_STOP:] = [[-np.inf, -third], [np.inf, third], [-np.inf, -0.1], [np.inf, 1e-300]]
    uncertainty = make_uncertainty(ActuatorModel.from_values(("wrist", "shoulder"), values))
    high = uncertainty.high.copy()
    high[ARMATURE, 1] = np.inf
    robot = ActuatedRobot(
        "arm",
        hash_description(ARM),
        ("elbow",),
        np.array([0.1]),
        np.array([0.1, third, -9.81]),
        ("wrist", "shoulder"),
        rng.uniform(0.1, 1.0, 20),
    )
    judgment = ActuatorJudgment("suspect", ("kp of wrist is 95 % off: check it", "it's odd"), "limited")
    actuators = ActuatorModel.from_values(("wrist", "shoulder"), values)
    return ActuatorSet(robot, actuators, replace(uncertainty, high=high), judgment)


def assert_same_actuators(one, other):
    """Both sets are equal to the last bit, types of the fields included."""
    for name, part in one.parts.items():
        for item in fields(part):
            value, expected = getattr(part, item.name), getattr(other.parts[name], item.name)
            assert type(value) is type(expected), (name, item.name)
            if isinstance(expected, np.ndarray):
                assert value.dtype == expected.dtype, (name, item.name)
                np.testing.assert_array_equal(value, expected, err_msg=f"{name}.{item.name}")
            else:
                assert value == expected, (name, item.name)
