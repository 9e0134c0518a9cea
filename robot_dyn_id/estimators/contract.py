# SPDX-License-Identifier: Apache-2.0
"""What an estimator is, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.findings import Finding


@dataclass(frozen=True)
class EstimatedConstant:
    """A constant of a term that was chosen from the data.

    Attributes:
        name: `term.constant`, e.g. stribeck.stribeck_velocity.
        joint: joint or coupling that the term acts on.
        value: [rad/s or m/s].
        standard_deviation: one sigma, that of its logarithm times the value; infinite where the data cannot tell.
    """

    name: str
    joint: str
    value: float
    standard_deviation: float


@dataclass(frozen=True)
class Estimate:
    """The p parameters of a linear problem, with what is known about their errors.

    Attributes:
        values: SI, shape (p,). Directions that the data do not show at all are left at zero (minimum norm).
        covariance: of the directions that the data show, shape (p, p).
        standard_deviations: one sigma; infinite for parameters with a share in a direction that the data do not show.
        condition_number: of the stacked rows with unit-norm columns, before any weighting.
        residual_rms: of each joint's rows [N m or N], shape (n,).
        noise_rms: of what is left of each joint's residual when its own past is taken off, shape (n,).
        rows: samples used, over all joints.
        unexcited: parameters with a share in a direction that the data do not show.
        regularized_towards: prior or target that biases the estimate; the covariance holds for parameters that are
            distributed as the prior assumes. Empty if there is no such target.
        constants: constants of terms that were chosen from the data.
        regressor: robot and terms with those constants; None where none were chosen.
        findings: findings about this estimate.
        full: all c parameters of the regressor, from estimators that know more than the p combinations of them: they
            give the same torque as `values`.
        intervals: 95 % intervals of the p parameters, from bootstraps, shape (p, 2).
        costs: least cost after each step of a search, from estimators that search, shape (any,).
        unconstrained: from estimators with bounds, what the p parameters are without, shape (p,).
    """

    values: Array
    covariance: Array = field(repr=False)
    standard_deviations: Array
    condition_number: float
    residual_rms: Array
    noise_rms: Array
    rows: int
    unexcited: tuple[str, ...] = ()
    regularized_towards: str = ""
    constants: tuple[EstimatedConstant, ...] = ()
    regressor: Regressor | None = field(default=None, repr=False)
    findings: tuple[Finding, ...] = ()
    full: Array | None = field(default=None, repr=False)
    unconstrained: Array | None = field(default=None, repr=False)
    intervals: Array | None = field(default=None, repr=False)
    costs: Array | None = field(default=None, repr=False)

    @classmethod
    def from_solution(
        cls,
        problem: LinearProblem,
        rows: Factors,
        ordinary: Solution,
        solution: Solution,
        covariance: Array,
        noise: Array,
    ) -> Self:
        """The estimate that a least-squares solution gives.

        Args:
            problem: the problem that was solved, for the names of its parameters.
            rows: its compressed rows, neither weighted nor whitened.
            ordinary: their ordinary solution: it determines which parameters the rows do not excite.
            solution: the solution to report.
            covariance: covariance of its parameters, shape (p, p).
            noise: RMS of each joint's white residual [N m or N], shape (n,).
        """
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return cls(
            values=solution.values,
            covariance=covariance,
            standard_deviations=np.where(solution.unexcited, np.inf, sigma),
            condition_number=ordinary.condition_number,
            residual_rms=np.sqrt(rows.squared_residuals(solution.values) / np.maximum(rows.counts, 1)),
            noise_rms=noise,
            rows=int(rows.counts.sum()),
            unexcited=tuple(str(name) for name in np.array(problem.names)[solution.unexcited | ordinary.unexcited]),
        )


class Estimator(Protocol):
    """Constructor: options only. `fit` walks the problem's tiles as often as it needs and returns a new value.

    Attributes:
        name: what configurations call it.
        uses_prior: whether an earlier parameter set can take the place of the URDF's as the problem's prior.
    """

    name: ClassVar[str]
    uses_prior: ClassVar[bool]

    def fit(self, problem: LinearProblem) -> Estimate:
        """Estimate the parameters.

        Raises:
            ConvergenceError: no answer that the estimator can stand for.
            InputError: no rows.
        """
        ...
