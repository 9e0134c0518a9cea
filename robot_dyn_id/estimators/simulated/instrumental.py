# SPDX-License-Identifier: Apache-2.0
"""Instrumental variables: the columns of a simulated robot are free of the noise of the measured positions.

IDIM-IV (Janot, Vandanjon and Gautier 2014): theta = (Z' W)^-1 Z' tau, with the columns Z of a simulated robot that has
the parameters of the previous step and follows the same reference under the same controller. Noise of W is not in Z, so
that it does not bias the estimate as it biases least squares, where it is in W' W.

Systematic errors of W are corrected first: friction columns of a noisy velocity, positions that a loop with encoders
holds at the edges of their steps, the effect of the filters. A simulated robot in the same loop is recorded as the real
one was; the difference between its torques and those of its rows is subtracted from the measured torques.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.newey_west import compute_larger_sandwich
from robot_dyn_id.estimators.simulated.fixed_point import SimulationEstimator, solve_within
from robot_dyn_id.estimators.simulated.output_error import TorqueStep
from robot_dyn_id.estimators.simulated.replayed import Replayed

MIN_INSTRUMENT_CORRELATION = 1e-3
"""Minimum agreement of the instruments with every direction of the motion; 1 where they are equal."""


@dataclass(frozen=True)
class Instrumental(SimulationEstimator):
    """`weighted` with the columns of a simulated robot as instruments.

    Standard deviations are the larger of two sandwiches with the instruments in them: that of `weighted`, for
    stationary residuals of any memory, and one that only assumes residuals to be uncorrelated after a second, see
    `newey_west`. Correlations are those of the first.
    """

    name: ClassVar[str] = "instrumental"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is specified, or one of other joints.
            InputError: the robot cannot be simulated.
            ConvergenceError: the simulated robot does not follow, its motion is unlike the recorded one, or the
                parameters do not converge.
        """
        plain = compress_rows(problem)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        found = self.iterate(self.require_recorded(problem), ordinary, InstrumentStep(self.controller))
        noise, covariance = compute_larger_sandwich(
            found.simulation.measured,
            found.simulation.simulated,
            found.values,
            found.bread,
            found.weights,
            self.autoregressive_order,
        )
        solution = replace(ordinary, values=found.values)
        return replace(
            Estimate.from_solution(problem.names, found.rows, ordinary, solution, covariance, noise),
            findings=found.findings,
        )


class InstrumentStep(TorqueStep):
    """Step of `Instrumental`; see `fixed_point.SimulationStep`."""

    def rows(self, simulation: Replayed) -> LinearProblem:
        """See `SimulationStep.rows`."""
        return simulation.measured

    def solve(self, simulation: Replayed, rows: Factors, weights: Array, ordinary: Solution) -> tuple[Array, Array]:
        """See `SimulationStep.solve`; the bread is G of G sum w^2 Z' tau in the excited directions.

        Raises:
            ConvergenceError: the instruments do not determine a direction that the motion excites.
        """
        root = solve_within(rows, weights, ordinary).root
        size = len(root)
        cross, moment = np.zeros((size, size)), np.zeros(size)
        pairs = zip(simulation.measured.tiles(), simulation.simulated.tiles(), strict=True)
        for tile, other in pairs:
            support, square = simulation.measured.supports[tile.joint], weights[tile.joint] ** 2
            products = square * (other.block[:-1] @ tile.block.T)
            cross[np.ix_(support, support)] += products[:, :-1]
            moment[support] += products[:, -1]
        shown = root.T @ cross @ root
        if len(shown) and not np.linalg.svd(shown, compute_uv=False)[-1] > MIN_INSTRUMENT_CORRELATION:
            raise ConvergenceError(
                "instrumental: the simulated motion is too unlike the recorded one: check the gains of the controller, "
                "and give the recording its reference"
            )
        bread = root @ np.linalg.solve(shown, root.T)
        return bread @ moment, bread
