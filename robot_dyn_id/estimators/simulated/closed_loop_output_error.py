# SPDX-License-Identifier: Apache-2.0
"""Closed-loop output error: the positions of a simulated robot are fitted to the measured ones.

CLOE (Landau and Karimi 1997; for robots Janot, Gautier, Jubien and Vandanjon 2014): the robot is simulated under its
controller along the reference, and only positions are compared; torques are used for
the reported residuals only. The slopes are finite differences of simulations, one for each parameter; robots that are
nearly the same share them. A controller that follows well makes all robots move alike; then positions carry little
information, and the estimator is for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.cache import Cache
from robot_dyn_id.data.stream import RepeatableStream
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.newey_west import compute_larger_sandwich
from robot_dyn_id.estimators.simulated.fixed_point import Robot, SimulationEstimator, solve_weighted
from robot_dyn_id.estimators.simulated.replayed import simulate_encoder_readings
from robot_dyn_id.estimators.weighting import compute_weights
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.closed_loop import ControllerModel, Replay

DIFFERENCE_RATIO = 1e-5
"""Step of a finite difference, in the torque it causes relative to the joints' torques: far above rounding, and small
also for the inertia of a last joint, most of whose torque is friction."""

SAME_SLOPES_RATIO = 0.01
"""Difference of the torques of two robots, relative to the torques, up to which they share the slopes of positions:
these are then wrong by about as much, and so is a step, which the next one corrects."""

TRANSIENT_S = 1.0
"""Rows of this time at the beginning of a segment are excluded: the initial state of the robot and its controller is
known from filtered positions only, and its effect takes a while to decay."""


@dataclass(frozen=True)
class ClosedLoopOutputError(SimulationEstimator):
    """`weighted` on positions, with the slopes of simulated positions as columns.

    The covariance is that of `weighted` on those columns, a sandwich, enlarged for noise whose variance changes with
    the motion, as that of encoders does.
    """

    name: ClassVar[str] = "closed_loop_output_error"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is specified, one of other joints, or computed torque.
            InputError: the robot cannot be simulated.
            ConvergenceError: the simulated robot does not follow, or the parameters do not converge.
        """
        if self.controller.law == "computed_torque":
            raise UsageError(
                "closed_loop_output_error: under computed torque, whose law contains the robot's own model, all robots "
                "move alike, and positions carry no information: use output_error"
            )
        plain = compress_rows(problem)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        equal_joints = compute_weights(plain, np.zeros(len(ordinary.values)))  # however large their torques are
        step = PositionStep(self.controller, plain.stack(equal_joints))
        found = self.iterate(self.require_recorded(problem), ordinary, step)
        order = self.autoregressive_order
        _, covariance = compute_larger_sandwich(
            found.simulation, found.simulation, found.values, found.bread, found.weights, order
        )
        lagged = LaggedGrams.from_problem(problem, order)
        noise = fit_whitening(lagged.residual_autocovariance(found.values), lagged.counts).noise_rms
        solution = replace(ordinary, values=found.values)
        return replace(
            Estimate.from_solution(problem.names, plain, ordinary, solution, covariance, noise), findings=found.findings
        )


@dataclass
class PositionStep:
    """Step of `ClosedLoopOutputError`; see `fixed_point.SimulationStep`.

    Attributes:
        controller: controller of the robot.
        stack: compressed rows of all joints and their torques, shape (any, p + 1).
    """

    controller: ControllerModel
    stack: Array
    _slopes: PositionSlopes | None = field(default=None, init=False, repr=False)

    def simulate(self, robot: Robot) -> LinearProblem:
        """See `SimulationStep.simulate`."""
        norms = np.linalg.norm(self.stack, axis=0)
        last = self._slopes
        change = np.inf if last is None else np.linalg.norm(self.stack[:, :-1] @ (robot.values - last.values))
        if last is None or change > SAME_SLOPES_RATIO * norms[-1]:
            steps = DIFFERENCE_RATIO * norms[-1] / np.where(norms[:-1] > 0.0, norms[:-1], np.inf)
            last = self._slopes = PositionSlopes.from_differences(robot, self.controller, steps)
        positions = position_problem(robot, self.controller, last)
        for _ in positions.tiles():  # a robot that cannot be simulated raises here
            pass
        return positions

    def rows(self, simulation: LinearProblem) -> LinearProblem:
        """See `SimulationStep.rows`."""
        return simulation

    def solve(
        self, simulation: LinearProblem, rows: Factors, weights: Array, ordinary: Solution
    ) -> tuple[Array, Array]:
        """See `SimulationStep.solve`."""
        return solve_weighted(rows, weights, ordinary)


