# SPDX-License-Identifier: Apache-2.0
"""Drives of a simulated arm, and the change between position and effort commands."""

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.drives import Drives
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.simulated_robot import EITHER, Actuation, SimulatedRobot

Q = np.array([0.2, 0.5, -0.4])


def robot():
    model = RobotModel.from_urdf(ARM)
    dynamics = make_nominal_dynamics(model, np.full(3, 0.5), np.full(3, 0.1), 0.0)
    return SimulatedRobot(dynamics, Q, 0.002, Actuation(EITHER, limit_effort=False))


def test_efforts_are_in_drive_units_and_encoders_are_before_the_backlash():
    drives = Drives(np.array([0.5, -0.1]), np.array([0.0, 0.02]))
    q, effort = drives.measured(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([1.0, -1.0]))
    np.testing.assert_allclose(q, [1.0, 1.99])
    np.testing.assert_allclose(effort, [6.0, -40.0])
    np.testing.assert_allclose(drives.torque(effort), [3.0, 4.0])
    assert not drives.direct and Drives(np.ones(2), np.zeros(2)).direct


def test_the_arm_is_held_until_the_first_effort_and_again_after_the_efforts_have_ended():
    arm = robot()
    for _ in range(50):
        arm.tick()
    np.testing.assert_allclose(arm.plant.q, Q, atol=1e-6)
    weight = arm.weight
    for _ in range(100):
        arm.command_effort(weight)
        arm.tick()
    np.testing.assert_allclose(arm.plant.q, Q, atol=1e-6)
    with pytest.raises(InputError, match="effort commands are being followed"):
        arm.take_positions()
    for _ in range(100):  # without commands: it falls
        arm.tick()
    fallen = arm.plant.q.copy()
    assert np.abs(fallen - Q).max() > 0.01
    arm.take_positions()
    for _ in range(500):
        arm.tick()
    assert np.abs(arm.plant.q - fallen).max() < 0.05 and np.abs(arm.plant.dq).max() < 1e-3


def test_efforts_do_not_end_a_trajectory():
    arm = robot()
    arm.controller.follow(
        TrajectoryPoints(np.array([1.0]), Q[None] + 0.1, np.zeros((1, 3)), np.zeros((1, 3))), 0.0, 0.0
    )
    arm.tick()
    with pytest.raises(InputError, match="a trajectory is being followed"):
        arm.command_effort(np.zeros(3))
