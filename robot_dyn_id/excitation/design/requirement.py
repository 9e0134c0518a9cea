# SPDX-License-Identifier: Apache-2.0
"""Requirements on a motion: constraint functions with exact gradients, and margins for reports.

The excess of a requirement is the amount by which a value exceeds its limit relative to the limit: dimensionless, and
at most 0 if the requirement is satisfied. A requirement has rows (such as one per joint and side) with values at many
times. A search uses one smooth upper bound of the maximum of each row (Kreisselmeier and Steinhauser 1979), so that
the requirement is satisfied at all samples if the bound is at most 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.limits import LIMIT_TOLERANCE
from robot_dyn_id.excitation.trajectory import Sample

SHARPNESS = 300.0
"""Default sharpness of the smooth maximum, which exceeds the maximum by 0.8 % of the limit for ten equal values [-]."""


@dataclass(frozen=True)
class Margin:
    """Margin between the extreme value of a motion and a limit.

    Attributes:
        name: limited quantity with its joint or pair.
        reached: extreme value.
        limit: limit of the value.
        margin: distance from the limit; negative if the limit is exceeded.
        unit: unit of these three values.
        time: time of the extreme value [s].
    """

    name: str
    reached: float
    limit: float
    margin: float
    unit: str
    time: float

    @property
    def satisfied(self) -> bool:
        """Whether the limit is satisfied, except for rounding errors."""
        return self.margin >= -LIMIT_TOLERANCE * max(1.0, abs(self.limit))

    def __str__(self) -> str:
        """Description in one line."""
        return (
            f"{self.name}: reaches {self.reached:.4g} {self.unit} at {self.time:.3f} s, limit {self.limit:.4g} "
            f"{self.unit}"
        )


class Requirement(ABC):
    """Interface of requirements, evaluated on a motion of n joints sampled at N times."""

    @abstractmethod
    def excess(self, motion: Sample) -> Array:
        """Excess of each value over its limit, relative to the limit, shape (rows, values)."""

    @abstractmethod
    def gradients(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """Derivatives of the weighted sum of each row's excess with respect to the motion.

        Args:
            motion: motion at N times.
            weights: weights of the values, shape (rows, values).

        Yields:
            Derivatives for one row after the other.
        """

    @abstractmethod
    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """Margins of all limits; `t` are the times of the motion [s], shape (N,)."""

    def smooth_maximum(self, motion: Sample, sharpness: float = SHARPNESS) -> Array:
        """Smooth maximum of the excess of every row, shape (rows,)."""
        excess = self.excess(motion)
        peak = excess.max(axis=1)
        return np.asarray(peak + np.log(np.exp(sharpness * (excess - peak[:, None])).sum(axis=1)) / sharpness)

    def smooth_maximum_gradients(self, motion: Sample, sharpness: float = SHARPNESS) -> Iterator[Sample]:
        """Derivatives of `smooth_maximum` with respect to the motion, row by row."""
        excess = self.excess(motion)
        weights = np.exp(sharpness * (excess - excess.max(axis=1, keepdims=True)))
        return self.gradients(motion, weights / weights.sum(axis=1, keepdims=True))


def combine_sides(weights: Array) -> Array:
    """Convert weights of the excess over the upper and then the lower limit to weights of the values."""
    half = len(weights) // 2
    return weights[:half] - weights[half:]


def find_nearest_margin(name: str, unit: str, t: Array, values: Array, lower: float, upper: float) -> Margin:
    """Margin of the side that is closer to its limit."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if upper - values[high] <= values[low] - lower:
        return Margin(name, float(values[high]), float(upper), float(upper - values[high]), unit, float(t[high]))
    return Margin(name, float(values[low]), float(lower), float(values[low] - lower), unit, float(t[low]))


def zero_gradient(motion: Sample) -> Sample:
    """Zero derivatives with respect to a motion."""
    zeros = np.zeros((4, *motion[0].shape))
    return zeros[0], zeros[1], zeros[2], zeros[3]