@dataclass(frozen=True)
class PositionSlopes:
    """Slopes of the positions of a simulated robot without the resolution of encoders.

    Attributes:
        values: base parameters of the robot, shape (p,).
        blocks: starts a pass over the slopes in the rows of each of the problem's tiles, shape (p, N).
    """

    values: Array
    blocks: Callable[[], Iterator[Array]]

    @classmethod
    def from_differences(cls, robot: Robot, controller: ControllerModel, steps: Array) -> PositionSlopes:
        """Finite differences of simulations.

        Args:
            robot: the simulated robot.
            controller: its controller.
            steps: change of each parameter, 0 for those without a slope, shape (p,).
        """
        law = replace(controller, resolution=())
        nominal = simulate_positions(robot, law, robot.dynamics)
        changed = [
            simulate_positions(robot, law, robot.with_change(i, steps[i])) for i in np.flatnonzero(steps).tolist()
        ]

        def blocks() -> Iterator[Array]:
            for tile, here, *there in zip(
                robot.problem.tiles(), nominal.tiles(), *(one.tiles() for one in changed), strict=True
            ):
                block = np.zeros((len(steps), tile.block.shape[1]))
                for row, other in zip(np.flatnonzero(steps), there, strict=True):
                    block[row] = (other.block[-1] - here.block[-1]) / steps[row]
                yield block

        cache: Cache[Array] = Cache()
        return cls(robot.values, lambda: cache.stream("slopes", blocks, lambda block: block.nbytes))


def position_problem(robot: Robot, controller: ControllerModel, slopes: PositionSlopes) -> LinearProblem:
    """Positions as a linear problem: measured minus simulated positions, and the slopes of the simulated ones.

    Args:
        robot: the simulated robot.
        controller: its controller.
        slopes: slopes of its positions.
    """
    problem = robot.problem
    measured = make_problem_of_positions(robot, problem.windows)
    loop = simulate_positions(robot, controller, robot.dynamics)
    first = round(TRANSIENT_S * problem.rate)

    def tiles() -> Iterator[Tile]:
        passed: dict[tuple[int, int], int] = {}
        for tile, target, simulated, slope in zip(
            problem.tiles(), measured.tiles(), loop.tiles(), slopes.blocks(), strict=True
        ):
            difference = target.block[-1] - simulated.block[-1] + robot.values @ slope
            rows = passed.get((tile.segment, tile.joint), 0) + np.arange(len(difference))
            passed[tile.segment, tile.joint] = int(rows[-1]) + 1
            used = find_used_rows(tile.block) & (rows >= first)
            yield replace(tile, block=np.where(used, np.vstack([slope, difference]), 0.0))

    cache: Cache[Tile] = Cache()  # simulated once; the receiver of a tile may change it, hence the copies

    def copies() -> Iterator[Tile]:
        for tile in cache.stream("positions", tiles, lambda tile: tile.block.nbytes):
            yield replace(tile, block=tile.block.copy())

    supports = (np.arange(len(robot.values)),) * len(problem.supports)
    return replace(problem, supports=supports, tiles=copies)


def simulate_positions(robot: Robot, law: ControllerModel, dynamics: Dynamics) -> LinearProblem:
    """Positions under a controller, as its encoders read them, in the place of torques.

    Args:
        robot: robot whose rows are followed.
        law: the controller.
        dynamics: dynamics that are simulated.
    """
    replay = Replay(law, dynamics, robot.problem.windows)
    return make_problem_of_positions(robot, simulate_encoder_readings(replay, robot.problem, law))


def make_problem_of_positions(robot: Robot, windows: Iterable[FilteredWindow]) -> LinearProblem:
    """The problem without columns, with the positions of some windows in the place of torques."""
    bare = robot.problem.with_columns(robot.problem.regressor, robot.problem.columns[:0])
    positions = RepeatableStream(lambda: (replace(window, tau=window.motion.q) for window in windows))
    assert isinstance(bare, type(robot.problem))
    return bare.with_motion(positions)
