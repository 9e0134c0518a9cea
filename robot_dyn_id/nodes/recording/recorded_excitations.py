# SPDX-License-Identifier: Apache-2.0
"""Parts of a recording by the status of the excitations."""

from __future__ import annotations

from typing import Any

from robot_dyn_id.excitation.execution.excitation_watch import Event, ExcitationWatch
from robot_dyn_id.nodes.recording.stream_recording import StreamRecording
from robot_dyn_id.nodes.runtime.robot_node import RobotNode


class RecordedExcitations:
    """Status of the excitations whose joint states are recorded: each complete one is a part of its own.

    Before it, brakes or other controllers may have held the robot.
    """

    def __init__(self, node: RobotNode, recording: StreamRecording) -> None:
        """Watch the excitations that `take` is given."""
        self._node, self._recording, self._watch = node, recording, ExcitationWatch()

    def take(self, status: Any) -> Event:
        """Take an `ExcitationStatus`, and begin or end a part of the recording."""
        event = self._watch.take(status)
        if event in (Event.BEGUN, Event.FAULT_ON_RETURN):
            self._recording.discard_part()
        elif event in (Event.EXECUTED, Event.INCOMPLETE):  # a fault during the return is not part of the excitation
            self._recording.close_part()
        return event

    def waiting(self) -> str:
        """Event that the identification waits for; see `ExcitationWatch.waiting`."""
        publishers = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name("excitation_status"))
        return self._watch.waiting({f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in publishers})
