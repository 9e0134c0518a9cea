# SPDX-License-Identifier: Apache-2.0
"""Estimates of parameters and constants: least squares of the problem linearized in the constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.contract import Estimate, EstimatedConstant
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.findings import Definition, Section

CONSTANTS_NOT_IDENTIFIED = Definition(
    "constants_not_identified",
    Section.ESTIMATES,
    "warning",
    "Constants of a term, such as a Stribeck velocity, are not determined by the data.",
    "record more motion at low velocity, or fix the constants in the configuration",
)


def estimate_constants(found: Linearized, order: int, costs: Array, values: Array | None = None) -> Estimate:
    """Estimate parameters and constants at the result of a search.

    The covariance of parameters and logarithms of constants is that of least squares with a derivative column for each
    constant.

    Args:
        found: the problem at the constants that were found.
        order: AR order of the noise model.
        costs: costs during the search.
        values: parameters of the search in place of the optimal ones; their difference d from the latter adds d d' to
            the covariance.
    """
    p = len(found.constants.parameters)
    kind = WeightedLeastSquares if found.weighted else OrdinaryLeastSquares
    estimate = replace(
        split_constants(kind(order).fit(found.problem(found.values, found.inside)), found, found.inside), costs=costs
    )
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
    """Split an estimate of `found.problem(..., chosen)` into parameters and constants."""
    constants = found.constants
    p = len(found.constants.parameters)
    sigmas = np.full(len(found.logarithms), np.inf)
    sigmas[chosen] = extended.standard_deviations[p:]
    estimated = tuple(
        EstimatedConstant(name, joint, float(value), float(value * sigma))
        for (name, joint), value, sigma in zip(constants.names, np.exp(found.logarithms), sigmas, strict=True)
    )
    unknown = [label for label, sigma in zip(constants.labels, sigmas, strict=True) if not sigma < 1.0]
    message = f"these data do not determine {', '.join(unknown)}"
    findings = (CONSTANTS_NOT_IDENTIFIED.found(message),) if unknown else ()
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
