# SPDX-License-Identifier: Apache-2.0
"""Output error: the torques of a simulated robot are fitted to the measured ones.

DIDIM (Gautier, Janot and Vandanjon 2013): the robot is simulated under its controller along the reference, and only
torques are compared, so that noise of the measured positions has no effect. In closed loop the simulated motion hardly
depends on the parameters, and the slopes of the simulated torques are the columns of the simulated motion: each
Gauss-Newton step is a linear least squares problem. With encoders in the loop the simulated torque has noise of its
own, which is not in the columns; steps smaller than a standard error are averaged (Robbins and Monro 1951).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.sandwich import compute_sandwich
from robot_dyn_id.estimators.simulated.fixed_point import Robot, SimulationEstimator, solve_weighted
from robot_dyn_id.estimators.simulated.replayed import Replayed
from robot_dyn_id.simulation.closed_loop import ControllerModel


@dataclass(frozen=True)
class OutputError(SimulationEstimator):
    """`weighted` on the columns of a simulated robot that has the estimated parameters.

    The covariance is that of `weighted` on those columns, a sandwich.
    """

    name: ClassVar[str] = "output_error"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is specified, or one of other joints.
            InputError: the robot cannot be simulated.
            ConvergenceError: the simulated robot does not follow, or the parameters do not converge.
        """
        plain = compress_rows(problem)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        found = self.iterate(self.require_recorded(problem), ordinary, TorqueStep(self.controller))
        noise, covariance = compute_sandwich(
            found.simulation.linearized, found.values, found.bread, found.weights, self.autoregressive_order
        )
        solution = replace(ordinary, values=found.values)
        return replace(
            Estimate.from_solution(problem.names, found.rows, ordinary, solution, covariance, noise),
            findings=found.findings,
        )


@dataclass(frozen=True)
class TorqueStep:
    """Step of `OutputError`; see `fixed_point.SimulationStep`.

    Attributes:
        controller: controller of the robot.
    """

    controller: ControllerModel

    def simulate(self, robot: Robot) -> Replayed:
        """See `SimulationStep.simulate`."""
        replayed = Replayed.from_robot(robot.problem, self.controller, robot.dynamics, robot.values)
        for _ in replayed.linearized.tiles():  # a robot that cannot be simulated raises here
            pass
        return replayed

    def rows(self, simulation: Replayed) -> LinearProblem:
        """See `SimulationStep.rows`."""
        return simulation.linearized

    def solve(self, simulation: Replayed, rows: Factors, weights: Array, ordinary: Solution) -> tuple[Array, Array]:
        """See `SimulationStep.solve`."""
        return solve_weighted(rows, weights, ordinary)
