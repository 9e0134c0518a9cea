# SPDX-License-Identifier: Apache-2.0
"""Simulated plant: state and dynamics of a robot with friction, compiled for one state at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.dynamics import MAX_SINGLE_STATES, Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coordinate, Coulomb, Dahl, Term, TermStates, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.servo import advance_driven, evaluate_polynomials, fit_polynomials, hold_setpoint
from robot_dyn_id.kernels.stepping import FIXED, LOADED, Robots, State, compute_motor_effort
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.friction_laws import FrictionLaws

STEP = 1e-3
"""Longest integration step [s]."""


def count_steps(duration: float) -> int:
    """Number of equal integration steps of at most `STEP` in a duration [s]."""
    return max(1, math.ceil(duration / STEP - 1e-9))


def make_nominal_dynamics(
    model: RobotModel,
    viscous: Array,
    coulomb: Array,
    smoothing_width: float,
    further: Sequence[tuple[Coordinate, Term, Array]] = (),
) -> Dynamics:
    """Nominal dynamics of a URDF with friction.

    Args:
        model: robot model with the masses and inertias of the URDF.
        viscous: viscous friction [N m s/rad or N s/m], shape (n,).
        coulomb: Coulomb friction [N m or N], shape (n,).
        smoothing_width: smoothing width of the Coulomb friction [rad/s or m/s], see `terms.Coulomb`.
        further: coordinates, other terms on them, and the parameters of each, shape (symbols,).
    """
    own = place_terms_on_joints(model, (Viscous(), Coulomb(smoothing_width)))
    regressor = Regressor(model, (*own, *((coordinate, term) for coordinate, term, _ in further)))
    friction = np.zeros((2, len(model.body_names)))
    friction[:, [model.body_names.index(name) for name in model.joint_names]] = viscous, coulomb
    parameters = np.concatenate([model.inertial_parameters, *friction, *(values for *_, values in further)])
    return Dynamics(regressor, np.arange(len(parameters)), parameters)


SMALLEST = """<robot name="one"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="turn" type="continuous">
<parent link="base"/><child link="arm"/></joint></robot>"""


def warm_up() -> None:
    """Compile the simulation kernels with a minimal robot, so that later calls use the cached machine code."""
    one, dynamics = np.ones(1), make_smallest_dynamics()
    plant = Plant(dynamics, one)
    wanted_q, wanted_dq, wanted_ddq = evaluate_polynomials(
        fit_polynomials(1.0, one[None], one[None], np.ones((2, 2))), 1.0
    )
    known, memory = (one, one, (1.0, 1.0, 1.0, 1.0), STEP, one), (np.ones(1), np.ones(1), np.ones(1))
    plant.advance(hold_setpoint(plant.dynamics.arrays, wanted_q, wanted_dq, wanted_ddq, *known, *memory), STEP)
    Dahl().integrate(np.zeros((1, 2)), STEP, Dahl().initial_states()[:, None])
    warm_up_regressor()


def warm_up_regressor() -> None:
    """Compile the regressor kernels, which `advance` does not need, so that another process can do it in parallel."""
    one = np.ones((1, 1))
    make_smallest_dynamics().regressor.dense(Motion(one, one, one))


def warm_up_tiles() -> None:
    """Compile the dynamics of many states at once."""
    many = np.ones((2 * MAX_SINGLE_STATES, 1))
    make_smallest_dynamics().inverse_dynamics(many, many, many)


def make_smallest_dynamics() -> Dynamics:
    """Dynamics of a robot with one joint, for the compilation of kernels."""
    return make_nominal_dynamics(RobotModel.from_urdf(SMALLEST), np.ones(1), np.ones(1), 0.1)


class CompiledDynamics:
    """Dynamics of a robot in the form used by the compiled kernels for one state at a time.

    Attributes:
        model: robot model.
        coordinates: number of its friction coordinates.
        robot: the arrays of the kernels in `kernels.stepping`, for one simulation.
        arrays: the same as plain tuples, for the kernels in `kernels.servo`.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        """Convert the terms to the arrays of the kernels.

        Raises:
            InputError: a term is not supported by the kernels.
        """
        self.model = dynamics.regressor.model
        friction = FrictionLaws.from_dynamics(dynamics)
        row, column = np.tril_indices(len(self.model.joint_names))
        slots = np.flatnonzero(friction.inertia[row, column])
        self._friction = friction
        self.coordinates = len(friction.weights)
        self.robot = Robots(
            dynamics.body_tree,
            dynamics.body_parameters,
            slots,
            friction.inertia[row, column][slots][:, None].copy(),
            friction.constant[:, None],
            friction.stiffness[:, :, None],
            friction.waves,
            friction.amplitudes[:, None],
            friction.weights,
            friction.viscous[:, :, None],
            friction.starts,
            friction.laws,
            friction.loads,
            np.ascontiguousarray(friction.laws[:, [FIXED, LOADED]])[:, :, None],
        )
        self.arrays = tuple(self.robot.tree), *self.robot[1:]

    def lanes(self, count: int) -> Robots:
        """Arrays of the kernels for a number of simulations of this robot."""
        varying = ("parameters", "added", "constant", "stiffness", "amplitudes", "viscous", "shares")
        repeated: dict[str, Any] = {name: np.repeat(getattr(self.robot, name), count, axis=-1) for name in varying}
        return self.robot._replace(**repeated)

    def slip(self, states: TermStates | None = None) -> Array:
        """States of the friction laws for the kernels, shape (m,), from those of the terms; zeros by default."""
        return self._friction.slip(states)

    def effort(self, q: Array, dq: Array, ddq: Array, sliding: Array, slip: Array) -> Array:
        """Torque that gives the accelerations `ddq`, shape (n,).

        Args:
            q: positions, shape (n,).
            dq: velocities, shape (n,).
            ddq: accelerations, shape (n,).
            sliding: velocities of which the friction is, shape (n,).
            slip: states of the friction laws, shape (m,).
        """
        # other strides would be compiled separately
        q, dq, ddq, sliding = (np.ascontiguousarray(x) for x in (q, dq, ddq, sliding))
        return np.asarray(compute_motor_effort(self.robot, q, dq, ddq, sliding, slip))


