# SPDX-License-Identifier: Apache-2.0
"""Calls of a node at a high rate, which the loop around the executor makes.

For each call of a timer, an EventsExecutor (rclpy 7 to 9) wakes its thread of timers twice, and that thread wakes the
one of the callbacks: at 1 kHz this takes more of a core than many callbacks do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class PacedCall:
    """A function that is called periodically; calls that would be late are left out, as those of a timer are.

    Attributes:
        due: time of the next call by `time.monotonic` [s].
    """

    def __init__(self, period: float, call: Callable[[], None]) -> None:
        """Begin after one period [s]."""
        self._period, self._call = period, call
        self.due = time.monotonic() + period

    def cancel(self) -> None:
        """Make no more calls."""
        self.due = math.inf

    def make(self, now: float) -> None:
        """Call the function if it is due at the time `now` [s]."""
        if now >= self.due:
            self.due += self._period * (1.0 + (now - self.due) // self._period)
            self._call()
