# SPDX-License-Identifier: Apache-2.0
"""Stepwise estimator: joint by joint from the last to the first; identified parameters are known in later steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.feasible_gls import solve_whitened
from robot_dyn_id.estimators.stepwise import Equations, Group, Observability, StepwisePlan, determine, plan_steps
from robot_dyn_id.options import CheckedOptions, Choice, Count, Order

MAX_STEP_CONDITION_NUMBER = 100.0
"""Condition number of unit-norm columns above which a joint's own rows do not determine its parameters: noise gives
columns without excitation full rank, and later joints would inherit what is found from it."""


@dataclass(frozen=True)
class Stepwise(CheckedOptions):
    """`generalized` joint by joint, joints with the fewest unknown parameters first: the last joint of an arm.

    Identified parameters are known, with their covariance, in the rows of later joints. Rows with a condition number
    above `MAX_STEP_CONDITION_NUMBER` do not determine all unknowns of a joint: they are solved together with those of
    the next joint. Wrong torques of a proximal joint leave the
    distal links unaffected; if all torques are correct, `generalized` uses all rows for all parameters and is better.

    Attributes:
        autoregressive_order: AR order of the noise model.
        passes: number of whitening passes.
        order: `joints`, or `planned`: groups of parameters by rank and condition number, see `plan_steps`, where all
            torques are as good as each other.
    """

    autoregressive_order: Order = 6
    passes: Count = 2
    order: Annotated[str, Choice(("joints", "planned"))] = "joints"

    name: ClassVar[str] = "stepwise"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        solve = solve_joint_by_joint if self.order == "joints" else solve_as_planned
        found = solve_whitened(problem, self.autoregressive_order, self.passes, "qr", solve)
        return found.make_estimate(problem)


def solve_joint_by_joint(factors: Factors, weights: Array) -> Solution:
    """Solve weighted rows of unit noise joint by joint; a joint's rows determine its own unknowns only.

    Rows in which all parameters appear for every joint have no order: they are solved at once.
    """
    size = factors.parameters
    if all(len(support) == size for support in factors.supports):
        return factors.solve(weights)
    values = np.zeros(size)
    covariance = np.zeros((size, size))
    known = np.zeros(size, dtype=bool)
    left = set(range(len(factors.supports)))
    waiting = np.zeros((0, size + 1))
    wanted = np.zeros(size, dtype=bool)
    while left:
        joint = min(left, key=lambda j: (np.count_nonzero(~known[factors.supports[j]]), -j))
        left.remove(joint)
        rows = np.zeros((len(factors.triangles[joint]), size + 1))
        rows[:, np.append(factors.supports[joint], size)] = factors.triangles[joint] * weights[joint]
        waiting = np.concatenate([waiting, rows])
        wanted[factors.supports[joint]] = True
        unknown = np.flatnonzero(wanted & ~known)
        observability = Observability.from_rows(waiting[:, unknown])
        if not left or observability.condition_numbers["columns"] <= MAX_STEP_CONDITION_NUMBER:
            values, covariance = determine(waiting, unknown, values, covariance)
            known[unknown] = True
            waiting = waiting[:0]
    return _solution(factors, weights, values, covariance)


def plan_joints(factors: Factors, weights: Array) -> tuple[StepwisePlan, tuple[Group, ...], list[Equations]]:
    """Plan the steps of an arm: groups are the parameters in the rows of the same joints, those of a link of a chain.

    Args:
        factors: white rows.
        weights: weight of each joint, shape (n,).

    Returns:
        The plan, the groups, and the weighted equations of each joint.
    """
    size = factors.parameters
    present = np.array([np.isin(np.arange(size), support) for support in factors.supports])
    patterns, group_of = np.unique(present.T, axis=0, return_inverse=True)
    groups = tuple(
        Group(f"group {number}", np.flatnonzero(group_of.ravel() == number)) for number in range(len(patterns))
    )
    equations = [
        Equations(f"joint {joint}", "joints", np.asarray(support), triangle * weight, int(count))
        for joint, (support, triangle, weight, count) in enumerate(
            zip(factors.supports, factors.triangles, weights, factors.counts, strict=True)
        )
    ]
    return plan_steps(groups, [equations], size), groups, equations


def solve_as_planned(factors: Factors, weights: Array) -> Solution:
    """Solve weighted rows of unit noise in the steps of a plan; groups without a step from all rows at the end."""
    size = factors.parameters
    plan, groups, equations = plan_joints(factors, weights)
    columns = {group.name: group.columns for group in groups}
    rows = {one.name: one.expand(size) for one in equations}
    values, covariance = np.zeros(size), np.zeros((size, size))
    steps = [(step.groups, step.equations) for step in plan.steps]
    if plan.unidentifiable:
        steps.append((plan.unidentifiable, tuple(rows)))
    for names, used in steps:
        unknown = np.sort(np.concatenate([columns[name] for name in names]))
        values, covariance = determine(np.concatenate([rows[name] for name in used]), unknown, values, covariance)
    return _solution(factors, weights, values, covariance)


def _solution(factors: Factors, weights: Array, values: Array, covariance: Array) -> Solution:
    """Solution with the diagnostics of least squares of all rows."""
    ordinary = factors.solve(weights)
    sizes, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(sizes, 0.0))
    return Solution(values, covariance, ordinary.condition_number, ordinary.unexcited, root)
