# SPDX-License-Identifier: Apache-2.0
"""What a term is: columns beside the rigid body, in the torque of one coordinate.

A term belongs to a coordinate y = weights . q + offset: usually one moving joint, but it may be a sum of joints
(coupled wrists). It contributes weights[a] * columns(y, dy, ddy) to the torque of joint a, so mimic followers and
couplings need nothing of their own. Terms are frozen dataclasses: their fields are their constants (smoothing width,
...), some of which an estimator may choose: see `FreeConstant`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.options import CheckedOptions
from robot_dyn_id.parameters import effort_unit_over


@dataclass(frozen=True)
class FreeConstant:
    """A constant that the columns depend on nonlinearly and data can tell: a velocity, positive, searched by its log.

    Attributes:
        name: field of the term.
        least: of its range, as a share of the coordinate's greatest speed.
        greatest: of its range, likewise.
    """

    name: str
    least: float
    greatest: float

    def range(self, speed: float) -> tuple[float, float]:
        """Least and greatest value for a coordinate whose greatest speed is `speed` [rad/s or m/s]."""
        return self.least * speed, self.greatest * speed


@dataclass(frozen=True)
class Term(CheckedOptions):
    """Base of all terms; a subclass gives `name`, `symbols`, `powers`, `columns` and `slopes`.

    Attributes:
        name: what the configuration calls it.
        symbols: one short symbol per column, not ending in a digit; the number of the coordinate is appended (fv3).
        powers: per column the powers (a, b) of its unit (rad or m)^a s^-b: (1, 1) for a velocity, (1, 2) for an
            acceleration, (3, 3) for the cube of a velocity.
        not_negative: symbols of the parameters that are friction or inertia, which no real joint has below zero.
        differences: symbols of parameters that are differences, and of what they are to be added to: fb - fc, to fc.
        includes: names of terms whose columns it has too, all or nearly: beside it they could not be told apart.
        signal: what the columns are multiplied by `factor` of, beside the motion: `load`, the torque of the URDF's own
            rigid bodies without acceleration, or `temperature` of the joints; empty: nothing.
    """

    symbols: ClassVar[tuple[str, ...]]
    powers: ClassVar[tuple[tuple[int, int], ...]]
    not_negative: ClassVar[tuple[str, ...]] = ()
    differences: ClassVar[Mapping[str, str]] = {}
    includes: ClassVar[frozenset[str]] = frozenset()
    signal: ClassVar[str] = ""

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Columns at N samples of the coordinate's position, velocity and acceleration, shape (symbols, N)."""
        raise NotImplementedError

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of the columns by position, velocity and acceleration, shape (3, symbols, N).

        The design of excitation follows them. A jump, as of the hard sign, has the slope 0.
        """
        raise NotImplementedError

    def factor(self, weights: Array, signal: Array) -> Array:
        """What the columns are multiplied by, shape (g, N); only of terms with a `signal`.

        Args:
            weights: of g coordinates, shape (g, n).
            signal: of the n joints at N samples, shape (n, N).
        """
        raise NotImplementedError

    def unit(self, effort_unit: str, index: int) -> str:
        """Unit of the parameter of a column, on a coordinate whose effort is in `effort_unit`, N m or N."""
        return effort_unit_over(effort_unit, *self.powers[index])

    @property
    def constants(self) -> dict[str, float]:
        """The values that the columns depend on besides the motion."""
        return {field.name: float(getattr(self, field.name)) for field in fields(self)}

    @property
    def free_constants(self) -> tuple[FreeConstant, ...]:
        """The constants that an estimator may choose."""
        return ()

    def with_constants(self, values: Mapping[str, float]) -> Self:
        """The term with other values of some constants.

        Raises:
            UsageError: a constant that it has not, or a value that it cannot have.
        """
        kinds = {field.name: type(getattr(self, field.name)) for field in fields(self)}
        for name in values:
            if name not in kinds:
                raise UsageError(f"{self.name}: no constant {name}; it has {', '.join(kinds) or 'none'}")
            if kinds[name] is bool and values[name] not in (0.0, 1.0):
                raise UsageError(f"{self.name}: {name} must be true or false, not {values[name]}")
        return replace(self, **{name: kinds[name](value) for name, value in values.items()})

    def constant_slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of `columns` with respect to the free constants, in their order, shape (free, symbols, N)."""
        return np.zeros((0, len(self.symbols), len(y)))


def refuse_overlaps(terms: Iterable[Term]) -> None:
    """Refuse terms that no data could tell apart on one coordinate.

    Raises:
        UsageError: two terms with the same columns, named.
    """
    held: dict[str, str] = {}
    for term in terms:
        for part in sorted({term.name, *term.includes}):
            if part in held:
                both = f"{held[part]} and {term.name}" if held[part] != term.name else f"{term.name} twice"
                what = "" if part in (held[part], term.name) else f" the columns of {part}"
                raise UsageError(f"terms: {both} cannot be told apart (both hold{what or ' ' + part}): choose one")
            held[part] = term.name


@dataclass(frozen=True)
class Coordinate:
    """A scalar coordinate of the robot, y = weights . q + offset.

    Attributes:
        name: the moving joint's name, or what a coupling is called.
        label: what is appended to the symbols of its columns.
        weights: shape (n,).
        offset: [rad or m].
        effort_unit: N m or N.
    """

    name: str
    label: str
    weights: tuple[float, ...]
    offset: float
    effort_unit: str
