# SPDX-License-Identifier: Apache-2.0
"""Design of an excitation: the periodic motion within the robot's limits that determines its parameters best.

python examples/4_design_excitation.py [FOLDER]
"""

import sys
from pathlib import Path

import simulated_arm

import robot_dyn_id as rdi

QUICK = {"draws": 20, "starts": 2, "finished": 1, "steps": 20}
"""A short search; leave it out for the best motion."""


def main(folder: Path) -> float:
    """Design a motion, write `trajectory.yaml`, and return its condition number."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    # Collisions are not checked (clearance 0), because this robot has no shapes. Check them on a real robot.
    designed = rdi.design(robot, period=6.0, acceleration={"all": 5.0}, clearance=0.0, search=QUICK)
    print(designed)
    designed.save(folder / "trajectory.yaml")
    return designed.design.condition_numbers["columns"]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
