# SPDX-License-Identifier: Apache-2.0
"""Joints that are not moved by a motion: positions assumed in the collision check and measured ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robot_dyn_id.excitation.execution.feedback import MAX_POSITION

POSITION_TOLERANCE = 0.02
"""Largest deviation of a locked joint from the position assumed in the collision check [rad or m]."""


class HeldJoints:
    """Assumed and measured positions of the joints that a motion does not move.

    Attributes:
        measured: latest measured positions by joint name [rad or m].
    """

    def __init__(self, assumed: Mapping[str, float]) -> None:
        """Initialize without joint states.

        Args:
            assumed: positions in the collision check by joint name [rad or m].
        """
        self._assumed = dict(assumed)
        self.measured: dict[str, float] = {}

    def receive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Process joint states of any joints; invalid positions are ignored."""
        if not self._assumed or len(names) != len(positions):
            return
        for name, position in zip(names, positions, strict=True):
            if name in self._assumed and abs(position) <= MAX_POSITION:
                self.measured[name] = float(position)

    def assume(self, positions: Mapping[str, float]) -> None:
        """Replace the positions that the collision check assumes, by joint name [rad or m]."""
        self._assumed = dict(positions)

    def elsewhere(self) -> str:
        """Joints that deviate from their assumed positions, with both positions; otherwise empty."""
        return ", ".join(
            f"{name} is at {position:.3g}, not at {self._assumed[name]:.3g}"
            for name, position in self.measured.items()
            if abs(position - self._assumed[name]) > POSITION_TOLERANCE
        )

    def unmeasured(self) -> str:
        """Joints missing in the joint states, with their assumed positions; otherwise empty."""
        return ", ".join(
            f"{name} at {position:.3g}" for name, position in self._assumed.items() if name not in self.measured
        )
