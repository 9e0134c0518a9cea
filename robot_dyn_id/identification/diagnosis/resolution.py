# SPDX-License-Identifier: Apache-2.0
"""Resolution of the recorded positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.findings import Definition, Finding, Section

POSITION_COARSE = Definition(
    "position_coarse",
    Section.HEALTH,
    "warning",
    "The positions of a joint are recorded in steps of more than 2 mrad or mm: its acceleration is noise.",
    "record the positions with the full resolution of the encoders",
    check="positions",
)

COARSEST_STEP = 2e-3
"""Distance of neighboring readings [rad or m] above which an encoder is coarse: 11.6 bits per turn."""

FEWEST_READINGS = 5
"""Number of distinct readings below which a joint does not move enough to show its resolution."""

GRID_TOLERANCE = 0.05
"""Largest distance of a reading from a multiple of the step, as a share of the step."""

OUTLIER_SHARE = 0.01
"""Share of the readings that are left out at either end: single wild values would pass for the range of the motion."""


def position_step(readings: Array) -> float:
    """Distance of neighboring readings if all are multiples of it [rad or m], else 0.

    Args:
        readings: finite positions of a joint, shape (N,).
    """
    if not len(readings):
        return 0.0
    low, high = np.quantile(readings, (OUTLIER_SHARE, 1.0 - OUTLIER_SHARE))
    distinct = np.unique(readings[(readings >= low) & (readings <= high)])
    if len(distinct) < FEWEST_READINGS:
        return 0.0
    steps = np.diff(distinct)
    step = float(steps[steps > 1e-3 * steps.max()].min())
    multiples = (distinct - distinct[0]) / step
    return step if np.abs(multiples - np.round(multiples)).max() < GRID_TOLERANCE else 0.0


class ResolutionObserver:
    """Observer of the distance of neighboring readings of the encoders."""

    def __init__(self, source: str, joints: Sequence[str]) -> None:
        """Begin a recording of n joints."""
        self.source, self.joints, self._steps = source, tuple(joints), np.full(len(joints), np.inf)

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        steps = self._steps
        for joint in np.flatnonzero(steps > COARSEST_STEP).tolist():  # others are fine, and steps only get smaller
            readings = chunk.q[:, joint]
            step = position_step(readings[np.isfinite(readings)])
            if step or len(np.unique(readings)) >= FEWEST_READINGS:
                steps[joint] = min(steps[joint], step)

    def conclude(self) -> tuple[Finding, ...]:
        """Finding about encoders whose readings are far apart."""
        steps = zip(self.joints, self._steps.tolist(), strict=True)
        coarse = {name: step for name, step in steps if COARSEST_STEP < step < np.inf}
        if not coarse:
            return ()
        listed = ", ".join(f"{name} {1e3 * step:.2g}" for name, step in coarse.items())
        message = f"{self.source}: positions are recorded in coarse steps [mrad or mm]: {listed}"
        return (POSITION_COARSE.found(message, coarse),)
