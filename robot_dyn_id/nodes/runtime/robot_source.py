# SPDX-License-Identifier: Apache-2.0
"""Where a node gets its robot from: a URDF file at once, or the latched topic `robot_description` when it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from std_msgs.msg import String

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.runtime.computation import LatestComputation
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RobotNode, subscribes

DESCRIPTION = subscribes("robot_description", String, "URDF of the robot, where the parameter urdf is empty", LATCHED)
"""Belongs into the `INTERFACES` of every node that has a `RobotSource`."""

FIRST, AGAIN = 5.0, 60.0
"""Time until the first warning that the description is absent, and between later ones [s]."""

POLL = 0.05
"""Time between two looks whether a description has been read [s]."""

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
        ready: Callable[[Any], None],
        announce: bool = True,
        prepare: Callable[[RobotModel], Any] = lambda model: model,
    ) -> None:
        """Read the file, or wait for the topic.

        Args:
            node: has `DESCRIPTION` among its interfaces.
            urdf: path of a URDF or xacro file; empty to wait for the topic.
            joints: the joints to keep; all that move if empty.
            ready: takes what was prepared. A `RobotDynIdError` that it or `prepare` raises refuses the model like a
                broken URDF.
            announce: whether to log at once that the robot is awaited; False for nodes that log their state.
            prepare: makes what the node needs of the model, in a thread where the topic is waited for; the model itself
                by default.

        Raises:
            ModelError: the file is broken, or has no such joint.
        """
        self._node, self._joints, self._prepare, self._ready = node, tuple(joints) or None, prepare, ready
        self._text: str | None = None
        self._subscription: Any = None
        self.problem = ""
        if urdf:
            self._take(*self._read(RobotDescription.from_file(urdf)))
            return
        RobotModel.from_urdf(ANY_ROBOT)  # loads libraries, which takes long
        self._topic = node.resolve_topic_name(DESCRIPTION.name)
        self.problem = f"waiting for {self._topic}: no publisher yet; or name a file by the parameter urdf"
        self._reading = LatestComputation(lambda text: self._read(RobotDescription(text)))
        self._subscription = node.subscription(DESCRIPTION.name, self._received)
        if announce:
            node.get_logger().info(self.problem)
        self._remind_at = time.monotonic() + FIRST
        self._timer: Any = node.create_timer(POLL, self._look, clock=node.steady)

    def close(self) -> None:
        """End the subscription, so that a later source receives the latched description again."""
        if self._subscription is not None:
            self._reading.drop()
            self._node.destroy_timer(self._timer)
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _read(self, robot: RobotDescription) -> tuple[str, Any]:
        model = RobotModel.from_description(robot, self._joints)
        return model.name, self._prepare(model)

    def _take(self, name: str, prepared: Any) -> None:
        self._ready(prepared)
        self.problem, self._node.hardware_id = "", name

    def _received(self, message: String) -> None:
        if message.data == self._text:
            return
        self._text = message.data
        if not self.problem:
            self._node.get_logger().warning("robot_description has changed: start the node again to use the new one")
            return
        self.problem = f"waiting for what is prepared from {self._topic}"
        self._reading.submit(message.data)

    def _look(self) -> None:
        """Take the robot that has been read, or warn that there is none."""
        work, log = self._reading.poll(), self._node.get_logger()
        if work is not None:
            try:
                self._take(*work.result())
                self._timer.cancel()
            except RobotDynIdError as error:
                self.problem, self._remind_at = str(error), time.monotonic() + AGAIN
                log.error(self.problem)
        elif time.monotonic() >= self._remind_at:
            self._remind_at = time.monotonic() + AGAIN
            log.warning(self.problem)
