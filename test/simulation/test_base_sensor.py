# SPDX-License-Identifier: Apache-2.0
"""The simulated sensor under the base: momentum against Pinocchio, readings against Newton and Euler's equations."""

import numpy as np
import pinocchio
import pytest
from support.robots import panda_arm
from support.simulated import ARM, LIFT

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.loads.chain import find_joint_frames, simulate_chain
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.base_sensor import BaseSensor, WrenchErrors, compute_momentum
from robot_dyn_id.simulation.drives import Drives
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_driver import SimulatedDriver
from robot_dyn_id.simulation.simulated_robot import Actuation, SensorStream, SimulatedRobot, follow

PERIOD = 1e-3
EXACT = WrenchErrors()


@pytest.mark.parametrize("text", [ARM, LIFT], ids=["revolute", "prismatic"])
def test_momentum_and_weight_are_those_of_pinocchio(text):
    model, rng = RobotModel.from_urdf(text), np.random.default_rng(0)
    theirs = pinocchio.buildModelFromXML(text)
    data = theirs.createData()
    for q, dq in rng.normal(size=(5, 2, len(model.joint_names))):
        momentum, weight = compute_momentum(Kinematics(model), model.inertial_parameters, q, dq)
        about_center = pinocchio.computeCentroidalMomentum(theirs, data, q, dq)
        linear, center = about_center.linear, data.com[0]
        angular = about_center.angular + np.cross(center, linear)
        np.testing.assert_allclose(momentum, np.concatenate([linear, angular]), atol=1e-12)
        force = data.mass[0] * theirs.gravity.linear
        np.testing.assert_allclose(weight, np.concatenate([force, np.cross(center, force)]), atol=1e-12)


def make(model, errors=EXACT):
    n = len(model.joint_names)
    dynamics = make_nominal_dynamics(model, np.full(n, 0.5), np.full(n, 0.5), 0.01)
    start = draw_random_fourier(model, 3).evaluate(np.zeros(1))[0][:, 0]
    robot = SimulatedRobot(dynamics, start, PERIOD, Actuation(limit_effort=False))
    sensors = SensorStream(Sensors(np.zeros(n), 0.0, 0.0), 1.0 / PERIOD, 0.0, 0)
    return SimulatedDriver(robot, Drives(np.ones(n), np.zeros(n)), sensors, base=BaseSensor(robot, errors))


@pytest.mark.slow
def test_readings_along_a_motion_are_the_wrench_of_the_first_hinge():
    """Friction and efforts are internal: they do not change what the base carries."""
    model = panda_arm()
    driver = make(model)
    follow(driver.robot, draw_random_fourier(model, 3))
    states, readings = [], []
    for _ in range(3000):
        states.append(driver.tick()[:2])
        readings.append(driver.measure_wrench())
    q, dq = np.array(states).transpose(1, 2, 0)
    ddq = np.gradient(dq, PERIOD, axis=1)
    first = simulate_chain(model, Motion(q, dq, ddq), find_joint_frames(model))[0]
    moment, force = first.wrench[:3] + np.cross(first.hinge, first.wrench[3:], axis=0), first.wrench[3:]
    expected = -np.concatenate([force, moment])[:, 1:-1]
    found = np.array(readings).T[:, 1:-1]
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def settle(driver):
    """Until the arm is at rest."""
    for _ in range(2000):
        driver.tick()


@pytest.mark.slow
def test_at_rest_it_shows_the_weight_and_the_wrench_of_the_environment():
    driver = make(RobotModel.from_urdf(ARM))
    model, robot = driver.robot.plant.dynamics.model, driver.robot
    settle(driver)
    weight = compute_momentum(Kinematics(model), model.inertial_parameters, robot.plant.q, robot.plant.dq)[1]
    driver.tick()
    np.testing.assert_allclose(driver.measure_wrench(), weight, atol=1e-6)
    driver.apply_wrench("base", np.array([1.0, 2.0, 3.0, 0.4, 0.5, 0.6]), 1.0)
    driver.tick()
    driver.tick()
    pushed = driver.measure_wrench() - weight
    np.testing.assert_allclose(pushed, [1.0, 2.0, 3.0, 0.4, 0.5, 0.6], atol=1e-6)
    at = driver._placements["l3"]
    driver.apply_wrench("l3", np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0]), 1.0)
    external = robot.external_wrench
    pose = robot._kinematics.poses(robot.plant.q[:, None])
    force = pose.rotation[0, at.body] @ at.rotation @ [0.0, 0.0, 5.0]
    place = pose.position[0, at.body] + pose.rotation[0, at.body] @ at.position
    np.testing.assert_allclose(external, np.concatenate([force, np.cross(place, force)]))


@pytest.mark.slow
def test_noise_and_delay_are_those_that_are_given():
    model = RobotModel.from_urdf(ARM)
    driver, late = make(model, WrenchErrors(0.5, 0.02)), make(model, WrenchErrors(delay=0.01))
    settle(driver)
    settle(late)
    weight = compute_momentum(Kinematics(model), model.inertial_parameters, driver.robot.plant.q, np.zeros(3))[1]
    shown = []
    for _ in range(4000):
        driver.tick()
        shown.append(driver.measure_wrench() - weight)
    np.testing.assert_allclose(np.std(shown, axis=0), [0.5] * 3 + [0.02] * 3, rtol=0.1)
    late.apply_wrench("base", np.array([9.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 10.0)
    forces = []
    for _ in range(20):
        late.tick()
        forces.append(late.measure_wrench()[0])
    forces = np.array(forces)
    assert np.all(np.abs(forces[:9]) < 1e-3) and np.all(np.abs(forces[12:] - 9.0) < 1e-3), "10 ms"
