# SPDX-License-Identifier: Apache-2.0
"""Motion of the wrist by an excitation publisher inside the node: its guards, its checks and its commands."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from std_srvs.srv import Trigger

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.excitation.execution.enumerations import find_member
from robot_dyn_id.excitation.execution.recording_watch import REQUIRED
from robot_dyn_id.excitation.execution.supervision import REHEARSED, Phase
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.payload.settings import WristSettings, list_wrist_parameters
from robot_dyn_id.nodes.runtime.robot_node import RobotNode

READY_TIMEOUT_S = 20.0
"""Longest time until the robot is ready to move [s]: other nodes and joint states must have been found."""

STATUS = "payload_motion_status"
"""Topic of the status: on that of excitations, an identifier of the arm would take the motion for one."""

AT_REST = (Phase.WAITING, Phase.READY, Phase.DONE, Phase.FAULT)


class WristExcitation(ExcitationPublisher):
    """Excitation publisher with a name of its own."""

    NAME = "payload_excitation"
    SETTINGS = WristSettings
    STATUS = STATUS
    UNREHEARSED = ""  # the slow test has been the rehearsal, by another node
    REHEARSAL_OFF = "succeeded as the slow test"
    INTERFACES = tuple(
        replace(interface, name=STATUS) if interface.name == ExcitationPublisher.STATUS else interface
        for interface in ExcitationPublisher.INTERFACES
    )


class WristMotion:
    """Execution of one trajectory: started once it can be, followed by its status, and stopped on request.

    Attributes:
        phase: latest phase.
        reason: reason for waiting, stopping or failing.
        elapsed: time since the beginning of the excitation, approach left out [s].
        complete: whether the excitation was executed to its end.
    """

    def __init__(self, node: RobotNode, name: str, trajectory: Path, slow: bool) -> None:
        """Create the excitation publisher.

        Args:
            node: node that the motion is made for; its executor runs the excitation publisher as well.
            name: name of the excitation publisher.
            trajectory: file of the trajectory.
            slow: whether it is the slow test, which is guarded as a rehearsal and need not be recorded.

        Raises:
            RobotDynIdError: the trajectory does not fit the robot.
        """
        self.phase, self.reason, self.elapsed, self.complete = Phase.WAITING, "", 0.0, False
        self._node, self._begun, self._slow = node, time.monotonic(), slow
        self._started: Any = None
        self._moved = self._stopping = False
        own: dict[str, Any] = {"trajectory": str(trajectory), "recording": REQUIRED, "rehearsal": slow}
        own["speed_scale"] = node.settings.slow_speed if slow else 1.0
        own["autostart"] = True  # it exists only while the node that makes it is active, or brakes
        self._publisher = WristExcitation(
            context=node.context,
            namespace=node.get_namespace(),
            cli_args=["--ros-args", "-r", f"__node:={name}", *node.arguments],
            parameter_overrides=[*list_wrist_parameters(node.settings, **own), node.get_parameter("use_sim_time")],
        )
        node.executor.add_node(self._publisher)
        self._name = self._publisher.get_fully_qualified_name()
        self._start = node.create_client(Trigger, f"{self._name}/{'rehearse' if slow else 'start'}")

    def receive(self, status: Any) -> None:
        """Take an `ExcitationStatus`; those of other publishers and unknown states are ignored."""
        phase = find_member(Phase, status.state)
        if status.node != self._name or phase is None:
            return
        self.phase, self.reason = phase, status.reason
        self.elapsed, self.complete = status.elapsed, status.complete
        self._moved = self._moved or self.phase not in AT_REST

    def tick(self) -> None:
        """Start the motion as soon as it can be started."""
        if self._moved or self._stopping:
            return
        if self._started is not None and self._started.done():
            answer = self._started.result()
            self._started = None
            if not answer.success:
                self.reason = answer.message
        waits = self._started is None and self.phase in (Phase.READY, Phase.DONE)
        if waits and self._start.service_is_ready() and not self.overdue:
            self._started = self._start.call_async(Trigger.Request())

    @property
    def overdue(self) -> bool:
        """Whether the robot has not begun to move for too long."""
        return not self._moved and time.monotonic() - self._begun > READY_TIMEOUT_S

    @property
    def failure(self) -> str:
        """Reason why the motion has ended before it was complete, or never began; empty if neither."""
        if self._publisher.end is not None:
            end = self._publisher.end
            return str(end) if isinstance(end, RobotDynIdError) else "internal error: the log has the details"
        if self.phase == Phase.FAULT:
            return self.reason
        if self._moved and self.phase == Phase.READY and not self.done:
            return self.reason or "stopped"
        return f"the robot is not ready to move: {self.reason}" if self.overdue else ""

    @property
    def done(self) -> bool:
        """Whether the motion was executed to its end, and the robot has returned."""
        if self._slow:
            return self._moved and self.phase == Phase.READY and self.reason == REHEARSED
        return self._moved and self.phase == Phase.DONE

    def at_rest(self) -> bool:
        """Brake, if that has not happened, and return whether the robot is at rest and no answer is due."""
        self._stopping = True
        answered = self._started is None or self._started.done()
        return self._publisher.stop() and answered

    def destroy(self) -> None:
        """Remove the excitation publisher; the robot is at rest."""
        self._node.destroy_client(self._start)
        self._node.executor.remove_node(self._publisher)
        self._publisher.destroy_node()
