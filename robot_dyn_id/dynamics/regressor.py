# SPDX-License-Identifier: Apache-2.0
"""The regressor Y of a robot with its terms, tau = Y(q, dq, ddq) pi."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.stored_terms import (
    find_own_classes,
    list_states,
    list_stored_constants,
    restore_terms,
)
from robot_dyn_id.dynamics.terms import Coordinate, Coupling, Term, TermGroup, TermStates, group_terms
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.angles import wrap_within_reach
from robot_dyn_id.kernels.regressor import fill_regressor_tiles
from robot_dyn_id.kernels.tree import Tree, build_tree
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import FORCE_UNIT, TORQUE_UNIT, ParameterSet, inertial_names

if TYPE_CHECKING:
    from typing_extensions import Self

COMPARED_STATES = 8
"""Number of random states at which base parameters and standard parameters of a parameter set are compared."""

MAX_TORQUE_DIFFERENCE_RATIO = 1e-6
"""Maximum difference of the torques of base and standard parameters, as a share of the torques of single columns."""


@dataclass(frozen=True)
class Motion:
    """Motion of n joints at N samples, joint-major: q, dq, ddq of shape (n, N) each [rad or m, and per s, s^2].

    `temperature` of the joints [degrees Celsius], of the same shape, is None where it is not known. `states` of the
    terms are those of one regressor, see `Regressor.with_states`; None: terms are evaluated without a history.
    """

    q: Array
    dq: Array
    ddq: Array
    temperature: Array | None = None
    states: TermStates | None = None

    def __len__(self) -> int:
        """Number of samples."""
        return int(self.q.shape[1])

    def take(self, index: slice | Mask | Integers) -> Motion:
        """The motion at the samples that `index` selects."""
        q, dq, ddq = (np.ascontiguousarray(x[:, index]) for x in (self.q, self.dq, self.ddq))
        states = self.states and {term: values[..., index] for term, values in self.states.items()}
        return Motion(q, dq, ddq, None if self.temperature is None else self.temperature[:, index], states)

    def at_rest(self) -> Motion:
        """The same configurations without velocities and accelerations, and without a history."""
        still = np.zeros_like(self.q)
        return Motion(self.q, still, still, self.temperature)


def make_joint_coordinates(model: RobotModel) -> tuple[Coordinate, ...]:
    """One coordinate per moving joint: q_full = G q + offset, row by row."""
    return tuple(
        Coordinate(
            name=name,
            label=str(body + 1),
            weights=tuple(model.coupling[body]),
            offset=float(model.offset[body]),
            effort_unit=model.drive_units.get(
                model.joint_names[model.leader[body]], FORCE_UNIT if model.prismatic[body] else TORQUE_UNIT
            ),
            slides=bool(model.prismatic[body]),
        )
        for body, name in enumerate(model.body_names)
    )


def place_terms_on_joints(
    model: RobotModel, terms: Sequence[Term], couplings: Sequence[Coupling] = ()
) -> tuple[tuple[Coordinate, Term], ...]:
    """Every term on every moving joint, ordered by term, then by joint; then the terms of the couplings.

    Raises:
        UsageError: a coupling of unknown joints, or an own term with the name of a term of this package.
    """
    find_own_classes([*terms, *(term for coupling in couplings for term in coupling.terms)])
    coordinates = make_joint_coordinates(model)
    coupled = [(c.coordinate(model), term) for c in couplings for term in c.terms]
    return (*((coordinate, term) for term in terms for coordinate in coordinates), *coupled)


@dataclass(frozen=True)
class TermColumn:
    """One linear column of a term: the `index`-th of its symbols."""

    coordinate: Coordinate
    term: Term
    index: int


@dataclass(frozen=True)
class Regressor:
    """Columns of the rigid body (10 per moving body) followed by those of the terms.

    Example:
        ```python
        regressor = rdi.Regressor(robot)
        print(len(regressor.names), "standard parameters")
        ```

    Attributes:
        model: the robot.
        terms: coordinates and what acts on them.
        load_parameters: standard parameters from which the signal `load` is computed, 10 per moving body; empty: those
            of the URDF.
    """

    model: RobotModel
    terms: tuple[tuple[Coordinate, Term], ...] = ()
    load_parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the length of the load parameters.

        Raises:
            UsageError: another number than 10 per moving body.
        """
        if self.load_parameters and len(self.load_parameters) != 10 * len(self.model.body_names):
            raise UsageError(
                f"load_parameters has {len(self.load_parameters)} numbers, expected {10 * len(self.model.body_names)}: "
                "10 per moving body"
            )

    def with_terms(self, terms: Sequence[tuple[Coordinate, Term]]) -> Regressor:
        """The regressor of the same robot and load parameters with other terms."""
        return replace(self, terms=tuple(terms))

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> Self:
        """Regressor of a parameter set: its own URDF, locked joints, gravity and terms.

        Raises:
            InputError: a term that this version does not know; joints, bodies, columns, units, constants or states that
                are not those of the URDF and the terms, in their order; base parameters and standard parameters with
                different torques.
        """
        model = RobotModel.from_parameters(parameters)
        terms = restore_terms(parameters, make_joint_coordinates(model), model)
        regressor = cls(model, terms, tuple(parameters.bodies.load_parameters.tolist()))
        columns = regressor.term_columns
        constants = list_stored_constants(regressor.terms, model.joint_names, model.body_names)
        units = tuple(
            regressor.units[column] for column in parameters.base.independent if column < len(regressor.units)
        )
        robot, base, stored = parameters.robot, parameters.base, parameters.terms
        for name, found, expected in (
            ("robot.joint_names", robot.joint_names, model.joint_names),
            ("robot.held_joint_names", robot.held_joint_names, tuple(model.held)),
            ("robot.body_names", robot.body_names, model.body_names),
            ("base.column_names", base.column_names, regressor.names),
            ("base.units", base.units, units),
            ("terms.names", stored.names, tuple(column.term.name for column in columns)),
            ("terms.joints", stored.joints, tuple(column.coordinate.name for column in columns)),
            ("terms.constant_names", stored.constant_names, tuple(constant for constant, _, _ in constants)),
            ("terms.constant_joints", stored.constant_joints, tuple(joint for _, joint, _ in constants)),
            ("terms.states", stored.states, list_states(regressor.terms)),
        ):
            if found != expected:
                raise InputError(f"parameter set: {name} is not that of its URDF and terms, or in another order")
        _check_representative(regressor, parameters)
        return regressor

    @cached_property
    def tree(self) -> Tree:
        """The model as the compiled loops read it."""
        model = self.model
        links = model.parent, model.rotation, model.translation, model.axis, model.prismatic
        return build_tree(*links, model.leader, model.multiplier, model.gravity)

    @cached_property
    def term_columns(self) -> tuple[TermColumn, ...]:
        """The columns after the inertial ones."""
        return tuple(TermColumn(c, term, i) for c, term in self.terms for i in range(len(term.symbols)))

    @cached_property
    def term_groups(self) -> tuple[TermGroup, ...]:
        """The terms, those of equal kind and constants together."""
        return group_terms(self.terms)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names: m1 ... IzzN, then symbol and number of each term column."""
        bodies = len(self.model.body_names)
        terms = (f"{column.term.symbols[column.index]}{column.coordinate.label}" for column in self.term_columns)
        return (*inertial_names(bodies), *terms)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Unit of each column's parameter."""
        return self.model.inertial_units + tuple(
            column.term.unit(column.coordinate, column.index) for column in self.term_columns
        )

    @cached_property
    def structure(self) -> Mask:
        """Mask of the structurally nonzero entries: joints whose torque can depend on a column, shape (c, n)."""
        tree = self.tree
        mask = np.zeros((len(self.names), len(self.model.joint_names)), dtype=bool)
        bodies = np.repeat(np.arange(len(tree.parent)), np.diff(tree.pair_start))
        for body, row in zip(bodies, tree.pair_row, strict=True):
            mask[10 * body : 10 * body + 10, row] = True
        for number, column in enumerate(self.term_columns):
            mask[10 * len(tree.parent) + number] = np.array(column.coordinate.weights) != 0.0
        return mask

    def joints_of(self, names: Collection[str]) -> tuple[str, ...]:
        """Joints whose links or terms the columns of these names describe, in the order of the robot."""
        moved, bodies = np.zeros(len(self.model.joint_names), dtype=bool), len(self.model.body_names)
        for number, name in enumerate(self.names):
            if name not in names:
                continue
            if number < 10 * bodies:
                moved[self.model.leader[number // 10]] = True
            else:
                moved |= np.array(self.term_columns[number - 10 * bodies].coordinate.weights) != 0.0
        return tuple(name for name, flag in zip(self.model.joint_names, moved, strict=True) if flag)

    def fill(self, motion: Motion, slots: Integers, out: Array) -> None:
        """Write the structurally non-zero entries at the rows of `out` that `slots` names.

        Args:
            motion: N samples.
            slots: row of `out` for each column and joint, -1 for none, shape (c, n).
            out: shape (rows, N), C-contiguous; rows that no slot names stay as they are.
        """
        tree = self.tree
        bodies = len(self.model.body_names)
        if (slots[: 10 * bodies] >= 0).any():
            q, dq, ddq = self.by_body(motion)
            fill_regressor_tiles(*tree.blocks, wrap_within_reach(q), q, dq, ddq, tree.pair_slots(slots), out)
        signals = self.signals(motion)
        for group in self.term_groups:
            wanted = slots[10 * bodies + group.numbers]
            if (wanted >= 0).any():
                self._fill_terms(motion, group, signals, wanted, out)

    def signals(self, motion: Motion) -> dict[str, Array]:
        """Signals of terms in addition to the motion, by the names of `Term.signal`, shape (n, N) each."""
        signals = {} if motion.temperature is None else {"temperature": motion.temperature}
        if any(group.term.signal == "load" for group in self.term_groups):
            steady = Motion(motion.q, motion.dq, np.zeros_like(motion.ddq))
            signals["load"] = self.bodies.torque(steady, self.load_bodies)
        return signals

    @property
    def peaked(self) -> bool:
        """Whether a term has a peak around rest: every sample counts then, see `Term.peaked`."""
        return any(term.peaked for _, term in self.terms)

    @cached_property
    def load_bodies(self) -> Array:
        """Standard parameters that the load is computed from, shape (10 b,)."""
        return np.array(self.load_parameters) if self.load_parameters else self.model.inertial_parameters

    @cached_property
    def state_groups(self) -> tuple[TermGroup, ...]:
        """The groups of terms that have internal states."""
        return tuple(group for group in self.term_groups if group.term.state_count)

    def initial_states(self, count: int = 1) -> dict[Term, Array]:
        """States of all terms at the beginning of `count` motions, shape (s, g, count) each."""
        return {group.term: group.initial_states(count) for group in self.state_groups}

    def random_states(self, rng: np.random.Generator, count: int) -> dict[Term, Array]:
        """Random states of all terms that excite every column, shape (s, g, count) each."""
        return {
            group.term: group.term.random_states(rng, len(group.weights) * count).reshape(-1, len(group.weights), count)
            for group in self.state_groups
        }

    def integrate(self, q: Array, step: float, start: TermStates | None = None) -> dict[Term, Array]:
        """States of all terms along consecutive samples, shape (s, g, N) each.

        Args:
            q: positions of the joints at N samples [rad or m], shape (n, N).
            step: time between two samples [s].
            start: states at the first sample, shape (s, g, 1) each; None: those of the beginning of a motion.
        """
        start = self.initial_states() if start is None else start
        return {group.term: group.integrate(q, step, start[group.term][..., 0]) for group in self.state_groups}

    def with_states(self, motion: Motion, step: float, start: TermStates | None = None) -> Motion:
        """The motion with the states of this regressor's terms along it; see `integrate`."""
        return replace(motion, states=self.integrate(motion.q, step, start)) if self.state_groups else motion

    @cached_property
    def bodies(self) -> Regressor:
        """Regressor of the rigid bodies alone."""
        return Regressor(self.model)

    def by_body(self, motion: Motion) -> tuple[Array, Array, Array]:
        """Motion of all moving bodies, followers included, shape (b, N) each."""
        leader = self.model.leader
        factor = self.model.multiplier[:, None]
        if self._order is not None:
            return tuple(np.ascontiguousarray(x[self._order]) for x in (motion.q, motion.dq, motion.ddq))  # type: ignore[return-value]
        q = factor * motion.q[leader] + self.model.offset[:, None]
        return q, factor * motion.dq[leader], factor * motion.ddq[leader]

    @cached_property
    def _order(self) -> slice | Integers | None:
        """Joints in the order of the bodies that they move, where these are as many and none follows another."""
        leader = self.model.leader
        if len(leader) != len(self.model.joint_names) or np.any(self.model.multiplier != 1.0):
            return None
        return slice(None) if np.array_equal(leader, np.arange(len(leader))) else leader

    @cached_property
    def _layout(self) -> Layout:
        """Layout of all columns."""
        return Layout.from_columns(self, np.arange(len(self.names)))

    @staticmethod
    def _fill_terms(
        motion: Motion, group: TermGroup, signals: Mapping[str, Array], slots: Integers, out: Array
    ) -> None:  # slots: shape (symbols, g, n)
        columns = group.columns(motion.q, motion.dq, motion.ddq, signals, motion.states)
        symbol, coordinate, joint = np.nonzero(slots >= 0)
        for s, g, j in zip(symbol.tolist(), coordinate.tolist(), joint.tolist(), strict=True):
            np.multiply(columns[s, g], group.weights[g, j], out=out[slots[s, g, j]])

    def dense(self, motion: Motion, out: Array | None = None, columns: slice = slice(None)) -> Array:
        """Consecutive columns of the regressor, shape (c, n, N): `out.transpose(2, 1, 0)[k]` is Y at sample k.

        Args:
            motion: N samples.
            out: zeros of that shape, to be filled; entries that are structurally zero are not written.
            columns: the columns; all by default.
        """
        structure = self.structure[columns]
        c, n = structure.shape
        out = np.zeros((c, n, len(motion))) if out is None else out
        slots = np.full(self.structure.shape, -1)
        slots[columns] = np.where(structure, np.arange(c * n).reshape(c, n), -1)
        self.fill(motion, slots, out.reshape(c * n, len(motion)))
        return out

    def torque(self, motion: Motion, parameters: Array, columns: Integers | None = None) -> Array:
        """Torques along a motion of N samples, shape (n, N).

        Args:
            motion: the samples.
            parameters: parameters of the columns, shape (p,).
            columns: indices of the columns; all c by default.
        """
        layout = self._layout if columns is None else Layout.from_columns(self, columns)
        packed = np.empty((layout.starts[-1], len(motion)))
        self.fill(motion, layout.slots, packed)
        blocks = [layout.block(packed, joint)[:-1] for joint in range(len(layout.supports))]
        return np.array([parameters[support] @ block for support, block in zip(layout.supports, blocks, strict=True)])


def find_inertia_rows(regressor: Regressor, motion: Motion) -> tuple[Array, ...]:
    """Rows of the diagonal of the mass matrix, rotors included: for each joint, in every column, shape (c, N).

    Args:
        regressor: robot and terms.
        motion: N configurations, whose velocities and accelerations do not count.
    """
    rest = motion.at_rest()
    rows, found = regressor.dense(rest), []
    for joint in range(len(motion.q)):
        unit = np.zeros_like(motion.q)
        unit[joint] = 1.0
        found.append(regressor.dense(replace(rest, ddq=unit))[:, joint] - rows[:, joint])
    return tuple(found)


def _check_representative(regressor: Regressor, parameters: ParameterSet) -> None:
    """Check that base parameters and standard parameters of a set give the same torques.

    Raises:
        InputError: they differ; the joint with the largest difference is named.
    """
    joints = len(parameters.robot.joint_names)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, joints, COMPARED_STATES))
    states = regressor.random_states(rng, COMPARED_STATES)
    motion = Motion(q, dq, ddq, temperature=np.full((joints, COMPARED_STATES), 20.0), states=states)
    columns = regressor.dense(motion).transpose(1, 2, 0)  # (n, N, c)
    full = np.concatenate([parameters.bodies.standard_parameters, parameters.terms.values])
    torque = columns[..., parameters.base.independent] @ parameters.estimate.values
    difference = np.abs(torque - columns @ full).max(axis=1)
    scale = np.abs(columns).max(axis=1) @ np.abs(full) + np.abs(torque).max(axis=1)
    apart = np.flatnonzero(difference > MAX_TORQUE_DIFFERENCE_RATIO * scale)
    if len(apart):
        joint = parameters.robot.joint_names[int(apart[np.argmax(difference[apart])])]
        raise InputError(
            f"parameter set: values and standard_parameters give different torques of joint {joint}: "
            "they are not of the same robot"
        )


