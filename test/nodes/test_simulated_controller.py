# SPDX-License-Identifier: Apache-2.0
"""The simulator behind FollowJointTrajectory over real DDS: ends of goals, their codes and texts, controller_state."""

import importlib.util
import sys

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from robot_dyn_id.msg import ExcitationStatus as Status
from support.broken_packages import without_library
from support.excitation_cell import ARM, START, Cell
from support.goal_client import GoalClient
from support.ros_world import ros_arguments
from support.simulator_scene import DEEP, Commander, seconds, trajectory

from robot_dyn_id.nodes.simulator import Simulator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("control_msgs") is None, reason="control_msgs is not installed (test/interfaces/build.py)"
)
ACTION = "joint_trajectory_controller/follow_joint_trajectory"
WEAK = {"proportional_gains": "[500.0]", "derivative_gains": "[200.0]"}
"""Gains with which gravity displaces the arm by about 0.1 rad."""


class Driver:
    """A simulated arm and a client of its action."""

    def __init__(self, world, **parameters):
        from control_msgs.action import FollowJointTrajectory

        self.arm, self.result = Commander(world, **parameters), FollowJointTrajectory.Result
        self.client = GoalClient(world, FollowJointTrajectory, ACTION)

    def send(self, target, duration=0.5, names=None, **fields):
        return self.client.send(trajectory=trajectory(names or self.arm.names, target, duration), **fields)


def tolerances(**values):
    from control_msgs.msg import JointTolerance

    return [JointTolerance(name="joint1", **values)]


def test_a_goal_is_followed_reached_and_reported(world):
    from control_msgs.msg import JointTrajectoryControllerState

    driver = Driver(world, initial_position="[0.1, 0.2, 0.3]")
    states = world.heard(JointTrajectoryControllerState, "joint_trajectory_controller/controller_state", DEEP)
    world.until(lambda: states, what="controller_state")
    goal = driver.send([0.6, 0.1], names=driver.arm.names[1:], goal_tolerance=tolerances(position=0.001))
    status, result = goal.end()
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, driver.result.SUCCESSFUL)
    assert result.error_string == "Goal successfully reached!"
    assert np.abs(driver.arm.position - [0.1, 0.6, 0.1]).max() < 1e-3, "joints that are left out hold"
    assert len(goal.feedback) >= 5
    for message in goal.feedback:
        points = [np.array(point.positions) for point in (message.desired, message.actual, message.error)]
        assert np.allclose(points[0] - points[1], points[2]) and list(message.joint_names) == driver.arm.names
    assert any(0.25 < message.desired.positions[1] < 0.55 for message in goal.feedback)
    moving = [m for m in states if 0.25 < m.reference.positions[1] < 0.55]
    assert moving
    for message in moving:
        assert np.allclose(
            np.subtract(message.reference.positions, message.feedback.positions), message.error.positions
        )
        assert np.abs(message.error.positions).max() < 2e-3 and message.speed_scaling_factor == 1.0
        assert np.allclose(message.output.positions, message.reference.positions)
    stamps = np.diff([seconds(message.header.stamp) for message in states])
    assert np.allclose(np.median(stamps), 0.02)
    assert 0.0 <= seconds(moving[0].reference.time_from_start) <= 0.5


def test_the_controller_can_have_another_name(world):
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTrajectoryControllerState

    arm = Commander(world, trajectories="arm/joint_trajectory", controller="arm")
    states = world.heard(JointTrajectoryControllerState, "arm/controller_state", DEEP)
    world.until(lambda: states, what="controller_state")
    client = GoalClient(world, FollowJointTrajectory, "arm/follow_joint_trajectory")
    assert client.send(trajectory=trajectory(arm.names, [0.1] * 3, 0.2)).end()[0] == GoalStatus.STATUS_SUCCEEDED
    arm.trajectories.publish(trajectory(arm.names, [0.0] * 3, 0.2))
    world.until(lambda: np.abs(arm.position).max() < 1e-3, what="the topic")


def test_tolerances_that_are_violated_abort_with_the_codes_of_the_controller(world):
    driver = Driver(world, **WEAK)
    status, result = driver.send([0.5, 0.5, 0.5], 1.0, path_tolerance=tolerances(position=0.02)).end()
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, driver.result.PATH_TOLERANCE_VIOLATED)
    assert result.error_string == "Aborted due to path tolerance violation"
    world.until(lambda: driver.arm.logged("path tolerance violation: joint joint1: position error"), what="the log")
    target = driver.arm.position
    late = {"goal_tolerance": tolerances(position=0.001), "goal_time_tolerance": Duration(nanosec=300_000_000)}
    status, result = driver.send(target, 1.0, **late).end()
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, driver.result.GOAL_TOLERANCE_VIOLATED)
    assert result.error_string.startswith("Aborted due to goal_time_tolerance exceeding by 0.30")


