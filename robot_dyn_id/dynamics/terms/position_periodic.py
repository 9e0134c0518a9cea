# SPDX-License-Identifier: Apache-2.0
"""Torque that repeats with every turn of a joint: eccentric gears and pulleys, torque ripple, a crank with a spring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import REST, Term
from robot_dyn_id.dynamics.terms.laws import COSINE, SINE, FrictionLaw

HARMONICS = (1.0, 2.0)
"""Periods per turn."""


@dataclass(frozen=True)
class PositionPeriodic(Term):
    """Sine and cosine of the position, once and twice per turn of the joint.

    The torque is that of a potential: it neither brakes nor drives over a whole turn. On a joint that carries weight it
    has the same effect as first moments of a link.
    """

    name: ClassVar[str] = "position_periodic"
    symbols: ClassVar[tuple[str, ...]] = ("rs", "rc", "rss", "rcc")
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0),) * 4
    cause: ClassVar[str] = REST

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.columns`."""
        return np.stack([wave(multiple * y) for multiple in HARMONICS for wave in (np.sin, np.cos)])

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`."""
        along = [multiple * slope for multiple in HARMONICS for slope in (np.cos(multiple * y), -np.sin(multiple * y))]
        zero = np.zeros_like(y)
        return np.array([along, [zero] * len(along), [zero] * len(along)])

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        shapes = [(wave, multiple) for multiple in HARMONICS for wave in (SINE, COSINE)]
        return tuple(FrictionLaw(wave, multiple, symbol=k) for k, (wave, multiple) in enumerate(shapes))
