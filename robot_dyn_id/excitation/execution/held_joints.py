# SPDX-License-Identifier: Apache-2.0
"""Joints that a motion does not move: where its collision check assumes them, and where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robot_dyn_id.excitation.execution.feedback import FARTHEST

TOLERANCE = 0.02
"""Largest distance of a held joint from the position for which collisions were checked [rad or m]."""


class HeldJoints:
    """Assumed and measured positions of the joints that a motion does not move.

    Attributes:
        measured: latest positions by joint name [rad or m], of those in joint states.
    """

    def __init__(self, assumed: Mapping[str, float]) -> None:
        """Wait for joint states.

        Args:
            assumed: positions in the collision check, by joint name [rad or m].
        """
        self._assumed = dict(assumed)
        self.measured: dict[str, float] = {}

    def receive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Take joint states of any joints; positions that are not finite are left out."""
        if not self._assumed or len(names) != len(positions):
            return
        for name, position in zip(names, positions, strict=True):
            if name in self._assumed and abs(position) <= FARTHEST:
                self.measured[name] = float(position)

    def assume(self, positions: Mapping[str, float]) -> None:
        """Replace the positions that the collision check assumes, by joint name [rad or m]."""
        self._assumed = dict(positions)

    def elsewhere(self) -> str:
        """Joints that are not where the collision check assumes them, with both positions; empty if all are."""
        return ", ".join(
            f"{name} is at {position:.3g}, not at {self._assumed[name]:.3g}"
            for name, position in self.measured.items()
            if abs(position - self._assumed[name]) > TOLERANCE
        )

    def unmeasured(self) -> str:
        """Joints that are not in the joint states, with their assumed positions; empty if all are."""
        return ", ".join(
            f"{name} at {position:.3g}" for name, position in self._assumed.items() if name not in self.measured
        )
