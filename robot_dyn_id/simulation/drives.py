# SPDX-License-Identifier: Apache-2.0
"""Drives of a simulated arm without torque sensors: efforts in their own unit, encoders before the backlash."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array


@dataclass(frozen=True)
class Drives:
    """Drives between the joints and what is commanded and measured, one per joint.

    Attributes:
        gains: joint torque per drive unit [N m or N], shape (n,); negative where a drive counts in the other direction.
        backlash: width of the backlash between encoder and link [rad or m], shape (n,).
    """

    gains: Array
    backlash: Array

    @cached_property
    def direct(self) -> bool:
        """Whether the drives change nothing."""
        return bool((self.gains == 1.0).all() and not self.backlash.any())

    def torque(self, command: Array) -> Array:
        """Joint torque [N m or N] of a command in drive units, both of shape (n,)."""
        return np.asarray(self.gains * command)

    def measured(self, q: Array, torque: Array, weight: Array) -> tuple[Array, Array]:
        """Positions of the encoders [rad or m] and efforts in drive units, shape (n,) each.

        The backlash is quasi-static: the link hangs from its drive by half of the width, toward its weight.

        Args:
            q: positions of the links [rad or m], shape (n,).
            torque: torques of the motors on the joints [N m or N], shape (n,).
            weight: torques that hold the links against gravity [N m or N], shape (n,).
        """
        return q + 0.5 * self.backlash * np.sign(weight), torque / self.gains
