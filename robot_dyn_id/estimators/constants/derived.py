# SPDX-License-Identifier: Apache-2.0
"""Derivative columns of a term, used by estimators of its nonlinear constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms import Term


@dataclass(frozen=True)
class DerivedTerm(Term):
    """Term whose columns are derived from those of another term, on the same coordinate.

    Attributes:
        term: the other term.
    """

    term: Term

    def describe(self, symbols: Sequence[str], powers: Sequence[tuple[float, float]]) -> None:
        """Set symbols and powers of the columns, and the signal of the term; called when the value is made."""
        object.__setattr__(self, "symbols", tuple(symbols))
        object.__setattr__(self, "powers", tuple(powers))
        object.__setattr__(self, "signal", self.term.signal)

    def factor(self, weights: Array, signal: Array) -> Array:
        """See `Term.factor`."""
        return self.term.factor(weights, signal)


@dataclass(frozen=True)
class ConstantDerivatives(DerivedTerm):
    """Derivatives of a term's columns with respect to the logarithms of its free constants."""

    def __post_init__(self) -> None:
        """Name the columns: those of the first free constant, then of the next."""
        free = self.term.free_constants
        self.describe(
            [f"{constant.name}_{symbol}_" for constant in free for symbol in self.term.symbols],
            self.term.powers * len(free),
        )

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        values = np.array([self.term.constants[free.name] for free in self.term.free_constants])
        slopes = values[:, None, None] * self.term.constant_slopes(y, dy, ddy)
        return np.asarray(slopes.reshape(-1, len(dy)))
