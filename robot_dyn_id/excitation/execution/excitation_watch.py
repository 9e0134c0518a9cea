# SPDX-License-Identifier: Apache-2.0
"""Decision when to identify, from the status of all excitation publishers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any

from robot_dyn_id.excitation.execution.enumerations import find_member
from robot_dyn_id.excitation.execution.supervision import Phase

WITHOUT_EXCITATION = (Phase.WAITING, Phase.READY, Phase.DONE, Phase.FAULT, Phase.RETURNING)
"""Phases in which no excitation is under way."""


class Event(Enum):
    """Meaning of a status for the identification."""

    NONE = "nothing new"
    BEGUN = "an excitation is under way"
    EXECUTED = "the excitation was executed to its end, and the robot returns"
    OVER = "the excitation was executed to its end, and the robot has returned"
    FAULT_ON_RETURN = "the excitation was executed to its end, and the robot has stopped on the way back"
    INCOMPLETE = "the excitation has ended before it was complete"


@dataclass
class _Publisher:
    """An excitation publisher.

    Attributes:
        waiting: event that is waited for.
        moves: an excitation that has not been identified yet was observed under way.
        executed: that excitation was executed to its end.
    """

    waiting: str = ""
    moves: bool = False
    executed: bool = False


class ExcitationWatch:
    """Follows the status of each excitation publisher; an excitation that was done before this began is ignored."""

    def __init__(self) -> None:
        """Begin without any publisher."""
        self._publishers: dict[str, _Publisher] = {}

    def take(self, status: Any) -> Event:
        """Take an `ExcitationStatus`; one with an unknown state changes nothing."""
        publisher = self._publishers.setdefault(status.node, _Publisher())
        name, phase = status.node or "the excitation publisher", find_member(Phase, status.state)
        if phase is None:
            publisher.waiting = publisher.waiting or f"{name}, whose state {status.state} is unknown to this version"
            return Event.NONE
        reason = f": {status.reason}" if status.reason else ""
        if status.dry_run:
            publisher.waiting = f"{name} is a dry run, which never moves the robot"
            return Event.NONE
        complete = status.complete or phase == Phase.DONE
        if phase not in WITHOUT_EXCITATION and not status.rehearsing:
            publisher.waiting = f"the excitation of {name} to end ({phase.name.lower()})"
            moved, executed = publisher.moves, publisher.executed
            publisher.moves, publisher.executed = moved or not complete, complete
            if publisher.moves and not moved:
                return Event.BEGUN
            return Event.EXECUTED if moved and complete and not executed else Event.NONE
        moved = publisher.moves
        publisher.moves = publisher.executed = False
        if moved and complete:
            publisher.waiting = f"the next excitation of {name}"
            return Event.FAULT_ON_RETURN if phase == Phase.FAULT else Event.OVER
        if moved:
            publisher.waiting = (
                f"a complete excitation of {name}: the last one ended early{reason}; call ~/identify to use what was "
                "received"
            )
            return Event.INCOMPLETE
        if not publisher.waiting.startswith(("the next", "a complete")):
            publisher.waiting = f"an excitation of {name} to start ({phase.name.lower()})"
        return Event.NONE

    def waiting(self, present: Collection[str]) -> str:
        """Event that the identification waits for, one line that stays the same until something changes.

        Args:
            present: full names of the nodes that publish a status now; the states of other nodes are dropped, unless
                their excitation was under way.
        """
        for name in [name for name in self._publishers if name and name not in present]:
            if not self._publishers[name].moves:
                del self._publishers[name]
            else:
                self._publishers[name].waiting = (
                    f"an excitation of {name}: it disappeared before its excitation was over; call ~/identify to use "
                    "what was received"
                )
        reasons = [publisher.waiting for publisher in self._publishers.values() if publisher.waiting]
        return "; ".join(reasons) or "an excitation: no node publishes its status; or call ~/identify"
