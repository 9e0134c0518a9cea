# SPDX-License-Identifier: Apache-2.0
"""The topic of a trajectory controller."""

from __future__ import annotations

import math
from typing import Any

from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, RobotNode

LOOK_S = 0.05
"""Time between two looks at the graph for other publishers [s]: it hears of one later than that."""


class CommandTopic:
    """Command interface of a topic, without feedback: only the joint states show whether commands are executed."""

    def __init__(self, node: RobotNode) -> None:
        """Publish on the node's parameter `command_topic`."""
        self._node = node
        self._looked, self._publishers = -math.inf, 0
        self._topic: Any = node.create_publisher(JointTrajectory, node.settings.command_topic, RELIABLE)

    def obstacle(self) -> str:
        """See `CommandInterface`."""
        topic, now = self._topic.topic_name, 1e-9 * self._node.steady_ns()
        if self._topic.get_subscription_count() == 0:
            return f"no controller: no subscriber of {topic}"
        if now - self._looked >= LOOK_S:
            self._looked, self._publishers = now, self._node.count_publishers(topic)
        if self._publishers > 1:
            return f"another node publishes to {topic} as well: only one may command the robot"
        return ""

    def send(self, message: JointTrajectory) -> None:
        """See `CommandInterface`."""
        self._topic.publish(message)

    def failure(self) -> str:
        """See `CommandInterface`."""
        return ""

    def close(self) -> None:
        """See `CommandInterface`."""
        self._node.destroy_publisher(self._topic)
