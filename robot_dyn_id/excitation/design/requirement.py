# SPDX-License-Identifier: Apache-2.0
"""What a motion must keep to: as numbers for a search, with exact gradients, and as margins for people.

The excess of a requirement is dimensionless, at most 0 where it is kept: how far a value is beyond its limit, as a
share of the limit. A requirement has some rows (one for each joint and side, say), each with a value at many instants;
a search sees one smooth number for each row, which is at least the largest of them (Kreisselmeier and Steinhauser
1979), so that what it keeps is kept at every instant that it looks at.
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
"""Of the smooth maximum: ten instants near the largest value are told as 0.8 % of the limit more than it."""


@dataclass(frozen=True)
class Margin:
    """How much of a limit a motion leaves.

    Attributes:
        name: what is limited, with the joint or the pair.
        reached: the extreme value.
        limit: its limit.
        margin: what is left, in the same unit; negative beyond the limit.
        unit: of all three.
        time: when the value is extreme [s].
    """

    name: str
    reached: float
    limit: float
    margin: float
    unit: str
    time: float

    @property
    def kept(self) -> bool:
        """Whether the limit is kept, to rounding."""
        return self.margin >= -LIMIT_TOLERANCE * max(1.0, abs(self.limit))

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"{self.name}: reaches {self.reached:.4g} {self.unit} at {self.time:.3f} s, limit {self.limit:.4g} "
            f"{self.unit}"
        )


class Requirement(ABC):
    """The contract. A requirement looks at a sample of a motion of n joints at N instants."""

    @abstractmethod
    def excess(self, motion: Sample) -> Array:
        """By how much each value is beyond its limit, as a share of it, shape (rows, values)."""

    @abstractmethod
    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """For every row, the derivatives of sum(weights * excess) over its values by the motion.

        Args:
            motion: at N instants.
            weights: shape (rows, values).
        """

    @abstractmethod
    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """What is left of every limit; `t` are the times [s], shape (N,)."""

    def largest(self, motion: Sample, sharpness: float = SHARPNESS) -> Array:
        """The smooth maximum of every row, shape (rows,)."""
        excess = self.excess(motion)
        peak = excess.max(axis=1)
        return np.asarray(peak + np.log(np.exp(sharpness * (excess - peak[:, None])).sum(axis=1)) / sharpness)

    def largest_slopes(self, motion: Sample, sharpness: float = SHARPNESS) -> Iterator[Sample]:
        """Derivatives of `largest` by the motion, row by row."""
        excess = self.excess(motion)
        weights = np.exp(sharpness * (excess - excess.max(axis=1, keepdims=True)))
        return self.slopes(motion, weights / weights.sum(axis=1, keepdims=True))


def both_sides(weights: Array) -> Array:
    """Weights of the excess over an upper limit and then of that under a lower one, as weights of the values."""
    half = len(weights) // 2
    return weights[:half] - weights[half:]


def nearer(name: str, unit: str, t: Array, values: Array, lower: float, upper: float) -> Margin:
    """What is left of the side that is nearer to its limit."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if upper - values[high] <= values[low] - lower:
        return Margin(name, float(values[high]), float(upper), float(upper - values[high]), unit, float(t[high]))
    return Margin(name, float(values[low]), float(lower), float(values[low] - lower), unit, float(t[low]))


def no_slope(motion: Sample) -> Sample:
    """Derivatives that are 0."""
    zeros = np.zeros((4, *motion[0].shape))
    return zeros[0], zeros[1], zeros[2], zeros[3]
