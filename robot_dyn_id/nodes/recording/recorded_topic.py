# SPDX-License-Identifier: Apache-2.0
"""One topic of a recording: discovery, subscription with matching QoS, and transfer of the bytes."""

from __future__ import annotations

import time
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.messages.message_types import begins_with_header, find_message_class, make_definition
from robot_dyn_id.nodes.messages.offered_qos import describe_as_in_bags, match_qos
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.robot_node import STREAM, RobotNode
from robot_dyn_id.recordings.background_writer import BackgroundWriter, Stream
from robot_dyn_id.recordings.stream_statistics import StreamStatistics

_UNNAMED = "_NODE_NAME_UNKNOWN_"
"""Node name in the graph of a publisher without a node, or whose node is not discovered yet."""

NAME_CHECKS = 20
"""Checks of the graph until a publisher without a node name is reported."""

STALL_S = 1.0
"""Time without a check after which messages may have been dropped [s]."""


class RecordedTopic:
    """A topic from the search for a publisher to the end of the recording.

    Attributes:
        name: the topic's full name.
        publishers: full names of the nodes that publish it now.
        lost: messages that the middleware reported as lost.
        problem: reason why messages are missing from the bag; empty if none are.
        paused: whether messages are dropped.
    """

    def __init__(self, node: RobotNode, topic: str, writer: BackgroundWriter) -> None:
        self.name: str = node.resolve_topic_name(topic)
        self.publishers: tuple[str, ...] = ()
        self.lost = 0
        self.problem = ""
        self.paused = False
        self._unnamed = 0  # looks in a row with a publisher that has no name
        self._warned: tuple[str, ...] = ()
        self._held, self._received, self._received_before = 0.0, 0, (0, 0)
        self._node, self._topic, self._writer = node, topic, writer
        self._clock, self._changes = node.get_clock(), Changes()
        self._stream: Stream | None = None
        self._class: Any = None
        self._qos: QoSProfile | None = None
        self._subscription: Any = None

    @property
    def type_name(self) -> str:
        """Its type; empty until a publisher was found."""
        return self._stream.type_name if self._stream else ""

    @property
    def statistics(self) -> StreamStatistics:
        """Statistics of the messages so far."""
        return self._stream.statistics if self._stream else StreamStatistics()

    @property
    def stored(self) -> int:
        """Number of messages in the file on the disk."""
        return self._writer.stored(self.name)

    def look(self) -> None:
        """Check the publishers, and subscribe if necessary."""
        found = self._node.get_publishers_info_by_topic(self._topic)
        self._name(found)
        if not found:
            return
        if self._stream is None:
            self._take_up(found)
        if self._stream is not None:
            self._subscribe(match_qos([info.qos_profile for info in found if info.topic_type == self.type_name]))
            strange = sorted({info.topic_type for info in found} - {self.type_name})
            if strange:
                self._complain(
                    f"{self.name} is recorded as {self.type_name}, and not what comes as {', '.join(strange)}"
                )

    def pause(self, paused: bool) -> None:
        """Drop messages, or record again."""
        if self._stream is not None and paused:
            self._writer.interrupt(self._stream)
        self.paused = paused

    def held_up(self, seconds: float) -> None:
        """Report messages that may be missing: the middleware has a queue of limited depth, and drops silently.

        Args:
            seconds: time since the last check [s].
        """
        # What waited is fetched before this look, or between it and the next.
        longest, fetched = max(seconds, self._held), self._received - self._received_before[0]
        self._held, self._received_before = seconds, (self._received_before[1], self._received)
        if longest > STALL_S and fetched >= STREAM.depth:
            self._complain(
                f"messages of {self.name} may be missing: the executor was held up for {longest:.1f} s, "
                f"and as many messages as can wait, {STREAM.depth}, did"
            )

    def close(self) -> None:
        """Receive no more."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _name(self, found: list[Any]) -> None:
        """Update the names of the publishers, and warn if there are several."""
        unnamed = any(info.node_name == _UNNAMED for info in found)
        self._unnamed = self._unnamed + 1 if unnamed else 0
        names = tuple(sorted(_full_name(info) for info in found))
        if len(names) > 1 and names != self._warned and not 0 < self._unnamed < NAME_CHECKS:
            self._warned = names
            self._node.get_logger().warning(
                f"{len(names)} publishers on {self.name}: {', '.join(names)}; "
                "their messages mix in the bag: stop one if that is not meant"
            )
        self.publishers = names

    def _take_up(self, found: list[Any]) -> None:
        """Take the type of the topic from the publisher found first."""
        first = found[0]
        try:
            self._class = find_message_class(first.topic_type)
        except InputError as error:
            self._complain(f"{self.name} is not recorded: {error}")
            return
        self._stream = Stream(
            topic=self.name,
            type_name=first.topic_type,
            schema=make_definition(self._class),
            type_hash=_hash(first),
            offered_qos=[
                describe_as_in_bags(info.qos_profile) for info in found if info.topic_type == first.topic_type
            ],
            stamped=begins_with_header(self._class),
        )
        self.problem = ""
        self._writer.announce(self._stream)

    def _subscribe(self, wanted: QoSProfile) -> None:
        """Subscribe, unless the present subscription receives from every publisher."""
        if self._qos is not None:
            weaker = (
                wanted.reliability != self._qos.reliability == ReliabilityPolicy.RELIABLE
                or wanted.durability != self._qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
            )
            if not weaker:
                return
            self._node.get_logger().warning(
                f"a publisher of {self.name} offers less than those before it: subscribed again; "
                "messages of this moment may be missing"
            )
        self.close()
        self._qos = wanted
        self._subscription = self._node.create_subscription(
            self._class,
            self._topic,
            self._receive,
            wanted,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(message_lost=self._node.guarded(self._count_lost)),
        )

    def _receive(self, message: bytes) -> None:
        self._received += 1
        if not self.paused:
            self._writer.add(self._stream, self._clock.now().nanoseconds, message)  # type: ignore[arg-type]

    def _count_lost(self, event: Any) -> None:
        if not self.paused:
            self.lost += event.total_count_change

    def _complain(self, problem: str) -> None:
        self.problem = problem
        if self._changes.due(time.monotonic(), problem):
            self._node.get_logger().error(problem)


def _full_name(info: Any) -> str:
    """The node of a publisher."""
    if info.node_name == _UNNAMED:
        return "a publisher without a node"
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def _hash(info: Any) -> str:
    """RIHS01 hash of a publisher's type; empty if it announces none."""
    text = str(info.topic_type_hash)
    return text if text.startswith("RIHS") else ""
