# SPDX-License-Identifier: Apache-2.0
"""A simulated robot behind its driver: units of the drives, sensors, wrenches and late commands."""

import math

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation import simulated_driver
from robot_dyn_id.simulation.drives import Drives
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_driver import SimulatedDriver
from robot_dyn_id.simulation.simulated_robot import EFFORT, Actuation, SensorStream, SimulatedRobot

GAINS = np.array([2.0, -4.0, 1.0])


def make(gains=GAINS, wait=math.inf):
    model = RobotModel.from_urdf(ARM)
    robot = SimulatedRobot(
        make_nominal_dynamics(model, np.zeros(3), np.zeros(3), 0.01),
        np.array([0.1, 0.2, 0.3]),
        1e-3,
        Actuation(EFFORT, False),
    )
    sensors = SensorStream(Sensors(np.zeros(3), 0.0, 0.0), 1000.0, 0.0, 0)
    return SimulatedDriver(robot, Drives(gains, np.zeros(3)), sensors, wait)


def test_efforts_are_commanded_and_measured_in_the_units_of_the_drives():
    driver = make()
    driver.command(np.array([1.0, 1.0, 1.0]))
    q, dq, torque = driver.robot.tick()
    np.testing.assert_allclose(torque, GAINS)
    measured = driver.measure((q, dq, torque))
    np.testing.assert_allclose(measured, [q, dq, np.ones(3)])
    with pytest.raises(InputError):
        driver.command(np.ones(2))


def test_a_wrench_acts_on_a_link_that_exists():
    driver, free = make(), make()
    driver.apply_wrench("l3", np.ones(6), 0.1)
    pushed, alone = ([one.robot.tick() for _ in range(10)][-1][0] for one in (driver, free))
    assert np.abs(pushed - alone).max() > 1e-9
    with pytest.raises(InputError, match="no link is called empty; the links are"):
        driver.apply_wrench("", np.ones(6), 0.1)


def test_time_waits_for_a_late_command_but_not_for_long(monkeypatch):
    driver = make(wait=0.002)
    assert not driver.waits, "before the first command"
    driver.command(np.zeros(3))
    for _ in range(4):
        driver.robot.tick()
    assert driver.waits
    now = simulated_driver.time.monotonic()
    monkeypatch.setattr(simulated_driver.time, "monotonic", lambda: now + simulated_driver.PAUSE_TIMEOUT_S)
    assert not driver.waits
