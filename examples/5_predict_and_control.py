# SPDX-License-Identifier: Apache-2.0
"""Use of an identified model: torque along a recording, computed-torque control, and forward simulation.

python examples/5_predict_and_control.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import simulated_arm

import robot_dyn_id as rdi


def computed_torque(dynamics: rdi.Dynamics, state: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Computed torque [N m]: the motion errors are made to decay like a critically damped system of 10 rad/s.

    Args:
        dynamics: dynamics of the robot.
        state: measured position [rad] and velocity [rad/s], shape (2, n).
        reference: reference position, velocity and acceleration, shape (3, n).
    """
    q, dq = state
    acceleration = reference[2] + 20.0 * (reference[1] - dq) + 100.0 * (reference[0] - q)
    return dynamics.inverse_dynamics(q, dq, acceleration)


def main(folder: Path) -> float:
    """Predict, control and simulate, and return the relative prediction error."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    training = simulated_arm.write_recording(robot, folder / "recording.npz", seed=1)
    rdi.identify(robot, rdi.open_recording(training)).save(folder / "run")
    parameters = rdi.load_parameters(folder / "run" / "parameters.yaml")

    other = rdi.open_recording(simulated_arm.write_recording(robot, folder / "other.npz", seed=2, duration=10.0))
    prediction = rdi.predict(parameters, other)
    measured = np.concatenate([chunk.tau for chunk in other.chunks(robot.joint_names)])
    error = float(np.linalg.norm(prediction.tau - measured) / np.linalg.norm(measured))
    print(f"predicted {len(prediction.t)} samples; relative error {error:.1%}")

    dynamics = rdi.make_dynamics(parameters)
    state, reference = np.zeros((2, 3)), np.array([[0.1, 0.1, 0.1], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    print("gravity torque:", dynamics.gravity(state[0]).round(3))
    print("mass matrix:", dynamics.mass_matrix(state[0]).round(4), sep="\n")
    print("computed torque:", computed_torque(dynamics, state, reference).round(3))

    simulated = rdi.simulate(parameters, other, restart=0.5)
    print("largest distance from the recorded motion within 0.5 s [rad]:", simulated.distance.round(4))
    return error


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
