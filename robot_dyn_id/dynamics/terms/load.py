# SPDX-License-Identifier: Apache-2.0
"""Friction that grows with the load of the gear.

The load is the torque of the rigid bodies along the coordinate at this position and velocity, without acceleration:
gravity, Coriolis and centrifugal torque. It is computed from known inertial parameters, those of the URDF or of an
earlier fit, see `Regressor.load_parameters`: so the columns are linear, and depend on the state alone, so that the
model keeps its mass matrix and forward dynamics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.contract import Coordinate, Term
from robot_dyn_id.dynamics.terms.dahl import PreslidingTerm
from robot_dyn_id.dynamics.terms.sign import SignTerm


@dataclass(frozen=True)
class LoadTerm(Term):
    """A term whose columns are multiplied by the absolute load."""

    signal: ClassVar[str] = "load"

    def factor(self, weights: Array, signal: Array) -> Array:
        """Absolute load along the coordinates: the torque along each that alone would give the joints `signal`."""
        return np.asarray(np.abs(weights @ signal) / (weights**2).sum(axis=1, keepdims=True))

    def factor_slopes(self, weights: Array, signal: Array) -> Array:
        """See `Term.factor_slopes`."""
        size = (weights**2).sum(axis=1, keepdims=True)
        return np.asarray((weights / size)[:, :, None] * np.sign(weights @ signal)[:, None, :])

    def unit(self, coordinate: Coordinate, index: int) -> str:
        """A share of the load has no unit."""
        return "1"


@dataclass(frozen=True)
class LoadCoulomb(LoadTerm, SignTerm):
    """Friction proportional to the load, in addition to the load-independent Coulomb friction: fl |load| sign(dq)."""

    name: ClassVar[str] = "load_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fl",)
    not_negative: ClassVar[tuple[str, ...]] = symbols


@dataclass(frozen=True)
class LoadDahl(LoadTerm, PreslidingTerm):
    """Presliding friction proportional to the load, in addition to the load-independent one: fl |load| z.

    A load that grows while an element is deflected stiffens its spring: it is passive at a constant load only. The
    energy that a change of the load can add is at most fl d / 2 times this change.
    """

    name: ClassVar[str] = "load_dahl"
    symbols: ClassVar[tuple[str, ...]] = ("fla", "flb", "flc", "fld", "fle", "flf")
    not_negative: ClassVar[tuple[str, ...]] = symbols
