# SPDX-License-Identifier: Apache-2.0
"""One joint after the other, from the last to the first; what a joint's rows tell is known to those after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.feasible_gls import solve_whitened
from robot_dyn_id.estimators.stepwise import Observability, determine
from robot_dyn_id.options import CheckedOptions, OptionRanges, Range


@dataclass(frozen=True)
class Stepwise(CheckedOptions):
    """`generalized`, joint by joint, those with the fewest unknown parameters first: the last joint of an arm.

    Its parameters are taken as known, with their covariance, in the rows of the others. Rows of a joint that do not
    tell all of its unknowns wait for the next joint's. A proximal joint whose torque is wrong does not spoil the
    distal links; where every joint's torque is right, `generalized` uses all rows for all parameters and is better.

    Attributes:
        autoregressive_order: past rows that a residual is predicted from.
        passes: whitening passes.
    """

    autoregressive_order: int = 6
    passes: int = 2

    name: ClassVar[str] = "stepwise"
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "autoregressive_order": Range(0),
        "passes": Range(1),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        found = solve_whitened(problem, self.autoregressive_order, self.passes, "qr", solve_joint_by_joint)
        return found.make_estimate(problem)


def solve_joint_by_joint(factors: Factors, weights: Array) -> Solution:
    """The parameters of rows of unit noise once weighted; a joint's rows count for its own unknowns only."""
    size = factors.parameters
    values, covariance, known = np.zeros(size), np.zeros((size, size)), np.zeros(size, dtype=bool)
    left = set(range(len(factors.supports)))
    waiting, wanted = np.zeros((0, size + 1)), np.zeros(size, dtype=bool)
    while left:
        joint = min(left, key=lambda j: (np.count_nonzero(~known[factors.supports[j]]), -j))
        left.remove(joint)
        rows = np.zeros((len(factors.triangles[joint]), size + 1))
        rows[:, np.append(factors.supports[joint], size)] = factors.triangles[joint] * weights[joint]
        waiting = np.concatenate([waiting, rows])
        wanted[factors.supports[joint]] = True
        unknown = np.flatnonzero(wanted & ~known)
        seen = Observability.from_rows(waiting[:, unknown])
        if not left or seen.rank == seen.columns:
            values, covariance = determine(waiting, unknown, values, covariance)
            known[unknown] = True
            waiting = waiting[:0]
    ordinary = factors.solve(weights)
    sizes, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(sizes, 0.0))
    return Solution(values, covariance, ordinary.condition_number, ordinary.unexcited, root)
