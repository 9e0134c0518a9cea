# SPDX-License-Identifier: Apache-2.0
"""The topic of a trajectory controller."""

from __future__ import annotations

from typing import Any

from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, RobotNode


class CommandTopic:
    """Command interface of a topic, without feedback: only the joint states show whether commands are executed."""

    def __init__(self, node: RobotNode) -> None:
        """Publish on the node's parameter `command_topic`."""
        self._node = node
        self._topic: Any = node.create_publisher(JointTrajectory, node.settings.command_topic, RELIABLE)

    def obstacle(self) -> str:
        """See `CommandInterface`."""
        topic = self._topic.topic_name
        if self._topic.get_subscription_count() == 0:
            return f"no controller: no subscriber of {topic}"
        if self._node.count_publishers(topic) > 1:
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
