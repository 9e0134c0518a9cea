# SPDX-License-Identifier: Apache-2.0
"""Gravity calibration and compensation of the simulated desktop arm of `gravity_calibration.launch.py`, without ROS.

The arm of `config/so101.yaml`: servo drives that follow the planned poses as proportional controllers at 50 Hz, dry
friction, backlash, 12-bit encoders, masses that differ from the URDF's. After the calibration the drives are left to
the compensation in random poses: how far does the free arm drift?

    python benchmarks/gravity_flow.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from measuring import at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import argparse

import numpy as np
import yaml

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.design.planning import make_motion_limits
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.loads.gravity import calibrate_gravity
from robot_dyn_id.loads.gravity_compensation import GravityCompensation, GravityLaw
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.simulator_settings import SimulatorSettings
from robot_dyn_id.simulation.simulated_driver import SimulatedDriver
from robot_dyn_id.simulation.simulated_robot import follow
from robot_dyn_id.workflow.gravity_poses import plan_gravity_poses

ROOT = Path(__file__).parents[1]
URDF = ROOT / "urdf" / "so101.urdf"


class Arm:
    """The simulated arm as its driver shows it."""

    def __init__(self, settings: SimulatorSettings, q: np.ndarray) -> None:
        """Hold the position `q` [rad]."""
        self.dynamics = settings.nominal(RobotDescription.from_file(URDF))
        names = self.dynamics.regressor.model.joint_names
        self.drives, self.robot = settings.drives(names), settings.robot(self.dynamics)
        self.driver = SimulatedDriver(self.robot, self.drives, settings.sensors(names))
        self.robot.plant.q[:] = q
        self.robot.controller.cancel(q)
        self._ticks = settings.ticks_per_message

    def read(self) -> np.ndarray:
        """Positions, velocities and efforts of the next joint state, shape (3, n)."""
        for _ in range(self._ticks):
            state = self.robot.tick()
        return self.driver.measure(state)


def settings_of_the_arm(**others: object) -> SimulatorSettings:
    """Parameters of the simulator in `config/so101.yaml`."""
    given = yaml.safe_load((ROOT / "config" / "so101.yaml").read_text())["/**/simulator"]["ros__parameters"]
    given["terms"] = str(ROOT / "config" / "terms" / "so101.yaml")
    return SimulatorSettings(**{key: tuple(x) if isinstance(x, list) else x for key, x in {**given, **others}.items()})


def drift(settings: SimulatorSettings, law: GravityLaw, rated: np.ndarray, q: np.ndarray, seconds: float) -> np.ndarray:
    """Largest distance of each joint from a pose in which the drives are left to the compensation [rad], shape (n,)."""
    arm = Arm(settings, q)
    for _ in range(50):
        arm.read()
    begin, farthest = arm.robot.plant.q.copy(), np.zeros(len(q))
    control = GravityCompensation(law, 1.0).make_control(rated, 1.0, 0.1)
    for number in range(round(seconds * settings.publish_rate)):
        position, _, effort = arm.read()
        now = (number + 1) / settings.publish_rate
        control.guard.receive(now, now, now, position)
        command = control.respond((position,), now, True, effort)
        if command is not None:
            arm.driver.command(command)
        farthest = np.maximum(farthest, np.abs(arm.robot.plant.q - begin))
    return farthest


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Gravity calibration and compensation of a simulated so101.")
    parser.add_argument("--poses", type=int, default=20, help="poses in which the arm is left to the compensation")
    poses = parser.parse_args().poses
    model, settings = RobotModel.from_file(URDF), settings_of_the_arm()
    motion = plan_gravity_poses(model, make_motion_limits(DesignSettings(), model)[0], Clearance(model))
    arm = Arm(settings, motion.points[:, 0])
    follow(arm.robot, motion.path)
    states = np.array([arm.read() for _ in range(round((motion.times[-1] + 0.5) * settings.publish_rate))])
    times = np.arange(len(states)) / settings.publish_rate
    recording = ArrayRecording("arm", model.joint_names, Chunk(times, states[:, 0], states[:, 1], states[:, 2]))
    holds = find_holds([recording], model.joint_names)
    found = calibrate_gravity(model, holds)
    rng = np.random.default_rng(7)
    q = rng.uniform(model.limits.lower, model.limits.upper, (200, len(model.joint_names)))
    true = arm.dynamics.gravity(q).T / arm.drives.gains[:, None]
    errors = np.sqrt(((found.effort(model, q.T) - true) ** 2).mean(axis=1) / (true**2).mean(axis=1))
    print(f"{motion.poses} poses in {motion.times[-1]:.0f} s, {len(holds)} holds")
    law = GravityLaw(model, found.by_joint)
    drifts = np.array([drift(settings, law, found.largest, pose, 10.0) for pose in 0.8 * q[:poses]])
    for row in zip(model.joint_names, errors, found.residual_rms, found.friction, found.largest, drifts.T, strict=True):
        name, error, residual, friction, largest, farthest = row
        print(
            f"| {name} | {100 * error:.2f} % | {residual:.3g} | {friction:.3g} | {largest:.3g} | "
            f"{1e3 * np.median(farthest):.2f} mrad | {1e3 * farthest.max():.2f} mrad |"
        )
    heavy = found.carries_weight & (found.gravity_rms > found.friction)
    print(table([at_most("gravity effort of joints with weight, RMS", float(errors[heavy].max()), 0.05)]))


if __name__ == "__main__":
    sys.exit(main())
