# SPDX-License-Identifier: Apache-2.0
"""Action and state topic of the trajectory controller of a simulated robot, as joint_trajectory_controller has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.messages.joint_state import convert_to_seconds
from robot_dyn_id.nodes.messages.message_types import find_interface_class, find_message_class
from robot_dyn_id.nodes.messages.trajectory_messages import make_numbers
from robot_dyn_id.nodes.runtime.goals import await_end
from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, RobotNode
from robot_dyn_id.simulation.simulated_robot import SimulatedRobot
from robot_dyn_id.simulation.trajectory_controller import SUCCESSFUL, ToleranceRequest, TrajectoryEnd

ACTION_TYPE = "control_msgs/action/FollowJointTrajectory"
STATE_TYPE = "control_msgs/msg/JointTrajectoryControllerState"

WITHOUT_ACTION = (
    "trajectories are taken from the topic alone, as excitation_publisher sends them by default, without the action "
    "and without controller_state"
)

Reader = Callable[[JointTrajectory], tuple[TrajectoryPoints, float]]
"""Function that returns the points of a message and their start time [s]; raises an `InputError`."""


class SimulatedController:
    """Server of FollowJointTrajectory, and publisher of the state of the controller.

    All decisions are those of `TrajectoryController`; this is their connection with messages.
    """

    def __init__(
        self, node: RobotNode, robot: SimulatedRobot, name: str, read: Reader, refuse: Callable[[str], None]
    ) -> None:
        """Offer the action `<name>/follow_joint_trajectory` and the topic `<name>/controller_state`.

        Args:
            node: node of the robot.
            robot: robot in position mode.
            name: name of the controller.
            read: reader of trajectories.
            refuse: reports why a goal is rejected.

        Raises:
            InputError: the package control_msgs is not installed, or its library cannot be loaded.
        """
        self._type: Any = find_interface_class(ACTION_TYPE)
        state_type = find_message_class(STATE_TYPE)
        self._node, self._robot, self._read, self._refuse = node, robot, read, refuse
        self._names = list(robot.plant.dynamics.model.joint_names)
        self._next: Any = None  # points, start and tolerances of a goal between its acceptance and its start
        self._goal: Any = None  # the goal that is being executed
        self._ended: Any = Future()
        self._states = node.create_publisher(state_type, f"{name}/controller_state", RELIABLE)
        self._state = state_type(joint_names=self._names, speed_scaling_factor=1.0)
        self._server = ActionServer(
            node,
            self._type,
            f"{name}/follow_joint_trajectory",
            self._settle,  # replaced for every goal
            goal_callback=self._receive,
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )

    def end(self, end: TrajectoryEnd) -> None:
        """End the goal that is being executed."""
        if self._goal is not None:
            self._goal = None
            self._ended.set_result(end)

    def publish(self, stamp: Any, time: float, q: Array, dq: Array) -> None:
        """Publish the state of the controller, if there is a subscriber.

        Args:
            stamp: time of the state as a message.
            time: time of the state [s].
            q: measured positions [rad or m], shape (n,).
            dq: measured velocities [rad/s or m/s], shape (n,).
        """
        if self._states.get_subscription_count() == 0:
            return
        message = self._state
        message.header.stamp = stamp
        message.reference, message.feedback, message.error = self._points(time, q, dq)
        if self._robot.effort is None:
            message.output.positions = make_numbers(self._robot.tracker.setpoint(time).q)
        else:
            message.output.effort = make_numbers(self._robot.effort)
        self._states.publish(message)

    def feed_back(self, stamp: Any, time: float, q: Array, dq: Array) -> None:
        """Publish feedback of the goal that is being executed; see `publish`."""
        if self._goal is not None:
            feedback = self._type.Feedback(joint_names=self._names)
            feedback.header.stamp = stamp
            feedback.desired, feedback.actual, feedback.error = self._points(time, q, dq)
            self._goal.publish_feedback(feedback)

    def destroy(self) -> None:
        """Take the action out of the graph, which rclpy does not do when a node is destroyed."""
        self._server.destroy()

    def _points(self, time: float, q: Array, dq: Array) -> tuple[Any, Any, Any]:
        """Reference, measurement and error."""
        reference, error, since = self._robot.controller.state(time, q, dq)
        points = tuple(JointTrajectoryPoint() for _ in range(3))
        states = (reference.q, reference.dq), (q, dq), (error[0], error[1])
        for point, (position, velocity) in zip(points, states, strict=True):
            point.positions, point.velocities = make_numbers(position), make_numbers(velocity)
        points[0].accelerations = make_numbers(reference.ddq)
        for point in points[:2]:
            whole, rest = divmod(round(since * 1e9), 1_000_000_000)
            point.time_from_start.sec, point.time_from_start.nanosec = whole, rest
        return points

    # --- goals

    def _receive(self, goal: Any) -> Any:
        """Accept or reject a goal."""
        controller = self._robot.controller
        try:
            if not goal.trajectory.points:
                raise InputError("it has no points")
            points, start = self._read(goal.trajectory)
            controller.check(points, start, self._robot.time)
        except InputError as error:
            self._refuse(f"goal: {error}")  # the action has no words for the reason
            return GoalResponse.REJECT
        except Exception as error:
            self._node.fault(error)
            return GoalResponse.REJECT
        tolerances = None
        try:
            tolerances = controller.requested(_tolerances(goal))
        except InputError as error:
            self._refuse(f"tolerances of a goal, the defaults are used: {error}")
        self._next = points, start, tolerances
        return GoalResponse.ACCEPT

    def _begin(self, goal: Any) -> None:
        """Execute the goal that was accepted just now, in place of the one before."""
        points, start, tolerances = self._next
        replaced = self._robot.controller.begin(points, start, self._robot.time, tolerances)
        if replaced is not None:
            self.end(replaced)
        self._goal, self._ended = goal, Future()
        goal.execute(await_end(self._ended, self._settle))

    def _cancel(self, goal: Any) -> Any:
        """Hold the robot, if it is the goal that is being executed; every request is accepted."""
        if self._goal is not None and self._goal == goal:
            self._goal = None
            self._robot.controller.cancel(self._robot.plant.q)
            self._ended.set_result(None)
        return CancelResponse.ACCEPT

    def _settle(self, goal: Any, end: TrajectoryEnd | None) -> Any:
        """Set the status of a goal, and return its result."""
        if end is None:
            goal.canceled()
            return self._type.Result()
        if end.code == SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
        return self._type.Result(error_code=end.code, error_string=end.text)


def _tolerances(goal: Any) -> ToleranceRequest:
    """Tolerances of a goal."""
    path, final = (
        {entry.name: (entry.position, entry.velocity, entry.acceleration) for entry in entries}
        for entries in (goal.path_tolerance, goal.goal_tolerance)
    )
    return ToleranceRequest(path, final, convert_to_seconds(goal.goal_time_tolerance))
