# SPDX-License-Identifier: Apache-2.0
"""Recording of a stream of joint states in parts: one bag for each excitation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.msg import RecordingStatus
from robot_dyn_id.nodes.messages.joint_state_source import find_joint_state_class
from robot_dyn_id.nodes.messages.message_types import begins_with_header, make_definition
from robot_dyn_id.nodes.messages.raw_stream import RawStream
from robot_dyn_id.nodes.recording.status_topic import RecordingStatusTopic
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.recordings.background_writer import BackgroundWriter, Stream
from robot_dyn_id.recordings.joint_states import TYPE_NAME
from robot_dyn_id.report.folder import make_output_folder

BAG_TIMEOUT_S = 60.0
"""Longest time that the disk may take to finish the bags [s]."""

LOG_PERIOD_S = 5.0
"""Shortest time between two log lines about the same failure [s]."""


def wait_for_bags(bags: tuple[BackgroundWriter, ...]) -> list[Path]:
    """Wait until bags are finished.

    Returns:
        Folders of the bags.

    Raises:
        InputError: a bag could not be written.
    """
    for bag in bags:
        bag.ended(BAG_TIMEOUT_S)
        if bag.failure:
            raise InputError(bag.failure)
    return [bag.folder for bag in bags]


def make_folder(given: str, prefix: str, files: Sequence[str] = ()) -> Path:
    """Folder of a node for recordings and results.

    Args:
        given: parameter `folder`; empty: `prefix` with date and time.
        prefix: beginning of the name of the default.
        files: files of results that it must not hold already.

    Raises:
        InputError: it cannot be written to.
        UsageError: it holds results.
    """
    folder = make_output_folder(Path(given or f"{prefix}{datetime.now():%Y%m%d-%H%M%S}").expanduser())
    earlier = [file for file in files if (folder / file).exists()]
    if earlier:
        raise UsageError(f"parameter folder: {folder} holds {', '.join(earlier)} already; give another folder")
    return folder


class StreamRecording:
    """Joint states of a topic, written to bags from which a model is identified.

    Attributes:
        received: number of messages since the start or the latest `reset`.
    """

    def __init__(self, node: RobotNode, folder: Path, status_topic: str, type_name: str = TYPE_NAME) -> None:
        """Subscribe.

        Args:
            node: node that receives the joint states.
            folder: folder in which the bags `stream_1`, `stream_2`, ... are created.
            status_topic: name of the topic on which the state of the recording is published.
            type_name: type of the joint states.

        Raises:
            UsageError: the package of the type is not installed.
        """
        self.received = 0
        self._node = node
        self._folder = folder
        self._bag: BackgroundWriter | None = None
        self._parts: list[BackgroundWriter] = []
        self._discarded: list[BackgroundWriter] = []
        self._reset: list[BackgroundWriter] = []
        self._ending = False
        self._creation_failure = ""
        self._class = find_joint_state_class(type_name)
        self._type_name = type_name
        self._source = RawStream(node, self._class, "joint_states", self._write)
        self._topic = self._joint_states()
        self._status = RecordingStatusTopic(node, status_topic)

    @property
    def lost(self) -> int:
        """Number of messages that the middleware reported as lost."""
        return self._source.lost

    @property
    def failure(self) -> str:
        """Reason why joint states are not recorded; empty if they are."""
        return self._creation_failure or (self._bag.failure or "" if self._bag is not None else "")

    @property
    def lost_bag(self) -> str:
        """Reason why joint states are missing from one of the bags; empty if none are."""
        return next((bag.failure for bag in (*self._reset, *self._bags) if bag.failure), self._creation_failure)

    @property
    def stored(self) -> int:
        """Number of messages since the start or the latest `reset` that are in bags on the disk."""
        return sum(bag.stored(self._topic.topic) for bag in self._bags)

    @property
    def open(self) -> bool:
        """Whether a bag is being written."""
        return self._bag is not None

    @property
    def parts(self) -> tuple[BackgroundWriter, ...]:
        """Finished bags to identify from."""
        return tuple(self._parts)

    def take_parts(self) -> tuple[BackgroundWriter, ...]:
        """Finished bags to identify from.

        Raises:
            InputError: no joint states were received.
        """
        if not self._parts:
            publishers = self._node.count_publishers("joint_states")
            raise InputError(f"no joint states were received; joint_states has {publishers} publishers")
        return self.parts

    def close_part(self) -> None:
        """Finish the current bag and keep it for the identification; the next message begins another one."""
        self._parts += self._close()

    def discard_part(self) -> None:
        """Finish the current bag and leave it out of the identification."""
        self._discarded += self._close()

    def reset(self) -> int:
        """Leave out everything that was received; returns the number of messages. The bags stay on the disk."""
        received = self.received
        self.close_part()
        self._reset += [*self._parts, *self._discarded]
        self._parts = []
        self._discarded = []
        self.received = 0
        return received

    def end(self) -> None:
        """Receive no more, and finish the bags."""
        if not self._ending:
            self._ending = True
            self.publish_status()
        self.close_part()

    def destroy(self) -> None:
        """Take subscription and status topic out of the graph."""
        self._source.destroy()
        self._status.destroy()

    def finished(self) -> bool:
        """Whether all bags are finished or have failed."""
        return all(bag.ended() for bag in (*self._parts, *self._discarded, *self._reset))

    def publish_status(self) -> None:
        """Publish the state of the recording if it changed, and log why joint states cannot be recorded."""
        state = RecordingStatus.RECORDING
        reason = self.failure
        if reason:
            state = RecordingStatus.FAILED
            if self.open:
                self._node.get_logger().error(reason, throttle_duration_sec=LOG_PERIOD_S)
        elif self._ending:
            state = RecordingStatus.FINISHED
        elif not self.received:
            state = RecordingStatus.IDLE
            reason = "no joint states yet"
        self._status.publish(state, reason, self._describe)

    def _describe(self, status: Any) -> str:
        """Fill in folder, topic and number of messages; returns the failure of the bag.

        Discarded bags are included: a smaller number means to subscribers that a recording was dropped.
        """
        status.folder = str(self._folder)
        status.topics = [self._source.name]
        status.types = [self._type_name]
        status.counts = [self.stored]
        status.lost = [self.lost]
        status.rates = [0.0]
        status.jitter = [0.0]
        return self.failure

    @property
    def _bags(self) -> list[BackgroundWriter]:
        """Bags since the start or the latest `reset`."""
        return [*self._parts, *self._discarded, *([self._bag] if self._bag is not None else [])]

    def _write(self, message: bytes) -> None:
        if self._ending:
            return
        if self._bag is None:
            number = next(n for n in count(1) if not (self._folder / f"stream_{n}").exists())
            try:
                self._bag = BackgroundWriter(self._folder / f"stream_{number}")
            except InputError as error:  # the folder was removed, or the disk is full
                self._creation_failure = f"joint states are not recorded: {error}"
                self._node.get_logger().error(self._creation_failure, throttle_duration_sec=LOG_PERIOD_S)
                return
            self._creation_failure = ""
            self._topic = self._joint_states()  # each bag has statistics of its own
            self._bag.announce(self._topic)
            self._node.get_logger().info(f"joint states are recorded in {self._bag.folder}")
        self.received += 1
        self._bag.add(self._topic, self._node.ros_ns(), message)

    def _close(self) -> list[BackgroundWriter]:
        """Finish the current bag; returns it, or nothing if there is none."""
        bag = self._bag
        self._bag = None
        if bag is None:
            return []
        bag.end()
        return [bag]

    def _joint_states(self) -> Stream:
        """Topic of the bags, with empty statistics."""
        stamped = begins_with_header(self._class)
        return Stream("/joint_states", self._type_name, make_definition(self._class), "", (), stamped=stamped)