@dataclass(frozen=True)
class Layout:
    """Layout of selected columns in a packed tile: one block of rows per joint, with its torque as the last row.

    Attributes:
        columns: the selected columns, shape (p,).
        supports: for each joint, which of the selected columns can appear in its torque.
        starts: first row of each joint's block, and the number of rows at the end, shape (n + 1,).
        slots: for `Regressor.fill`, shape (c, n).
    """

    columns: Integers
    supports: tuple[Integers, ...]
    starts: tuple[int, ...]
    slots: Integers

    @classmethod
    def from_columns(cls, regressor: Regressor, columns: Integers) -> Layout:
        """Make the layout of selected columns."""
        structure = regressor.structure
        slots = np.full(structure.shape, -1, dtype=np.int64)
        supports = []
        starts = [0]
        for joint in range(structure.shape[1]):
            support = np.flatnonzero(structure[columns, joint])
            slots[columns[support], joint] = starts[-1] + np.arange(len(support))
            supports.append(support)
            starts.append(starts[-1] + len(support) + 1)
        return cls(columns, tuple(supports), tuple(starts), slots)

    def block(self, packed: Array, joint: int) -> Array:
        """A joint's rows of a packed tile: its columns, then its torque, shape (support + 1, N)."""
        return packed[self.starts[joint] : self.starts[joint + 1]]
