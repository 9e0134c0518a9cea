# SPDX-License-Identifier: Apache-2.0
"""Contract of estimators, and the estimate that they return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.findings import Finding


@dataclass(frozen=True)
class EstimatedConstant:
    """A nonlinear constant of a term that was estimated from the data.

    Attributes:
        name: `term.constant`, e.g. stribeck.stribeck_velocity.
        joint: joint or coupling that the term acts on.
        value: estimate [rad/s or m/s].
        standard_deviation: one sigma: that of the logarithm times the value; infinite if it is not identifiable.
    """

    name: str
    joint: str
    value: float
    standard_deviation: float


@dataclass(frozen=True)
class Estimate:
    """Estimate of the p parameters of a linear problem with its uncertainty.

    Attributes:
        values: parameters in SI units, shape (p,). Directions that are not excited are zero (minimum norm).
        covariance: covariance in the excited directions, shape (p, p).
        standard_deviations: one sigma; infinite for parameters with a component in a direction that is not excited.
        condition_number: condition number of the stacked, unweighted rows with unit-norm columns.
        residual_rms: RMS of each joint's residual [N m or N], shape (n,).
        noise_rms: RMS of each joint's residual after prewhitening [N m or N], shape (n,).
        rows: number of rows used, summed over the joints.
        unexcited: names of the parameters with a component in a direction that is not excited.
        regularized_towards: prior or target that biases the estimate; the covariance holds for parameters that are
            distributed as the prior assumes. Empty if there is no such target.
        prior_strength: information of the prior on single links, see `Consistent`; 0 without, NaN if not known.
        constants: constants of terms that were chosen from the data.
        regressor: robot and terms with those constants; None where none were chosen.
        findings: findings about this estimate.
        full: all c parameters of the regressor, from estimators that know more than the p combinations of them: they
            give the same torque as `values`.
        intervals: 95 % intervals of the p parameters, from bootstraps, shape (p, 2).
        costs: least cost after each step of a search, from estimators that search, shape (any,).
        unconstrained: from estimators with bounds, what the p parameters are without, shape (p,).
        unconstrained_deviations: standard deviations of those; infinite for columns that others of the same joint
            nearly replace, whose signs mean nothing, shape (p,).
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
    unconstrained_deviations: Array | None = field(default=None, repr=False)
    intervals: Array | None = field(default=None, repr=False)
    costs: Array | None = field(default=None, repr=False)
    prior_strength: float = 0.0

    @property
    def known_prior_strength(self) -> float:
        """Strength of the prior; NaN where the prior is not one on single links."""
        return float("nan") if self.regularized_towards and not self.prior_strength else self.prior_strength

    def expanded(self, names: Sequence[str], kept: Integers) -> Estimate:
        """The estimate of more parameters, of which those that were not estimated are zero and not identifiable.

        Args:
            names: names of all parameters.
            kept: indices of the estimated ones, ascending.
        """
        if len(kept) == len(names):
            return self
        count = len(names)
        values, covariance, deviations = np.zeros(count), np.zeros((count, count)), np.full(count, np.inf)
        values[kept] = self.values
        covariance[np.ix_(kept, kept)] = self.covariance
        deviations[kept] = self.standard_deviations
        others = np.setdiff1d(np.arange(count), kept)
        left_out = tuple(names[i] for i in others.tolist())
        return replace(
            self,
            values=values,
            covariance=covariance,
            standard_deviations=deviations,
            unexcited=(*self.unexcited, *left_out),
        )

    @classmethod
    def from_solution(
        cls,
        names: Sequence[str],
        rows: Factors,
        ordinary: Solution,
        solution: Solution,
        covariance: Array,
        noise: Array,
    ) -> Estimate:
        """Make the estimate of a least-squares solution.

        Args:
            names: names of the p parameters.
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
            unexcited=tuple(str(name) for name in np.array(names)[solution.unexcited | ordinary.unexcited]),
        )


class Estimator(Protocol):
    """An estimator: its constructor takes options only; `fit` passes over the data as often as needed.

    Attributes:
        name: name in configurations and parameter sets.
        uses_prior: whether the estimator uses an earlier parameter set as prior.

    An estimator that takes many times as long as a least-squares fit has a class attribute `expensive = True`: it is
    cross-validated on fewer blocks. One that only uses the rows of a problem, and neither its robot nor its prior, has
    `any_columns = True`: it is fitted to combinations of the columns where only noise excites the others.
    """

    name: ClassVar[str]
    uses_prior: ClassVar[bool]

    def fit(self, problem: LinearProblem) -> Estimate:
        """Estimate the parameters.

        Raises:
            ConvergenceError: the estimator did not converge.
            InputError: there are no rows.
        """
        ...
