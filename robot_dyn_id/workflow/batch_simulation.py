# SPDX-License-Identifier: Apache-2.0
"""Many copies of an identified robot, stepped at once: with the estimate, or drawn from its uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.prediction.robot_draws import RobotDraws, draw_robots
from robot_dyn_id.identification.validation.passivity import report_driving_friction
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.batch_plant import BatchPlant
from robot_dyn_id.simulation.controllers import make_usable_dynamics

LONGEST_S = 60.0
"""Longest duration of one call [s]."""

REJECTED_SHARE = 0.5
"""Share of rejected draws above which a warning is issued [-]: most robots are then not of the normal distribution."""


class BatchSimulation:
    """E copies of an identified robot with n joints under commanded efforts, stepped at once on all cores.

    Example:
        ```python
        parameters = rdi.load_parameters("run/parameters.yaml")
        batch = rdi.BatchSimulation(parameters, 64, seed=0)  # 64 robots from the posterior
        for _ in range(10):
            effort = -5.0 * batch.q - 0.5 * batch.dq
            batch.step(effort, 0.01)
        print(batch.q.mean(axis=0), batch.q.std(axis=0))
        ```

    Steps, friction and its internal states are those of `simulate`. Without a seed all copies are the estimate; with
    one they are physically consistent draws from its uncertainty, see `draw_robots`. The same seed and number of
    robots give the same bits on any number of cores.

    Attributes:
        joint_names: names of the joints, n.
        effort_limit: effort limits of the URDF [N m or N], shape (n,); infinite for joints without a limit.
        draws: the drawn robots; None without a seed.
        effort: efforts that the motors applied in the last step [N m or N], shape (E, n).
        limited: mask of the efforts that were clipped to the limits in the last step, shape (E, n).
    """

    def __init__(
        self,
        parameters: ParameterSet,
        environments: int,
        seed: int | None = None,
        spread: float = 1.0,
        threads: int = 0,
    ) -> None:
        """Make the robots, at rest in the middle of the trained positions.

        Args:
            parameters: identified model.
            environments: number E of copies.
            seed: seed of the draws; None: every copy is the estimate.
            spread: factor of the standard deviations that robots are drawn with.
            threads: number of threads; 0: one per core.

        Raises:
            UsageError: no parameter set, no environments, or a value out of range.
            InputError: the verdict is bad, friction drives a joint within the trained speeds, the mass matrix is not
                positive definite within the trained positions, a term cannot be simulated, or no physically consistent
                robot can be drawn.

        Warns:
            UserWarning: more than half of the draws are rejected.
        """
        if not isinstance(parameters, ParameterSet):
            raise UsageError(f"parameters: {type(parameters).__name__}; give load_parameters(FILE)")
        check_copies(environments, seed)
        parameters.refuse_bad_verdict()
        self._dynamics = make_usable_dynamics(
            parameters, parameters.robot.urdf, parameters.robot.joint_names, needs_mass_matrix=True
        )
        middle = 0.5 * (parameters.ranges.q_min + parameters.ranges.q_max)
        for finding in report_driving_friction(self._dynamics, middle, parameters.ranges.dq_max):
            raise InputError(f"{finding.message}: simulated motions run away", finding.action)
        self.joint_names = parameters.robot.joint_names
        self.draws: RobotDraws | None = None
        values = np.tile(parameters.estimate.values, (environments, 1))
        if seed is not None:
            self.draws = draw_robots(parameters, environments, seed, spread)
            rejected = self.draws.rejected
            if rejected > REJECTED_SHARE * environments:
                warnings.warn(
                    f"{rejected} of {environments} draws were not physically consistent, and were replaced by draws "
                    "from the truncated distribution: the parameters are too uncertain for their normal distribution; "
                    "excite faster or longer, or give a smaller spread",
                    stacklevel=2,
                )
            values = self.draws.values
        full = np.zeros((environments, len(self._dynamics.regressor.names)))
        full[:, self._dynamics.columns] = values
        rated = self._dynamics.regressor.model.limits.effort
        self.effort_limit = np.where(np.isfinite(rated) & (rated > 0.0), rated, np.inf)
        self._values = values
        self._plant = BatchPlant(self._dynamics, full, middle, self.effort_limit, threads)
        self.effort = np.zeros_like(self.q)
        self.limited: Mask = np.zeros(self.q.shape, dtype=bool)

    def __len__(self) -> int:
        """Number of robots."""
        return len(self._plant)

    @property
    def q(self) -> Array:
        """Positions [rad or m], shape (E, n)."""
        return self._plant.q

    @property
    def dq(self) -> Array:
        """Velocities [rad/s or m/s], shape (E, n)."""
        return self._plant.dq

    @property
    def diverged(self) -> Mask:
        """Mask of the robots whose simulation has diverged, shape (E,); they keep their last state until a reset."""
        return self._plant.diverged

    @property
    def position_limits(self) -> tuple[Array, Array]:
        """Lower and upper position limits of the URDF [rad or m], shape (n,) each; the robots have no stops there."""
        limits = self._dynamics.regressor.model.limits
        return limits.lower, limits.upper

    @property
    def action_limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of the efforts [N m or N], shape (n,) each."""
        return -self.effort_limit, self.effort_limit

    def dynamics(self, environment: int) -> Dynamics:
        """Dynamics of one of the robots."""
        return replace(self._dynamics, values=self._values[environment])

    def reset(self, q: ArrayLike, dq: ArrayLike = 0.0, environments: ArrayLike | None = None) -> None:
        """Place robots, with the friction states of an unknown past.

        Args:
            q: positions [rad or m], shape (n,), or (k, n) for k robots.
            dq: velocities [rad/s or m/s], a number, or of shape (n,) or (k, n).
            environments: mask of the robots, shape (E,), or their numbers, shape (k,); all by default.

        Raises:
            UsageError: arrays of another shape, numbers that are not finite, or robots that do not exist.

        Warns:
            UserWarning: a position beyond the limits of the URDF.
        """
        chosen = select_robots(environments, len(self))
        shape = int(chosen.sum()), self.q.shape[1]
        states = [fit_states(value, name, shape) for name, value in (("q", q), ("dq", dq))]
        lower, upper = self.position_limits
        beyond = np.argwhere((states[0] < lower) | (states[0] > upper))
        if len(beyond):
            robot, joint = beyond[0].tolist()
            warnings.warn(
                f"q: {states[0][robot, joint]:g} of joint {self.joint_names[joint]} is beyond its limits "
                f"{lower[joint]:g} to {upper[joint]:g}: the simulation has no stops; give positions in rad or m",
                stacklevel=2,
            )
        self._plant.place(chosen, *states)

    def step(self, effort: ArrayLike, duration: float = 1e-3) -> Array:
        """Advance all robots under constant efforts; efforts beyond the limits are clipped.

        Args:
            effort: commanded efforts [N m or N], shape (E, n).
            duration: duration [s]; it is divided into equal steps of at most 1 ms.

        Returns:
            Efforts that the motors applied [N m or N], shape (E, n).

        Raises:
            UsageError: efforts of another shape or not finite, or a duration out of range.
        """
        given = read_commands(effort, "effort", duration, self.q.shape, self.joint_names)
        self.limited = np.abs(given) > self.effort_limit
        self.effort = self._plant.advance(given, duration)
        return self.effort


