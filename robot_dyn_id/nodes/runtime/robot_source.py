# SPDX-License-Identifier: Apache-2.0
"""Where a node gets its robot from: a URDF file at once, or the latched topic `robot_description` when it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from std_msgs.msg import String

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, Interface, RobotNode

DESCRIPTION = Interface.subscribes(
    "robot_description", String, "URDF of the robot, where the parameter urdf is empty", LATCHED
)
"""Belongs into the `INTERFACES` of every node that has a `RobotSource`."""

FIRST, AGAIN = 5.0, 60.0
"""Time until the first warning that the description is absent, and between later ones [s]."""

ANY_ROBOT = """<robot name="any"><link name="base"/><link name="body"/><joint name="joint" type="continuous">
<parent link="base"/><child link="body"/><axis xyz="0 0 1"/></joint></robot>"""


class RobotSource:
    """Calls back once with the robot of a node.

    Attributes:
        problem: why there is no robot yet, one line; empty once it is there.
    """

    def __init__(
        self,
        node: RobotNode,
        urdf: str,
        joints: Sequence[str],
        ready: Callable[[RobotModel], None],
        announce: bool = True,
        **options: Any,
    ) -> None:
        """Read the file, or wait for the topic.

        Args:
            node: has `DESCRIPTION` among its interfaces.
            urdf: path of a URDF or xacro file; empty to wait for the topic.
            joints: the joints to keep; all that move if empty.
            ready: takes the model. A `RobotDynIdError` that it raises refuses the model like a broken URDF.
            announce: whether to log at once that the robot is awaited; False for nodes that log their state.
            **options: `held` and `gravity` of `RobotModel.from_description`.

        Raises:
            ModelError: the file is broken, or has no such joint.
        """
        self._node, self._joints, self._ready, self._options = node, tuple(joints) or None, ready, options
        self._text: str | None = None
        self._subscription: Any = None
        self.problem = ""
        if urdf:
            self._read(RobotDescription.from_file(urdf))
            return
        RobotModel.from_urdf(ANY_ROBOT)  # what loads libraries and takes long must not happen in a callback
        topic = node.resolve_topic_name(DESCRIPTION.name)
        self.problem = f"waiting for {topic}: no publisher yet; or name a file by the parameter urdf"
        self._subscription = node.subscription(DESCRIPTION.name, self._received)
        if announce:
            node.get_logger().info(self.problem)
        self._reminder: Any = node.create_timer(FIRST, self._remind, clock=node.steady)

    def close(self) -> None:
        """End the subscription, so that a later source receives the latched description again."""
        if self._subscription is not None:
            self._node.destroy_timer(self._reminder)
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _read(self, robot: RobotDescription) -> None:
        model = RobotModel.from_description(robot, self._joints, **self._options)
        self._ready(model)
        self.problem, self._node.hardware_id = "", model.name

    def _remind(self) -> None:
        self._node.get_logger().warning(self.problem)
        self._wait(AGAIN)

    def _wait(self, period: float) -> None:
        self._reminder.cancel()
        self._node.destroy_timer(self._reminder)
        self._reminder = self._node.create_timer(period, self._remind, clock=self._node.steady)

    def _received(self, message: String) -> None:
        if message.data == self._text:
            return
        self._text = message.data
        if not self.problem:
            self._node.get_logger().warning("robot_description has changed: start the node again to use the new one")
            return
        try:
            self._read(RobotDescription(message.data))
        except RobotDynIdError as error:
            self.problem = str(error)
            self._node.get_logger().error(self.problem)
            self._wait(AGAIN)
            return
        self._reminder.cancel()
