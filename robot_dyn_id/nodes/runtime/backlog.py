# SPDX-License-Identifier: Apache-2.0
"""Limit on the number of messages of a stream that wait for a node that is too slow for them.

An EventsExecutor (rclpy 7 to 9) has one queue without a limit, with an event for each message that has arrived. The
middleware replaces old messages by new ones, but not their events: a node that processes fewer messages than arrive
grows by some 140 bytes for each of the others, and its timers and services wait behind all of these events. This keeps
the queue short: every message is taken, and of those that have waited for too long only the latest is processed.
"""

from __future__ import annotations

import inspect
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

LATEST = 5
"""Number of messages that may wait for a node that is overloaded."""

LATEST_WAIT_S = 0.02
"""Time for which messages may wait in any case [s]."""

OVERLOADED_S = 1.0
"""Time after a dropped message for which a node counts as overloaded [s]."""

_ARGUMENTS = tuple(inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("message", "info"))


class Backlog:
    """Callback of a subscription that drops messages if `depth` newer ones are waiting, except for the latest.

    A queue of the middleware of this depth would drop the same; that one must be deeper, so that it drops none before.
    A deep queue is for a node that is late once: after messages were dropped, the node begins again with the latest,
    until it is fast enough.

    Attributes:
        dropped: number of messages that were dropped.
    """

    __signature__ = inspect.Signature(_ARGUMENTS)  # by which rclpy decides to pass the times of messages

    def __init__(self, callback: Callable[[Any], Any], depth: int, defer: Callable[[Callable[[], None]], bool]) -> None:
        """Begin with no message.

        Args:
            callback: takes one message.
            depth: number of messages that may wait, at the rate of as many before.
            defer: function that has another one called after all messages that have arrived; False if it cannot:
                then the latest message is dropped like others.
        """
        self._callback, self._depth, self._defer = callback, depth, defer
        self._times: deque[float] = deque(maxlen=depth)  # receipt of messages [s]
        self._overloaded_until = -math.inf
        self._late: tuple[Any, ...] = ()  # the latest message that has waited for too long
        self._deferred = False
        self.dropped = 0

    def __call__(self, *arguments: Any) -> None:
        """Process a message, or drop it; takes message and info, as one tuple from an EventsExecutor."""
        message, info = arguments if len(arguments) == 2 else arguments[0]
        received = 1e-9 * (info["received_timestamp"] or math.inf)  # not every middleware has it
        if self._late:
            self._late, self.dropped = (), self.dropped + 1
        depth = min(LATEST, self._depth) if received < self._overloaded_until else self._depth
        wait = received - self._times[-depth] if len(self._times) >= depth else math.inf
        self._times.append(received)
        if 1e-9 * time.time_ns() - received <= max(LATEST_WAIT_S, wait):
            self._callback(message)
            return
        self._overloaded_until = received + OVERLOADED_S
        self._late = (message,)
        self._deferred = self._deferred or self._defer(self._process_latest)

    def _process_latest(self) -> None:
        late, self._late, self._deferred = self._late, (), False
        for message in late:
            self._callback(message)