def test_a_goal_is_canceled_and_replaced(world):
    driver = Driver(world)
    goal = driver.send([1.0, 1.0, 1.0], 3.0)
    world.until(lambda: driver.arm.position[0] > 0.1, what="motion")
    goal.cancel()
    status, result = goal.end()
    assert (status, result.error_code, result.error_string) == (GoalStatus.STATUS_CANCELED, 0, "")
    driver.arm.passes(0.5)
    assert driver.arm.position[0] < 0.7 and np.abs(driver.arm.states[-1].velocity).max() < 1e-2, "it holds"
    first = driver.send([1.0, 1.0, 1.0], 3.0)
    world.until(lambda: first.accepted, what="the first goal")
    second = driver.send(driver.arm.position, 0.3)
    status, result = first.end()
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, driver.result.INVALID_GOAL)
    assert result.error_string == "Current goal preempted by new incoming action."
    assert second.end()[0] == GoalStatus.STATUS_SUCCEEDED


def test_goals_that_cannot_be_followed_are_rejected_and_the_reason_is_logged(world):
    driver = Driver(world)
    names = driver.arm.names
    late = trajectory(names, [0.1, 0.1, 0.1])
    late.points = [late.points[0], late.points[0]]
    past = trajectory(names, [0.1, 0.1, 0.1])
    past.header.stamp.sec = 5
    for message, words in (
        (trajectory(["x", *names[1:]], [0.1, 0.1, 0.1]), "goal: joint x is not one of"),
        (late, "goal: point 1 is not later"),
        (past, "in the past"),
        (trajectory(names, [0.1, 0.1, 0.1], velocities=[0.0, 0.2, 0.0]), "joint joint2 has the velocity 0.2 at the"),
        (trajectory(names, [0.1, 0.1, 0.1], effort=[1.0, 0.0, 0.0]), "goal: it has efforts"),
        (trajectory(names, [50.0, 0.1, 0.1], 0.0), "away from where"),
    ):
        goal = driver.client.send(trajectory=message)
        world.until(goal._answer.done, what=words)
        assert not goal._answer.result().accepted
        world.until(lambda words=words: driver.arm.logged(words), what=words)
    wrong = driver.send([0.1, 0.1, 0.1], path_tolerance=tolerances(position=-3.0))
    assert wrong.end()[0] == GoalStatus.STATUS_SUCCEEDED
    world.until(lambda: driver.arm.logged("the defaults are used: path_tolerance of joint joint1"), what="the log")


def the_topic_alone(world, capfd, words):
    arm = Commander(world)
    err = capfd.readouterr().err
    assert words in err and "trajectories are taken from the topic alone" in err
    arm.trajectories.publish(trajectory(arm.names, [0.3, 0.3, 0.3], 0.3))
    world.until(lambda: np.abs(arm.position - 0.3).max() < 1e-3, what="target")

    def offered():  # a node of the test before may take a moment to leave the graph
        return [name for name, _ in world.probe.get_service_names_and_types() if ACTION in name]

    world.until(lambda: not offered(), what="graph without the action")


def test_without_control_msgs_there_is_the_topic_alone(world, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "control_msgs.action", None)
    the_topic_alone(world, capfd, "install control_msgs")


def test_with_control_msgs_whose_library_cannot_be_loaded_there_is_the_topic_alone(world, tmp_path, capfd):
    with without_library("control_msgs", tmp_path):
        the_topic_alone(world, capfd, "the library of control_msgs with the action type")


def cell_with_simulator(world, segments, **parameters):
    """The excitation publisher in mode action, and a simulated arm."""
    arm = {"urdf": ARM, "initial_position": str(START.tolist()), "viscous": "[1.0]", "coulomb": "[0.5]"}
    world.keep_time()
    world.add(Simulator, *ros_arguments(**arm, publish_rate="200.0", **parameters))
    return Cell(world, follower=False, mode="action", segments=segments).until(Status.READY)


@pytest.mark.parametrize("segments", ["false", "true"], ids=["whole", "in pieces"])
def test_an_excitation_by_goals_is_executed_by_the_simulator(world, segments):
    cell = cell_with_simulator(world, segments, path_tolerance="[0.1]", goal_tolerance="[0.01]", goal_time="1.0")
    cell.running().until(Status.DONE)
    assert cell.reason == ""


def test_a_controller_that_gives_up_an_excitation_is_a_fault(world):
    cell = cell_with_simulator(world, "false", path_tolerance="[0.00001]")  # less than any drive follows
    assert cell.call("start").success
    cell.until(Status.FAULT)
    assert "aborted the motion: PATH_TOLERANCE_VIOLATED: Aborted due to path tolerance violation" in cell.reason
