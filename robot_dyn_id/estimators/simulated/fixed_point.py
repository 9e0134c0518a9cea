# SPDX-License-Identifier: Apache-2.0
"""Simulations and least squares in turn: what estimators share that simulate the robot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import LinearProblem, Origin
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators.consistent import Consistent
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.simulated.replayed import Replayed, beside, rough, simulated_columns
from robot_dyn_id.estimators.weighting import compute_weights
from robot_dyn_id.options import CheckedOptions, OptionRanges, Range
from robot_dyn_id.simulation.closed_loop import UNKNOWN_CONTROLLER, ControllerModel

T = TypeVar("T")

SETTLED = 0.1
"""Change of the parameters, in standard errors of white residuals and in the mean over all of them, that is none."""

ROUNDING = 1e-9
"""Change of the predicted torques, as a share of the measured ones, that is none."""

MADE_CONSISTENT = (
    "the estimate is no robot that can be simulated (its mass matrix is not positive definite): the physically "
    "consistent robot nearest to it was simulated instead"
)


@dataclass(frozen=True)
class Simulating(CheckedOptions):
    """Options of estimators that simulate the robot.

    Attributes:
        controller: what moved the robot.
        iterations: simulations after which it is given up.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
    """

    controller: ControllerModel = UNKNOWN_CONTROLLER
    iterations: int = 20
    autoregressive_order: int = 6

    name: ClassVar[str]
    uses_prior: ClassVar[bool] = False
    option_ranges: ClassVar[OptionRanges] = {
        "iterations": Range(1),
        "autoregressive_order": Range(0),
    }


@dataclass(frozen=True)
class Robot:
    """What is simulated.

    Attributes:
        origin: of the rows.
        columns: of the regressor that parameters are given of.
        parameters: of those columns.
        values: its base parameters, shape (p,).
    """

    origin: Origin
    columns: Integers
    parameters: Array
    values: Array

    @property
    def dynamics(self) -> Dynamics:
        """Of it."""
        return Dynamics(self.origin.regressor, self.columns, self.parameters)

    def changed(self, parameter: int, change: float) -> Dynamics:
        """Of the robot with another value of one base parameter: its own column has no share in the others."""
        parameters = self.parameters.copy()
        parameters[np.flatnonzero(self.columns == self.origin.columns[parameter])] += change
        return Dynamics(self.origin.regressor, self.columns, parameters)


def require(name: str, problem: LinearProblem, controller: ControllerModel) -> Origin:
    """What the robot is simulated from.

    Raises:
        UsageError: no controller is told, gains of joints that the robot has not, or rows without a robot.
    """
    if problem.origin is None:
        raise UsageError(f"{name}: rows without a robot cannot be simulated")
    if not controller.law:
        raise UsageError(
            f"{name}: which controller moved the robot? Tell it with its gains, for example estimator: {{name: {name}, "
            "controller: {law: computed_torque, proportional: 400, derivative: 40}}"
        )
    for key in ("proportional", "derivative", "resolution"):
        controller.values_of_joints(key, problem.joint_names)
    return problem.origin


def within(factors: Factors, weights: Array, seen: Solution) -> Solution:
    """Weighted least squares in the directions that other rows show: a simulated joint is never quite still."""
    stack = factors.stack(weights)
    found = Solution.from_rows(np.column_stack([stack[:, :-1] @ seen.root, stack[:, -1]]))
    root = seen.root @ found.root
    return replace(seen, values=seen.root @ found.values, inverse=root @ root.T, root=root)


def started(problem: LinearProblem, origin: Origin, seen: Solution) -> tuple[Factors, Array, Array]:
    """Rows along the reference, which has no noise and which the robot nearly follows; their solution and weights."""
    along = origin.along(lambda pieces: (replace(p, motion=p.reference or p.motion) for p in pieces))
    rows = compress_rows(replace(problem, tiles=lambda: beside(problem, along, simulated_columns)))
    weights = compute_weights(rows, within(rows, np.ones(len(rows.counts)), seen).values)
    return rows, within(rows, weights, seen).values, weights


def simulate(
    problem: LinearProblem, origin: Origin, values: Array, factors: Factors, weights: Array, make: Callable[[Robot], T]
) -> tuple[T, tuple[str, ...]]:
    """What is made of the robot of some base parameters, or of the consistent one nearest to them, and a note of that.

    Raises:
        ConvergenceError: neither of them follows.
        InputError: they cannot be simulated, and there is no prior to find a nearest robot with.
    """
    try:
        return make(Robot(origin, origin.columns, values, values)), ()
    except (InputError, ConvergenceError):
        if problem.prior is None:
            raise
    full, notes = Consistent().find_nearest(problem.prior, origin.regressor, factors.root(weights), values)
    nearest = Robot(origin, np.arange(len(full)), full, problem.prior.mapping @ full)
    return make(nearest), (MADE_CONSISTENT, *notes)


def replaying(problem: LinearProblem, controller: ControllerModel) -> Callable[[Robot], Replayed]:
    """Makes replays, each walked once, so that a robot that cannot be simulated is found out."""

    def make(robot: Robot) -> Replayed:
        replayed = Replayed.of(problem, robot.origin, controller, robot.dynamics, robot.values)
        for _ in replayed.linearised.tiles():
            pass
        return replayed

    return make


def least_squares(_: object, rows: Factors, weights: Array, ordinary: Solution) -> tuple[Array, Array]:
    """Solves what `settled` asks for."""
    solution = within(rows, weights, ordinary)
    return solution.values, solution.inverse


@dataclass(frozen=True)
class Settled(Generic[T]):
    """Where simulations and estimates in turn have ended.

    Attributes:
        simulated: the last simulation.
        rows: the compressed rows that were solved.
        weights: of the joints.
        values: the estimate, shape (p,).
        bread: the inverse of what was solved, shape (p, p).
        notes: of the last simulation.
    """

    simulated: T
    rows: Factors
    weights: Array
    values: Array
    bread: Array
    notes: tuple[str, ...]


def settled(
    name: str,
    problem: LinearProblem,
    seen: Solution,
    controller: ControllerModel,
    iterations: int,
    make: Callable[[Robot], T],
    rows_of: Callable[[T], LinearProblem],
    solve: Callable[[T, Factors, Array, Solution], tuple[Array, Array]],
) -> Settled[T]:
    """Simulate and solve in turn until the parameters move no more.

    Each simulation of an encoder rounds in its own way, so that the steps never end by themselves: steps smaller than a
    standard error are averaged (Robbins and Monro 1951).

    Args:
        name: of the estimator.
        problem: the recorded rows.
        seen: their ordinary solution.
        controller: of the robot.
        iterations: simulations after which it is given up.
        make: simulates a robot.
        rows_of: the rows that are solved.
        solve: them with one weight per joint, given the ordinary solution, for the parameters and the inverse of what
            was solved.

    Raises:
        UsageError: no controller is told, or one of other joints.
        InputError: the robot cannot be simulated.
        ConvergenceError: it does not follow, or nothing settles.
    """
    origin = require(name, problem, controller)
    rows, values, weights = started(problem, origin, seen)
    averaged = 1
    for _ in range(iterations):
        simulated, notes = simulate(problem, origin, values, rows, weights, make)
        rows = Factors.from_problem(rows_of(simulated))
        weights = compute_weights(rows, values)
        found, bread = solve(simulated, rows, weights, seen)
        change = (found - values) / averaged
        values = values + change
        size = moved(change, rows, weights)
        if size <= SETTLED:
            return Settled(simulated, rows, weights, values, bread, notes)
        averaged += rough(controller) and (averaged > 1 or size < 1.0)
    raise ConvergenceError(
        f"{name}: the parameters still move after {iterations} simulations: check the controller's gains, or give "
        "more iterations"
    )


def moved(change: Array, factors: Factors, weights: Array) -> float:
    """Size of a change of the parameters in standard errors of white residuals; 0 where it is rounding."""
    stack = factors.stack(weights)
    square = float(np.sum((stack[:, :-1] @ change) ** 2))
    return 0.0 if square <= ROUNDING**2 * float(np.sum(stack[:, -1] ** 2)) else math.sqrt(square / len(change))
