"""A linear problem beside the same motion of a simulated robot, row by row; for estimators that simulate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.closed_loop import Controller, Replay
from robot_dyn_id.dataset import Array
from robot_dyn_id.dynamics import Dynamics
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators.consistent import nearest_robot
from robot_dyn_id.estimators.factors import Factors, Solution, kept
from robot_dyn_id.estimators.fitting import factors_of, inverse_rms
from robot_dyn_id.problem import LinearProblem, Origin, Tile
from robot_dyn_id.regressor import Regressor

SETTLED = 0.1
"""Change of the parameters, in standard errors of white residuals and in the mean over all of them, that is none."""

ROUNDING = 1e-9
"""Change of the predicted torques, as a share of the measured ones, that is none."""

MADE_CONSISTENT = (
    "the estimate is no robot that can be simulated (its mass matrix is not positive definite): the physically "
    "consistent robot nearest to it was simulated instead"
)


@dataclass(frozen=True)
class Replayed:
    """The problem with parts of its rows taken from simulations of the same instants.

    Columns are simulated without the steps of the encoders: of simulated noise they would be as biased as of measured.

    Attributes:
        measured: the problem, with the columns that depend on the direction of motion (friction) as simulated: of noisy
            velocities they would be wrong on average, which no instrument mends.
        simulated: columns as simulated, and the measured torques.
        linearised: columns as simulated; torques that the measured ones are more than the simulated, encoders in the
            loop, and what the columns give with the parameters of the simulation.
    """

    measured: LinearProblem
    simulated: LinearProblem
    linearised: LinearProblem

    @staticmethod
    def of(problem: LinearProblem, origin: Origin, controller: Controller, robot: Dynamics, values: Array) -> Replayed:
        """Simulate a robot with the base parameters `values` when the rows are walked; see `closed_loop.Replay`."""
        ideal = origin.along(Replay(replace(controller, resolution=()), robot))
        loop = origin.along(Replay(controller, robot)) if rough(controller) else ideal
        frictions = directed(origin.regressor)[origin.columns]

        def mixed(tile: Tile, other: Tile) -> Array:
            rows = np.append(frictions[problem.supports[tile.joint]], False)[:, None]
            return np.where(rows, other.block, tile.block)

        def linearised() -> Iterator[Tile]:
            for tile, told in zip(_beside(problem, ideal, _columns), loop.tiles(), strict=True):
                more = values[problem.supports[tile.joint]] @ tile.block[:-1] - told.block[-1]
                tile.block[-1] = np.where(kept(tile.block), tile.block[-1] + more, 0.0)
                yield tile

        return Replayed(
            replace(problem, tiles=lambda: _beside(problem, ideal, mixed)),
            replace(problem, tiles=lambda: _beside(problem, ideal, _columns)),
            replace(problem, tiles=linearised),
        )


def rough(controller: Controller) -> bool:
    """Whether encoders are simulated."""
    return any(step > 0.0 for _, step in controller.resolution)


def _columns(_tile: Tile, other: Tile) -> Array:
    """The columns of the second walk."""
    return other.block


def _beside(problem: LinearProblem, along: LinearProblem, mix: Callable[[Tile, Tile], Array]) -> Iterator[Tile]:
    """Columns made of those of two walks, and the torques and left out rows of the first."""
    for tile, other in zip(problem.tiles(), along.tiles(), strict=True):
        block = mix(tile, other)
        block[-1] = tile.block[-1]
        yield replace(tile, block=np.where(kept(tile.block), block, 0.0))


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


def within(factors: Factors, weights: Array, seen: Solution) -> Solution:
    """Weighted least squares in the directions that other rows show: a simulated joint is never quite still."""
    stack = factors.stack(weights)
    found = Solution.of(np.column_stack([stack[:, :-1] @ seen.root, stack[:, -1]]))
    root = seen.root @ found.root
    return replace(seen, values=seen.root @ found.values, inverse=root @ root.T, root=root)


def started(problem: LinearProblem, origin: Origin, seen: Solution) -> tuple[Factors, Array, Array]:
    """Rows along the reference, which has no noise and which the robot nearly follows; their solution and weights."""
    along = origin.along(lambda pieces: (replace(p, motion=p.reference or p.motion) for p in pieces))
    rows = factors_of(replace(problem, tiles=lambda: _beside(problem, along, _columns)))
    weights = inverse_rms(rows, within(rows, np.ones(len(rows.counts)), seen).values)
    return rows, within(rows, weights, seen).values, weights


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
        robot = Dynamics(origin.regressor, origin.columns, values)
        return _walked(Replayed.of(problem, origin, controller, robot, values)), told
    except (InputError, ConvergenceError):
        if problem.prior is None:
            raise
    full, notes = nearest_robot(problem.prior, origin.regressor, factors.root(weights), values)
    robot = Dynamics(origin.regressor, np.arange(len(full)), full)
    nearest = Replayed.of(problem, origin, controller, robot, problem.prior.mapping @ full)
    return _walked(nearest), (MADE_CONSISTENT, *notes)


def _walked(replayed: Replayed) -> Replayed:
    """Walk once, so that a robot that cannot be simulated is found out."""
    for _ in replayed.linearised.tiles():
        pass
    return replayed


def moved(change: Array, factors: Factors, weights: Array) -> float:
    """Size of a change of the parameters in standard errors of white residuals; 0 where it is rounding."""
    stack = factors.stack(weights)
    square = float(np.sum((stack[:, :-1] @ change) ** 2))
    return 0.0 if square <= ROUNDING**2 * float(np.sum(stack[:, -1] ** 2)) else math.sqrt(square / len(change))
