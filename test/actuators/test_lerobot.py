# SPDX-License-Identifier: Apache-2.0
"""Drives of a low-cost arm from an episode of LeRobot at 30 Hz: `action` and `observation.state` in degrees."""

import json

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.robots import URDFS

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.recordings import ColumnMeaning, open_recording
from robot_dyn_id.workflow.actuators import DriveSettings, identify_actuators

RATE = 30.0
TICKS = 4096
DELAY = 0.03
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
"""Without the gripper, whose unit is percent."""

FINER = 60
"""Steps of the simulated truth per sample."""


@pytest.fixture(scope="module")
def robot():
    if "so101" not in URDFS:
        pytest.skip("example-robot-data is not installed")
    return RobotModel.from_file(URDFS["so101"], JOINTS)


def make_truth():
    return ActuatorModel(
        JOINTS,
        armature=np.array([0.006, 0.008, 0.005, 0.003, 0.002]),
        viscous=np.array([0.06, 0.07, 0.05, 0.02, 0.01]),
        coulomb=np.array([0.12, 0.15, 0.1, 0.05, 0.03]),
        offset=np.array([0.01, -0.05, 0.02, 0.01, 0.0]),
        delay=np.full(5, DELAY),
        kp=np.array([9.0, 14.0, 10.0, 4.0, 3.0]),
        kd=np.array([0.35, 0.6, 0.4, 0.12, 0.1]),
        limit=np.full(5, np.inf),
    )


def write_episode(folder, robot, seed):
    """Episode of a teleoperated arm: slow waves of the commands of all joints, and some quick ones."""
    rng = np.random.default_rng(seed)
    n, t = len(JOINTS), np.arange(0.0, 20.0, 1.0 / RATE)
    center = np.clip(np.zeros(n), robot.limits.lower + 0.5, robot.limits.upper - 0.5)
    action = np.tile(center, (len(t), 1))
    for _ in range(6):
        frequency, phase, size = rng.uniform(0.1, 1.2, n), rng.uniform(0.0, 6.28, n), 0.15 * rng.uniform(0.3, 1.0, n)
        action += size * (np.sin(2.0 * np.pi * frequency * t[:, None] + phase) - np.sin(phase))
    fine, held = np.arange(len(t) * FINER) / (RATE * FINER), np.repeat(action, FINER, axis=0)
    q = simulate_commands(robot, make_truth(), CommandedMotion("truth", JOINTS, fine, held, held))[::FINER]
    state = 360.0 / TICKS * np.round(np.degrees(q) * TICKS / 360.0)
    columns = {"action": np.degrees(action), "observation.state": state}
    table = {name: [list(row) for row in values.astype(np.float32)] for name, values in columns.items()}
    path = folder / f"data/chunk-000/episode_{seed:06d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "meta").mkdir(exist_ok=True)
    names = [f"{name}.pos" for name in JOINTS]
    (folder / "meta/info.json").write_text(json.dumps({"features": {"observation.state": {"names": names}}}))
    write_table(pyarrow.table({**table, "timestamp": t.astype(np.float32)}), path)
    return open_recording(path, columns=ColumnMeaning(position_unit="deg"))


@pytest.fixture(scope="module")
def episodes(robot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data_set")
    return [write_episode(folder, robot, seed) for seed in range(2)]


@pytest.mark.slow
def test_gains_that_are_given_make_everything_else_known(robot, episodes):
    truth = make_truth()
    gains = (dict(zip(JOINTS, values.tolist(), strict=True)) for values in (truth.kp, truth.kd))
    result = identify_actuators(robot, episodes[0], episodes[1], DriveSettings(*gains))
    assert result.fit_for_simulation == "yes"
    assert result.held_out.rms(np.inf) < 2.0 * np.pi / TICKS  # a tick of the encoders
    np.testing.assert_allclose(result.actuators.delay, DELAY, atol=1e-3)
    np.testing.assert_allclose(result.actuators.coulomb, truth.coulomb, rtol=0.05)
    np.testing.assert_allclose(result.actuators.armature, truth.armature, rtol=0.1)


@pytest.mark.slow
def test_without_gains_only_joints_that_carry_weight_have_a_scale(robot, episodes):
    truth = make_truth()
    result = identify_actuators(robot, episodes[0], episodes[1])
    found = result.actuators
    assert result.held_out.rms(np.inf) < 2.0 * np.pi / TICKS
    np.testing.assert_allclose(found.delay, DELAY, atol=1e-3)
    np.testing.assert_allclose(found.kp[[1, 2, 3]], truth.kp[[1, 2, 3]], rtol=0.05)
    for kind in ("armature", "coulomb"):  # ratios are known of all joints
        ratio, true = (getattr(one, kind) / one.kp for one in (found, truth))
        np.testing.assert_allclose(ratio, true, rtol=0.1)
    findings = {finding.code: finding for finding in result.findings}
    assert set(findings["actuator_scale_of_links"].joints) == set(JOINTS)
    confounded = [one for one in result.findings if one.code == "actuator_confounded"]
    scale = next(one for one in confounded if "wrist_roll" in one.joints)
    assert {"armature", "coulomb", "kp", "kd"} <= set(scale.message.replace(",", "").split())
    assert scale.action == "give the gains of the drive"
