# SPDX-License-Identifier: Apache-2.0
"""Status topic of a node that records: published on every change, and periodically between changes."""

from __future__ import annotations

import time
from collections.abc import Callable

from robot_dyn_id.excitation.execution.recording_watch import HEARTBEAT, RecordingState
from robot_dyn_id.msg import RecordingStatus
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.robot_node import RobotNode


class RecordingStatusTopic:
    """Publisher of `RecordingStatus`."""

    def __init__(self, node: RobotNode, name: str) -> None:
        """Create the publisher.

        Args:
            node: node that records.
            name: name of the topic among the interfaces of the node.
        """
        self._node = node
        self._publisher = node.publisher(name)
        self._changes = Changes(HEARTBEAT)
        self._published_at = 0.0

    def destroy(self) -> None:
        """Take the topic out of the graph."""
        self._node.destroy_publisher(self._publisher)

    def publish(self, state: int, reason: str, describe: Callable[[RecordingStatus], str | None]) -> None:
        """Publish the status if it changed, or if the latest message is older than `HEARTBEAT`.

        Args:
            state: constant of `RecordingStatus`.
            reason: remark on the state; empty if there is none.
            describe: function that fills in folder and topics, and returns the failure of the bag, read after the
                counts: subscribers take a count that falls without a failure for a recording that was discarded.
        """
        now = time.monotonic()
        changed = self._changes.due(now, f"{RecordingState(state).name}: {reason}")
        if not changed and now - self._published_at < HEARTBEAT:
            return
        self._published_at = now
        status = RecordingStatus(recorder=self._node.get_fully_qualified_name(), state=state, reason=reason)
        failure = describe(status)
        if failure:
            status.state, status.reason = RecordingStatus.FAILED, failure
        self._publisher.publish(self._node.stamped(status))
