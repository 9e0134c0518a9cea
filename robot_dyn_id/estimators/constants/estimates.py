# SPDX-License-Identifier: Apache-2.0
"""What estimators of constants conclude with: least squares of the problem made linear in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.contract import Estimate, EstimatedConstant
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.findings import make_finding


def estimate_constants(found: Linearized, order: int, costs: Array, values: Array | None = None) -> Estimate:
    """The estimate of the p parameters, and of the constants.

    Covariances, of parameters and of the logarithms of the constants, are those of least squares with a column for each
    constant: what it does to the torque.

    Args:
        found: the problem at the constants that were found.
        order: past rows that a residual is predicted from.
        costs: of the search that found them.
        values: parameters that were found beside them, in place of the best for these constants: what they are off from
            those is added to the covariance, d d'.
    """
    p = len(found.constants.parameters)
    kind = WeightedLeastSquares if found.weighted else OrdinaryLeastSquares
    estimate = replace(split_constants(kind(order).fit(found.problem(found.values, found.inside)), found, found.inside),
                       costs=costs)  # fmt: skip
    if values is None:
        return estimate
    off = values - estimate.values
    plain = found.factors.keep(np.arange(p))
    return replace(
        estimate,
        values=values,
        covariance=estimate.covariance + np.outer(off, off),
        standard_deviations=np.hypot(estimate.standard_deviations, off),
        residual_rms=np.sqrt(plain.squared_residuals(values) / np.maximum(plain.counts, 1)),
    )


def split_constants(extended: Estimate, found: Linearized, chosen: Mask) -> Estimate:
    """Parameters and constants apart, from an estimate of `found.problem(..., chosen)`."""
    constants, p = found.constants, len(found.constants.parameters)
    sigmas = np.full(len(found.logarithms), np.inf)
    sigmas[chosen] = extended.standard_deviations[p:]
    estimated = tuple(
        EstimatedConstant(name, joint, float(value), float(value * sigma))
        for (name, joint), value, sigma in zip(constants.names, np.exp(found.logarithms), sigmas, strict=True)
    )
    unknown = [label for label, sigma in zip(constants.labels, sigmas, strict=True) if not sigma < 1.0]
    message = f"these data do not determine {', '.join(unknown)}"
    findings = (make_finding("constants_not_identified", message),) if unknown else ()
    return replace(
        extended,
        values=extended.values[:p],
        covariance=extended.covariance[:p, :p],
        standard_deviations=extended.standard_deviations[:p],
        unexcited=tuple(name for name in extended.unexcited if name in constants.parameters),
        constants=estimated,
        regressor=constants.regressor(found.logarithms),
        findings=(*extended.findings, *findings),
    )
