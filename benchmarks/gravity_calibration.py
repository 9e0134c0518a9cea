# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the gravity calibration of a simulated low-cost arm (so101) without torque sensors.

The planned motion of at most 110 s at 50 Hz; 12-bit encoders, 0.5 degrees of backlash, dry friction of 15 % of each
joint's peak gravity torque, unknown gains of both signs, masses off by up to 30 %, drive noise and rounding. Scored by
the RMS of the error of the drive's gravity effort relative to its RMS, joint by joint, on 200 poses not used before.

    python benchmarks/gravity_calibration.py --draws 20
"""

from __future__ import annotations

import sys
from pathlib import Path

from measuring import at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import argparse

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))

from support.low_cost_arm import LowCostArm
from support.robots import URDFS, robot

from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.design.planning import make_motion_limits
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.loads.gravity import calibrate_gravity
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.packages import list_folders_above
from robot_dyn_id.workflow.gravity_poses import plan_gravity_poses


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Gravity calibration of a simulated so101.")
    parser.add_argument("--draws", type=int, default=20, help="draws of masses, gains and noise")
    draws = parser.parse_args().draws
    model = robot("so101")
    limits, _ = make_motion_limits(DesignSettings(), model)
    clearance = Clearance(model, folders=list_folders_above(str(URDFS["so101"])))
    motion = plan_gravity_poses(model, limits, clearance)
    print(f"{motion.poses} poses in {motion.times[-1]:.0f} s, checked by {clearance.basis}")
    errors = []
    for seed in range(draws):
        arm = LowCostArm(model, seed)
        found = calibrate_gravity(model, find_holds([arm.record((motion.times, motion.points))], model.joint_names))
        rng = np.random.default_rng(10_000 + seed)
        q = rng.uniform(model.limits.lower, model.limits.upper, (200, len(model.joint_names))).T
        true = arm.effort(q)
        errors.append(np.sqrt(((found.effort(model, q) - true) ** 2).mean(axis=1) / (true**2).mean(axis=1)))
    for name, values in zip(model.joint_names, np.array(errors).T, strict=True):
        print(f"| {name} | {100.0 * np.median(values):.2f} % | {100.0 * values.max():.2f} % |")
    print(table([at_most(f"gravity effort, worst joint of {draws} draws, RMS", float(np.max(errors)), 0.05)]))


if __name__ == "__main__":
    main()
