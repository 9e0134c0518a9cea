# SPDX-License-Identifier: Apache-2.0
"""Client of an action in a ROS world: sends goals, collects their feedback, cancels them."""

import json
import subprocess
import sys
from contextlib import contextmanager

from rclpy.action import ActionClient


class SentGoal:
    """A goal on its way.

    Attributes:
        feedback: feedback so far.
    """

    def __init__(self, world, client, goal):
        self._world, self.feedback, self._result = world, [], None
        self._answer = client.send_goal_async(goal, lambda message: self.feedback.append(message.feedback))
        self._answer.add_done_callback(self._ask_result)

    def _ask_result(self, answer):
        if answer.result().accepted:
            self._result = answer.result().get_result_async()

    @property
    def accepted(self):
        return self._result is not None

    @property
    def rejected(self):
        return self._answer.done() and not self._answer.result().accepted

    @property
    def done(self):
        return self.accepted and self._result.done()

    def cancel(self):
        """Ask for the cancellation; returns the future of the answer."""
        self._world.until(lambda: self.accepted)
        return self._answer.result().cancel_goal_async()

    def end(self):
        """Wait for the end; returns status and result."""
        self._world.until(lambda: self.done or self.rejected, what="the end of the goal")
        assert not self.rejected, "the goal is rejected"
        answer = self._result.result()
        return answer.status, answer.result


class GoalClient:
    """The client."""

    def __init__(self, world, action, name):
        self._world, self._action = world, action
        self._client = ActionClient(world.probe, action, name)

    def send(self, **fields):
        self._world.until(self._client.server_is_ready, what="the server of the action")
        return SentGoal(self._world, self._client, self._action.Goal(**fields))

    def is_rejected(self, **fields):
        """Whether a goal is rejected."""
        goal = self.send(**fields)
        self._world.until(lambda: goal.rejected or goal.accepted, what="the answer to the goal")
        return goal.rejected


DOOMED = """
import importlib, json, rclpy, sys
from rclpy.action import ActionClient
from rclpy.node import Node
rclpy.init()
module, _, name = sys.argv[1].partition(":")
action = getattr(importlib.import_module(module), name)
node = Node("doomed")
client = ActionClient(node, action, sys.argv[2])
client.wait_for_server()
answer = client.send_goal_async(action.Goal(**json.loads(sys.argv[3])))
rclpy.spin_until_future_complete(node, answer)
result = answer.result().get_result_async()
rclpy.spin(node)
"""


@contextmanager
def doomed_client(action, name, **goal):
    """A process that sends a goal and waits for its result, to be killed.

    Args:
        action: module and class of the action, `module:class`.
        name: name of the action.
        **goal: fields of the goal.
    """
    process = subprocess.Popen([sys.executable, "-c", DOOMED, action, name, json.dumps(goal)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()
