# SPDX-License-Identifier: Apache-2.0
"""Parameters of a fit of actuators: which values are estimated, and which of them are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.actuators.model import SIGNED
from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.kernels.actuators import KINDS


@dataclass(frozen=True)
class ParameterLayout:
    """Parameters that are estimated, and the values of the actuators that they are.

    Attributes:
        index: number of the parameter that each value is, -1 for values that are known, shape (14, n); values with the
            same number are equal.
    """

    index: Integers

    @property
    def count(self) -> int:
        """Number of parameters p."""
        return int(self.index.max(initial=-1)) + 1

    @property
    def bounded(self) -> Mask:
        """Parameters that are not negative, shape (p,)."""
        signed = self.index[[KINDS.index(kind) for kind in SIGNED]]
        mask = np.ones(self.count, dtype=bool)
        mask[signed[signed >= 0]] = False
        return mask

    @property
    def kinds(self) -> Integers:
        """Kind of each parameter, see `KINDS`, shape (p,)."""
        kind, joint = np.nonzero(self.index >= 0)
        kinds = np.zeros(self.count, dtype=np.int64)
        kinds[self.index[kind, joint]] = kind
        return kinds

    def read(self, values: Array) -> Array:
        """Parameters of a matrix of values, means of those that are shared, shape (p,)."""
        known = self.index >= 0
        number = self.index[known]
        return np.bincount(number, values[known], self.count) / np.bincount(number, minlength=self.count)

    def write(self, values: Array, parameters: Array) -> Array:
        """A matrix of values with other parameters, shape (14, n)."""
        return np.where(self.index >= 0, parameters[self.index], values) if self.count else values

    @classmethod
    def from_mask(cls, estimated: Mask) -> ParameterLayout:
        """One parameter for each value that is estimated, mask of shape (14, n)."""
        index = np.full(estimated.shape, -1, dtype=np.int64)
        index[estimated] = np.arange(np.count_nonzero(estimated))
        return cls(index)

    def add(self, kind: int, joint: int) -> ParameterLayout:
        """The same with a parameter for one more value."""
        index = self.index.copy()
        index[kind, joint] = self.count
        return ParameterLayout(index)

    def separate(self, kind: int) -> ParameterLayout:
        """The same with a parameter for each value of a kind that is estimated."""
        index = self.index.copy()
        joints = np.flatnonzero(index[kind] >= 0)
        index[kind, joints] = self.count + np.arange(len(joints))
        return _number_in_turn(index)

    def without(self, kind: int, joints: Mask) -> ParameterLayout:
        """The same without the values of a kind of some joints, mask of shape (n,)."""
        index = self.index.copy()
        index[kind, joints] = -1
        return _number_in_turn(index)

    def share(self, kind: int, joints: Sequence[int]) -> ParameterLayout:
        """The same with one parameter for the values of a kind of some joints; values that are known stay."""
        index = self.index.copy()
        row = [joint for joint in joints if index[kind, joint] >= 0]
        index[kind, row] = index[kind, row].min(initial=self.count)
        return _number_in_turn(index)


def _number_in_turn(index: Integers) -> ParameterLayout:
    """Layout with the numbers that are left, from 0 on."""
    kept = np.unique(index[index >= 0])
    index[index >= 0] = np.searchsorted(kept, index[index >= 0])
    return ParameterLayout(index)
