"""What a term is: columns beside the rigid body, in the torque of one coordinate.

A term belongs to a coordinate y = weights . q + offset: usually one moving joint, but it may be a sum of joints
(coupled wrists). It contributes weights[a] * columns(y, dy, ddy) to the torque of joint a, so mimic followers and
couplings need nothing of their own. Terms are frozen dataclasses: their fields are their constants (smoothing width,
...).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from robot_dyn_id.dataset import Array


@dataclass(frozen=True)
class Term:
    """Base of all terms; a subclass gives `name`, `symbols`, `powers`, `columns` and `slopes`.

    Attributes:
        name: what the configuration calls it.
        symbols: one short symbol per column, not ending in a digit; the number of the coordinate is appended (fv3).
        powers: per column the powers (a, b) of its unit (rad or m)^a s^-b: (1, 1) for a velocity, (1, 2) for an
            acceleration, (3, 3) for the cube of a velocity.
        not_negative: whether its parameters are friction or inertia, which no real joint has below zero.
    """

    name: ClassVar[str]
    symbols: ClassVar[tuple[str, ...]]
    powers: ClassVar[tuple[tuple[int, int], ...]]
    not_negative: ClassVar[bool] = False

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Columns at N samples of the coordinate's position, velocity and acceleration, shape (symbols, N)."""
        raise NotImplementedError

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of the columns by position, velocity and acceleration, shape (3, symbols, N).

        The design of excitation follows them. A jump, as of the hard sign, has the slope 0.
        """
        raise NotImplementedError

    @property
    def constants(self) -> dict[str, float]:
        """The values that the columns depend on besides the motion."""
        return {field.name: float(getattr(self, field.name)) for field in fields(self)}


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
