# SPDX-License-Identifier: Apache-2.0
"""Contract of the readable message types: which fields are the channels of the joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from robot_dyn_id.recordings.cdr import MessageLayout, Numbers

Q, DQ, TAU, CURRENT, TEMPERATURE, REFERENCE = CHANNELS = ("q", "dq", "tau", "current", "temperature", "reference")
"""Channels as `Chunk` names them."""


@dataclass(frozen=True)
class JointColumns:
    """The channels of messages of one layout.

    Attributes:
        names: names of the joints; empty if the messages have none.
        channels: places of one number per joint by channel; channels without numbers may be left out.
        stamp: places of seconds and nanoseconds, or of seconds alone; empty: the messages have no stamp.
        unused: what the messages have besides and no channel takes, for a finding.
    """

    names: tuple[str, ...]
    channels: Mapping[str, Numbers]
    stamp: tuple[Numbers, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class MessageType:
    """A message type that can be read.

    Attributes:
        name: such as `sensor_msgs/msg/JointState`.
        columns: the channels of a layout; raises KeyError for a definition without the expected fields.
        effort_is_torque: whether efforts are known to be in N m or N.
        default_names: names of the joints where the messages have none and the user gives none.
        default_channel: the only channel of the messages, whatever it is read for; empty: they name their channels.
    """

    name: str
    columns: Callable[[MessageLayout], JointColumns]
    effort_is_torque: bool = False
    default_names: tuple[str, ...] = ()
    default_channel: str = ""

    @property
    def word(self) -> str:
        """The name without its package, for messages."""
        return self.name.rpartition("/")[2]


def locate_header_stamp(layout: MessageLayout) -> tuple[Numbers, ...]:
    """Places of the stamp of a std_msgs/Header called `header`."""
    return layout.numbers["header.stamp.sec"], layout.numbers["header.stamp.nanosec"]


def gather_numbers(layout: MessageLayout, paths: list[str]) -> Numbers:
    """Places of single numbers, one field each; all have the type of the first."""
    parts = [layout.numbers[path] for path in paths]
    return Numbers(parts[0].code if parts else "<f8", tuple(offset for part in parts for offset in part.offsets))
