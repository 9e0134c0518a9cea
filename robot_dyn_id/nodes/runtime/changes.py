# SPDX-License-Identifier: Apache-2.0
"""Limit on reports of a state: every change at once, and a steady rate where changes do not end."""

from __future__ import annotations

import math
import re

FIGURE = re.compile(r"(?<![\w.])[-+]?\d[\d.]*(?:e[-+]?\d+)?(?!\w)")
"""A number of its own, not a part of a name such as joint3."""

LOG_PERIOD = 5.0
"""Shortest time between two log lines on a state that does not change [s]."""

BURST = 20
"""Changes of state that are reported at once after a quiet time."""


class Changes:
    """Decides when a state is reported again.

    Two texts that differ in their figures only are the same state, such as an age that grows.
    """

    def __init__(self, period: float = LOG_PERIOD) -> None:
        """Begin with nothing reported.

        Args:
            period: shortest time between reports of the same state, and of states that keep changing [s].
        """
        self._period = period
        self._state: str | None = None
        self._text = ""
        self._at = -math.inf
        self._credit, self._credited = float(BURST), -math.inf

    def due(self, now: float, text: str) -> bool:
        """Whether to report this; True counts as reported.

        Args:
            now: time of a monotonic clock [s].
            text: the state in words.
        """
        state = FIGURE.sub("#", text)
        if state == self._state:
            due = text != self._text and now - self._at >= self._period
        else:
            self._credit = min(self._credit + (now - self._credited) / self._period, float(BURST))
            self._credited = now
            due = self._credit >= 1.0
            self._credit -= float(due)
        if due:
            self._state, self._text, self._at = state, text, now
        return due