def check_copies(environments: int, seed: int | None) -> None:
    """Check a number of robots, and the seed that they are drawn from.

    Raises:
        UsageError: no robots, or a seed below zero.
    """
    if seed is not None and seed < 0:
        raise UsageError(f"seed: {seed}; give 0 or more, or None for copies of the estimate")
    if environments < 1:
        raise UsageError(f"environments: {environments}; give 1 or more")


def read_commands(
    values: ArrayLike, name: str, duration: float, shape: tuple[int, ...], joints: Sequence[str]
) -> Array:
    """Commands of all robots for a time, shape (E, n).

    Args:
        values: the commands.
        name: name of the argument, for errors.
        duration: time [s].
        shape: expected shape (E, n).
        joints: names of the joints.

    Raises:
        UsageError: commands of another shape or not finite, or a duration out of range.
    """
    if not 0.0 < duration <= LONGEST_S:
        raise UsageError(f"duration: {duration:g} s; give more than 0 and at most {LONGEST_S:g} s")
    given = np.array(values, dtype=np.float64)
    if given.shape != shape:
        raise UsageError(f"{name}: shape {given.shape}; give {shape}, one row per environment")
    wrong = np.argwhere(~np.isfinite(given))
    if len(wrong):
        environment, joint = wrong[0].tolist()
        raise UsageError(f"{name}: {given[environment, joint]} for joint {joints[joint]} of environment {environment}")
    return given


def select_robots(environments: ArrayLike | None, count: int) -> Mask:
    """Mask of some robots, shape (E,).

    Args:
        environments: mask of the robots, shape (E,), or their numbers, shape (k,); None: all.
        count: number E of robots.

    Raises:
        UsageError: robots that do not exist, or numbers that do not ascend.
    """
    chosen = np.ones(count, dtype=bool)
    if environments is None:
        return chosen
    given = np.asarray(environments)
    if given.dtype != bool and np.any(given < 0):
        raise UsageError("environments: the numbers of the robots begin at 0")
    try:
        chosen[:] = False
        chosen[given] = True
    except IndexError:
        raise UsageError(f"environments: give a mask of {count} robots, or their numbers") from None
    if given.dtype != bool and np.any(np.diff(given) <= 0):
        raise UsageError("environments: give the numbers of the robots in ascending order")
    return chosen


def fit_states(value: ArrayLike, name: str, shape: tuple[int, int]) -> Array:
    """A state of k robots, shape (k, n).

    Args:
        value: numbers that broadcast to it.
        name: name of the state, for messages.
        shape: k, n.

    Raises:
        UsageError: another shape, or numbers that are not finite.
    """
    given = np.asarray(value, dtype=np.float64)
    try:
        states = np.broadcast_to(given, shape)
    except ValueError:
        raise UsageError(f"{name}: shape {given.shape}; give ({shape[1]},) or {shape}") from None
    if not np.isfinite(states).all():
        raise UsageError(f"{name}: give finite numbers")
    return states
