# SPDX-License-Identifier: Apache-2.0
"""Closed-loop output error: the positions of a simulated robot are fitted to the measured ones.

CLOE (Landau and Karimi 1997; for robots Janot, Gautier, Jubien and Vandanjon 2014): the robot is simulated under its
controller along the reference, and only positions are compared; no torque is used but for what `conclude` tells of the
fit. The slopes are differences of simulations, one for each parameter; robots that are nearly the same share them. A
controller that follows well makes all robots move alike: then positions tell little, and it is for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.cache import remembered
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import LinearProblem, Smooth, Tile
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import compress_rows, find_used_rows
from robot_dyn_id.estimators.newey_west import compute_larger_sandwich
from robot_dyn_id.estimators.simulated.fixed_point import Robot, Simulating, least_squares, settled
from robot_dyn_id.estimators.simulated.replayed import read
from robot_dyn_id.estimators.weighting import compute_weights
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.simulation.closed_loop import ControllerModel, Replay

STEP = 1e-5
"""Of a parameter for a slope, in torques it makes as a share of their joints' torques: far above rounding, and small
also for the inertia of a last joint, most of whose torque is friction."""

ALIKE = 0.01
"""Share of the torques by which robots may differ whose positions have the same slopes: these are then off by about as
much, and so is a step, which the next one mends."""

FORGOTTEN = 1.0
"""Rows of so long [s] at the beginning of a segment are left out: the state that the robot and its controller begin
with is known from filtered positions only, and a loop takes a while to forget it."""


@dataclass(frozen=True)
class ClosedLoopOutputError(Simulating):
    """`weighted` on positions, with the slopes of simulated positions as columns.

    The covariance is that of `weighted` on those columns, a sandwich, made larger where noise that comes and goes with
    the motion asks for it, as that of encoders does.
    """

    name: ClassVar[str] = "closed_loop_output_error"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is told, one of other joints, or computed torque.
            InputError: the robot cannot be simulated.
            ConvergenceError: it does not follow, or nothing settles.
        """
        if self.controller.law == "computed_torque":
            raise UsageError(
                "closed_loop_output_error: under computed torque, whose law has the robot's own model, all robots move "
                "alike, and positions tell nothing: use output_error"
            )
        plain = compress_rows(problem)
        seen = plain.solve(np.ones(len(plain.counts)))
        stack = plain.stack(
            compute_weights(plain, np.zeros(len(seen.values)))
        )  # joints alike, however large their torques
        norms = np.linalg.norm(stack, axis=0)
        steps = STEP * norms[-1] / np.where(norms[:-1] > 0.0, norms[:-1], np.inf)
        last: Slopes | None = None

        def make(robot: Robot) -> LinearProblem:
            nonlocal last
            change = np.inf if last is None else np.linalg.norm(stack[:, :-1] @ (robot.values - last.values))
            if last is None or change > ALIKE * norms[-1]:
                last = Slopes.of(problem, robot, self.controller, steps)
            positions = followed(problem, robot, self.controller, last)
            for _ in positions.tiles():  # a robot that cannot be simulated is found out
                pass
            return positions

        found = settled(
            self.name, problem, seen, self.controller, self.iterations, make, lambda rows: rows, least_squares
        )
        order = self.autoregressive_order
        _, covariance = compute_larger_sandwich(
            found.simulated, found.simulated, found.values, found.bread, found.weights, order
        )
        lagged = LaggedGrams.from_problem(problem, order)
        noise = fit_whitening(lagged.residual_autocovariance(found.values), lagged.counts).noise_rms
        solution = replace(seen, values=found.values)
        return replace(
            Estimate.from_solution(problem, plain, seen, solution, covariance, noise), findings=found.findings
        )


@dataclass(frozen=True)
class Slopes:
    """Of the positions of a simulated robot without the steps of encoders.

    Attributes:
        values: base parameters of the robot, shape (p,).
        blocks: walks over the slopes in the rows of each of the problem's tiles, shape (p, N).
    """

    values: Array
    blocks: Callable[[], Iterator[Array]]

    @staticmethod
    def of(problem: LinearProblem, robot: Robot, controller: ControllerModel, steps: Array) -> Slopes:
        """Differences of simulations.

        Args:
            problem: the recorded rows.
            robot: the simulated robot.
            controller: of it.
            steps: of the parameters for slopes, 0 for those without, shape (p,).
        """
        law = replace(controller, resolution=())
        middle = simulated_positions(robot, law, robot.dynamics)
        moved = [simulated_positions(robot, law, robot.changed(i, steps[i])) for i in np.flatnonzero(steps).tolist()]

        def blocks() -> Iterator[Array]:
            for tile, here, *there in zip(
                problem.tiles(), middle.tiles(), *(one.tiles() for one in moved), strict=True
            ):
                block = np.zeros((len(steps), tile.block.shape[1]))
                for row, other in zip(np.flatnonzero(steps), there, strict=True):
                    block[row] = (other.block[-1] - here.block[-1]) / steps[row]
                yield block

        return Slopes(robot.values, remembered(blocks, lambda block: block.nbytes))


def followed(problem: LinearProblem, robot: Robot, controller: ControllerModel, slopes: Slopes) -> LinearProblem:
    """Positions as a linear problem: what the measured are more than the simulated, and the slopes of the simulated."""
    measured = along(robot, _positions)
    loop = simulated_positions(robot, controller, robot.dynamics)
    first = round(FORGOTTEN * problem.rate)

    def tiles() -> Iterator[Tile]:
        passed: dict[tuple[int, int], int] = {}
        for tile, aim, told, slope in zip(
            problem.tiles(), measured.tiles(), loop.tiles(), slopes.blocks(), strict=True
        ):
            more = aim.block[-1] - told.block[-1] + robot.values @ slope
            rows = passed.get((tile.segment, tile.joint), 0) + np.arange(len(more))
            passed[tile.segment, tile.joint] = int(rows[-1]) + 1
            used = find_used_rows(tile.block) & (rows >= first)
            yield replace(tile, block=np.where(used, np.vstack([slope, more]), 0.0))

    walk = remembered(tiles, lambda tile: tile.block.nbytes)  # simulated once; who walks may change what is handed out
    return replace(
        problem,
        supports=(np.arange(len(robot.values)),) * len(problem.supports),
        tiles=lambda: (replace(tile, block=tile.block.copy()) for tile in walk()),
    )


def simulated_positions(robot: Robot, law: ControllerModel, dynamics: Dynamics) -> LinearProblem:
    """Of some dynamics under a controller, as its encoders read them, in the place of torques."""
    replay = Replay(law, dynamics)
    return along(robot, lambda pieces: _positions(read(replay(pieces), robot.origin, law)))


def along(robot: Robot, windows: Callable[[Iterable[Smooth]], Iterator[Smooth]]) -> LinearProblem:
    """The problem without columns of windows made of the recorded ones."""
    bare = robot.origin.problem_of(robot.origin.regressor, robot.origin.columns[:0]).origin
    assert bare is not None
    return bare.along(windows)


def _positions(pieces: Iterable[Smooth]) -> Iterator[Smooth]:
    """Windows with positions in the place of torques."""
    for piece in pieces:
        yield replace(piece, tau=piece.motion.q)
