# SPDX-License-Identifier: Apache-2.0
"""The arms that benchmarks run on, ours and Pinocchio's."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel

ARMS = {
    "ur5": ("ur5_robot.urdf", ()),
    "panda": ("panda.urdf", ("panda_finger_joint1", "panda_finger_joint2")),
}
"""URDF in the wheel example-robot-data, and locked joints."""


NOISE = np.array([0.3, 0.6, 0.4, 0.4, 0.1, 0.1, 0.05])
"""Standard deviation of the efforts of an arm with joint-torque sensors [N m]."""


def true_parameters(robot: RobotModel) -> Array:
    """The URDF's inertias, made 5 to 15 % heavier joint by joint, with friction and sensor offsets."""
    bigger = np.repeat(np.linspace(1.15, 1.05, len(robot.body_names)), 10)
    size = np.linspace(1.0, 0.2, len(robot.joint_names))
    return np.concatenate([bigger * robot.inertial_parameters, 3.0 * size, 2.5 * size, 0.2 * size])


def urdf(arm: str) -> Path:
    """The file of an arm.

    Raises:
        InputError: example-robot-data is not installed.
    """
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        raise InputError("benchmarks need the robots of example-robot-data: pip install example-robot-data") from None
    return next(Path(str(file.locate())) for file in files if file.name == ARMS[arm][0])


def model(arm: str) -> RobotModel:
    """Our model."""
    whole = RobotModel.from_file(urdf(arm))
    return RobotModel.from_file(urdf(arm), [name for name in whole.joint_names if name not in ARMS[arm][1]])


def with_friction(arm: str) -> Regressor:
    """Our regressor with viscous and Coulomb friction and an offset on every joint."""
    robot = model(arm)
    return Regressor(robot, place_terms_on_joints(robot, [Viscous(), Coulomb(), Offset()]))


def peer(arm: str) -> Any:
    """Pinocchio's model."""
    whole = pinocchio.buildModelFromUrdf(str(urdf(arm)))
    held = [whole.getJointId(name) for name in ARMS[arm][1]]
    return pinocchio.buildReducedModel(whole, held, pinocchio.neutral(whole))


def mujoco_model(arm: str) -> Any:
    """MuJoCo's model, without shapes, the locked joints fixed; or why there is none."""
    try:
        import mujoco
    except ImportError:
        return "mujoco is not installed"
    root = ElementTree.parse(urdf(arm)).getroot()
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for joint in root.iter("joint"):
        if joint.get("name") in ARMS[arm][1]:
            joint.set("type", "fixed")
    try:
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    except ValueError as error:
        return f"MuJoCo refuses the URDF ({error})"


def motion(robot: RobotModel, samples: int, seed: int = 0) -> Motion:
    """Five random harmonics a joint at 100 samples per second, within limits of 2 rad, 2 rad/s."""
    rng = np.random.default_rng(seed)
    n, t = len(robot.joint_names), np.arange(samples) / 100.0
    w = 2 * np.pi * 0.1 * np.arange(1, 6)
    coefficients = rng.normal(size=(n, 5)) / np.arange(1, 6)
    phases = rng.uniform(0, 2 * np.pi, size=(n, 5))
    q, dq, ddq = (
        sum(
            (coefficients[:, h : h + 1] * w[h] ** d * np.sin(w[h] * t + phases[:, h : h + 1] + d * np.pi / 2))
            for h in range(5)
        )
        for d in range(3)
    )
    scale = np.minimum(2.0 / np.abs(q).max(axis=1), 2.0 / np.abs(dq).max(axis=1))[:, None]
    return Motion(scale * q, scale * dq, scale * ddq)


def by_sample(states: Motion) -> tuple[Array, Array, Array]:
    """The same motion as Pinocchio's loops like it: one contiguous row per sample."""
    return tuple(np.ascontiguousarray(x.T) for x in (states.q, states.dq, states.ddq))  # type: ignore[return-value]


def pinocchio_loop(robot: Any, states: tuple[Array, Array, Array], out: Array) -> None:
    """The peer that everybody has: one regressor after the other, into `out` of shape (N, n, 10 n)."""
    data, compute = robot.createData(), pinocchio.computeJointTorqueRegressor
    q, dq, ddq = states
    for k in range(len(q)):
        out[k] = compute(robot, data, q[k], dq[k], ddq[k])
