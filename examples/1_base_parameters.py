# SPDX-License-Identifier: Apache-2.0
"""Base parameters: the combinations of inertial parameters that the torque of a robot depends on.

python examples/1_base_parameters.py [FOLDER]
"""

import sys
from pathlib import Path

import simulated_arm

import robot_dyn_id as rdi


def main(folder: Path) -> int:
    """Print the base parameters of an arm, and return their number."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    base = rdi.compute_base_parameters(rdi.Regressor(robot))
    print(f"{robot.name}: {len(base.column_names)} standard parameters, {len(base.names)} base parameters")
    for name, expression, unit in zip(base.names, base.expressions, base.units, strict=True):
        print(f"  {name:<6} = {expression} [{unit}]")
    print("not identifiable:", ", ".join(base.unidentifiable))
    return len(base.names)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
