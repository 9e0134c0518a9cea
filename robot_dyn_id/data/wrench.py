# SPDX-License-Identifier: Apache-2.0
"""Recordings of a wrench sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError


@dataclass(frozen=True)
class WrenchRecording:
    """Samples of a 6-axis force-torque sensor during a recording of the joints.

    Attributes:
        source: name for messages, usually the path.
        t: ascending stamps with the origin of the stamps of the joints [s], shape (N,).
        wrench: moment and force in the sensor frame [N m, N], shape (6, N).
        frame: link whose frame that is, as the messages state it; empty: not stated.
    """

    source: str
    t: Array
    wrench: Array
    frame: str = ""

    def __post_init__(self) -> None:
        """Check the samples.

        Raises:
            InputError: shapes that do not fit, stamps that do not ascend, values that are not finite.
        """
        if self.t.ndim != 1 or self.wrench.shape != (6, len(self.t)) or len(self.t) < 2:
            raise InputError(f"{self.source}: the wrench has shape {self.wrench.shape}, expected 6 x {self.t.shape}")
        if not (np.diff(self.t) > 0.0).all():
            raise InputError(f"{self.source}: the stamps of the wrench do not ascend; sort them, each once")
        if not np.isfinite(self.wrench).all():
            raise InputError(f"{self.source}: the wrench is not finite everywhere; leave such samples out")
