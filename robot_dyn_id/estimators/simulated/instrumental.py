# SPDX-License-Identifier: Apache-2.0
"""Instrumental variables: the errors of noisy positions are in the columns, those of a simulated robot are not.

IDIM-IV (Janot, Vandanjon and Gautier 2014): theta = (Z' W)^-1 Z' tau, with the columns Z of a simulated robot that has
the parameters of the step before and follows the same reference under the same controller. Noise of W is not in Z, so
that it does not bias the estimate as it biases least squares, where it is in W' W.

What is wrong on average with W is mended before: friction columns of a noisy velocity, positions that a loop with
encoders holds at the edges of their steps, the filters' share. A simulated robot in the same loop is recorded as the
real one was; what its torques are more than its rows give is taken off the measured torques.
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
from robot_dyn_id.estimators.simulated.fixed_point import Simulating, replaying, settled, within
from robot_dyn_id.estimators.simulated.replayed import Replayed

WEAKEST = 1e-3
"""Least agreement of instruments with any direction of the motion, 1 where they are the same."""


@dataclass(frozen=True)
class Instrumental(Simulating):
    """`weighted` with the columns of a simulated robot as instruments.

    Standard deviations are the larger ones of two sandwiches with the instruments in them: that of `weighted`, for
    stationary residuals of any memory, and one that assumes nothing of them but a memory of a second, see `newey_west`.
    Correlations are those of the first.
    """

    name: ClassVar[str] = "instrumental"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is told, or one of other joints.
            InputError: the robot cannot be simulated.
            ConvergenceError: it does not follow, the simulated motion tells nothing of the recorded one, or nothing
                settles.
        """
        plain = compress_rows(problem)
        seen = plain.solve(np.ones(len(plain.counts)))
        found = settled(
            self.name, problem, seen, self.controller, self.iterations, replaying(problem, self.controller),
            lambda replayed: replayed.measured, self._solve,
        )  # fmt: skip
        noise, covariance = compute_larger_sandwich(
            found.simulated.measured, found.simulated.simulated, found.values, found.bread, found.weights,
            self.autoregressive_order,
        )  # fmt: skip
        solution = replace(seen, values=found.values)
        return replace(
            Estimate.from_solution(problem, found.rows, seen, solution, covariance, noise), findings=found.findings
        )

    @staticmethod
    def _solve(replayed: Replayed, rows: Factors, weights: Array, ordinary: Solution) -> tuple[Array, Array]:
        """The estimate, and G of G sum w^2 Z' tau, in the directions that the measured columns show.

        Raises:
            ConvergenceError: the instruments do not tell a direction that the motion shows.
        """
        root = within(rows, weights, ordinary).root
        size = len(root)
        cross, moment = np.zeros((size, size)), np.zeros(size)
        pairs = zip(replayed.measured.tiles(), replayed.simulated.tiles(), strict=True)
        for tile, other in pairs:
            support, square = replayed.measured.supports[tile.joint], weights[tile.joint] ** 2
            products = square * (other.block[:-1] @ tile.block.T)
            cross[np.ix_(support, support)] += products[:, :-1]
            moment[support] += products[:, -1]
        shown = root.T @ cross @ root
        if len(shown) and not np.linalg.svd(shown, compute_uv=False)[-1] > WEAKEST:
            raise ConvergenceError(
                "instrumental: the simulated motion is too unlike the recorded one: check the gains of the controller, "
                "and give the recording its reference"
            )
        bread = root @ np.linalg.solve(shown, root.T)
        return bread @ moment, bread
