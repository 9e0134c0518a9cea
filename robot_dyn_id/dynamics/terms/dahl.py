# SPDX-License-Identifier: Apache-2.0
"""Presliding friction: six Dahl elements in parallel, each with its own breakaway displacement d and level fd.

An element is a spring in series with a slider: fd z, with z' = (dq / d) (1 - z sign(dq)), so that z follows the motion
over the distance d, is sign(dq) in sliding, and keeps its value at rest (Dahl 1968, with exponent 1; Maxwell slip of
Lampaert, Al-Bender and Swevers 2003). The levels are linear parameters, and the distances form a grid that covers
those of gears and bearings: there is no distance to be searched. The elements depend on the path, not on time, and
each with fd >= 0 is passive: its power fd z dq less the change of its energy fd d z^2 / 2 is fd z^2 |dq| >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Term
from robot_dyn_id.dynamics.terms.coulomb import Coulomb
from robot_dyn_id.dynamics.terms.laws import DAHL, FrictionLaw
from robot_dyn_id.kernels.presliding import slide
from robot_dyn_id.options import Positive

ELEMENTS = 6
"""Number of parallel elements."""

DISPLACEMENTS = tuple(f"breakaway_displacement_{element + 1}" for element in range(ELEMENTS))
"""Fields of a presliding term: the breakaway displacement of each element."""


@dataclass(frozen=True)
class PreslidingTerm(Term):
    """A term with the deflections of Dahl elements as its columns.

    Attributes:
        breakaway_displacement_1: distance over which the deflection of the first element follows a reversal of the
            motion to 1 - 2/e [rad or m].
        breakaway_displacement_2: that of the second element [rad or m].
        breakaway_displacement_3: that of the third element [rad or m].
        breakaway_displacement_4: that of the fourth element [rad or m].
        breakaway_displacement_5: that of the fifth element [rad or m].
        breakaway_displacement_6: that of the sixth element [rad or m].
    """

    breakaway_displacement_1: Positive = 0.3e-3
    breakaway_displacement_2: Positive = 1e-3
    breakaway_displacement_3: Positive = 3e-3
    breakaway_displacement_4: Positive = 10e-3
    breakaway_displacement_5: Positive = 30e-3
    breakaway_displacement_6: Positive = 100e-3

    powers: ClassVar[tuple[tuple[float, float], ...]] = ((0, 0),) * ELEMENTS
    state_names: ClassVar[tuple[str, ...]] = ("deflection",) * ELEMENTS
    state_parameters: ClassVar[tuple[str, ...]] = DISPLACEMENTS

    @property
    def displacements(self) -> Array:
        """Breakaway displacements of the elements [rad or m], shape (6,)."""
        return np.array([getattr(self, name) for name in DISPLACEMENTS])

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Deflections in sliding, sign(dq), and 0 at rest, shape (6, N)."""
        return np.repeat(np.sign(dy)[None], ELEMENTS, axis=0)

    def state_columns(self, y: Array, dy: Array, ddy: Array, states: Array) -> Array:
        """The deflections themselves."""
        return states

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """See `Term.slopes`; a hard sign has the slope 0."""
        return np.zeros((3, ELEMENTS, len(dy)))

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return tuple(FrictionLaw(DAHL, distance, symbol=k) for k, distance in enumerate(self.displacements.tolist()))

    def integrate(self, y: Array, step: float, start: Array) -> Array:
        """See `Term.integrate`; exact for a motion that does not reverse between two samples."""
        coordinates, count = y.shape
        moved = np.tile(np.diff(y, axis=1, prepend=y[:, :1]).T, ELEMENTS)
        states = np.empty((count, ELEMENTS * coordinates))
        states[0] = start.ravel()
        slide(moved, np.repeat(self.displacements, coordinates), states)
        return states.T.reshape(ELEMENTS, coordinates, count)


@dataclass(frozen=True)
class Dahl(PreslidingTerm):
    """Presliding friction that does not depend on the load."""

    name: ClassVar[str] = "dahl"
    symbols: ClassVar[tuple[str, ...]] = ("fda", "fdb", "fdc", "fdd", "fde", "fdf")
    not_negative: ClassVar[tuple[str, ...]] = symbols

    @property
    def design_term(self) -> Term:
        """Coulomb friction: a motion that slides determines the sum of the elements, and reversals their shares."""
        return Coulomb()
