# SPDX-License-Identifier: Apache-2.0
"""Output error: the torques of a simulated robot are fitted to the measured ones.

DIDIM (Gautier, Janot and Vandanjon 2013): the robot is simulated under its controller along the reference, and only
torques are compared, so that noise of the measured positions plays no part. In closed loop the simulated motion hardly
depends on the parameters, and the slopes of the simulated torques are the columns of the simulated motion: each
Gauss-Newton step is a linear least squares problem. With encoders in the loop the simulated torque has noise of its
own, which is not in the columns; steps smaller than a standard error are averaged (Robbins and Monro 1951).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import compress_rows
from robot_dyn_id.estimators.sandwich import compute_sandwich
from robot_dyn_id.estimators.simulated.fixed_point import Simulating, least_squares, replaying, settled


@dataclass(frozen=True)
class OutputError(Simulating):
    """`weighted` on the columns of a simulated robot that the estimate itself belongs to.

    The covariance is that of `weighted` on those columns, a sandwich.
    """

    name: ClassVar[str] = "output_error"

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is told, or one of other joints.
            InputError: the robot cannot be simulated.
            ConvergenceError: it does not follow, or nothing settles.
        """
        plain = compress_rows(problem)
        seen = plain.solve(np.ones(len(plain.counts)))
        found = settled(
            self.name, problem, seen, self.controller, self.iterations, replaying(problem, self.controller),
            lambda replayed: replayed.linearised, least_squares,
        )  # fmt: skip
        noise, covariance = compute_sandwich(
            found.simulated.linearised, found.values, found.bread, found.weights, self.autoregressive_order
        )
        solution = replace(seen, values=found.values)
        return replace(
            Estimate.from_solution(problem, found.rows, seen, solution, covariance, noise), findings=found.findings
        )
