# SPDX-License-Identifier: Apache-2.0
"""Joint states of some joints of a robot, in their own order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.execution.state_guard import StateGuard

CHANNELS = ("position", "velocity", "effort")

LARGEST = 1e9
"""Bound of the magnitudes of joint states [SI]: beyond it values are not plausible, and squares lose all digits."""


def convert_to_seconds(stamp: Any) -> float:
    """A time stamp [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


class JointOrder:
    """Picks some joints out of messages that may hold more, in any order."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        """Pick these joints."""
        self._wanted = tuple(joint_names)
        self._message_names: list[str] | None = None
        self._places: list[int] = []

    def concerns(self, message: Any) -> bool:
        """Whether a JointState has any of the joints: a gripper may have a driver of its own on the same topic."""
        return message.name == self._message_names or not set(self._wanted).isdisjoint(message.name)

    def has(self, message: Any, channel: str) -> bool:
        """Whether a JointState has values of a channel: what is not measured is left out, or NaN for all joints."""
        values = getattr(message, channel)
        return len(values) > 0 and not np.isnan(values).all()

    def read(self, message: Any, channels: Sequence[str] = CHANNELS) -> list[Array]:
        """The channels of a JointState, shape (n,) each.

        Raises:
            InputError: a joint is missing or named twice, a channel is missing or has another length, or a value is not
                finite or not plausible.
        """
        if message.name != self._message_names:
            missing = [name for name in self._wanted if name not in message.name]
            if missing:
                raise InputError(f"joint {missing[0]} is not in it; its joints are {_named(message.name)}")
            twice = [name for name in self._wanted if message.name.count(name) > 1]
            if twice:
                raise InputError(f"joint {twice[0]} is named twice")
            self._message_names = list(message.name)
            self._places = [message.name.index(name) for name in self._wanted]
        values = []
        for channel in channels:
            given = getattr(message, channel)
            if len(given) != len(message.name):
                raise InputError(f"it has {len(given)} values of {channel} for {len(message.name)} joints")
            values.append(np.array(given)[self._places])
            bad = np.flatnonzero(~(np.abs(values[-1]) <= LARGEST))
            if len(bad):
                what = "too large" if np.isfinite(values[-1][bad[0]]) else "not finite"
                raise InputError(f"{channel} of joint {self._wanted[bad[0]]} is {what}")
        return values


def receive(
    guard: StateGuard, order: JointOrder, message: Any, now: float, clock: float, channels: Sequence[str]
) -> list[Array]:
    """Pass a JointState through a guard.

    Args:
        guard: guard of the joints of `order`.
        order: joints that are read.
        message: the JointState.
        now: time of its arrival by a steady clock [s].
        clock: the same by the clock of the stamps [s].
        channels: `position`, or `position` and `velocity`.

    Returns:
        The channels, shape (n,) each.

    Raises:
        InputError: the state is not trusted; the guard has counted it.
    """
    try:
        values = order.read(message, channels)
    except InputError as error:
        guard.refuse(now, str(error))
        raise
    guard.receive(now, clock, convert_to_seconds(message.header.stamp), *values)
    return values


def _named(names: Sequence[str]) -> str:
    """Joint names of a message in one line: they may hold line breaks, which would make lines of a log of their own."""
    return " ".join(", ".join(names).split()) or "none"
