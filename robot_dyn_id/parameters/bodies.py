# SPDX-License-Identifier: Apache-2.0
"""Bodies and terms of a parameter set: a realization of its base parameters."""

from __future__ import annotations

from dataclasses import dataclass, field

from robot_dyn_id.arrays import Array
from robot_dyn_id.parameters.rules import LARGEST, MOST_PER_ENTRY, refused, rule

MOST_CONSTANTS = 10_000
"""Greatest number of constants, and of states, of the terms."""


@dataclass(frozen=True)
class BodyParameters:
    """Standard parameters of b bodies that, with the values of the terms, give the identified torque.

    Any recursive Newton-Euler algorithm gives it.

    Attributes:
        standard_parameters: 10 per body in the order of `IdentifiedRobot.body_names`.
        physically_consistent: whether every body is physically possible.
        load_parameters: standard parameters that the load of load-dependent friction is computed from, 10 per body;
            empty: those of the URDF.
    """

    standard_parameters: Array = field(repr=False, metadata=rule("standard", finite=True))
    physically_consistent: bool = field(metadata=rule())
    load_parameters: Array = field(repr=False, metadata=rule("standard", optional=True, finite=True))


@dataclass(frozen=True)
class TermState:
    """Internal state of a term on one joint, such as the deflection of a Dahl element.

    Entries of one name on one joint are parallel elements, in order.

    Attributes:
        name: `term.state`, such as `dahl.deflection`.
        joint: joint or coupling that the term acts on.
        initial_values: value of each scalar of the state at the beginning of a motion, SI; at least one.
        parameter_names: names of the constants of the state equation, such as `breakaway_displacement`.
        parameter_values: their values, SI.
    """

    name: str = field(metadata=rule())
    joint: str = field(metadata=rule())
    initial_values: tuple[float, ...]
    parameter_names: tuple[str, ...] = field(default=(), metadata=rule(most=MOST_PER_ENTRY))
    parameter_values: tuple[float, ...] = ()

    def check(self) -> None:
        """Refuse a state that is not complete."""
        if len(self.parameter_names) != len(self.parameter_values):
            raise refused(f"terms.states: {self.name} has not one value for each of its parameters")
        if not 1 <= len(self.initial_values) <= MOST_PER_ENTRY:
            raise refused(f"terms.states: {self.name} must have 1 to {MOST_PER_ENTRY} initial values")
        if not all(abs(number) <= LARGEST for number in (*self.initial_values, *self.parameter_values)):
            raise refused(f"terms.states: {self.name} holds a number that is not finite or above {LARGEST:g}")


@dataclass(frozen=True)
class TermParameters:
    """Values of the t columns after the inertial ones, and the constants and states of their terms, SI.

    Attributes:
        names: term of each column.
        joints: joint or coupling that the term acts on.
        values: values of these columns in the realization.
        standard_deviations: standard deviations (1 sigma); inf if a column is only identifiable in combination.
        constant_names: constants of terms as `term.constant`, such as coulomb.smoothing_width.
        constant_joints: joint of each constant.
        constant_values: values of the constants.
        states: internal states of terms; empty if no term has any.
    """

    names: tuple[str, ...] = field(metadata=rule("terms"))
    joints: tuple[str, ...] = field(metadata=rule("terms"))
    values: Array = field(metadata=rule("terms", finite=True))
    standard_deviations: Array = field(metadata=rule("terms", least=0.0))
    constant_names: tuple[str, ...] = field(metadata=rule(most=MOST_CONSTANTS))
    constant_joints: tuple[str, ...] = field(metadata=rule("constants"))
    constant_values: Array = field(metadata=rule("constants", finite=True))
    states: tuple[TermState, ...] = field(metadata=rule(most=MOST_CONSTANTS, longest=0))
