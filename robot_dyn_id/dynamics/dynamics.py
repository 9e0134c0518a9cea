# SPDX-License-Identifier: Apache-2.0
"""Inverse and forward dynamics of an identified robot, from its base parameters alone: tau = M(q) ddq + h(q, dq).

Standard parameters with the base values in the independent columns and zero in all others give the robot's torque in
every motion, hence its M and h (Wang et al. 2025, eq. 26 and 28; Gautier and Khalil 1990), by the usual recursions of
rigid bodies. Rotor inertias are part of M, friction is part of h; terms with temperature are evaluated at their
reference temperature unless `Dynamics.at_temperature` gives another one. Terms with internal states take these as
arguments, see `Dynamics.initial_states`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import Term, TermGroup, TermStates
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.dynamics import BodyTree, dynamics_single, dynamics_tiles
from robot_dyn_id.model.description import is_same_robot
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

MAX_SINGLE_STATES = 8
"""Maximum number of states that are evaluated one by one: the cost of a tile does not depend on their number."""


def check_robot(parameters: ParameterSet, model: RobotModel) -> None:
    """Check that a parameter set was identified for a robot description, by its meaning; see `hash_description`.

    Raises:
        InputError: another robot.
    """
    if not is_same_robot(parameters.robot.urdf, model.urdf):
        raise InputError(
            f"the parameters were identified for another robot than {model.name}: names, inertias, joints or limits of "
            f"their URDF ({parameters.robot.name}) differ from those of the one given: "
            "give theirs, or identify this robot"
        )


@dataclass(frozen=True)
class _ValuedTerms:
    """A group of terms with its parameters.

    Attributes:
        group: one term on g coordinates.
        values: parameters, shape (symbols, g).
        inertial: whether its columns depend on acceleration.
    """

    group: TermGroup
    values: Array
    inertial: bool

    def torque(self, motion: Motion, signals: Mapping[str, Array]) -> Array:
        """Torque of all joints at N samples, shape (n, N)."""
        columns = self.group.columns(motion.q, motion.dq, motion.ddq, signals, motion.states)
        return np.asarray(self.group.weights.T @ self._sum(columns))

    def inertia(self, q: Array, dq: Array) -> tuple[Integers, Array]:
        """Contribution to the mass matrix: entries of the packed lower triangle, shape (r,), and values, (r, N)."""
        y = self.group.along(q) + self.group.offsets
        dy = self.group.along(dq)
        with_one, without = (self._sum(self.group.columns_along(y, dy, np.full_like(y, ddy))) for ddy in (1.0, 0.0))
        row, column = np.tril_indices(len(q))
        products = (self.group.weights[:, row] * self.group.weights[:, column]).T
        entries = np.flatnonzero(products.any(axis=1))
        return entries, products[entries] @ (with_one - without)

    def _sum(self, columns: Array) -> Array:
        """Torque along the coordinates, shape (g, N)."""
        return np.asarray(np.einsum("sg,sgk->gk", self.values, columns))


def _depends_on_acceleration(term: Term) -> bool:
    """Whether a term's columns depend on acceleration.

    Raises:
        UsageError: the dependence is not linear: there is no mass matrix with it.
    """
    y, dy = np.random.default_rng(0).uniform(-2, 2, (2, 16))
    still, one, other = (term.columns(y, dy, np.full_like(y, ddy)) for ddy in (0.0, 1.0, -2.5))
    slope = one - still
    if not np.allclose(other - still, -2.5 * slope, rtol=1e-9, atol=1e-12 * (1.0 + np.abs(slope).max())):
        raise UsageError(f"term {term.name} is not linear in the acceleration: there is no mass matrix with it")
    return bool(np.any(slope))


@dataclass(frozen=True)
class _KernelArrays:
    """Arrays that the kernels read or fill, shape (..., N); None if not needed.

    Attributes:
        effort: given torque of forward dynamics, without terms [N m or N], shape (n, N).
        torque: result: torque of inverse dynamics [N m or N], shape (n, N).
        mass: result: packed lower triangle of the mass matrix, shape (n (n + 1) / 2, N).
        acceleration: result: acceleration of forward dynamics [rad/s^2 or m/s^2], shape (n, N).
        excess: result: positive where the mass matrix is positive definite, shape (N,).
    """

    effort: Array | None = None
    torque: Array | None = None
    mass: Array | None = None
    acceleration: Array | None = None
    excess: Array | None = None


@dataclass(frozen=True)
class Dynamics:
    """Dynamics of a robot with n joints. States are vectors (n,), or batches (N, n), one row per state.

    Example:
        ```python
        dynamics = rdi.make_dynamics(rdi.load_parameters("run/parameters.yaml"))
        tau = dynamics.inverse_dynamics(q, dq, ddq)
        M, h = dynamics.mass_matrix(q), dynamics.bias(q, dq)
        ddq = dynamics.forward_dynamics(q, dq, tau)
        ```

    Presliding friction has internal states, which follow from the path of the robot: `initial_states` are those of an
    unknown past, `advance` carries them from one position to the next, and the methods take them as `states`. Without
    them friction is that of a long motion at the given velocity.

    Efforts are in `effort_units`: N m or N, unless the model was identified from currents whose gain is not known.

    Attributes:
        regressor: robot and terms.
        columns: the independent columns, shape (p,).
        values: base parameters, shape (p,).
        temperature: temperatures of the joints [degrees Celsius], shape (n,); None: the reference temperatures.
    """

    regressor: Regressor
    columns: Integers
    values: Array
    temperature: Array | None = None

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> Dynamics:
        """Make the dynamics of an identified parameter set.

        Raises:
            InputError: a set with contradictions or unknown terms.
        """
        return cls(Regressor.from_parameters(parameters), parameters.base.independent, parameters.estimate.values)

    @classmethod
    def from_message(cls, message: Any) -> Dynamics:
        """Make the dynamics of a message `robot_dyn_id/msg/ParameterSet`, as the topic `identified_parameters` has it.

        A controller checks in addition that the set is that of its robot, and may move it: `check_robot` and
        `refuse_unsafe` of `robot_dyn_id.simulation.controllers`.

        Example:
            ```python
            def receive(message):  # of a subscription; reliable, transient local
                dynamics = rdi.Dynamics.from_message(message)
            ```

        Raises:
            InputError: another format version, contradictions, or unknown terms.
        """
        return cls.from_parameters(ParameterSet.from_message(message))

    @classmethod
    def from_model(cls, model: RobotModel) -> Dynamics:
        """Make the dynamics of the rigid bodies of the URDF, without friction."""
        values = model.inertial_parameters
        return cls(Regressor(model), np.arange(len(values)), values)

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of each joint's effort; see `RobotModel.effort_units`."""
        return self.regressor.model.effort_units

    def carrying(self, body: int, parameters: Array) -> Dynamics:
        """The same robot with a further body fixed to one of its bodies.

        Args:
            body: index of the moving body.
            parameters: standard parameters of the further body in the frame of the joint, shape (10,).
        """
        every = self.parameters.copy()
        every[10 * body : 10 * body + 10] += parameters
        return replace(self, columns=np.arange(len(every)), values=every)

    def at_temperature(self, temperature: ArrayLike) -> Dynamics:
        """The same robot at other temperatures of the joints [degrees Celsius], a number or shape (n,).

        Raises:
            UsageError: a temperature that is not finite, or another number of them.
        """
        joints, given = len(self.regressor.model.joint_names), np.asarray(temperature, dtype=np.float64)
        if given.shape not in ((), (1,), (joints,)) or not np.isfinite(given).all():
            raise UsageError(f"temperature: give one number or one for each of {joints} joints, not {given.tolist()}")
        return replace(self, temperature=np.broadcast_to(given, joints).copy())

    def initial_states(self, batch: int = 1) -> dict[Term, Array]:
        """States of the terms at the beginning of `batch` motions, shape (s, g, batch) each; empty if none has any."""
        return self.regressor.initial_states(batch)

    def advance(self, states: TermStates, q: ArrayLike, next_q: ArrayLike, step: float) -> dict[Term, Array]:
        """States after the motion from one position to the next.

        Args:
            states: states at `q`, shape (s, g, N) each.
            q: positions [rad or m], shape (n,) or (N, n).
            next_q: positions one step later, of the same shape.
            step: duration of the step [s].

        Raises:
            InputError: arrays of another number of joints.
        """
        _, (before, after) = self._joint_major(q, next_q)
        return {
            group.term: group.advance(states[group.term], before, after, step) for group in self.regressor.state_groups
        }

    def inverse_dynamics(
        self,
        q: ArrayLike,
        dq: ArrayLike,
        ddq: ArrayLike,
        states: TermStates | None = None,
        sliding: ArrayLike | None = None,
    ) -> Array:
        """Torque of a motion [N m or N], friction and offsets included.

        Args:
            q: positions [rad or m].
            dq: velocities.
            ddq: accelerations.
            states: states of the terms, shape (s, g, N) each; None: without a history.
            sliding: velocities of the friction and all other terms; None: `dq`.

        Raises:
            InputError: arrays of another number of joints.
            UsageError: a term that is not linear in the acceleration.
        """
        shape, arrays = self._joint_major(q, ddq, dq, *(() if sliding is None else (sliding,)))
        position, acceleration, velocity = arrays[:3]
        torque = np.empty_like(position)
        self._run((position, velocity, acceleration), _KernelArrays(torque=torque))
        return self._time_major(torque + self._terms_torque(position, arrays[-1], acceleration, states), shape)

    def bias(self, q: ArrayLike, dq: ArrayLike, states: TermStates | None = None) -> Array:
        """Torque at zero acceleration: Coriolis, centrifugal, gravity, friction, offsets [N m or N]."""
        return self.inverse_dynamics(q, dq, np.zeros(np.shape(q)), states)

    def gravity(self, q: ArrayLike) -> Array:
        """Torque at rest: gravity, springs, sensor offsets [N m or N].

        `friction` has the springs and offsets as well: the torque of a motion is `bias`, not the sum of both.
        """
        return self.bias(q, np.zeros(np.shape(q)))

    def friction(self, q: ArrayLike, dq: ArrayLike, states: TermStates | None = None) -> Array:
        """Torque of all terms at zero acceleration: friction, springs, offsets [N m or N].

        `gravity` has the springs and offsets as well: the torque of a motion is `bias`, not the sum of both.
        A base parameter that combines a term with inertias counts for its independent column.
        """
        shape, (position, velocity, rest) = self._joint_major(q, dq, np.zeros(np.shape(q)))
        return self._time_major(self._terms_torque(position, velocity, rest, states), shape)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix, rotor inertias included, shape (..., n, n)."""
        shape, (position,) = self._joint_major(q)
        rest = np.zeros_like(position)
        joints, states = position.shape
        packed = np.empty((joints * (joints + 1) // 2, states))
        self._run((position, rest, rest), _KernelArrays(mass=packed))
        row, column = np.tril_indices(joints)
        matrix = np.empty((states, joints, joints))
        matrix[:, row, column] = matrix[:, column, row] = packed.T
        return matrix.reshape(*shape, joints)

    def is_positive_definite(self, q: ArrayLike) -> Mask:
        """Mask of the states with a positive-definite mass matrix, shape (...): only there forward dynamics exist."""
        mass = self.mass_matrix(q)
        finite = np.isfinite(mass).all(axis=(-2, -1))
        mass[~finite] = 0.0  # LAPACK fails on values that are not finite
        return np.asarray(np.linalg.eigvalsh(mass)[..., 0] > 0.0)

    def forward_dynamics(self, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, states: TermStates | None = None) -> Array:
        """Accelerations under the torques `tau` [rad/s^2 or m/s^2]; NaN at states that hold NaN.

        Args:
            q: positions [rad or m].
            dq: velocities.
            tau: torques of the motors [N m or N].
            states: states of the terms, shape (s, g, N) each; None: without a history.

        Raises:
            InputError: the mass matrix is not positive definite at a state, the first of which is named with the
                joint: a massless link, or parameters that are not physically consistent.
        """
        shape, (position, velocity, effort) = self._joint_major(q, dq, tau)
        rest = np.zeros_like(position)
        effort -= self._terms_torque(position, velocity, rest, states)
        acceleration = np.empty_like(position)
        excess = np.empty(position.shape[1])
        arrays = _KernelArrays(effort=effort, acceleration=acceleration, excess=excess)
        self._run((position, velocity, rest), arrays)
        singular = np.flatnonzero(excess <= 0.0)
        if len(singular):
            raise self._singular(int(singular[0]), position[:, singular[0]])
        return self._time_major(acceleration, shape)

    def _singular(self, state: int, q: Array) -> InputError:
        """Error for a singular state: it names the joint with the smallest inertia while other joints move freely."""
        joint = self.regressor.model.joint_names[int(np.argmax(np.abs(np.linalg.eigh(self.mass_matrix(q))[1][:, 0])))]
        where = np.array2string(q, precision=3, threshold=8, max_line_width=10_000)
        return InputError(
            f"{self.regressor.model.name}: the mass matrix is not positive definite at q = {where} (state {state}): "
            f"the inertia of joint {joint} is not positive (a massless link, or inertias that the data barely show)"
        )

    @cached_property
    def parameters(self) -> Array:
        """Standard-parameter realization: values of all columns, shape (c,); zero in the dependent ones."""
        parameters = np.zeros(len(self.regressor.names))
        parameters[self.columns] = self.values
        return parameters

    @cached_property
    def _terms(self) -> tuple[_ValuedTerms, ...]:
        """Terms with their values; groups whose parameters are all zero are left out."""
        values = self.parameters[10 * len(self.regressor.model.body_names) :]
        return tuple(
            _ValuedTerms(group, values[group.numbers], _depends_on_acceleration(group.term))
            for group in self.regressor.term_groups
            if np.any(values[group.numbers])
        )

    @cached_property
    def body_parameters(self) -> Array:
        """Standard parameters of the bodies as the kernels take them, shape (b, 10, 1)."""
        return self.parameters[: 10 * len(self.regressor.model.body_names)].reshape(-1, 10, 1)

    @cached_property
    def body_tree(self) -> BodyTree:
        """Tree of the bodies as the kernels take it."""
        tree = self.regressor.tree
        model = self.regressor.model
        return BodyTree(
            np.where(tree.parent < 0, len(model.body_names), tree.parent),
            tree.leader,
            tree.multiplier,
            model.offset,
            tree.turn,
            tree.shift,
            tree.axis,
            model.prismatic.astype(np.float64),
            tree.gravity,
        )

    def _terms_torque(self, q: Array, dq: Array, ddq: Array, states: TermStates | None) -> Array:
        warmth = None if self.temperature is None else np.broadcast_to(self.temperature[:, None], q.shape)
        motion = Motion(q, dq, ddq, warmth, states)
        signals = self.regressor.signals(motion) if any(terms.group.term.signal for terms in self._terms) else {}
        return sum((terms.torque(motion, signals) for terms in self._terms), np.zeros_like(q))

    def _run(self, motion: tuple[Array, Array, Array], arrays: _KernelArrays) -> None:
        """Fill the given arrays at N states q, dq, ddq, shape (n, N) each; see the kernels."""
        q, dq, ddq = motion
        states = q.shape[1]
        none = np.empty((0, states))
        added = [(np.zeros(0, dtype=np.int64), none)]
        if arrays.torque is None:
            added += [terms.inertia(q, dq) for terms in self._terms if terms.inertial]
        entries, values = (np.concatenate(parts) for parts in zip(*added, strict=True))
        given = (arrays.effort, arrays.torque, arrays.mass, arrays.acceleration)
        results = [none if array is None else array for array in given]
        excess = np.empty(states) if arrays.excess is None else arrays.excess
        kernel = dynamics_single if states <= MAX_SINGLE_STATES else dynamics_tiles
        with np.errstate(all="ignore"):  # a singular M divides by zero; `excess` reports it
            kernel(self.body_tree, self.body_parameters, q, dq, ddq, entries, values, *results, excess)

    def _joint_major(self, *states: ArrayLike) -> tuple[tuple[int, ...], list[Array]]:
        """The common shape of states, and the states as the kernels take them, new arrays of shape (n, N).

        Raises:
            InputError: arrays of another number of joints.
        """
        try:
            arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in states))
        except ValueError:
            shapes = ", ".join(str(np.shape(x)) for x in states)
            raise InputError(f"states of the shapes {shapes} do not fit together") from None
        joints = len(self.regressor.model.joint_names)
        shape = arrays[0].shape
        if shape[-1:] != (joints,) or len(shape) > 2:
            raise InputError(f"states of shape {shape} do not fit {joints} joints")
        return shape, [np.array(np.atleast_2d(x).T, order="C") for x in arrays]

    @staticmethod
    def _time_major(result: Array, shape: tuple[int, ...]) -> Array:
        return np.ascontiguousarray(result.T).reshape(shape)
