# SPDX-License-Identifier: Apache-2.0
"""Identification from an `.npz` file: t [s] (N,), q [rad], dq [rad/s], tau [N m] (N, joints) and joint_names.

python examples/2_identify_npz.py [FOLDER]

The plot needs the extra `plot` (matplotlib), and is left out without it.
"""

import sys
from pathlib import Path

import simulated_arm

import robot_dyn_id as rdi


def main(folder: Path) -> rdi.ParameterSet:
    """Identify an arm, print and save the result, and return the parameters."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    file = simulated_arm.write_recording(robot, folder / "recording.npz", seed=1)
    result = rdi.identify(robot, rdi.open_recording(file))
    print(result)
    result.save(folder / "run")
    try:
        result.plot().savefig(folder / "torque.png")
    except rdi.RobotDynIdError as error:
        print(error)
    return result.parameters


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
