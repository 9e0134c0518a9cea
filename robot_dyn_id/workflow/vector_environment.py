# SPDX-License-Identifier: Apache-2.0
"""A vector environment of Gymnasium: many copies of an identified robot under commanded efforts or positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import UsageError
from robot_dyn_id.workflow.batch_simulation import LONGEST_S, BatchSimulation
from robot_dyn_id.workflow.commanded_simulation import CommandedSimulation

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

    NEXT_STEP = AutoresetMode.NEXT_STEP
except ImportError:  # the classes can be imported, and say what is missing when they are used
    gymnasium, VectorEnv, NEXT_STEP = None, object, None

Reward = Callable[[Array, Array, Array], Array]
"""Function of q, dq and effort, shape (E, n) each, to the rewards, shape (E,)."""

Start = Callable[[np.random.Generator, int], tuple[Array, Array]]
"""Function of a random generator and a number k of robots to their q and dq, shape (k, n) each."""


@dataclass(frozen=True)
class Episodes:
    """Course of the episodes of a vector environment.

    Example:
        ```python
        def start(rng, count):
            return rng.uniform(-0.1, 0.1, (count, 3)), np.zeros((count, 3))

        batch = rdi.BatchSimulation(rdi.load_parameters("run/parameters.yaml"), 4)
        short = rdi.Episodes(period=0.02, steps=50, start=start)
        environment = rdi.RobotVectorEnv(batch, lambda q, dq, effort: -np.abs(q).sum(axis=1), short)
        print(environment.reset(seed=0)[0])
        ```

    Attributes:
        period: time between two actions [s].
        steps: number of actions after which an episode is truncated.
        start: initial states; None: at rest, where the robots of the batch were when the environment was made.
        autoreset: mode in which episodes that have ended begin again.
    """

    period: float = 0.01
    steps: int = 1000
    start: Start | None = None
    autoreset: AutoresetMode = NEXT_STEP

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a period or a number of steps out of range.
        """
        if not 0.0 < self.period <= LONGEST_S:
            raise UsageError(f"period: {self.period:g} s; give more than 0 and at most {LONGEST_S:g} s")
        if self.steps < 1:
            raise UsageError(f"steps: {self.steps}; give 1 or more")


class RobotVectorEnv(VectorEnv):  # type: ignore[misc]
    """Gymnasium vector environment of E simulated robots with n joints, without a task of its own.

    Example:
        ```python
        batch = rdi.BatchSimulation(rdi.load_parameters("run/parameters.yaml"), 16, seed=0)
        environment = rdi.RobotVectorEnv(batch, lambda q, dq, effort: -np.sum(q**2 + 0.1 * dq**2, axis=1))
        observations, info = environment.reset(seed=1)
        for _ in range(10):
            actions = environment.action_space.sample()
            observations, rewards, terminated, truncated, info = environment.step(actions)
        ```

    Actions are efforts [N m or N], shape (E, n), of which those beyond the limits are clipped, or with a
    `CommandedSimulation` commanded positions [rad or m] within the position limits. Observations are positions and
    velocities, shape (E, 2 n), `float32`. An episode is terminated where a joint leaves the position limits of the
    URDF or the simulation diverges, and truncated after `Episodes.steps` actions. `info` has `effort` (applied, shape
    (E, n)), `limited` (mask of the clipped efforts, (E, n)) and `diverged` (E,), with the masks `_effort`, ... of the
    environments that acted.

    `reset(seed)` seeds the initial states; the robots themselves were drawn by the seed of the batch.

    Attributes:
        batch: the robots.
        episodes: course of the episodes.
    """

    def __init__(
        self, batch: BatchSimulation | CommandedSimulation, reward: Reward, episodes: Episodes | None = None
    ) -> None:
        """Make the environment.

        Args:
            batch: the robots; they belong to the environment from now on.
            reward: reward of the states after a step and the efforts during it.
            episodes: course of the episodes.

        Raises:
            UsageError: Gymnasium is not installed.
        """
        if gymnasium is None:
            raise UsageError("vector environments need Gymnasium: pip install 'robot-dyn-id[gym]'")
        self.batch, self.episodes, self._reward = batch, episodes or Episodes(), reward
        self.num_envs, joints = batch.q.shape
        lowest, highest = (limit.astype(np.float32) for limit in batch.action_limits)
        self.single_action_space = gymnasium.spaces.Box(lowest, highest, dtype=np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2 * joints,), dtype=np.float32)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.metadata = {"autoreset_mode": self.episodes.autoreset, "render_modes": []}
        self._home = batch.q.copy()
        self._age = np.zeros(self.num_envs, dtype=np.int64)
        self._ended: Mask = np.ones(self.num_envs, dtype=bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: seed of the initial states.
            options: `reset_mask`: mask of the environments that begin an episode, shape (E,); all by default.

        Raises:
            UsageError: a mask of another shape, or initial states that do not fit.
        """
        super().reset(seed=seed)
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise UsageError(f"reset_mask: give {self.num_envs} truth values")
        self._begin(mask)
        return self._observe(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Mask, Mask, dict[str, Any]]:
        """Apply actions for one period.

        Raises:
            UsageError: actions of another shape or not finite, or an episode has ended and autoreset is disabled.
        """
        mode, fresh = self.episodes.autoreset, self._ended.copy()
        if fresh.any() and mode != AutoresetMode.NEXT_STEP:
            raise UsageError(f"environment {int(np.argmax(fresh))} has no episode: reset it")
        self.batch.step(actions, self.episodes.period)
        self._age += 1
        if fresh.any():  # their actions were for the episode that had ended
            self._begin(fresh)
        q, dq, effort = self.batch.q, self.batch.dq, np.where(fresh[:, None], 0.0, self.batch.effort)
        rewards = np.asarray(self._reward(q, dq, effort), dtype=np.float64)
        if rewards.shape != (self.num_envs,):
            raise UsageError(f"reward: shape {rewards.shape}; return one number for each of {self.num_envs} robots")
        rewards = np.where(fresh, 0.0, rewards)
        lower, upper = self.batch.position_limits
        diverged = self.batch.diverged.copy()
        terminated = (((q < lower) | (q > upper)).any(axis=1) | diverged) & ~fresh
        truncated = (self._age >= self.episodes.steps) & ~fresh
        self._ended = terminated | truncated
        values = {"effort": effort, "limited": self.batch.limited & ~fresh[:, None], "diverged": diverged}
        info: dict[str, Any] = {**values, **{f"_{name}": ~fresh for name in values}}
        if mode == AutoresetMode.SAME_STEP and self._ended.any():
            ended = self._ended.copy()
            final = np.full(self.num_envs, None, dtype=object)
            observed = self._observe()
            for number in np.flatnonzero(ended).tolist():
                final[number] = observed[number]
            info |= {"final_obs": final, "_final_obs": ended, "final_info": values, "_final_info": ended}
            self._begin(ended)
        return self._observe(), rewards, terminated, truncated, info

    def _begin(self, mask: Mask) -> None:
        """Begin the episodes of some environments, shape (E,)."""
        self._age[mask], self._ended[mask] = 0, False
        count = int(mask.sum())
        if self.episodes.start is None:
            self.batch.reset(self._home[mask], 0.0, mask)
        elif count:
            q, dq = self.episodes.start(self.np_random, count)
            self.batch.reset(q, dq, mask)

    def _observe(self) -> Array:
        """Observations, shape (E, 2 n)."""
        return np.concatenate([self.batch.q, self.batch.dq], axis=1).astype(np.float32)
