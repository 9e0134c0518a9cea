# SPDX-License-Identifier: Apache-2.0
"""Server of an action: one goal at a time, whose work is done by the callbacks of the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future

from robot_dyn_id.errors import MotionError, RobotDynIdError


def await_end(end: Any, settle: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Execution of a goal by callbacks: the wait for its end.

    Args:
        end: future of the end.
        settle: function that sets the status of the goal by its end, and returns its result.
    """

    async def execute(goal: Any) -> Any:  # rclpy awaits only what is a coroutine function itself
        return settle(goal, await end)

    return execute


class GoalServer:
    """Server of an action that executes one goal at a time.

    A goal that cannot be executed is rejected. As a rejection has no text, the reason is logged and is in the
    diagnostics of the node, `last refused`. The type of the action has in its result the constants SUCCEEDED and
    CANCELED and the fields `code` and `message`. A goal ends as succeeded with the code SUCCEEDED, as canceled if its
    client has canceled it and the code is CANCELED, and as aborted otherwise. Goals are executed by the callbacks of
    the node, without threads.
    """

    def __init__(
        self, node: Any, action: Any, name: str, begin: Callable[[Any], None], cancel: Callable[[], None]
    ) -> None:
        """Offer the action.

        Args:
            node: the `RobotNode` that executes the goals.
            action: type of the action.
            name: relative name of the action.
            begin: function that is called with each goal and begins to execute it, before the goal is accepted; a
                `RobotDynIdError` rejects the goal with its text.
            cancel: function that is called when the client cancels the goal; the goal goes on until `finish`.
        """
        self._node, self._type, self._name = node, action, name
        self._begin, self._cancel = begin, cancel
        self._handle: Any = None
        self._end = Future()
        self._unsettled = 0  # goals whose client has no result yet
        self._server = ActionServer(
            node,
            action,
            name,
            self._settle,  # replaced for every goal
            goal_callback=self._receive,
            handle_accepted_callback=self._accept,
            cancel_callback=self._accept_cancel,
        )

    @property
    def active(self) -> bool:
        """Whether a goal is being executed."""
        return self._handle is not None

    @property
    def canceled(self) -> bool:
        """Whether the client has canceled the goal that is being executed."""
        return self.active and bool(self._handle.is_cancel_requested)

    @property
    def settled(self) -> bool:
        """Whether every goal has its result."""
        return self._unsettled == 0

    def publish(self, **fields: Any) -> None:
        """Publish feedback of the goal that is being executed.

        Args:
            **fields: fields of the feedback.
        """
        if self._handle is not None:
            self._handle.publish_feedback(self._type.Feedback(**fields))

    def finish(self, code: int, message: str = "", **fields: Any) -> None:
        """End the goal that is being executed; without one, nothing happens.

        Args:
            code: constant of the result.
            message: reason; empty if succeeded.
            **fields: further fields of the result.
        """
        if self._handle is not None:
            self._handle = None
            self._end.set_result(self._type.Result(code=code, message=message, **fields))

    def destroy(self) -> None:
        """Take the action out of the graph, which rclpy does not do when a node is destroyed."""
        self._server.destroy()

    def _receive(self, goal: Any) -> Any:
        """Begin to execute a goal, or reject it."""
        try:
            if self._handle is not None:
                raise MotionError("another goal is being executed")
            self._begin(goal)
        except RobotDynIdError as error:
            self._node.refuse(f"goal of {self._name}: {error}")
        except Exception as error:
            self._node.fault(error)
        else:
            return GoalResponse.ACCEPT
        return GoalResponse.REJECT

    def _accept(self, handle: Any) -> None:
        """Wait for the end of the goal that was begun just now."""
        self._handle, self._end = handle, Future()
        self._unsettled += 1
        handle.execute(await_end(self._end, self._settle))

    def _settle(self, handle: Any, result: Any) -> Any:
        """Set the status of a goal that belongs to its result."""
        self._unsettled -= 1
        if result.code == self._type.Result.SUCCEEDED:
            handle.succeed()
        elif result.code == self._type.Result.CANCELED and handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return result

    def _accept_cancel(self, handle: Any) -> Any:
        """Begin to cancel the goal that is being executed; another one has ended."""
        if self._handle is None or self._handle != handle:
            return CancelResponse.REJECT
        self._node.guarded(self._cancel)()
        return CancelResponse.ACCEPT
