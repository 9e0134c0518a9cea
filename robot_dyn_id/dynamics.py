"""Inverse and forward dynamics of an identified robot: tau = M(q) ddq + bias(q, dq).

The base parameters alone are enough: a representative with the base values in their independent columns and zero in all
others has the same torque for every motion, hence the same mass matrix and the same forward dynamics (Gautier and Khalil
1990; eq. 6 and 7 of Wang et al., Sensors 2025, 25(18), 5749, in recursive form). Only the sums are physical: how a
representative splits a torque into rigid body and terms, or between bodies, is arbitrary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError, ModelError, UsageError
from robot_dyn_id.kernels.dynamics import dynamics_single, dynamics_tiles
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.regressor import Regressor, joint_coordinates
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.terms import TERMS, Coordinate, Term

Integers = NDArray[np.int64]

FEW = 8
"""Up to so many states are worked on one by one."""


def check_robot(parameter_set: ParameterSet, model: RobotModel) -> None:
    """Refuse a parameter set that was identified with another URDF.

    Raises:
        InputError: the URDF texts differ.
    """
    own = hashlib.sha256(model.urdf.encode()).hexdigest()
    if parameter_set.urdf_sha256 != own:
        raise InputError(
            f"the parameters are those of robot {parameter_set.robot_name} (URDF sha256 {parameter_set.urdf_sha256[:12]}), "
            f"not of this {model.name} (URDF sha256 {own[:12]}): identify it with this URDF"
        )


def regressor_of(parameter_set: ParameterSet) -> Regressor:
    """The robot and the terms that a parameter set was identified with.

    Raises:
        InputError: the set contradicts itself: URDF and hash, unknown terms or joints, other columns.
        ModelError: its URDF cannot be used.
    """
    model = RobotModel.from_urdf(
        parameter_set.urdf,
        parameter_set.joint_names,
        dict(zip(parameter_set.held_joint_names, parameter_set.held_joint_positions.tolist(), strict=True)),
        parameter_set.gravity.tolist(),
    )
    check_robot(parameter_set, model)
    regressor = Regressor(model, _terms_of(parameter_set, model))
    for what, own in (
        ("joint_names", model.joint_names),
        ("body_names", model.body_names),
        ("column_names", regressor.names),
    ):
        if getattr(parameter_set, what) != own:
            raise InputError(f"parameter set of {parameter_set.robot_name}: {what} are not those of its URDF and terms")
    return regressor


def _terms_of(parameter_set: ParameterSet, model: RobotModel) -> tuple[tuple[Coordinate, Term], ...]:
    coordinates = {coordinate.name: coordinate for coordinate in joint_coordinates(model)}
    terms: list[tuple[Coordinate, Term]] = []
    column = 0
    while column < len(parameter_set.term_names):
        name, joint = parameter_set.term_names[column], parameter_set.term_joints[column]
        if name not in TERMS or joint not in coordinates:
            raise InputError(f"parameter set of {parameter_set.robot_name}: term {name!r} on {joint!r} is not known")
        constants = {
            constant.partition(".")[2]: float(value)
            for constant, at, value in zip(
                parameter_set.term_constant_names,
                parameter_set.term_constant_joints,
                parameter_set.term_constant_values,
                strict=True,
            )
            if at == joint and constant.partition(".")[0] == name
        }
        try:
            terms.append((coordinates[joint], TERMS[name](**constants)))
        except TypeError:
            unknown = ", ".join(constants) or "none"
            raise InputError(f"parameter set: the constants of term {name} are not {unknown}") from None
        column += len(TERMS[name].symbols)
    return tuple(terms)


@dataclass(frozen=True)
class _TermGroup:
    """One term on g coordinates, evaluated at once.

    Attributes:
        term: the term.
        weights: of the coordinates, shape (g, n).
        offsets: of the coordinates, shape (g, 1).
        values: parameters, shape (symbols, g).
        inertial: whether its columns depend on acceleration.
    """

    term: Term
    weights: Array
    offsets: Array
    values: Array
    inertial: bool

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque along the coordinates at joint motions of shape (n, N), shape (g, N)."""
        return self._sum(self.weights @ q + self.offsets, self.weights @ dq, self.weights @ ddq)

    def inertia(self, q: Array, dq: Array) -> Array:
        """Torque along the coordinates per unit of their acceleration, shape (g, N)."""
        y, dy = self.weights @ q + self.offsets, self.weights @ dq
        return self._sum(y, dy, np.ones_like(y)) - self._sum(y, dy, np.zeros_like(y))

    def _sum(self, y: Array, dy: Array, ddy: Array) -> Array:
        columns = self.term.columns(y.ravel(), dy.ravel(), ddy.ravel()).reshape(-1, *y.shape)
        return np.asarray(np.einsum("sg,sgk->gk", self.values, columns))


