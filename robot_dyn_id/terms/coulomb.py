"""Coulomb friction: fc tanh(dq / width), or fc sign(dq) with width 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.terms.contract import Term


@dataclass(frozen=True)
class Coulomb(Term):
    """Friction that depends on the direction of motion only.

    Attributes:
        smoothing_width: velocity [rad/s or m/s] within which the sign is smoothed; 0 is the hard sign.
    """

    smoothing_width: float = 0.02

    name: ClassVar[str] = "coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fc",)
    powers: ClassVar[tuple[tuple[int, int], ...]] = ((0, 0),)
    not_negative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the width.

        Raises:
            UsageError: negative or not finite.
        """
        if not 0.0 <= self.smoothing_width < np.inf:
            raise UsageError(f"coulomb: smoothing_width must be 0 or positive, not {self.smoothing_width}")

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        if self.smoothing_width == 0.0:
            return np.sign(dy)[None, :]
        return np.tanh(dy / self.smoothing_width)[None, :]

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`; that of the hard sign is 0 everywhere, also where it jumps."""
        slopes = np.zeros((3, 1, len(dy)))
        if self.smoothing_width > 0.0:
            slopes[1, 0] = (1.0 - np.tanh(dy / self.smoothing_width) ** 2) / self.smoothing_width
        return slopes
