# SPDX-License-Identifier: Apache-2.0
"""What stops a moving robot: how far its measured state may be from what was planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array

LEAST = 3
"""Joint states in a row, whatever time they take, that are no noise."""


@dataclass(frozen=True)
class GuardThresholds:
    """What n joints may show while they are moved, shape (n,) each; infinite where it does not matter.

    Attributes:
        tracking: distance between commanded and measured position [rad or m].
        velocity: measured speed [rad/s or m/s].
        effort: measured effort, either direction [N m or N].
        patience: how long a joint may be above its threshold of velocity or effort [s].
        timeout: time between two joint states [s].
    """

    tracking: Array
    velocity: Array
    effort: Array
    patience: float
    timeout: float


class Guard:
    """Watches one measured quantity of n joints.

    Attributes:
        exceeded: which joint has been above its threshold for long enough, its value and the threshold; empty if none.
    """

    def __init__(
        self, quantity: str, joint_names: Sequence[str], units: Sequence[str], threshold: Array, patience: float
    ) -> None:
        """Begin with nothing seen.

        Args:
            quantity: its name, for people.
            joint_names: shape (n,).
            units: of the quantity, shape (n,).
            threshold: of its magnitude, shape (n,); infinite for a joint that is not watched.
            patience: how long, and at least for `LEAST` samples, a joint must be above it [s].
        """
        self._quantity, self._names, self._units = quantity, joint_names, units
        self._threshold, self._patience = threshold, patience
        self._above = np.zeros(len(threshold), dtype=np.int64)  # samples in a row
        self._since = np.zeros(len(threshold))  # time of the first of them
        self._told = np.zeros(len(threshold), dtype=bool)
        self.exceeded = ""

    def look(self, values: Array, now: float) -> None:
        """Take one sample.

        Args:
            values: shape (n,); NaN where it is not measured.
            now: when, by a steady clock [s].
        """
        self._told = ~np.isnan(values)
        above = np.abs(values) > self._threshold
        self._since = np.where(above & (self._above > 0), self._since, now)
        self._above = np.where(above, self._above + 1, 0)
        long = (self._above >= LEAST) & (now - self._since >= self._patience)
        self.exceeded = ""
        for j in np.flatnonzero(long)[:1]:
            unit = self._units[j]
            self.exceeded = (
                f"joint {self._names[j]}: its measured {self._quantity} is {values[j]:.4g} {unit}, more than "
                f"{self._threshold[j]:.4g} {unit}"
            )

    def unmeasured(self) -> list[str]:
        """Joints whose latest sample was not measured."""
        return [name for name, measured in zip(self._names, self._told, strict=True) if not measured]

    def blind(self) -> str:
        """Why some joints are not watched; empty if all are."""
        unlimited = ~np.isfinite(self._threshold)
        reasons = ((unlimited, "has no limit"), (~unlimited & ~self._told, "is not in the joint states"))
        return "; ".join(
            f"{self._quantity} of {', '.join(name for name, one in zip(self._names, joints, strict=True) if one)} {why}"
            for joints, why in reasons
            if joints.any()
        )
