"""A linear problem beside the same motion of a simulated robot, row by row; for estimators that simulate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.closed_loop import Controller, Replay
from robot_dyn_id.dataset import Array
from robot_dyn_id.dynamics import Dynamics
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators.consistent import nearest_robot
from robot_dyn_id.estimators.factors import Factors, kept
from robot_dyn_id.problem import LinearProblem, Origin, Tile
from robot_dyn_id.regressor import Regressor

SETTLED = 0.05
"""Change of the parameters, in standard errors of white residuals and in the mean over all of them, that is none."""

ROUNDING = 1e-9
"""Change of the predicted torques, as a share of the measured ones, that is none."""

MADE_CONSISTENT = (
    "the estimate is no robot that can be simulated (its mass matrix is not positive definite): the physically "
    "consistent robot nearest to it was simulated instead"
)


@dataclass(frozen=True)
class Replayed:
    """The problem with parts of its rows taken from a simulation of the same instants.

    Attributes:
        measured: the problem, with the columns that depend on the direction of motion (friction) as simulated: of noisy
            velocities they would be wrong on average, which no instrument mends.
        simulated: columns as simulated, and the measured torques.
    """

    measured: LinearProblem
    simulated: LinearProblem

    @staticmethod
    def of(problem: LinearProblem, origin: Origin, controller: Controller, robot: Dynamics) -> Replayed:
        """Simulate when the rows are walked; see `closed_loop.Replay` for what that may raise."""
        along = origin.along(Replay(controller, robot))
        frictions = directed(origin.regressor)[origin.columns]

        def paired(mix: Callable[[Tile, Tile], Array]) -> Callable[[], Iterator[Tile]]:
            def walk() -> Iterator[Tile]:
                for tile, other in zip(problem.tiles(), along.tiles(), strict=True):
                    block = mix(tile, other)
                    block[-1] = tile.block[-1]
                    yield replace(tile, block=np.where(kept(tile.block), block, 0.0))

            return walk

        def measured(tile: Tile, other: Tile) -> Array:
            rows = np.append(frictions[problem.supports[tile.joint]], False)[:, None]
            return np.where(rows, other.block, tile.block)

        return Replayed(
            replace(problem, tiles=paired(measured)), replace(problem, tiles=paired(lambda tile, other: other.block))
        )


def directed(regressor: Regressor) -> NDArray[np.bool_]:
    """Which columns change when a motion turns round at the same acceleration: viscous and dry friction, shape (c,)."""
    y, dy, ddy = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 16))
    found = np.zeros(len(regressor.names), dtype=bool)
    inertial = len(found) - len(regressor.term_columns)
    for number, column in enumerate(regressor.term_columns):
        there, back = (column.term.columns(y, sign * dy, ddy)[column.index] for sign in (1.0, -1.0))
        found[inertial + number] = not np.array_equal(there, back)
    return found


def require(name: str, problem: LinearProblem, controller: Controller) -> Origin:
    """What the robot is simulated from.

    Raises:
        UsageError: no controller is told, gains of joints that the robot has not, or rows without a robot.
    """
    if problem.origin is None:
        raise UsageError(f"{name}: rows without a robot cannot be simulated")
    if not controller.law:
        raise UsageError(
            f"{name}: which controller moved the robot? Tell it with its gains, for example estimator: {{name: {name}, "
            "controller: {law: computed_torque, proportional: 400, derivative: 40}}"
        )
    for key in ("proportional", "derivative", "resolution"):
        controller.of_joints(key, problem.joint_names)
    return problem.origin


def simulate(
    problem: LinearProblem, origin: Origin, controller: Controller, values: Array, factors: Factors, weights: Array
) -> tuple[Replayed, tuple[str, ...]]:
    """The motion of the robot of some base parameters, or of the consistent one nearest to them, and a note of that.

    Raises:
        ConvergenceError: neither of them follows.
        InputError: they cannot be simulated, and there is no prior to find a nearest robot with.
    """
    told: tuple[str, ...] = ()
    try:
        return _walked(problem, origin, controller, Dynamics(origin.regressor, origin.columns, values)), told
    except (InputError, ConvergenceError):
        if problem.prior is None:
            raise
    full, notes = nearest_robot(problem.prior, origin.regressor, factors.root(weights), values)
    every = np.arange(len(origin.regressor.names))
    return _walked(problem, origin, controller, Dynamics(origin.regressor, every, full)), (MADE_CONSISTENT, *notes)


def _walked(problem: LinearProblem, origin: Origin, controller: Controller, robot: Dynamics) -> Replayed:
    """Walk once, so that a robot that cannot be simulated is found out."""
    replayed = Replayed.of(problem, origin, controller, robot)
    for _ in replayed.simulated.tiles():
        pass
    return replayed


def check_iterations(name: str, iterations: Any) -> None:
    """Refuse none at all.

    Raises:
        UsageError: less than 1.
    """
    if iterations < 1:
        raise UsageError(f"{name}: iterations must be 1 or more, not {iterations}")


def settled(change: Array, factors: Factors, weights: Array) -> bool:
    """Whether a change of the parameters is none, see `SETTLED` and `ROUNDING`."""
    stack = factors.stack(weights)
    moved = float(np.sum((stack[:, :-1] @ change) ** 2))
    return moved <= max(SETTLED**2 * len(change), ROUNDING**2 * float(np.sum(stack[:, -1] ** 2)))
