# SPDX-License-Identifier: Apache-2.0
"""One robot simulated from many states at once, with the same parameters and efforts of their own."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.kernels.stepping import State, advance_lanes, dry_friction
from robot_dyn_id.simulation.plant import STEP, CompiledDynamics, count_steps, make_smallest_dynamics


class PlantLanes:
    """L simulations of one robot with n joints, advanced together as vectors of the processor; see `Plant`.

    Attributes:
        q: positions [rad or m], shape (n, L), changed in place.
        dq: velocities [rad/s or m/s], shape (n, L), changed in place.
        diverged: mask of the simulations that have diverged, shape (L,); their states are zero.
    """

    def __init__(self, dynamics: CompiledDynamics, q: Array, dq: Array, slip: Array) -> None:
        """Place the robots.

        Args:
            dynamics: compiled dynamics of the robot.
            q: positions [rad or m], shape (n, L).
            dq: velocities [rad/s or m/s], shape (n, L).
            slip: states of the friction laws, shape (m, L).
        """
        self._dynamics = dynamics
        self.q, self.dq, self._slip = (np.array(x, dtype=np.float64, order="C") for x in (q, dq, slip))
        self._dry = np.zeros((dynamics.coordinates, q.shape[1]))
        self.diverged: Mask = np.zeros(q.shape[1], dtype=bool)
        self._robots = dynamics.lanes(q.shape[1])

    def take(self, lanes: Mask) -> None:
        """Continue with some of the simulations, mask of shape (L,)."""
        if lanes.all():
            return
        for name in ("q", "dq", "_slip", "_dry", "diverged"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., lanes]))
        self._robots = self._dynamics.lanes(len(self.diverged))

    def advance(self, effort: Array, duration: float) -> None:
        """Advance all simulations under constant torques in equal steps of at most `plant.STEP`.

        Args:
            effort: torques of the motors [N m or N], shape (n, L).
            duration: duration [s].
        """
        count, least = count_steps(duration), np.empty(len(self.diverged))
        state = State(self.q, self.dq, self._dry, self._slip)
        advance_lanes(self._robots, np.ascontiguousarray(effort), duration / count, count, state, least)
        valid = (least > 0.0) & np.isfinite(self.q).all(axis=0) & np.isfinite(self.dq).all(axis=0)
        if not valid.all():
            self.diverged |= ~valid
            for values in (self.q, self.dq, self._dry, self._slip):
                values[:, self.diverged] = 0.0


def warm_up_lanes() -> None:
    """Compile the simulation of several states at once with a minimal robot."""
    compiled = CompiledDynamics(make_smallest_dynamics())
    two = np.ones((1, 2))
    PlantLanes(compiled, two, two, np.repeat(compiled.slip()[:, None], 2, axis=1)).advance(two, STEP)


def warm_up_dry_friction() -> None:
    """Compile the part of it that takes longest after the dynamics, which another process can do in parallel."""
    one, zero = np.ones(1), np.zeros(1)
    dry_friction(STEP, one, one[:, None], np.ones((1, 2)), np.array([0, 1]), np.ones((1, 6)), one, one, zero, zero)
