# SPDX-License-Identifier: Apache-2.0
"""Agreement between the clock that stamps commands and the clock that stamps joint states."""

from __future__ import annotations

from robot_dyn_id.excitation.execution.latency import Latency


class ClockAgreement:
    """Comparison of the clocks of commands and joint states by the age of the joint states.

    Segments of a motion carry their start time. A controller with another clock would execute them late or skip them,
    or reject them as outdated.
    """

    def __init__(self, latency: Latency, simulated: bool = False) -> None:
        """Initialize without joint states.

        Args:
            latency: limits of the age of joint states.
            simulated: whether time is simulated.
        """
        self._tolerance, self._disagreement = latency.clock_tolerance(simulated), latency.disagreement
        self._since: float | None = None
        self._age = 0.0

    def receive(self, steady: float, age: float) -> None:
        """Process the age of one joint state with a stamp.

        Args:
            steady: time of receipt by a steady clock [s].
            age: time between its stamp and its receipt by the motion clock [s]; negative for stamps in the future.
        """
        self._age = age
        if abs(age) <= self._tolerance:
            self._since = None
        elif self._since is None:
            self._since = steady

    @property
    def age(self) -> float:
        """Age of the latest joint state by its stamp [s]; 0 before the first, and where the clocks disagree.

        A stamp is a time of the controller, which follows stamped commands by the same clock. It is trusted within the
        tolerance only: the age of a joint state that is late, or of another clock, is not what its stamp says.
        """
        return self._age if self._since is None else 0.0

    @property
    def late(self) -> float:
        """Age of the latest joint state [s] where it is above the tolerance: it shows where the robot was; else 0."""
        return self._age if self._age > self._tolerance else 0.0

    def problem(self, steady: float) -> str:
        """Description of the disagreement of the two clocks; empty if they agree.

        Args:
            steady: present time of the steady clock [s].
        """
        if self._since is None or steady - self._since < self._disagreement:
            return ""
        direction = "ahead of" if self._age < 0.0 else "behind"
        return (
            f"the stamps of the joint states are {abs(self._age):.3g} s {direction} this node's clock: synchronize the "
            "clocks, set use_sim_time where the robot is simulated, or set segments to false"
        )
