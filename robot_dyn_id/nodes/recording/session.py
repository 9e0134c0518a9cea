# SPDX-License-Identifier: Apache-2.0
"""One recording, from its folder to the finished bag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from robot_dyn_id.errors import UsageError
from robot_dyn_id.msg import RecordingStatus
from robot_dyn_id.nodes.recording.recorded_topic import RecordedTopic
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.recordings.background_writer import BackgroundWriter

DISCOVERY_TIME_S = 2.0
"""Time for the discovery of publishers before missing ones are reported [s]."""

REPORT_PERIOD_S = 5.0
"""Time between two warnings about missing publishers [s]."""


class RecordingSession:
    """Recording of topics to one bag.

    Attributes:
        folder: path of the bag.
        ending: whether it was ended.
    """

    def __init__(self, node: RobotNode, folder: str, topics: Sequence[str]) -> None:
        """Create the bag, and search for publishers.

        Args:
            node: node that subscribes.
            folder: path of the bag, with strftime codes.
            topics: names of the topics.

        Raises:
            UsageError: no folder is given.
            InputError: it exists or cannot be created.
        """
        if not folder:
            raise UsageError("parameter folder is empty: name the bag folder to record into")
        self._writer = BackgroundWriter(Path(time.strftime(folder)).expanduser())
        self.folder = str(self._writer.folder)
        self._node = node
        self._topics = [RecordedTopic(node, topic, self._writer) for topic in topics]
        self._began = self._looked = time.monotonic()
        self._complain = self._began + DISCOVERY_TIME_S
        self._paused = self.ending = False
        self.look()

    @property
    def age(self) -> float:
        """Time since the start [s]."""
        return time.monotonic() - self._began

    @property
    def failure(self) -> str | None:
        """Reason why the bag is incomplete; None if it is not."""
        return self._writer.failure

    @property
    def remarks(self) -> str:
        """Problems of the recording; empty without any."""
        parts = [topic.problem for topic in self._topics if topic.problem]
        parts += [f"{topic.lost} messages lost on {topic.name}" for topic in self._topics if topic.lost]
        if self.ending:
            absent = [topic.name for topic in self._topics if not topic.statistics.count and not topic.problem]
            what = "no message came on"
        else:
            absent = [topic.name for topic in self._topics if not topic.publishers]
            what = "no publisher on"
        if absent:
            parts.append(f"{what} {', '.join(absent)}")
        return "; ".join(parts)

    @property
    def empty(self) -> bool:
        """Whether no message was written."""
        return not any(topic.statistics.count for topic in self._topics)

    def look(self) -> None:
        """Check the publishers; to be called several times per second."""
        now = time.monotonic()
        for topic in self._topics:
            topic.held_up(now - self._looked)
            topic.look()
        self._looked = now
        if now >= self._complain:
            self._complain = now + REPORT_PERIOD_S
            for topic in self._topics:
                if not topic.publishers:
                    self._node.get_logger().warning(f"no publisher on {topic.name}{self._alike(topic.name)}; waiting")

    def pause(self, paused: bool) -> None:
        """Drop messages, or record again."""
        if paused != self._paused:
            self._paused = paused
            for topic in self._topics:
                topic.pause(paused)

    def end(self) -> None:
        """Receive no more, and begin to finish the bag."""
        self.ending = True
        for topic in self._topics:
            topic.close()
        self._writer.end()

    def ended(self, timeout: float) -> bool:
        """Whether the bag is finished, or has failed, at most `timeout` seconds from now."""
        return self._writer.ended(timeout)

    def describe(self, status: RecordingStatus) -> str | None:
        """Fill in folder and topics of a status message; returns the failure of the bag."""
        known = [topic.statistics for topic in self._topics]
        status.folder = self.folder
        status.topics = [topic.name for topic in self._topics]
        status.types = [topic.type_name for topic in self._topics]
        status.counts = [topic.stored for topic in self._topics]
        status.rates = [item.rate for item in known]
        status.jitter = [item.jitter for item in known]
        status.lost = [topic.lost for topic in self._topics]
        return self.failure

    def figures(self) -> dict[str, str]:
        """Statistics of each topic as text, by its name."""
        known = {topic: topic.statistics for topic in self._topics}
        return {
            topic.name: f"{topic.stored} messages, {item.rate:.1f} Hz, jitter {1e3 * item.jitter:.3f} ms, "
            f"longest step {1e3 * item.longest:.1f} ms, {topic.lost} lost"
            for topic, item in known.items()
        }

    def _alike(self, name: str) -> str:
        """Hint to published topics with the same last part of the name."""
        last = name.rsplit("/", 1)[-1]
        known = [other for other, _ in self._node.get_topic_names_and_types() if other.rsplit("/", 1)[-1] == last]
        others = [other for other in known if other != name and self._node.count_publishers(other)]
        return f" (there is {', '.join(others)})" if others else ""
