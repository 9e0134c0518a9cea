# SPDX-License-Identifier: Apache-2.0
"""Many copies of a robot whose drives follow commanded positions, with identified actuators or drawn ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robot_dyn_id.actuators.draws import draw_actuators
from robot_dyn_id.actuators.drives import CommandedDrives
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.rollout import split_into_limbs
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.workflow.actuators import ActuatorResult
from robot_dyn_id.workflow.batch_simulation import check_copies, fit_states, read_commands, select_robots


class CommandedSimulation:
    """E copies of a robot with n joints under position commands.

    Example:
        ```python
        result = rdi.identify_actuators(
            robot, rdi.open_recording("commanded.npz"), held_out=rdi.open_recording("commanded_other.npz")
        )
        batch = rdi.CommandedSimulation(result, 8, seed=0)  # 8 robots from the uncertainty
        for _ in range(20):
            batch.step(np.full((8, 3), 0.2), 0.02)
        print(batch.q.mean(axis=0), batch.q.std(axis=0))
        ```

    The motion is that of the simulations of `identify_actuators`: delays reach back to earlier commands. Without a seed
    all copies have the estimated actuators; with one they are drawn from their uncertainty, see `draw_actuators`.

    Attributes:
        joint_names: names of the joints, n.
        actuators: actuators of each copy.
        q: positions [rad or m], shape (E, n).
        dq: velocities [rad/s or m/s], shape (E, n).
        effort: mean efforts of the drives in the last step [N m or N], shape (E, n).
        limited: mask of the drives that were at their limit in the last step, shape (E, n).
        diverged: mask of the robots whose simulation has diverged, shape (E,); they keep their last state until a
            reset.
    """

    def __init__(self, result: ActuatorResult, environments: int, seed: int | None = None, spread: float = 1.0) -> None:
        """Make the robots, at rest in the middle of their position limits, at zero where a joint has none.

        Args:
            result: identified actuators.
            environments: number E of copies.
            seed: seed of the draws; None: every copy has the estimated actuators.
            spread: factor of the standard deviations that actuators are drawn with.

        Raises:
            UsageError: no result, no environments, or a seed out of range.
            InputError: the actuators are not fit for simulation, or an interval is infinite.
        """
        if not isinstance(result, ActuatorResult):
            raise UsageError(f"result: {type(result).__name__}; give that of identify_actuators")
        check_copies(environments, seed)
        result.actuator_set.refuse_unfit()
        self.joint_names, self._model = result.model.joint_names, result.model
        self.actuators: list[ActuatorModel] = [result.actuators] * environments
        if seed is not None:
            self.actuators = draw_actuators(result.actuators, result.estimate.uncertainty, environments, seed, spread)
        middle = 0.5 * np.add(*self.position_limits)
        self.q = np.tile(np.where(np.isfinite(middle), middle, 0.0), (environments, 1))
        self.dq, self.effort = np.zeros_like(self.q), np.zeros_like(self.q)
        self.limited: Mask = np.zeros(self.q.shape, dtype=bool)
        self.diverged: Mask = np.zeros(environments, dtype=bool)
        limbs = split_into_limbs(result.model)
        self._drives = [
            CommandedDrives(*one) for one in zip(self.actuators, [limbs] * environments, self.q, strict=True)
        ]

    def __len__(self) -> int:
        """Number of robots."""
        return len(self.q)

    @property
    def position_limits(self) -> tuple[Array, Array]:
        """Lower and upper position limits of the URDF [rad or m], shape (n,) each; stops are those of the actuators."""
        return self._model.limits.lower, self._model.limits.upper

    @property
    def action_limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of sensible commands [rad or m], shape (n,) each: the position limits."""
        return self.position_limits

    def reset(self, q: ArrayLike, dq: ArrayLike = 0.0, environments: ArrayLike | None = None) -> None:
        """Place robots, whose drives have been commanded to their positions before.

        Args:
            q: positions [rad or m], shape (n,), or (k, n) for k robots.
            dq: velocities [rad/s or m/s], a number, or of shape (n,) or (k, n).
            environments: mask of the robots, shape (E,), or their numbers, shape (k,); all by default.

        Raises:
            UsageError: arrays of another shape, numbers that are not finite, or robots that do not exist.
        """
        chosen = select_robots(environments, len(self))
        shape = int(chosen.sum()), self.q.shape[1]
        self.q[chosen], self.dq[chosen] = fit_states(q, "q", shape), fit_states(dq, "dq", shape)
        for robot in np.flatnonzero(chosen).tolist():
            self._drives[robot].restart(self.q[robot])
        self.diverged[chosen] = False

    def step(self, reference: ArrayLike, duration: float = 1e-3) -> Array:
        """Advance all robots under commanded positions, which are held.

        Args:
            reference: commanded positions [rad or m], shape (E, n).
            duration: duration [s].

        Returns:
            Mean efforts of the drives [N m or N], shape (E, n).

        Raises:
            UsageError: positions of another shape or not finite, or a duration out of range.
        """
        given = read_commands(reference, "reference", duration, self.q.shape, self.joint_names)
        for robot in np.flatnonzero(~self.diverged).tolist():
            drives = self._drives[robot]
            try:
                self.effort[robot] = drives.advance(self.q[robot], self.dq[robot], given[robot], duration)
            except InputError:
                self.diverged[robot] = True
            self.limited[robot] = drives.limited
        return self.effort
