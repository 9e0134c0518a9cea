# SPDX-License-Identifier: Apache-2.0
"""Solution of the steps of a plan in order; parameters of earlier steps are known with their covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.stepwise.equations import MIN_RESIDUAL_RATIO, Equations, Group
from robot_dyn_id.estimators.stepwise.plan import StepwisePlan

MIN_SINGULAR_VALUE_RATIO = 1e-7
"""Singular values of unit-norm columns below this share of the largest belong to directions that are not excited."""

REWEIGHTING_PASSES = 4
"""Number of iterations of the weights by the residuals of each equation, as in `weighted`."""


@dataclass(frozen=True)
class StepwiseSolution:
    """Parameters identified step by step.

    Attributes:
        values: parameters, shape (p,); NaN if not identified by the plan.
        covariance: covariance, shape (p, p); zero in rows and columns of parameters that are not identified.
        standard_deviations: one sigma, shape (p,); infinite for parameters that are not identified.
        residual_rms: RMS of the residuals of each equation, by name.
        plan: the plan.
    """

    values: Array
    covariance: Array = field(repr=False)
    standard_deviations: Array
    residual_rms: dict[str, float]
    plan: StepwisePlan


def determine(rows: Array, unknown: Integers, values: Array, covariance: Array) -> tuple[Array, Array]:
    """Solve least squares for some parameters; all others are known with their covariance.

    With W = [U K], U x + K k = z + e, A the pseudo-inverse of U and G = A K: x = A z - G k has the covariance
    A A' + G C G' and the cross-covariance -G C with k. In directions that are not excited, x is zero (minimum norm).

    Args:
        rows: rows [W z] with noise of unit variance in z, shape (N, p + 1).
        unknown: indices of the parameters to determine; their given values and covariance are ignored.
        values: values of all parameters, shape (p,); 0 for those that are not known and do not appear.
        covariance: covariance of all parameters, shape (p, p).

    Returns:
        Values and covariance of all parameters, new arrays.
    """
    values = values.copy()
    covariance = covariance.copy()
    values[unknown] = 0.0
    covariance[unknown] = covariance[:, unknown] = 0.0
    norms = np.linalg.norm(rows[:, unknown], axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    inverse = np.linalg.pinv(rows[:, unknown] / scale, rcond=MIN_SINGULAR_VALUE_RATIO) / scale[:, None]
    values[unknown] = inverse @ (rows[:, -1] - rows[:, :-1] @ values)
    gain = -(inverse @ rows[:, :-1]) @ covariance
    own = inverse @ inverse.T - gain @ (inverse @ rows[:, :-1]).T
    covariance[unknown] = gain
    covariance[:, unknown] = gain.T
    covariance[np.ix_(unknown, unknown)] = own
    return values, covariance


def solve_steps(
    plan: StepwisePlan, groups: Sequence[Group], equations: Sequence[Equations], parameters: int
) -> StepwiseSolution:
    """Solve the steps of a plan.

    Within a step every equation is weighted by its residual. The covariance holds for white residuals.

    Args:
        plan: plan by `plan_steps` or `prescribed_plan`.
        groups: groups of the plan.
        equations: equations of the recorded data, with the names of the plan.
        parameters: number of parameters p.

    Raises:
        InputError: an equation of the plan is missing, or a step has no more rows than parameters.
    """
    by_name = {one.name: one for one in equations}
    columns_of = {group.name: group.columns for group in groups}
    values = np.zeros(parameters)
    covariance = np.zeros((parameters, parameters))
    rms: dict[str, float] = {}
    found = np.zeros(parameters, dtype=bool)
    for step in plan.steps:
        missing = [name for name in step.equations if name not in by_name]
        if missing:
            raise InputError(f"{', '.join(step.groups)}: no data for {missing[0]}; record them, or plan without")
        used = [by_name[name] for name in step.equations]
        unknown = np.sort(np.concatenate([columns_of[name] for name in step.groups]))
        values, covariance, residuals = _solve_step(used, step.groups, unknown, values, covariance)
        found[unknown] = True
        rms |= dict(zip(step.equations, residuals, strict=True))
    sigma = np.where(found, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.inf)
    return StepwiseSolution(np.where(found, values, np.nan), covariance, sigma, rms, plan)


def _solve_step(
    used: Sequence[Equations], names: Sequence[str], unknown: Integers, values: Array, covariance: Array
) -> tuple[Array, Array, list[float]]:
    """Values and covariance of all parameters, and residual RMS of each equation."""
    stacks = [one.expand(len(values)) for one in used]
    counts = np.array([one.count for one in used], dtype=np.float64)
    if counts.sum() <= len(unknown):
        raise InputError(f"{', '.join(names)}: {counts.sum():.0f} rows for {len(unknown)} parameters; record more")
    left = np.array([np.linalg.norm(stack[:, -1]) for stack in stacks])
    floor = MIN_RESIDUAL_RATIO * np.maximum(left, left.max() or 1.0)
    freedom = np.sqrt(counts * (1.0 - len(unknown) / counts.sum()))
    sigma = np.ones(len(used))
    for _ in range(1 + REWEIGHTING_PASSES):
        rows = np.concatenate([stack / s for stack, s in zip(stacks, sigma, strict=True)])
        new, spread = determine(rows, unknown, values, covariance)
        norms = np.array([np.linalg.norm(stack @ np.append(new, -1.0)) for stack in stacks])
        sigma = np.maximum(norms, floor) / freedom
    return new, spread, (norms / np.sqrt(counts)).tolist()