class Plant:
    """A robot that moves under the torques of its motors, initially at rest.

    Attributes:
        dynamics: compiled dynamics of the robot.
        q: positions [rad or m], shape (n,), changed in place.
        dq: velocities [rad/s or m/s], shape (n,), changed in place.
        effort_limit: effort limits of the motors [N m or N], shape (n,); infinite for joints without a limit.
        dry: dry friction torques of the last step, the initial values of the next iteration.
        slip: states of the friction laws, shape (m,), changed in place.
        state: these for the kernels, which change them in place.
    """

    def __init__(self, dynamics: Dynamics, q: Array, effort_limit: Array | None = None) -> None:
        """Place the robot.

        Raises:
            InputError: a term cannot be simulated, or the mass matrix is not positive definite.
        """
        dynamics.forward_dynamics(q, np.zeros_like(q), np.zeros_like(q))  # names the joint of a singular mass matrix
        self.dynamics, self._robot = CompiledDynamics(dynamics), dynamics
        self._warms = any(group.term.signal == "temperature" for group in dynamics.regressor.term_groups)
        self.q, self.dq = np.array(q, dtype=np.float64), np.zeros(len(q))
        self.effort_limit = np.full(len(q), np.inf) if effort_limit is None else np.array(effort_limit)
        self._undisturbed = np.zeros(len(q))
        self.dry = np.zeros(self.dynamics.coordinates)
        self.slip = self.dynamics.slip()
        self.state = State(self.q, self.dq, self.dry, self.slip)
        self._arrays = tuple(self.state)  # plain, as those of the dynamics

    @property
    def inertial_parameters(self) -> Array:
        """Standard parameters of the bodies, SI, shape (10 b,)."""
        return self._robot.parameters[: 10 * len(self.dynamics.model.body_names)]

    def place(self, motion: Motion, sample: int) -> None:
        """Place the robot in the state of a motion at one sample, friction states and temperatures included.

        Args:
            motion: motion of the joints; without the states of terms they are at rest, without temperatures, which the
                robot keeps afterwards, those of its dynamics hold.
            sample: number of the sample.
        """
        at = motion.take(slice(sample, sample + 1))
        if self._warms and at.temperature is not None:
            self.dynamics = CompiledDynamics(self._robot.at_temperature(at.temperature[:, 0]))
        self.q[:], self.dq[:] = at.q[:, 0], at.dq[:, 0]
        self.slip[:] = self.dynamics.slip(at.states)
        self.dry[:] = 0.0

    def advance(self, effort: Array, duration: float, external: Array | None = None) -> Array:
        """Advance the state under constant torques in equal steps of at most `STEP`.

        Args:
            effort: commanded torques [N m or N], shape (n,).
            duration: duration [s].
            external: torques of the environment in addition to those of the motors [N m or N], shape (n,).

        Returns:
            Torques limited by the motors [N m or N], shape (n,).

        Raises:
            InputError: the simulation has diverged.
        """
        count, before = count_steps(duration), self.q.copy()
        torques = np.ascontiguousarray(effort), self.effort_limit, self._undisturbed if external is None else external
        applied, valid = advance_driven(self.dynamics.arrays, *torques, duration / count, count, self._arrays)
        if not valid:
            raise self.broken_down(before)
        return np.asarray(applied)

    def broken_down(self, near: Array | None = None) -> InputError:
        """Error of a simulation that has diverged; `near` is its latest known position, shape (n,)."""
        q = self.q if near is None else near
        return InputError(
            f"{self.dynamics.model.name}: the simulation broke down near q = {np.round(q, 3).tolist()}: its mass "
            "matrix is not positive definite there, its friction drives the joints, or the torques are unreasonably "
            "large"
        )

    def beyond_stops(self, q: Array | None = None) -> tuple[str, ...]:
        """Names of the joints outside their position limits, where a real robot has mechanical stops.

        Args:
            q: positions [rad or m], shape (N, n); the present ones by default.
        """
        limits, q = self.dynamics.model.limits, np.atleast_2d(self.q if q is None else q)
        outside: Mask = np.any((q < limits.lower) | (q > limits.upper), axis=0)
        return tuple(name for name, flag in zip(self.dynamics.model.joint_names, outside, strict=True) if flag)
