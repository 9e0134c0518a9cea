# SPDX-License-Identifier: Apache-2.0
"""Detection of other nodes of the same full name, of which only one may run: services would reach either of them."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from robot_dyn_id.errors import GraphError
from robot_dyn_id.nodes.runtime.diagnostics import make_status_name

LISTENING_S = 1.0
"""Time after which a participant knows the nodes that are already in the graph: discovery takes up to 0.65 s."""

SILENCE_S = 2.5
"""Time without diagnostics after which a node in the graph is taken for the remains of a killed process."""

LOOK_S = 0.2
"""Time between two looks at the graph."""

INSTANCE, PROCESS = "instance", "process"
"""Keys in the diagnostics that distinguish nodes of the same name."""

_listening_since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Namesake:
    """Another running node of the same full name.

    Attributes:
        seniority: sort key; the node with the smallest one stays.
        process: where it runs.
        says: message of its diagnostics.
        heard: arrival of its latest diagnostics, by `time.monotonic` [s].
    """

    seniority: tuple[bool, int, str]
    process: str
    says: str
    heard: float


class Namesakes:
    """Watches the graph for nodes of the same full name and ends the newer of two that are alive.

    A node that has not yet taken its place, because it has just started or because another one of its name has not been
    heard yet, must not command a robot. Of two nodes that start at the same time the one that started first stays.
    """

    def __init__(self, node: Any, diagnostics: Any, diagnose: Callable[[], None]) -> None:
        """Begin to watch.

        Args:
            node: a `RobotNode`, which ends with a `GraphError` if it is the newer of two nodes of its name.
            diagnostics: `Interface` of the topic on which the nodes publish their diagnostics.
            diagnose: publishes the diagnostics of the node, `values` included.
        """
        self._node, self._topic, self._diagnose = node, diagnostics, diagnose
        self._name = node.get_fully_qualified_name()
        self._instance, self._started = secrets.token_hex(8), time.time_ns()
        self._listening_since = _listening_since.setdefault(node.context, time.monotonic())
        self._others: dict[str, _Namesake] = {}
        self._shared_since: float | None = None  # the graph has held the name more than once since then
        self._subscription: Any = None
        self._remains_reported = False
        self.settled = False
        """Whether the node has taken its place: it may command a robot."""
        node.create_timer(LOOK_S, self.look, clock=node.steady)

    def values(self) -> dict[str, str]:
        """Values for the diagnostics of the node."""
        state = "settled" if self.settled else "starting"
        process = f"{os.getpid()} on {socket.gethostname()}"
        return {INSTANCE: f"{state} {self._started} {self._instance}", PROCESS: process}

    def obstacle(self) -> str:
        """Reason why the node must not command a robot; empty if it may."""
        alive = self._alive()
        if alive:
            return f"another node {self._name} is running{alive[0].process}: only one may"
        if not self.settled:
            return "looking for other nodes of the same name"
        return ""

    def refusal(self) -> str:
        """Reason why the node must not begin to move a robot, by the graph as it is now; empty if it may."""
        self.look()
        unheard = self._shared_since is not None and time.monotonic() - self._shared_since < SILENCE_S
        if unheard and self.settled:
            return self.obstacle() or f"another node {self._name} is in the graph: wait {SILENCE_S:g} s and try again"
        return self.obstacle()

    def look(self) -> None:
        """Compare the graph with what was heard, and end or settle the node."""
        now = time.monotonic()
        names = self._node.get_node_names_and_namespaces()
        if sum(f"{namespace.rstrip('/')}/{name}" == self._name for name, namespace in names) < 2:
            self._stop_listening()
            self.settled = self.settled or now - self._listening_since >= LISTENING_S
            return
        if self._shared_since is None:
            self._shared_since = now
            self._listen()
        alive = self._alive()
        if alive:
            self._compare(alive[0])
        elif now - self._shared_since >= SILENCE_S:
            self.settled = True
            if not self._remains_reported:
                self._remains_reported = True
                self._node.get_logger().warning(
                    f"another node {self._name} is in the graph but silent for {SILENCE_S:g} s: taken for the remains "
                    "of a process that was killed"
                )

    def _alive(self) -> list[_Namesake]:
        """Namesakes heard within `SILENCE_S`, the most senior first."""
        now = time.monotonic()
        return sorted(
            (other for other in self._others.values() if now - other.heard < SILENCE_S),
            key=lambda other: other.seniority,
        )

    def _compare(self, other: _Namesake) -> None:
        if other.seniority < (not self.settled, self._started, self._instance) and self._node.end is None:
            says = f" and reports {other.says!r}" if other.says else ""
            self._node.end = GraphError(
                f"another node {self._name} is running{other.process}{says}: end it, or start this one with another "
                "name (-r __node:=NAME) or namespace (-r __ns:=/NAME)"
            )

    def _listen(self) -> None:
        """Subscribe to the diagnostics, and publish the own ones for the others."""
        topic = self._topic
        self._subscription = self._node.create_subscription(topic.type, topic.name, self._hear, topic.qos)
        self._diagnose()

    def _stop_listening(self) -> None:
        if self._shared_since is None:
            return
        self._node.destroy_subscription(self._subscription)
        self._subscription, self._shared_since, self._remains_reported = None, None, False
        self._others.clear()

    def _hear(self, message: Any) -> None:
        for status in message.status:
            if status.name != make_status_name(self._name):
                continue
            values = {item.key: item.value for item in status.values}
            state, started, instance = (*values.get(INSTANCE, "").split(), "", "", "")[:3]
            if instance == self._instance:
                continue
            new = instance not in self._others
            other = self._others[instance] = _Namesake(
                (state == "starting", int(started) if started.isdecimal() else 0, instance),
                f" in process {values[PROCESS]}" if PROCESS in values else "",
                status.message,
                time.monotonic(),
            )
            if new:
                self._diagnose()  # the other one has just begun to listen
            self._compare(other)
