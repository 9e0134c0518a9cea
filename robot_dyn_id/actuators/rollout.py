# SPDX-License-Identifier: Apache-2.0
"""Simulation of robots under position commands, with derivatives by the parameters of their actuators.

Joints that share no moving body do not act on each other while the base is fixed: a robot is simulated limb by limb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import HeldCommands, Steps, differentiate, roll_out
from robot_dyn_id.kernels.dynamics import BodyTree, dynamics_tiles
from robot_dyn_id.model.robot import RobotModel

LONGEST_STEP_S = 5e-4
"""Longest step of simulations [s]."""

DIFFERENCE = 1e-4
"""Step of the central differences of the inverse dynamics of rigid links [rad or m, and per s]; their error is its
square, 1e-8."""


@dataclass(frozen=True)
class Limb:
    """Rigid links of joints that act on each other, as the kernels take them.

    Attributes:
        joint_names: names of the n joints.
        model: model of these joints, all others fixed.
        tree: tree of the bodies.
        parameters: their standard parameters, shape (b, 10, 1).
    """

    joint_names: tuple[str, ...]
    model: RobotModel = field(repr=False)
    tree: BodyTree
    parameters: Array

    def simulate(
        self,
        actuators: ActuatorModel,
        motion: CommandedMotion,
        q: Array | None = None,
        v: Array | None = None,
        slip: Array | None = None,
        longest: float = LONGEST_STEP_S,
    ) -> tuple[Array, Rollout]:
        """Simulate the motion under the commands of a recorded one.

        Args:
            actuators: actuators of the joints.
            motion: commands.
            q: initial positions, shape (n,); None: those measured.
            v: initial velocities, shape (n,); None: at rest.
            slip: initial states of presliding friction [-], shape (n,); None: relaxed.
            longest: longest step [s].

        Returns:
            Positions at the samples, shape (N, n), and the simulation.

        Raises:
            InputError: the simulation has diverged.
        """
        commands = motion.commands(float(actuators.delay.max(initial=0.0)))
        count = max(1, int(np.ceil(motion.period / longest - 1e-9)))
        q = np.ascontiguousarray(motion.q[0] if q is None else q)
        v = np.zeros(len(q)) if v is None else np.ascontiguousarray(v)
        slip = np.zeros(len(q)) if slip is None else slip
        return self.roll_out(actuators, commands, count, (q, v, v, slip), motion.source)

    def roll_out(
        self,
        actuators: ActuatorModel,
        commands: HeldCommands,
        count: int,
        state: tuple[Array, Array, Array, Array],
        name: str,
    ) -> tuple[Array, Rollout]:
        """Simulate the motion under commands.

        Args:
            actuators: actuators of the joints.
            commands: commands, and times of the samples.
            count: number of steps from one sample to the next.
            state: initial positions, velocities, velocities one step before, and states of presliding friction, shape
                (n,) each; where a motion begins, both velocities are equal.
            name: name of the motion, for messages.

        Returns:
            Positions at the samples, shape (N, n), and the simulation.

        Raises:
            InputError: the simulation has diverged.
        """
        samples, n = len(commands.t), len(self.joint_names)
        steps, positions = _allocate_steps(count * (samples - 1), n), np.empty((samples, n))
        q, v, earlier, slip = state[0], state[1], state[2], state[3].copy()
        kernel = actuators.kernel
        if not roll_out(self.tree, self.parameters, kernel, commands, count, q, v, earlier, slip, positions, steps):
            raise InputError(
                f"{name}: the simulation of {', '.join(self.joint_names)} under the commanded positions has diverged: "
                "check that gains and robot are those of the recording"
            )
        return positions, Rollout(self, actuators, commands, count, steps, slip)

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Torques of the links for S states, arrays of shape (n, S)."""
        torque, none = np.empty_like(q), np.empty((0, q.shape[1]))
        slots = np.empty(0, dtype=np.int64)
        dynamics_tiles(self.tree, self.parameters, q, v, a, slots, none, none, torque, none, none, np.empty(0))
        return torque


