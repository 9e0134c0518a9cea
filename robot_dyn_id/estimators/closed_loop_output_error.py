"""Closed-loop output error: the positions of a simulated robot are fitted to the measured ones.

CLOE (Landau and Karimi 1997; for robots Janot, Gautier, Jubien and Vandanjon 2014): the robot is simulated under its
controller along the reference, and only positions are compared; no torque is used but for what `conclude` tells of the
fit. The slopes are differences of simulations, one for each parameter, so that it takes as many times as long as
`output_error`. A controller that follows well makes all robots move alike: then positions tell little, and it is for
comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.closed_loop import Controller, Replay
from robot_dyn_id.dataset import Array, remembered
from robot_dyn_id.dynamics import Dynamics
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import kept
from robot_dyn_id.estimators.fitting import conclude, factors_of, sandwich
from robot_dyn_id.estimators.replayed import read
from robot_dyn_id.estimators.settling import Robot, Simulating, least_squares, settled
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening
from robot_dyn_id.problem import LinearProblem, Smooth, Tile

STEP = 1e-4
"""Of a parameter for a slope, in torques it makes as a share of all torques: far above rounding, far below a curve."""


@dataclass(frozen=True)
class ClosedLoopOutputError(Simulating):
    """`weighted` on positions, with the slopes of simulated positions as columns.

    The covariance is that of `weighted` on those columns, a sandwich.
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
        plain = factors_of(problem)
        seen = plain.solve(np.ones(len(plain.counts)))
        norms = np.linalg.norm(plain.stack(np.ones(len(plain.counts))), axis=0)
        steps = STEP * norms[-1] / np.where(norms[:-1] > 0.0, norms[:-1], np.inf)

        def make(robot: Robot) -> LinearProblem:
            positions = followed(problem, robot, self.controller, steps)
            for _ in positions.tiles():  # a robot that cannot be simulated is found out
                pass
            return positions

        found = settled(
            self.name, problem, seen, self.controller, self.iterations, make, lambda rows: rows, least_squares
        )
        order = self.autoregressive_order
        _, covariance = sandwich(found.simulated, found.values, found.bread, found.weights, order)
        lagged = LaggedGrams.of(problem, order)
        noise = fit_whitening(lagged.residual(found.values), lagged.counts).noise_rms
        solution = replace(seen, values=found.values)
        return replace(conclude(problem, plain, seen, solution, covariance, noise), notes=found.notes)


def followed(problem: LinearProblem, robot: Robot, controller: Controller, steps: Array) -> LinearProblem:
    """Positions as a linear problem: what the measured are more than the simulated, and the slopes of the simulated.

    Args:
        problem: the recorded rows.
        robot: the simulated robot.
        controller: of it; slopes are those without the steps of encoders.
        steps: of the parameters for slopes, 0 for those without, shape (p,).
    """
    ideal = replace(controller, resolution=())
    bare = robot.origin.problem_of(robot.origin.regressor, robot.origin.columns[:0]).origin  # no columns are needed
    assert bare is not None
    walked = bare.along

    def along(law: Controller, dynamics: Dynamics) -> LinearProblem:
        replay = Replay(law, dynamics)
        return walked(lambda pieces: _positions(read(replay(pieces), robot.origin, law)))

    measured, loop, middle = walked(_positions), along(controller, robot.dynamics), along(ideal, robot.dynamics)
    moved = [along(ideal, robot.changed(i, step)) if step > 0.0 else None for i, step in enumerate(steps)]

    def tiles() -> Iterator[Tile]:
        walks = [one.tiles() for one in moved if one is not None]
        for tile, aim, told, here, *there in zip(
            problem.tiles(), measured.tiles(), loop.tiles(), middle.tiles(), *walks, strict=True
        ):
            block = np.zeros((len(steps) + 1, tile.block.shape[1]))
            for row, step, other in zip(np.flatnonzero(steps), steps[steps > 0.0], there, strict=True):
                block[row] = (other.block[-1] - here.block[-1]) / step
            block[-1] = aim.block[-1] - told.block[-1] + robot.values @ block[:-1]
            yield replace(tile, block=np.where(kept(tile.block), block, 0.0))

    walk = remembered(tiles, lambda tile: tile.block.nbytes)  # simulated once; who walks may change what is handed out
    every = np.arange(len(steps))
    return replace(
        problem,
        supports=tuple(every for _ in problem.supports),
        tiles=lambda: (replace(tile, block=tile.block.copy()) for tile in walk()),
    )


def _positions(pieces: Iterable[Smooth]) -> Iterator[Smooth]:
    """Windows with positions in the place of torques."""
    for piece in pieces:
        yield replace(piece, tau=piece.motion.q)
