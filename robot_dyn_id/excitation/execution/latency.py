# SPDX-License-Identifier: Apache-2.0
"""The one time that states how late a computer may be, and all limits that follow from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Latency:
    """Limits that follow from the longest delay that is tolerated.

    Attributes:
        longest: longest time by which a message may be late, from its stamp or from the message before it until it is
            handled [s]: publication, transport, scheduling, and the longest callback of the node.
    """

    longest: float

    @property
    def stale(self) -> float:
        """Age, by arrival and by stamp, of joint states and effort commands that move a robot no more [s]."""
        return self.longest

    @property
    def renewal(self) -> float:
        """Time after which the next segment of a motion is sent [s]: it may be as late as this."""
        return self.longest

    @property
    def horizon(self) -> float:
        """Length of the segments of a motion [s]: two of three may be late or lost before the robot brakes."""
        return 3.0 * self.renewal

    @property
    def unobserved(self) -> float:
        """Age of joint states that are stale for a node that only reports them [s]: five delays in a row."""
        return 5.0 * self.longest

    @property
    def disagreement(self) -> float:
        """Time for which all stamps must be wrong until that is a fault of the clocks [s]: as `unobserved`."""
        return 5.0 * self.longest

    @property
    def burst(self) -> float:
        """Advance of simulated time that is tolerated [s]: it comes in bursts, and runs up to ten times as fast."""
        return 10.0 * self.longest

    @property
    def absence(self) -> float:
        """Age of joint states that do not show where the robot is any more, before a motion is planned there [s]."""
        return 10.0 * self.longest

    def clock_tolerance(self, simulated: bool) -> float:
        """Largest age of a stamp, in either direction, of clocks that agree [s].

        Args:
            simulated: whether time is simulated.
        """
        return self.burst if simulated else self.stale
