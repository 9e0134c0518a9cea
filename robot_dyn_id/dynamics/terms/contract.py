# SPDX-License-Identifier: Apache-2.0
"""Contract of terms: torques in addition to those of the rigid bodies, linear in their parameters.

A term acts on a coordinate y = weights . q + offset: usually one moving joint, or a sum of joints (coupled wrists). It
contributes weights[a] * columns(y, dy, ddy) to the torque of joint a, which covers mimic joints and couplings. Terms
are frozen dataclasses: their fields are their constants (smoothing width, ...), some of which estimators may choose,
see `FreeConstant`.

A term may have internal states, such as the deflections of Dahl elements: scalars that follow from the history of its
coordinate, see `Term.integrate`. Its columns are then functions of these states and of the motion. Where no history is
known, the columns are those of `Term.columns`: the states of a motion that has gone on for long at this velocity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms.laws import FrictionLaw
from robot_dyn_id.errors import UsageError
from robot_dyn_id.options import CheckedOptions
from robot_dyn_id.parameters import effort_unit_over

if TYPE_CHECKING:
    from typing_extensions import Self


FRICTION, REST = "friction", "rest"
"""Causes of torque that terms count for: friction with the offsets of the efforts, and everything else."""


@dataclass(frozen=True)
class FreeConstant:
    """Constant that can be identified from data: a positive velocity on which the columns depend nonlinearly.

    Estimators search its logarithm.

    Attributes:
        name: field of the term.
        least: lower bound, as a share of the coordinate's maximum speed.
        greatest: upper bound, as a share of the coordinate's maximum speed.
    """

    name: str
    least: float
    greatest: float

    def range(self, speed: float) -> tuple[float, float]:
        """Lower and upper bound for a coordinate whose maximum speed is `speed` [rad/s or m/s]."""
        return self.least * speed, self.greatest * speed


@dataclass(frozen=True)
class Term(CheckedOptions):
    """Base of all terms; a subclass gives `name`, `symbols`, `powers`, `columns` and `slopes`.

    Attributes:
        name: name in configurations and parameter sets.
        symbols: one short symbol per column, not ending in a digit; the number of the coordinate is appended (fv3).
        powers: per column the powers (a, b) of its unit (rad or m)^a s^-b: (1, 1) for a velocity, (1, 2) for an
            acceleration, (3, 3) for the cube of a velocity.
        not_negative: symbols of friction and inertia parameters, which cannot be negative physically.
        differences: symbols of parameters that are differences, and of the parameters they refer to: fb - fc, to fc.
        rises: symbols of what friction is above that of sliding when the joint breaks away: not negative, as friction
            falls while a joint gathers speed.
        includes: names of terms with the same or nearly the same columns: they cannot be identified together.
        state_names: name of each internal state of a coordinate; empty for a memoryless term.
        state_parameters: constants of the state equation: fields of the term, which parameter sets list with the
            states.
        cause: `FRICTION`, or `REST` of other torques such as springs, for the split of a torque by cause.
        peaked: whether the columns have a peak around rest, which may last for a few samples only.
        signal: signal that `factor` depends on: `load`, the torque of the URDF's rigid bodies without acceleration, or
            `temperature` of the joints; empty if there is no such factor.
    """

    symbols: ClassVar[tuple[str, ...]]
    powers: ClassVar[tuple[tuple[float, float], ...]]
    not_negative: ClassVar[tuple[str, ...]] = ()
    differences: ClassVar[Mapping[str, str]] = {}
    rises: ClassVar[tuple[str, ...]] = ()
    includes: ClassVar[frozenset[str]] = frozenset()
    cause: ClassVar[str] = FRICTION
    peaked: ClassVar[bool] = False
    signal: ClassVar[str] = ""
    state_names: ClassVar[tuple[str, ...]] = ()
    state_parameters: ClassVar[tuple[str, ...]] = ()

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Columns at N samples of the coordinate's position, velocity and acceleration, shape (symbols, N).

        For a term with states: in the limit of a long motion at this velocity.
        """
        raise NotImplementedError

    @property
    def state_count(self) -> int:
        """Number s of internal states of a coordinate; 0 for a memoryless term."""
        return len(self.state_names)

    def initial_states(self) -> Array:
        """States at the beginning of a motion whose history is not known, shape (s,)."""
        return np.zeros(self.state_count)

    def random_states(self, rng: np.random.Generator, count: int) -> Array:
        """Random states that excite all columns, for base parameters, shape (s, count)."""
        return np.asarray(rng.uniform(-1.0, 1.0, (self.state_count, count)))

    def integrate(self, y: Array, step: float, start: Array) -> Array:
        """States along a motion of g coordinates, shape (s, g, N).

        Args:
            y: positions at N consecutive samples [rad or m], shape (g, N).
            step: time between two samples [s].
            start: states at the first sample, shape (s, g).
        """
        raise NotImplementedError

    def state_columns(self, y: Array, dy: Array, ddy: Array, states: Array) -> Array:
        """Columns of a term with states, shape (symbols, N).

        Args:
            y: positions of the coordinate [rad or m], shape (N,).
            dy: velocities, shape (N,).
            ddy: accelerations, shape (N,).
            states: states at the same samples, shape (s, N).
        """
        raise NotImplementedError

    @property
    def design_term(self) -> Term | None:
        """Memoryless term without a signal that excitations are designed for in place of this one; None: left out.

        Its first column stands for the sum of this term's columns.
        """
        return None if self.signal else self

    def slopes(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Derivatives of the columns with respect to position, velocity and acceleration, shape (3, symbols, N).

        Used by the design of excitation. A step, such as the hard sign, has the slope 0.
        """
        raise NotImplementedError

    def factor(self, weights: Array, signal: Array) -> Array:
        """Factor of the columns, shape (g, N), of terms with a `signal`.

        Args:
            weights: weights of g coordinates, shape (g, n).
            signal: signal of the n joints at N samples, shape (n, N).
        """
        raise NotImplementedError

    def factor_slopes(self, weights: Array, signal: Array) -> Array:
        """Derivatives of the factors with respect to the signal of each joint, shape (g, n, N).

        Only terms with the signal `load` need them: it depends on the motion.
        """
        raise NotImplementedError

    def unit(self, coordinate: Coordinate, index: int) -> str:
        """Unit of the parameter of a column on a coordinate."""
        return effort_unit_over(coordinate.effort_unit, coordinate.slides, *self.powers[index])

    @property
    def laws(self) -> tuple[FrictionLaw, ...] | None:
        """Friction laws whose sum the term is, for forward simulations; None if it cannot be simulated."""
        return None

    @property
    def constants(self) -> dict[str, float]:
        """Constants by name: the values that the columns depend on in addition to the motion."""
        return {field.name: float(getattr(self, field.name)) for field in fields(self)}

    @property
    def free_constants(self) -> tuple[FreeConstant, ...]:
        """Constants that an estimator may choose; a term with states has none."""
        return ()

    @property
    def velocity_scales(self) -> tuple[float, ...]:
        """Velocities [rad/s or m/s] on whose scale the columns change: random states need such velocities, too."""
        return tuple(self.constants[free.name] for free in self.free_constants)

    @property
    def step_width(self) -> float:
        """Velocity [rad/s or m/s] within which a column changes its sign at rest; 0: it jumps, infinite: none does."""
        return math.inf

    def with_constants(self, values: Mapping[str, float]) -> Self:
        """Return the term with other values of some constants.

        Raises:
            UsageError: an unknown constant, or a value outside its range.
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
    """Check that no two terms on one coordinate have the same columns: they could not be identified together.

    Raises:
        UsageError: two terms with the same columns.
    """
    held: dict[str, str] = {}
    for term in terms:
        for part in sorted({term.name, *term.includes}):
            if part in held:
                both = f"{held[part]} and {term.name}" if held[part] != term.name else f"{term.name} twice"
                what = "" if part in (held[part], term.name) else f" the columns of {part}"
                raise UsageError(
                    f"terms: {both} cannot be identified together (both have{what or ' ' + part}): choose one"
                )
            held[part] = term.name


@dataclass(frozen=True)
class Coordinate:
    """A scalar coordinate of the robot, y = weights . q + offset.

    Attributes:
        name: the moving joint's name, or what a coupling is called.
        label: what is appended to the symbols of its columns.
        weights: shape (n,).
        offset: [rad or m].
        effort_unit: N m or N, or the unit of a drive whose gain is not known.
        slides: whether the coordinate is a length.
    """

    name: str
    label: str
    weights: tuple[float, ...]
    offset: float
    effort_unit: str
    slides: bool
