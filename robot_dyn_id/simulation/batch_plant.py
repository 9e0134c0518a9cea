# SPDX-License-Identifier: Apache-2.0
"""Many simulated plants of the same tree and terms, each with its own parameters, stepped at once on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.cores import count_cores
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.stepping import FIXED, LOADED, Robots, State, advance_blocks
from robot_dyn_id.simulation.friction_laws import FrictionLaws
from robot_dyn_id.simulation.plant import count_steps

LANES = 64
"""Most robots in a block, which are advanced together."""


class BatchPlant:
    """E robots with n joints that move under the torques of their motors, initially at rest.

    Each is simulated as by `Plant`. Blocks of at most `LANES` robots are advanced in parallel threads; as the division
    into blocks only depends on E, results do not depend on the number of threads.

    Attributes:
        q: positions [rad or m], shape (E, n), changed in place.
        dq: velocities [rad/s or m/s], shape (E, n), changed in place.
        diverged: mask of the robots whose simulation has diverged, shape (E,): they keep their last valid state.
        effort_limit: effort limits of the motors [N m or N], shape (n,); infinite for joints without a limit.
        threads: number of threads.
    """

    def __init__(
        self, dynamics: Dynamics, parameters: Array, q: Array, effort_limit: Array | None = None, threads: int = 0
    ) -> None:
        """Place the robots.

        Args:
            dynamics: robot, terms and temperatures; its parameters are not used.
            parameters: all parameters of each robot as in `Dynamics.parameters`, shape (E, c).
            q: positions [rad or m], shape (E, n) or (n,).
            effort_limit: effort limits of the motors [N m or N], shape (n,).
            threads: number of threads; 0: one per core.

        Raises:
            UsageError: no robots, or a negative number of threads.
            InputError: a term cannot be simulated, or the mass matrix of the first robot is not positive definite.
        """
        if not len(parameters):
            raise UsageError("number of robots: 0; give 1 or more")
        if threads < 0:
            raise UsageError(f"threads: {threads}; give 0 or more")
        joints = len(dynamics.regressor.model.joint_names)
        self.threads = threads or count_cores()
        self.q, self.dq = np.empty((len(parameters), joints)), np.zeros((len(parameters), joints))
        self.q[:] = q
        self.diverged: Mask = np.zeros(len(parameters), dtype=bool)
        self.effort_limit = np.full(joints, np.inf) if effort_limit is None else effort_limit
        first = replace(dynamics, columns=np.arange(parameters.shape[1]), values=parameters[0])
        first.forward_dynamics(self.q[0], self.dq[0], self.dq[0])  # names the joint of a singular mass matrix
        blocks = -(-len(parameters) // LANES)
        self._shape = blocks, -(-len(parameters) // blocks)
        self._laws, *varying = _find_laws(dynamics, parameters)
        self._robots = self._arrange(first, parameters, varying)
        self._dry = np.zeros((blocks, len(self._laws.weights), self._shape[1]))
        self._slip = np.zeros((blocks, len(self._laws.laws), self._shape[1]))
        self._pool: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        """Number of robots."""
        return len(self.q)

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy, which makes threads of its own."""
        return {**vars(self), "_pool": None}

    def place(self, robots: Mask, q: Array, dq: Array) -> None:
        """Place some robots, with the friction states of an unknown past.

        Args:
            robots: mask of the robots, shape (E,).
            q: their positions [rad or m], shape (k, n) or (n,).
            dq: their velocities [rad/s or m/s], shape (k, n) or (n,).
        """
        self.q[robots], self.dq[robots], self.diverged[robots] = q, dq, False
        lanes = self._blocked(robots)
        for states in (self._dry, self._slip):
            np.copyto(states, 0.0, where=lanes[:, None, :])

    def advance(self, effort: Array, duration: float) -> Array:
        """Advance all robots under constant torques in equal steps of at most `plant.STEP`.

        Args:
            effort: commanded torques [N m or N], shape (E, n).
            duration: duration [s].

        Returns:
            Torques limited by the motors [N m or N], shape (E, n).
        """
        applied = np.clip(effort, -self.effort_limit, self.effort_limit)
        count = count_steps(duration)
        q, dq, least = self._blocked(self.q), self._blocked(self.dq), np.empty(self._shape)
        state = State(q, dq, self._dry, self._slip)
        self._run((self._robots, self._blocked(applied), duration / count, count, state, least))
        after, speed, excess = self._unblocked(q), self._unblocked(dq), self._unblocked(least)
        self.diverged |= ~((excess > 0.0) & np.isfinite(after).all(axis=1) & np.isfinite(speed).all(axis=1))
        valid = ~self.diverged
        self.q[valid], self.dq[valid] = after[valid], speed[valid]
        return np.asarray(applied)

    def _run(self, arguments: tuple[Any, ...]) -> None:
        """Advance all blocks, an equal share of them in each thread."""
        blocks = self._shape[0]
        ends = np.linspace(0, blocks, min(self.threads, blocks) + 1).astype(int).tolist()
        if len(ends) == 2:
            advance_blocks(*arguments, *ends)
            return
        self._pool = self._pool or ThreadPoolExecutor(self.threads)
        parts = [self._pool.submit(advance_blocks, *(*arguments, *part)) for part in pairwise(ends)]
        for part in parts:
            part.result()

    def _arrange(self, first: Dynamics, parameters: Array, varying: list[Array]) -> Robots:
        """Robots for `advance_blocks`; `varying` as `_find_laws` returns it."""
        inertia, constant, stiffness, amplitudes, viscous, shares = varying
        row, column = np.tril_indices(self.q.shape[1])
        packed = inertia[:, row, column]
        slots = np.flatnonzero(packed.any(axis=0))
        bodies = len(first.regressor.model.body_names)
        laws = self._laws
        return Robots(
            first.body_tree,
            self._blocked(parameters[:, : 10 * bodies].reshape(-1, bodies, 10)),
            slots,
            self._blocked(packed[:, slots]),
            self._blocked(constant),
            self._blocked(stiffness),
            laws.waves,
            self._blocked(amplitudes),
            laws.weights,
            self._blocked(viscous),
            laws.starts,
            laws.laws,
            laws.loads,
            self._blocked(shares),
        )

    def _blocked(self, values: Array | Mask) -> Any:
        """Lanes of blocks, shape (B, ..., L), from values of the robots, (E, ...); the last one fills up."""
        missing = self._shape[0] * self._shape[1] - len(values)
        padded = np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
        return np.ascontiguousarray(np.moveaxis(padded.reshape(*self._shape, *values.shape[1:]), 1, -1))

    def _unblocked(self, blocks: Array) -> Array:
        """Values of the robots, shape (E, ...), from lanes of blocks, (B, ..., L)."""
        rows = np.moveaxis(blocks, -1, 1)
        return np.ascontiguousarray(rows.reshape(-1, *rows.shape[2:])[: len(self)])


