# SPDX-License-Identifier: Apache-2.0
"""Status messages of recorders as reports for a `RecordingWatch`."""

from __future__ import annotations

from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robot_dyn_id.excitation.execution.enumerations import find_member
from robot_dyn_id.excitation.execution.recording_watch import RecordingReport, RecordingState, RecordingWatch
from robot_dyn_id.nodes.runtime.robot_node import RobotNode

TOPICS = ("recording_status", "identifier_recording_status")
"""Status topics of recorders and of identifiers."""

REPORTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""The latest message of each of several publishers."""

GRAPH_PERIOD_S = 0.2
"""Time between two checks of the graph [s]."""


class RecordingReports:
    """Feeds a watch with what arrives, with the time, and with the nodes that the graph shows.

    Attributes:
        folders: folders of the bags that have been recorded since this was cleared, by recorder.
    """

    def __init__(self, node: RobotNode, watch: RecordingWatch) -> None:
        """Subscribe to the status topics, which are among the interfaces of the node."""
        self._node, self._watch, self._looked = node, watch, 0.0
        self.folders: dict[str, str] = {}
        for topic in TOPICS:
            node.subscription(topic, self._receive)

    def _receive(self, message: Any) -> None:
        state = find_member(RecordingState, message.state)
        if state is None:  # a recorder that goes on to report what is unknown is taken for a silent one
            return
        report = RecordingReport(
            recorder=message.recorder,
            state=state,
            reason=message.reason,
            topics=tuple(message.topics),
            counts=tuple(message.counts),
            lost=tuple(message.lost),
        )
        if report.state == RecordingState.RECORDING and message.folder:
            self.folders[message.recorder] = message.folder
        self._watch.receive(1e-9 * self._node.steady_ns(), report)

    def tick(self, steady: float) -> None:
        """Pass the time on [s]."""
        self._watch.tick(steady)
        if steady < self._looked + GRAPH_PERIOD_S:
            return
        self._looked = steady
        found = (info for topic in TOPICS for info in self._node.get_publishers_info_by_topic(topic))
        self._watch.remove_absent(steady, {f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in found})
