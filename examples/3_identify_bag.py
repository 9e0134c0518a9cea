# SPDX-License-Identifier: Apache-2.0
"""Identification from a rosbag2 recording of sensor_msgs/JointState, with trials to train on and one to validate on.

python examples/3_identify_bag.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import simulated_arm

import robot_dyn_id as rdi
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag


def write_bag(robot: rdi.RobotModel, folder: Path, seed: int) -> Path:
    """Write what a recorder would have written; with a real robot, use `ros2 bag record /joint_states`."""
    recorded = simulated_arm.simulate(robot, seed)
    stamps = np.round(1e9 * recorded["t"]).astype(np.int64)
    channels = {name: recorded[name] for name in ("q", "dq", "tau")}
    write_joint_state_bag(folder, "/joint_states", robot.joint_names, StampedSamples(stamps, **channels))
    return folder


def main(folder: Path) -> rdi.ParameterSet:
    """Identify an arm from two bags, validate it on a third, and return the parameters."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    bags = [rdi.open_recording(write_bag(robot, folder / f"bag{seed}", seed)) for seed in (1, 2, 3)]
    result = rdi.identify(robot, bags[:2], held_out=bags[2])
    print(result)
    return result.parameters


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
