# SPDX-License-Identifier: Apache-2.0
"""Agreement between the clock that stamps commands and the clock that stamps joint states."""

from __future__ import annotations

PATIENCE = 0.5
"""Time for which every joint state must disagree before it is a fault [s]: one late message proves nothing."""


class ClockAgreement:
    """Compares the age of joint states, by their stamps, with what a clock shared with the robot would show.

    Pieces of a motion carry the time at which they begin. A controller whose clock differs would follow them late, all
    at once, or refuse them as outdated.
    """

    def __init__(self, tolerance: float) -> None:
        """Assume agreement.

        Args:
            tolerance: largest age of a joint state in either direction [s], including its transport.
        """
        self._tolerance = tolerance
        self._since: float | None = None
        self._age = 0.0

    def receive(self, steady: float, age: float) -> None:
        """Take the age of one joint state that has a stamp.

        Args:
            steady: time of its arrival by a steady clock [s].
            age: time between its stamp and its arrival by the motion's clock [s]; negative for stamps in the future.
        """
        self._age = age
        if abs(age) <= self._tolerance:
            self._since = None
        elif self._since is None:
            self._since = steady

    def problem(self, steady: float) -> str:
        """Why the two clocks cannot be the same; empty while they can.

        Args:
            steady: the time by the steady clock [s].
        """
        if self._since is None or steady - self._since < PATIENCE:
            return ""
        direction = "ahead of" if self._age < 0.0 else "behind"
        return (
            f"the stamps of the joint states are {abs(self._age):.3g} s {direction} this node's clock: synchronize the "
            "clocks, set use_sim_time where the robot is simulated, or set horizon to 0"
        )
