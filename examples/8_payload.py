# SPDX-License-Identifier: Apache-2.0
"""Payload: mass, center of mass and inertia of what an identified arm carries, from its joint torques.

python examples/8_payload.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import simulated_arm

import robot_dyn_id as rdi
from robot_dyn_id.loads.identification import identify_payload

MASS, CENTER = 1.5, np.array([0.02, 0.01, 0.10])
"""True payload: a point mass [kg] and its position in the frame of link3 [m]."""


def point_mass() -> np.ndarray:
    """The ten inertial parameters of the payload in the frame of the last joint."""
    x, y, z = CENTER
    inertia = np.array([y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y])
    return MASS * np.concatenate([[1.0], CENTER, inertia])


def main(folder: Path) -> float:
    """Identify the bare arm, then its payload, and return the mass."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    bare = simulated_arm.write_recording(robot, folder / "bare.npz", seed=1)
    loaded = simulated_arm.write_recording(robot, folder / "loaded.npz", seed=2, payload=point_mass())
    arm = rdi.identify(robot, rdi.open_recording(bare)).parameters
    payload, _ = identify_payload([rdi.open_recording(loaded)], arm, "link3", rdi.Settings())
    print(
        f"mass {payload.mass:.3f} kg (true {MASS}), center of mass {payload.center_of_mass.round(4)} m (true {CENTER})"
    )
    return payload.mass


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