def _find_laws(dynamics: Dynamics, parameters: Array) -> tuple[FrictionLaws, Array, Array, Array, Array, Array, Array]:
    """Structure of the terms of all robots, and what differs from one to another.

    The laws are linear in the parameters of the terms: those of each robot are sums over the parameters.

    Args:
        dynamics: robot and terms.
        parameters: all parameters of each robot, shape (E, c).

    Returns:
        Laws of a robot with all parameters that any of them has; then for each robot rotor inertia (E, n, n), constant
        torques (E, n), stiffness (E, n, n), amplitudes of waves (E, w), viscous friction (E, g, 2), torque of the other
        laws (E, m, 2).

    Raises:
        InputError: a term that cannot be simulated, or parameters that are not finite.
    """
    if not np.isfinite(parameters).all():
        raise InputError("the parameters of the robots must be finite numbers")
    pattern = np.any(parameters != 0.0, axis=0).astype(np.float64)

    def laws_of(values: Array) -> FrictionLaws:
        return FrictionLaws.from_dynamics(replace(dynamics, columns=np.arange(len(values)), values=values))

    def linear_parts(laws: FrictionLaws) -> tuple[Array, ...]:
        shares = laws.laws[:, [FIXED, LOADED]]
        return laws.inertia, laws.constant, laws.stiffness, laws.amplitudes, laws.viscous, shares

    structure, first = laws_of(pattern), 10 * len(dynamics.regressor.model.body_names)
    known = linear_parts(structure)
    sums = [np.zeros((len(parameters), *part.shape)) for part in known]
    for number in (first + np.flatnonzero(pattern[first:])).tolist():
        # once more than the pattern has it, as laws whose parameters are all zero would be left out
        more = linear_parts(laws_of(pattern + (np.arange(len(pattern)) == number)))
        for total, one, without in zip(sums, more, known, strict=True):
            total += np.multiply.outer(parameters[:, number], one - without)
    inertia, constant, stiffness, amplitudes, viscous, shares = sums
    return structure, inertia, constant, stiffness, amplitudes, viscous, shares
