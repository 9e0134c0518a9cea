# SPDX-License-Identifier: Apache-2.0
"""Physically consistent estimate: weighted least squares, and the nearest physically consistent parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import not_negative, solid
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import LinearProblem, RegressorProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.completion import METRICS, Completion
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import METHODS, Factors
from robot_dyn_id.estimators.least_squares import WeightedLeastSquares
from robot_dyn_id.findings import Finding
from robot_dyn_id.options import CheckedOptions, Choice, OptionRanges, Range


@dataclass(frozen=True)
class Consistent(CheckedOptions):
    """All standard parameters, every body with positive mass and a positive-definite pseudo-inertia.

    Well-determined combinations are kept as closely as consistency allows; undetermined ones stay close to the URDF.
    Covariance and standard deviations are those of weighted least squares: the bounds and the prior only reduce errors,
    and add a bias towards the URDF where the data are weak.

    Attributes:
        metric: distance from the URDF, `entropic` or `euclidean`; see `completion`.
        spread: expected difference of the bodies from those of the URDF, relative to their size.
        floor: minimum pseudo-inertia of a body, as a share of the prior's (in the Loewner order).
        autoregressive_order: AR order of the noise model; 0: white residuals.
        method: `qr` or `gram`.
    """

    metric: str = "entropic"
    spread: float = 1.0
    floor: float = 0.01
    autoregressive_order: int = 6
    method: str = "qr"

    name: ClassVar[str] = "consistent"
    uses_prior: ClassVar[bool] = False  # bodies of an earlier set need not be physically consistent
    option_ranges: ClassVar[OptionRanges] = {
        "metric": Choice(METRICS),
        "spread": Range(1e-3, 1e3),
        "floor": Range(0, 1, includes_high=False),
        "autoregressive_order": Range(0),
        "method": Choice(METHODS),
    }

    def find_nearest(
        self, prior: Prior, regressor: Regressor, root: Array, values: Array
    ) -> tuple[Array, tuple[Finding, ...]]:
        """Find the physically consistent parameters nearest to given base parameters.

        Args:
            prior: prior of the robot.
            regressor: robot and terms.
            root: R of the information R' R of the base parameters, shape (p, p).
            values: base parameters, shape (p,).

        Returns:
            All parameters, shape (c,), and a finding about each body of the prior that had to be changed.

        Raises:
            InputError: a prior without masses.
            ConvergenceError: see `Completion.solve`.
        """
        inertial = 10 * len(regressor.model.body_names)
        bodies, findings = solid(prior.values[:inertial].reshape(-1, 10), regressor.model.body_names)
        bounded = not_negative(regressor)
        return Completion(
            root, values, prior.mapping, bodies, bounded, self.spread, self.floor, self.metric
        ).solve(), findings

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: a problem without a prior.
            InputError: a prior without masses.
        """
        if problem.prior is None or not isinstance(problem, RegressorProblem):
            raise UsageError(
                "consistent: the URDF has no masses: write estimates of masses and inertias into it, or use weighted"
            )
        plain = WeightedLeastSquares(self.autoregressive_order, self.method).fit(problem)
        factors = Factors.from_problem(problem, method=self.method)
        largest = float(plain.residual_rms.max(initial=0.0))
        rms = np.maximum(plain.residual_rms, 1e-9 * largest if largest > 0.0 else 1.0)
        root = factors.root(1.0 / rms)
        # Autocorrelated residuals hold less information than independent ones: by this factor on average.
        inflation = max(1.0, float(np.sum((root @ plain.covariance) * root)) / max(1, len(plain.values)))
        full, findings = self.find_nearest(problem.prior, problem.regressor, root / np.sqrt(inflation), plain.values)
        found = problem.prior.mapping @ full
        return replace(
            plain,
            values=found,
            residual_rms=np.sqrt(factors.squared_residuals(found) / np.maximum(factors.counts, 1)),
            findings=(*plain.findings, *findings),
            full=full,
            unconstrained=plain.values,
        )
