# SPDX-License-Identifier: Apache-2.0
"""Physically consistent estimate: weighted least squares, and the real robot nearest to it."""

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


def nearest_robot(
    prior: Prior,
    regressor: Regressor,
    root: Array,
    values: Array,
    spread: float = 1.0,
    floor: float = 0.01,
    metric: str = METRICS[0],
) -> tuple[Array, tuple[Finding, ...]]:
    """The physically consistent robot nearest to some base parameters, and what was changed in the prior for it.

    Args:
        prior: of the robot.
        regressor: robot and terms.
        root: R of the information R' R of the base parameters, shape (p, p).
        values: base parameters, shape (p,).
        spread: see `Consistent`.
        floor: likewise.
        metric: likewise.

    Returns:
        All parameters, shape (c,), and sentences.

    Raises:
        InputError: a prior without masses.
        ConvergenceError: see `Completion.solve`.
    """
    inertial = 10 * len(regressor.model.body_names)
    bodies, findings = solid(prior.values[:inertial].reshape(-1, 10), regressor.model.body_names)
    bounded = not_negative(regressor)
    return Completion(root, values, prior.mapping, bodies, bounded, spread, floor, metric).solve(), findings


@dataclass(frozen=True)
class Consistent(CheckedOptions):
    """All standard parameters, every body with positive mass and a positive-definite pseudo-inertia.

    What the data tell stays as they tell it, as closely as consistency allows; what they do not tell stays near the
    URDF. Covariance and standard deviations are those of weighted least squares: the bounds and the prior only take
    errors away from it, and add a bias towards the URDF where the data are weak.

    Attributes:
        metric: distance to the URDF, `entropic` or `euclidean`; see `completion`.
        spread: how far bodies are thought to be from the URDF's, as a share of them: 1 is a few kilograms for a few.
        floor: least pseudo-inertia of a body, as a share of the prior's, in the order of matrices.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
        method: `qr` or `gram`.
    """

    metric: str = "entropic"
    spread: float = 1.0
    floor: float = 0.01
    autoregressive_order: int = 6
    method: str = "qr"

    name: ClassVar[str] = "consistent"
    uses_prior: ClassVar[bool] = False  # bodies of an earlier set need not be real ones
    option_ranges: ClassVar[OptionRanges] = {
        "metric": Choice(METRICS),
        "spread": Range(1e-3, 1e3),
        "floor": Range(0, 1, includes_high=False),
        "autoregressive_order": Range(0),
        "method": Choice(METHODS),
    }

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: a problem without a prior.
            InputError: a prior without masses.
        """
        if problem.prior is None or not isinstance(problem, RegressorProblem):
            raise UsageError(
                "consistent: no robot to stay near: write estimates of masses and inertias into the URDF, or choose "
                "the estimator weighted"
            )
        plain = WeightedLeastSquares(self.autoregressive_order, self.method).fit(problem)
        factors = Factors.from_problem(problem, method=self.method)
        largest = float(plain.residual_rms.max(initial=0.0))
        rms = np.maximum(plain.residual_rms, 1e-9 * largest if largest > 0.0 else 1.0)
        root = factors.root(1.0 / rms)
        # Residuals that follow one another tell less than as many independent ones: so much less, on average.
        inflation = max(1.0, float(np.sum((root @ plain.covariance) * root)) / max(1, len(plain.values)))
        full, findings = nearest_robot(
            problem.prior, problem.regressor, root / np.sqrt(inflation), plain.values,
            self.spread, self.floor, self.metric,
        )  # fmt: skip
        found = problem.prior.mapping @ full
        return replace(
            plain,
            values=found,
            residual_rms=np.sqrt(factors.squared_residuals(found) / np.maximum(factors.counts, 1)),
            findings=(*plain.findings, *findings),
            full=full,
            unconstrained=plain.values,
        )