def _depends_on_acceleration(term: Term) -> bool:
    """Whether a term's columns depend on acceleration.

    Raises:
        UsageError: they do so in another way than proportionally: no mass matrix could take them up.
    """
    y, dy = np.random.default_rng(0).uniform(-2, 2, (2, 16))
    still, one, other = (term.columns(y, dy, np.full_like(y, ddy)) for ddy in (0.0, 1.0, -2.5))
    slope = one - still
    if not np.allclose(other - still, -2.5 * slope, rtol=1e-9, atol=1e-12 * (1.0 + np.abs(slope).max())):
        raise UsageError(f"term {term.name} is not linear in the acceleration: forward dynamics cannot use it")
    return bool(np.any(slope))


@dataclass(frozen=True)
class Dynamics:
    """A robot with known parameters.

    States are arrays of shape (n,) for one or (N, n) for many, torques likewise, mass matrices (n, n) or (N, n, n);
    SI units, radians.

    Attributes:
        regressor: the robot and its terms.
        parameters: values of all columns, 10 standard parameters per body and then the terms', shape (c,).
    """

    regressor: Regressor
    parameters: Array

    def __post_init__(self) -> None:
        """Check and freeze the parameters.

        Raises:
            UsageError: their number is not that of the columns, one is not finite, or a term is not linear in
                acceleration.
        """
        values = np.array(self.parameters, dtype=np.float64)
        names = self.regressor.names
        if values.shape != (len(names),):
            raise UsageError(f"parameters have shape {values.shape}, expected ({len(names)},)")
        for name, value in zip(names, values, strict=True):
            if not np.isfinite(value):
                raise UsageError(f"parameter {name} is {value}")
        values.flags.writeable = False
        object.__setattr__(self, "parameters", values)
        _ = self._groups

    @staticmethod
    def from_base(regressor: Regressor, independent: Sequence[int] | NDArray[np.integer], values: Array) -> Dynamics:
        """The dynamics from base parameters alone.

        Args:
            regressor: the robot and its terms.
            independent: the column that each base parameter is named after, shape (p,).
            values: base parameters, shape (p,).

        Raises:
            UsageError: as many values as columns are needed.
        """
        if np.shape(independent) != np.shape(values):
            raise UsageError(f"{np.shape(values)} base parameters for {np.shape(independent)} independent columns")
        parameters = np.zeros(len(regressor.names))
        parameters[np.asarray(independent, dtype=np.int64)] = values
        return Dynamics(regressor, parameters)

    @staticmethod
    def from_parameter_set(parameter_set: ParameterSet) -> Dynamics:
        """The dynamics from the base parameters of an identified set.

        Raises:
            InputError: see `regressor_of`.
        """
        return Dynamics.from_base(regressor_of(parameter_set), parameter_set.independent_columns, parameter_set.values)

    def inverse_dynamics(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque of a motion, all terms included [N m or N]."""
        motion = self._joint_major(q, dq, ddq)
        torque = self._rigid_torque(*motion)
        self._add_terms(torque, *motion)
        return self._time_major(torque, q)

    def bias(self, q: Array, dq: Array) -> Array:
        """Torque at zero acceleration: gravity, Coriolis and centrifugal torque, terms."""
        return self.inverse_dynamics(q, dq, np.zeros_like(q))

    def gravity(self, q: Array) -> Array:
        """Torque that holds the rigid bodies still; terms left out."""
        (position,) = self._joint_major(q)
        rest = np.zeros_like(position)
        return self._time_major(self._rigid_torque(position, rest, rest), q)

    def friction(self, q: Array, dq: Array, ddq: Array | None = None) -> Array:
        """Torque of all terms (at zero acceleration unless it is given)."""
        motion = self._joint_major(q, dq, np.zeros_like(q) if ddq is None else ddq)
        torque = np.zeros_like(motion[0])
        self._add_terms(torque, *motion)
        return self._time_major(torque, q)

    def mass_matrix(self, q: Array) -> Array:
        """M(q), with the terms that are proportional to acceleration."""
        (position,) = self._joint_major(q)
        rest = np.zeros_like(position)
        joints, states = position.shape
        packed = np.empty((joints * (joints + 1) // 2, states))
        self._run(position, rest, rest, mass=packed)
        row, column = np.tril_indices(joints)
        matrix = np.empty((states, joints, joints))
        matrix[:, row, column] = matrix[:, column, row] = packed.T
        return matrix if np.ndim(q) == 2 else matrix[0]

    def forward_dynamics(self, q: Array, dq: Array, tau: Array) -> Array:
        """Acceleration under a torque [rad/s^2 or m/s^2]; NaN at states that hold NaN.

        Raises:
            ModelError: the mass matrix of a state is not positive definite to rounding (massless joints, parameters
                far from physical); the message names the first such state and the joint that moves no inertia.
        """
        position, velocity, effort = self._joint_major(q, dq, tau)
        rest, known = np.zeros_like(position), np.zeros_like(position)
        self._add_terms(known, position, velocity, rest)
        acceleration, excess = np.empty_like(position), np.empty(position.shape[1])
        self._run(position, velocity, rest, effort=effort - known, acceleration=acceleration, excess=excess)
        singular = excess <= 0.0
        if singular.any():
            state = int(np.argmax(singular))
            directions = np.linalg.eigh(self.mass_matrix(position[:, state]))[1]
            joint = self.regressor.model.joint_names[int(np.argmax(np.abs(directions[:, 0])))]
            raise ModelError(
                f"{self.regressor.model.name}: no forward dynamics at state {state}: the mass matrix is not positive "
                f"definite, joint {joint} moves no inertia"
            )
        return self._time_major(acceleration, q)

    @cached_property
    def _groups(self) -> tuple[_TermGroup, ...]:
        """Terms of equal kind and constants together; those whose parameters are all zero left out."""
        members: dict[Term, list[tuple[Coordinate, Array]]] = {}
        column = 10 * len(self.regressor.model.body_names)
        for coordinate, term in self.regressor.terms:
            values = self.parameters[column : column + len(term.symbols)]
            column += len(term.symbols)
            members.setdefault(term, []).append((coordinate, values))
        return tuple(
            _TermGroup(
                term=term,
                weights=np.array([coordinate.weights for coordinate, _ in parts]),
                offsets=np.array([[coordinate.offset] for coordinate, _ in parts]),
                values=np.array([values for _, values in parts]).T,
                inertial=_depends_on_acceleration(term),
            )
            for term, parts in members.items()
            if any(values.any() for _, values in parts)
        )

    @cached_property
    def _robot(self) -> tuple[Array | Integers, ...]:
        """What the kernels read the robot from."""
        tree, model = self.regressor.tree, self.regressor.model
        bodies = len(model.body_names)
        return (
            np.where(tree.parent < 0, bodies, tree.parent),
            tree.leader,
            tree.multiplier,
            model.offset,
            tree.turn,
            tree.shift,
            tree.axis,
            model.prismatic.astype(np.float64),
            tree.gravity,
            np.ascontiguousarray(self.parameters[: 10 * bodies].reshape(bodies, 10)),
        )

    def _rigid_torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        torque = np.empty_like(q)
        self._run(q, dq, ddq, torque=torque)
        return torque

    def _add_terms(self, torque: Array, q: Array, dq: Array, ddq: Array) -> None:
        for group in self._groups:
            torque += group.weights.T @ group.torque(q, dq, ddq)

    def _added_inertia(self, q: Array, dq: Array) -> tuple[Integers, Array]:
        """What terms add to M = ... + w c w': entries of the packed lower triangle, shape (r,), and (r, N)."""
        slots, added = [np.zeros(0, dtype=np.int64)], [np.zeros((0, q.shape[1]))]
        row, column = np.tril_indices(len(q))
        for group in self._groups:
            if group.inertial:
                products = (group.weights[:, row] * group.weights[:, column]).T
                touched = np.flatnonzero(products.any(axis=1))
                slots.append(touched)
                added.append(products[touched] @ group.inertia(q, dq))
        return np.concatenate(slots), np.concatenate(added)

    def _run(
        self,
        q: Array,
        dq: Array,
        ddq: Array,
        effort: Array | None = None,
        torque: Array | None = None,
        mass: Array | None = None,
        acceleration: Array | None = None,
        excess: Array | None = None,
    ) -> None:
        """Fill those results that are given; see the kernels."""
        states = q.shape[1]
        none = np.empty((0, states))
        slots, added = self._added_inertia(q, dq) if torque is None else (np.zeros(0, dtype=np.int64), none)
        outputs = [none if array is None else array for array in (effort, torque, mass, acceleration)]
        kernel = dynamics_single if states <= FEW else dynamics_tiles
        with np.errstate(all="ignore"):  # a singular M divides by zero; `excess` tells
            kernel(*self._robot, q, dq, ddq, slots, added, *outputs, np.empty(states) if excess is None else excess)

    def _joint_major(self, *arrays: Array) -> list[Array]:
        """States as the kernels take them, shape (n, N) each.

        Raises:
            UsageError: a shape that is neither (n,) nor (N, n), or shapes that differ.
        """
        joints = len(self.regressor.model.joint_names)
        shape = np.shape(arrays[0])
        for array in arrays:
            if np.shape(array) != shape or len(shape) not in (1, 2) or shape[-1] != joints:
                raise UsageError(f"states of shape {np.shape(array)}, expected ({joints},) or (N, {joints}), all alike")
        return [np.ascontiguousarray(np.reshape(array, (-1, joints)).T, dtype=np.float64) for array in arrays]

    @staticmethod
    def _time_major(result: Array, like: Array) -> Array:
        return result.T if np.ndim(like) == 2 else result[:, 0]