def _allocate_steps(count: int, n: int) -> Steps:
    shapes = dict.fromkeys(Steps._fields, (count, n)) | {"mass": (count, n * (n + 1) // 2)}
    return Steps(*(np.empty(shapes[name]) for name in Steps._fields))


@dataclass(frozen=True)
class Rollout:
    """A simulation.

    Attributes:
        limb: links.
        actuators: actuators.
        commands: commands.
        count: number of steps from one sample to the next.
        steps: the steps.
        slip: states of presliding friction at the end, shape (n,).
    """

    limb: Limb
    actuators: ActuatorModel
    commands: HeldCommands
    count: int
    steps: Steps
    slip: Array

    def differentiate(self, columns: Integers) -> Array:
        """Derivatives of the positions, shape (N, n, p + 2 n), or (N, n, p + 3 n) with presliding friction.

        Args:
            columns: numbers of p parameters, n kind + joint, see `kernels.actuators.KINDS`.

        Returns:
            Derivatives by these parameters, by the initial positions and velocities, and by the initial states of
            presliding friction of all joints if one has it.
        """
        n, steps = len(self.limb.joint_names), self.steps
        lengths = np.repeat(np.diff(self.commands.t) / self.count, self.count)[:, None]
        q, v, a = (
            np.ascontiguousarray(values.T) for values in (steps.middle, steps.speed, (steps.end - steps.v) / lengths)
        )
        by_q, by_v = self._differentiate_links(q, q, v, a), self._differentiate_links(v, q, v, a)
        loaded, elastic = self.actuators.load_coulomb.any(), self.actuators.breakaway_displacement.any()
        load_by_q = self._differentiate_links(q, q, v, np.zeros_like(a)) if loaded else np.empty((0, n, n))
        slopes = np.empty((len(self.commands.t), n, len(columns) + (3 if elastic else 2) * n))
        differentiate(self.actuators.kernel, self.commands, self.count, steps, by_q, by_v, load_by_q, columns, slopes)
        return slopes

    def _differentiate_links(self, values: Array, q: Array, v: Array, a: Array) -> Array:
        """Derivatives of the torques of the links by `values`, which are `q` or `v`, shape (S, n, n)."""
        slopes = np.empty((values.shape[1], len(values), len(values)))
        for j in range(len(values)):
            kept = values[j].copy()
            values[j] = kept + DIFFERENCE
            above = self.limb.inverse_dynamics(q, v, a)
            values[j] = kept - DIFFERENCE
            slopes[:, :, j] = (above - self.limb.inverse_dynamics(q, v, a)).T / (2.0 * DIFFERENCE)
            values[j] = kept
        return slopes

    @property
    def efforts(self) -> Array:
        """Efforts that the drives command in each step, were they not limited [N m or N], shape (S, n)."""
        steps = self.steps
        speed = 0.5 * (steps.v + steps.end)
        lengths = np.repeat(np.diff(self.commands.t) / self.count, self.count)[:, None]
        return self.actuators.kp * (steps.mean - steps.q - 0.5 * lengths * speed) - self.actuators.kd * speed

    @property
    def last(self) -> tuple[Array, Array]:
        """Velocities at the end and one step before, from which a simulation goes on, shape (n,) each."""
        steps = self.steps
        return steps.end[-1], np.where(steps.stopped[-1] == 0.0, steps.v[-1], 0.0)

    @property
    def limited(self) -> Array:
        """Share of the steps in which each joint's effort is at its limit, shape (n,)."""
        return np.asarray(np.mean(self.steps.limited != 0.0, axis=0))

    @property
    def ended(self) -> Array:
        """Share of the steps in which each joint is at a stop or most of its reference out of range, shape (n,)."""
        steps = self.steps
        return np.asarray(np.mean((steps.stopped != 0.0) | (steps.below + steps.above > 0.5), axis=0))

    @property
    def stopped(self) -> Mask:
        """Samples at whose end of the step before the joint is at a stop, shape (N, n); the first is never."""
        at_samples = self.steps.stopped[self.count - 1 :: self.count] != 0.0
        return np.concatenate([np.zeros((1, at_samples.shape[1]), dtype=bool), at_samples])


def split_into_limbs(model: RobotModel) -> tuple[Limb, ...]:
    """Divide a robot with a fixed base into limbs: joints that share a moving body are in the same one."""
    first = [body for body in range(len(model.body_names)) if model.parent[body] < 0]
    root = np.empty(len(model.body_names), dtype=int)
    for body in range(len(root)):
        root[body] = body if body in first else root[model.parent[body]]
    groups: list[set[str]] = []
    for body in first:
        joints = {model.joint_names[leader] for leader in model.leader[root == body]}
        shared = [group for group in groups if group & joints]  # by a mimic joint
        groups = [group for group in groups if group not in shared] + [joints.union(*shared)]
    return tuple(_make_limb(model, [name for name in model.joint_names if name in group]) for group in groups)


def _make_limb(model: RobotModel, joints: Sequence[str]) -> Limb:
    if len(joints) < len(model.joint_names):
        own = RobotModel.from_urdf(model.urdf, joints, model.held, tuple(model.gravity))
        bodies = model.inertial_parameters.reshape(-1, 10)[[model.body_names.index(name) for name in own.body_names]]
        model = replace(own, inertial_parameters=bodies.ravel())
    dynamics = Dynamics.from_model(model)
    return Limb(tuple(model.joint_names), model, dynamics.body_tree, dynamics.body_parameters)


def simulate_commands(model: RobotModel, actuators: ActuatorModel, motion: CommandedMotion) -> Array:
    """Positions of a robot under the commands of a motion, which it starts at rest where the motion starts.

    Args:
        model: robot model with a fixed base.
        actuators: actuators of its joints.
        motion: commands; of the positions only the first ones are used.

    Returns:
        Positions at the samples [rad or m], shape (N, n).

    Raises:
        InputError: the simulation has diverged.
    """
    positions = np.empty_like(motion.q)
    for limb in split_into_limbs(model):
        columns = [motion.joint_names.index(name) for name in limb.joint_names]
        own = actuators.select(limb.joint_names)
        positions[:, columns], _ = limb.simulate(own, motion.joints(limb.joint_names))
    return positions
