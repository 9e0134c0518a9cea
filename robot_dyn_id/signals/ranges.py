# SPDX-License-Identifier: Apache-2.0
"""Ranges of the motion of filtered windows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import Ranges
from robot_dyn_id.signals.windows import FilteredWindow


def measure_ranges(windows: Iterable[FilteredWindow]) -> Ranges:
    """Ranges of the samples that are used.

    Raises:
        InputError: no sample is used.
    """
    ranges: Ranges | None = None
    for window in windows:
        used = window.used
        if used.any():
            motion = window.motion.take(used)
            speed, acceleration = np.abs(motion.dq).max(axis=1), np.abs(motion.ddq).max(axis=1)
            here = Ranges(motion.q.min(axis=1), motion.q.max(axis=1), speed, acceleration)
            ranges = here if ranges is None else ranges.union(here)
    if ranges is None:
        raise InputError("no sample is left between the ends of the recordings: record longer")
    return ranges
