"""What estimators of constants conclude with: least squares of the problem made linear in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.estimators.constants import Linearised
from robot_dyn_id.estimators.contract import Estimate, EstimatedConstant
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares, WeightedLeastSquares


def concluded(found: Linearised, order: int, values: Array | None = None) -> Estimate:
    """The estimate of the p parameters, and of the constants.

    Covariances, of parameters and of the logarithms of the constants, are those of least squares with a column for each
    constant: what it does to the torque.

    Args:
        found: the problem at the constants that were found.
        order: past rows that a residual is predicted from.
        values: parameters that were found beside them, in place of the best for these constants: what they are off from
            those is added to the covariance, d d'.
    """
    constants, p = found.constants, len(found.constants.parameters)
    kind = WeightedLeastSquares if found.weighted else OrdinaryLeastSquares
    extended = kind(order).fit(found.problem())
    best, covariance = extended.values[:p], extended.covariance[:p, :p]
    rms, spread = extended.residual_rms, extended.standard_deviations[:p]
    if values is not None:
        covariance = covariance + np.outer(values - best, values - best)
        spread = np.hypot(spread, values - best)
        plain = found.factors.keep(np.arange(p))
        rms = np.sqrt(plain.squared_residuals(values) / np.maximum(plain.counts, 1))
    sigmas = np.full(len(found.logarithms), np.inf)
    sigmas[found.inside] = extended.standard_deviations[p:]
    estimated = tuple(
        EstimatedConstant(name, joint, float(value), float(value * sigma))
        for (name, joint), value, sigma in zip(constants.names, np.exp(found.logarithms), sigmas, strict=True)
    )
    unknown = [label for label, sigma in zip(constants.labels, sigmas, strict=True) if not sigma < 1.0]
    notes = (f"these data do not tell {', '.join(unknown)}",) if unknown else ()
    return replace(
        extended,
        values=best if values is None else values,
        covariance=covariance,
        standard_deviations=spread,
        residual_rms=rms,
        unseen=tuple(name for name in extended.unseen if name in constants.parameters),
        constants=estimated,
        regressor=constants.regressor(found.logarithms),
        notes=(*extended.notes, *notes),
    )
