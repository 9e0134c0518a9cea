# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of identified actuators: what intervals and draws are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.actuators.layout import ParameterLayout
from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.parameters.rules import rule


@dataclass(frozen=True)
class ActuatorUncertainty:
    """Uncertainty of the actuators of n joints, of which p parameters were estimated.

    Attributes:
        index: number of the parameter that each value is, -1 for values that are known, shape (14, n), rows in the
            order of `KINDS`; values with the same number are equal.
        low, high: 95 % intervals, shape (14, n); known values have none (NaN).
        between: standard deviation of the values of single recordings, shape (14, n); NaN with fewer than three.
        correlation: correlation of the parameters under white noise of the positions, shape (p, p).
    """

    index: Integers = field(metadata=rule("kinds", "joints"))
    low: Array = field(repr=False, metadata=rule("kinds", "joints"))
    high: Array = field(repr=False, metadata=rule("kinds", "joints"))
    between: Array = field(repr=False, metadata=rule("kinds", "joints", finite=True, least=0.0, nan=True))
    correlation: Array = field(repr=False, metadata=rule("parameters", "parameters", finite=True))

    def __post_init__(self) -> None:
        """Give an empty correlation, which has no rows in files and messages, two dimensions."""
        if not self.correlation.size:
            object.__setattr__(self, "correlation", np.zeros((0, 0)))

    @property
    def layout(self) -> ParameterLayout:
        """The parameters, and the values that they are."""
        return ParameterLayout(self.index)

    @property
    def estimated(self) -> Mask:
        """Values that were estimated, shape (14, n)."""
        return np.asarray(self.index >= 0)
