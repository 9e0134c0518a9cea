# SPDX-License-Identifier: Apache-2.0
"""The action FollowJointTrajectory of a trajectory controller."""

from __future__ import annotations

from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.nodes.excitation.settings import ACTION_TYPE
from robot_dyn_id.nodes.messages.message_types import find_interface_class
from robot_dyn_id.nodes.runtime.robot_node import RobotNode

ERRORS = (
    "INVALID_GOAL",
    "INVALID_JOINTS",
    "OLD_HEADER_TIMESTAMP",
    "PATH_TOLERANCE_VIOLATED",
    "GOAL_TOLERANCE_VIOLATED",
)
"""Constants of the action's result."""

ENDS = {
    GoalStatus.STATUS_ABORTED: "aborted the motion",
    GoalStatus.STATUS_CANCELED: "canceled the motion on request of another client",
}


class CommandAction:
    """A `CommandInterface`: every message is a goal, which replaces the goal before.

    A controlled stop is a goal, too. A controller whose goal is canceled holds its position at once, with the maximum
    deceleration of its motors; therefore a goal is canceled only if the controller rejects the goal that brakes.
    """

    def __init__(self, node: RobotNode) -> None:
        """Send goals to the node's parameter `command_action`.

        Raises:
            UsageError: the package of the action is not installed, or its library cannot be loaded.
        """
        try:
            self._type: Any = find_interface_class(ACTION_TYPE)
        except InputError as error:
            raise UsageError(f"mode action: {error}, or set mode to trajectory") from None
        self._guarded = node.guarded
        self._pieces = node.settings.segments
        self._name = node.resolve_service_name(node.settings.command_action)
        self._client = ActionClient(node, self._type, node.settings.command_action)
        self._number = 0  # of the latest goal
        self._rejected = False  # that one
        self._goal: Any = None  # the latest that was accepted, until it ends
        self._failure = ""
        self._closed = False

    def obstacle(self) -> str:
        """See `CommandInterface`."""
        return "" if self._client.server_is_ready() else f"no controller: no server of the action {self._name}"

    def send(self, message: JointTrajectory) -> None:
        """See `CommandInterface`."""
        self._number += 1
        self._rejected, self._failure = False, ""
        number = self._number
        future = self._client.send_goal_async(self._type.Goal(trajectory=message))
        future.add_done_callback(self._guarded(lambda done: self._answered(number, done.result())))

    def failure(self) -> str:
        """See `CommandInterface`."""
        failure, self._failure = self._failure, ""
        return failure

    def close(self) -> None:
        """See `CommandInterface`."""
        self._closed = True
        self._client.destroy()

    def _answered(self, number: int, goal: Any) -> None:
        """A goal is accepted or rejected; the action has no words for the reason."""
        if self._closed:
            return
        if goal.accepted:
            self._goal = goal
            goal.get_result_async().add_done_callback(self._guarded(lambda done: self._ended(number, done.result())))
        elif number == self._number:
            self._rejected = True
            self._failure = f"{self._name} rejected the motion; see the log of the controller"
        if self._rejected and self._goal is not None and not self._pieces:
            # what is under way must not go on where even braking is refused; a piece comes to rest on its own
            self._goal.cancel_goal_async()

    def _ended(self, number: int, answer: Any) -> None:
        """Handle the end of a goal; goals that were replaced or canceled by this node are ignored.

        A piece that was given up while the next one was on its way was not replaced.
        """
        result = answer.result
        if number != self._number and result.error_code != self._type.Result.PATH_TOLERANCE_VIOLATED:
            return
        self._goal = None
        if answer.status == GoalStatus.STATUS_SUCCEEDED and result.error_code == self._type.Result.SUCCESSFUL:
            return
        names = {getattr(self._type.Result, name): name for name in ERRORS}
        word = names.get(result.error_code, f"error {result.error_code}" if result.error_code else "")
        why = ": ".join(filter(None, (word, " ".join(result.error_string.split()))))
        end = ENDS.get(answer.status, "failed")
        self._failure = f"{self._name} {end}{f': {why}' if why else ''}"
