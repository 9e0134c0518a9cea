# SPDX-License-Identifier: Apache-2.0
"""Ranges of a motion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.windows import FilteredWindow


@dataclass(frozen=True)
class Ranges:
    """Ranges of a motion of n joints; all arrays have shape (n,).

    Attributes:
        q_min: minimum position [rad or m].
        q_max: maximum position [rad or m].
        dq_max: maximum speed [rad/s or m/s].
        ddq_max: maximum magnitude of the acceleration [rad/s^2 or m/s^2].
    """

    q_min: Array
    q_max: Array
    dq_max: Array
    ddq_max: Array

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> Ranges:
        """Ranges of the motion that a parameter set was identified from."""
        return cls(parameters.q_min, parameters.q_max, parameters.dq_max, parameters.ddq_max)

    @classmethod
    def from_windows(cls, windows: Iterable[FilteredWindow]) -> Ranges:
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
                here = cls(motion.q.min(axis=1), motion.q.max(axis=1), speed, acceleration)
                ranges = here if ranges is None else ranges.union(here)
        if ranges is None:
            raise InputError("no sample is left between the ends of the recordings: record longer")
        return ranges

    def union(self, other: Ranges) -> Ranges:
        """Ranges of both motions."""
        return Ranges(
            np.minimum(self.q_min, other.q_min),
            np.maximum(self.q_max, other.q_max),
            np.maximum(self.dq_max, other.dq_max),
            np.maximum(self.ddq_max, other.ddq_max),
        )
