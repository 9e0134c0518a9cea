# SPDX-License-Identifier: Apache-2.0
"""Weights of joints by the RMS of their residuals, and weighted solutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.factors import Factors, Solution

ROUNDING = 1e-12
"""Residuals below this share of the torque are rounding."""


def degrees_of_freedom(parameters: int, counts: Array | Integers) -> Array:
    """Degrees of freedom of each joint: its rows minus its share of the parameters, at least 1."""
    return np.asarray(np.maximum(counts - parameters * counts / max(1.0, float(counts.sum())), 1.0))


def compute_weights(factors: Factors, values: Array) -> Array:
    """Weights 1 / residual RMS, corrected for degrees of freedom, shape (n,).

    Residuals below the rounding of the torques count as that: columns of nothing but rounding would be information.
    """
    rounding = ROUNDING**2 * factors.squared_residuals(np.zeros_like(values))
    squares = np.maximum(factors.squared_residuals(values), rounding)
    return compute_weights_from_squares(squares, factors.parameters, factors.counts)


def compute_weights_from_squares(squares: Array, parameters: int, counts: Integers) -> Array:
    """Weights 1 / residual RMS from the sums of squared residuals of each joint, shape (n,)."""
    rms = np.sqrt(squares / degrees_of_freedom(parameters, counts))
    largest = rms.max(initial=0.0)
    return np.asarray(1.0 / np.maximum(rms, 1e-9 * largest if largest > 0 else 1.0))


def solve_reweighted(factors: Factors) -> tuple[Solution, Solution, Array]:
    """Solve weighted least squares by iterative reweighting of the joints.

    Returns:
        The ordinary solution, the weighted solution, and its weights, shape (n,).
    """
    ordinary = factors.solve(np.ones(len(factors.counts)))
    solution = ordinary
    weights = np.ones(len(factors.counts))
    for _ in range(4):
        weights = compute_weights(factors, solution.values)
        solution = factors.solve(weights)
    return ordinary, solution, weights


def refine_solution(problem: LinearProblem, solution: Solution, weights: Array, method: str) -> Solution:
    """Refine a solution of method `gram`, which has lost half of its digits, in one pass; others are returned as is."""
    if method != "gram":
        return solution
    gradient = np.zeros_like(solution.values)
    for tile in problem.tiles():
        support = problem.supports[tile.joint]
        residual = tile.block[-1] - solution.values[support] @ tile.block[:-1]
        gradient[support] += weights[tile.joint] ** 2 * (tile.block[:-1] @ residual)
    return replace(solution, values=solution.values + solution.inverse @ gradient)
