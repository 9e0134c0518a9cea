# SPDX-License-Identifier: Apache-2.0
"""Fixed-point iteration of estimators that simulate the robot: simulate, solve, and repeat with the new parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.stream import RepeatableStream
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators.consistent import Consistent
from robot_dyn_id.estimators.factors import Factors, Solution, compress_rows
from robot_dyn_id.estimators.simulated.replayed import merge_simulated_columns, merge_tiles, reads_encoders
from robot_dyn_id.estimators.weighting import compute_weights
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.options import CheckedOptions, Count, Order
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.closed_loop import UNKNOWN_CONTROLLER, ControllerModel
from robot_dyn_id.uses import LIMITED

SIMULATED_NEAREST_ROBOT = Definition(
    "simulated_nearest_robot",
    Section.ESTIMATES,
    "warning",
    "The estimate has a mass matrix that is not positive definite, so that the physically consistent robot "
    "closest to it was simulated.",
    "record a richer motion, or use the estimator `consistent`",
    lowers={"forward_simulation": LIMITED},
)

T = TypeVar("T")

CONVERGED_STANDARD_ERRORS = 0.1
"""Mean change of the parameters, in standard errors of white residuals, at which the iteration has converged."""

ROUNDING_RATIO = 1e-9
"""Change of the predicted torques, relative to the measured ones, that is rounding."""

NEAREST_STRENGTH = 1000.0
"""Strength of the prior of the nearest robot: weaker, joints that the data do not show may be too light to simulate."""

MADE_CONSISTENT = SIMULATED_NEAREST_ROBOT.found(
    "the estimate cannot be simulated (its mass matrix is not positive definite): the physically consistent robot "
    "nearest to it was simulated instead",
)


@dataclass(frozen=True)
class Robot:
    """Robot that is simulated with the current parameters.

    Attributes:
        problem: the recorded rows, with their regressor.
        columns: columns of the regressor that have parameters.
        parameters: parameters of those columns.
        values: base parameters, shape (p,).
    """

    problem: RecordedProblem
    columns: Integers
    parameters: Array
    values: Array

    @property
    def dynamics(self) -> Dynamics:
        """Dynamics of the robot."""
        return Dynamics(self.problem.regressor, self.columns, self.parameters)

    def with_change(self, parameter: int, change: float) -> Dynamics:
        """Dynamics with another value of one base parameter; its independent column is in no other base parameter.

        Args:
            parameter: number of the base parameter.
            change: change of its value.
        """
        parameters = self.parameters.copy()
        parameters[np.flatnonzero(self.columns == self.problem.columns[parameter])] += change
        return Dynamics(self.problem.regressor, self.columns, parameters)


class SimulationStep(Protocol[T]):
    """One step of the iteration of an estimator: a simulation, and the solution of the rows that follow from it."""

    def simulate(self, robot: Robot) -> T:
        """Simulate a robot along the reference of the recording.

        Raises:
            InputError: the robot cannot be simulated.
            ConvergenceError: the robot does not follow the reference.
        """
        ...

    def rows(self, simulation: T) -> LinearProblem:
        """Build the linear problem of a simulation."""
        ...

    def solve(self, simulation: T, rows: Factors, weights: Array, ordinary: Solution) -> tuple[Array, Array]:
        """Solve the rows.

        Args:
            simulation: the simulation.
            rows: its rows, compressed.
            weights: weight of each joint, shape (n,).
            ordinary: ordinary least squares of the recorded rows.

        Returns:
            Base parameters, shape (p,), and the inverse of the matrix that was solved, shape (p, p).
        """
        ...


@dataclass(frozen=True)
class FixedPoint(Generic[T]):
    """Result of the iteration.

    Attributes:
        simulation: the last simulation.
        rows: its compressed rows.
        weights: weight of each joint, shape (n,).
        values: the estimate, shape (p,).
        bread: inverse of the matrix that was solved, shape (p, p).
        findings: findings about the last simulation.
    """

    simulation: T
    rows: Factors
    weights: Array
    values: Array
    bread: Array
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class SimulationEstimator(CheckedOptions):
    """Options of estimators that simulate the robot.

    Attributes:
        controller: controller that moved the robot.
        iterations: maximum number of simulations.
        autoregressive_order: order of the noise model of the residuals; 0: white residuals.
    """

    controller: ControllerModel = UNKNOWN_CONTROLLER
    iterations: Count = 20
    autoregressive_order: Order = 6

    name: ClassVar[str]
    uses_prior: ClassVar[bool] = False
    expensive: ClassVar[bool] = True

    def require_recorded(self, problem: LinearProblem) -> RecordedProblem:
        """The problem as one that can be simulated under the controller.

        Raises:
            UsageError: no controller is specified, gains of joints that the robot does not have, or rows that were
                not made of a recording.
        """
        if not isinstance(problem, RecordedProblem):
            raise UsageError(f"{self.name}: rows that were not made of a recording cannot be simulated")
        if not self.controller.law:
            raise UsageError(
                f"{self.name}: specify the controller that moved the robot and its gains, for example estimator: "
                f"{{name: {self.name}, controller: {{law: computed_torque, proportional: 400, derivative: 40}}}}"
            )
        self.controller.check_joints(problem.joint_names)
        return problem

    def iterate(self, problem: RecordedProblem, ordinary: Solution, step: SimulationStep[T]) -> FixedPoint[T]:
        """Simulate and solve in turn until the parameters converge.

        Simulated encoders round differently in every simulation, so that the steps do not converge to zero: steps
        smaller than a standard error are averaged (Robbins and Monro 1951).

        Args:
            problem: the recorded rows.
            ordinary: their ordinary least squares.
            step: simulation and solution of one step.

        Raises:
            InputError: the robot cannot be simulated.
            ConvergenceError: the robot does not follow, or the parameters do not converge.
        """
        rows, values, weights = start_values(problem, ordinary)
        averaged = 1
        for _ in range(self.iterations):
            simulation, findings = simulate_consistent(problem, values, rows, weights, step)
            rows = Factors.from_problem(step.rows(simulation))
            weights = compute_weights(rows, values)
            found, bread = step.solve(simulation, rows, weights, ordinary)
            change = (found - values) / averaged
            values = values + change
            size = change_in_standard_errors(change, rows, weights)
            if size <= CONVERGED_STANDARD_ERRORS:
                return FixedPoint(simulation, rows, weights, values, bread, findings)
            averaged += reads_encoders(self.controller) and (averaged > 1 or size < 1.0)
        raise ConvergenceError(
            f"{self.name}: no convergence after {self.iterations} simulations: check the controller's gains, or allow "
            "more iterations"
        )


def solve_within(factors: Factors, weights: Array, ordinary: Solution) -> Solution:
    """Weighted least squares in the directions that the recorded rows determine.

    Args:
        factors: compressed rows; a simulated joint is never quite at rest, so that they determine more directions.
        weights: weight of each joint, shape (n,).
        ordinary: ordinary least squares of the recorded rows.
    """
    stack = factors.stack(weights)
    found = Solution.from_rows(np.column_stack([stack[:, :-1] @ ordinary.root, stack[:, -1]]))
    root = ordinary.root @ found.root
    return replace(ordinary, values=ordinary.root @ found.values, inverse=root @ root.T, root=root)


def solve_weighted(rows: Factors, weights: Array, ordinary: Solution) -> tuple[Array, Array]:
    """Weighted least squares, as `SimulationStep.solve` returns it."""
    solution = solve_within(rows, weights, ordinary)
    return solution.values, solution.inverse


def start_values(problem: RecordedProblem, ordinary: Solution) -> tuple[Factors, Array, Array]:
    """Rows along the reference, which has no noise and which the robot follows closely, and their solution.

    Returns:
        The compressed rows; base parameters, shape (p,); the weight of each joint, shape (n,).
    """

    def reference() -> Iterator[FilteredWindow]:
        for window in problem.windows:
            yield replace(window, motion=window.reference or window.motion)

    along = problem.with_motion(RepeatableStream(reference))
    rows = compress_rows(replace(problem, tiles=lambda: merge_tiles(problem, along, merge_simulated_columns)))
    weights = compute_weights(rows, solve_within(rows, np.ones(len(rows.counts)), ordinary).values)
    return rows, solve_within(rows, weights, ordinary).values, weights


def simulate_consistent(
    problem: RecordedProblem, values: Array, factors: Factors, weights: Array, step: SimulationStep[T]
) -> tuple[T, tuple[Finding, ...]]:
    """Simulate the robot of some base parameters, or the physically consistent robot nearest to them.

    Args:
        problem: the recorded rows.
        values: base parameters, shape (p,).
        factors: compressed rows, whose information matrix measures distances between robots.
        weights: weight of each joint, shape (n,).
        step: its simulation.

    Returns:
        The simulation, and findings about it.

    Raises:
        ConvergenceError: neither of the two robots follows the reference.
        InputError: they cannot be simulated, or there is no prior for the nearest robot.
    """
    try:
        return step.simulate(Robot(problem, problem.columns, values, values)), ()
    except (InputError, ConvergenceError):
        if problem.prior is None:
            raise
    nearest_robot = Consistent(strength=NEAREST_STRENGTH)
    full, findings = nearest_robot.find_nearest(problem.prior, problem.regressor, factors.root(weights), values)
    nearest = Robot(problem, np.arange(len(full)), full, problem.prior.mapping @ full)
    return step.simulate(nearest), (MADE_CONSISTENT, *findings)


def change_in_standard_errors(change: Array, factors: Factors, weights: Array) -> float:
    """RMS change of the parameters in standard errors of white residuals; 0 where it is rounding."""
    stack = factors.stack(weights)
    square = float(np.sum((stack[:, :-1] @ change) ** 2))
    if square <= ROUNDING_RATIO**2 * float(np.sum(stack[:, -1] ** 2)):
        return 0.0
    return math.sqrt(square / len(change))
