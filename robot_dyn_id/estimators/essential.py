# SPDX-License-Identifier: Apache-2.0
"""Essential parameters by backward elimination (Pressé and Gautier 1992; Janot et al. 2014).

The parameter with the largest relative standard deviation is set to zero and the others are estimated again, until all
are certain enough or an F-test rejects the joint elimination. Only the estimate and its covariance are needed: the
result is that of least squares of the reduced problem.

Eliminated parameters are not zero in reality, and the others absorb their effect. With the full estimate x and its
covariance C, the reduced estimate x_r and the shift s = x_r - x, the errors of x_r have the second moment C + s s':
E (x_r - t)(x_r - t)' = E (x - t)(x - t)' + s s' for the true values t, since x - t has zero mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.parameters import BaseParameters

INTERVALS_LOST = Definition(
    "intervals_lost",
    Section.ESTIMATES,
    "info",
    "The intervals of a bootstrap belong to all parameters; essential ones have standard deviations only.",
)

MAX_RELATIVE_DEVIATION = 0.3
"""Relative standard deviation above which a parameter is not essential."""

F_TEST_LEVEL = 0.05
"""Significance level of the F-test."""

MIN_VARIANCE_RATIO = 1e-18
"""Variances below this share of the median are rounding: the parameters are not excited."""

MIN_EIGENVALUE_RATIO = 1e-12
"""Eigenvalues of the correlation matrix below this share of the largest belong to directions that are not excited."""


@dataclass(frozen=True)
class Elimination:
    """One step of the elimination.

    Attributes:
        name: the eliminated parameter.
        value: its value in the full estimate.
        standard_deviation: its standard deviation in the full estimate; infinite if it is not excited.
        relative_deviation: its relative standard deviation after the steps before.
        residual_growth: relative increase of the norm of the residuals by all eliminations so far.
        statistic: F statistic of all eliminations so far.
        probability: p-value: probability of such an F if the eliminated parameters are zero.
    """

    name: str
    value: float
    standard_deviation: float
    relative_deviation: float
    residual_growth: float
    statistic: float
    probability: float


@dataclass(frozen=True)
class Essential:
    """Result of a backward elimination.

    Attributes:
        kept: indices of the essential parameters, ascending.
        left_out: eliminated parameters, in order.
        objected: the step that the F-test rejected, if one ended the elimination.
        values: values of the essential parameters.
        covariance: second moments of their errors, which include the effect of the eliminated parameters.
        standard_deviations: one sigma; infinite for parameters with a component in a direction that is not excited.
    """

    kept: Integers
    left_out: tuple[Elimination, ...]
    objected: Elimination | None
    values: Array
    covariance: Array
    standard_deviations: Array


def check_limit(limit: float) -> None:
    """Check the threshold of the elimination; 0 disables it.

    Raises:
        UsageError: a threshold that is negative, or above 1: a larger deviation than the value itself.
    """
    if not 0.0 <= limit <= 1.0:
        raise UsageError(
            f"essential: must be 0 (keep all) or a relative standard deviation up to 1, such as "
            f"{MAX_RELATIVE_DEVIATION}, not {limit:g}"
        )


def eliminate_parameters(
    estimate: Estimate, names: Sequence[str], limit: float = MAX_RELATIVE_DEVIATION, level: float = F_TEST_LEVEL
) -> Essential:
    """Eliminate parameters that are not identifiable from the data.

    Args:
        estimate: estimate of p parameters with its covariance.
        names: names of the parameters.
        limit: maximum relative standard deviation of an essential parameter.
        level: significance level of the F-test.

    Raises:
        UsageError: an estimate of all standard parameters, or a limit that is negative or not finite.
    """
    if estimate.full is not None:
        raise UsageError("essential: an estimate of all standard parameters cannot be reduced: use weighted")
    from scipy.stats import f as f_distribution  # slow to import, and seldom used

    check_limit(limit)
    information, _ = _inverse(estimate.covariance)
    moment = information @ estimate.values
    explained = float(moment @ estimate.values)
    freedom = max(1, estimate.rows - len(names))
    kept = np.arange(len(names))
    values = estimate.values
    sigma = estimate.standard_deviations
    steps: list[Elimination] = []
    objected = None
    while len(kept) > 1:
        relative = np.divide(sigma, np.abs(values), out=np.full(len(kept), np.inf), where=values != 0.0)
        worst = int(np.argmax(relative))
        if relative[worst] <= limit:
            break
        fewer = np.delete(kept, worst)
        inverse, unexcited = _inverse(information[np.ix_(fewer, fewer)])
        trial = inverse @ moment[fewer]
        lost = max(0.0, explained - float(moment[fewer] @ trial))
        count = len(names) - len(fewer)
        number = int(kept[worst])
        step = Elimination(
            names[number],
            float(estimate.values[number]),
            float(estimate.standard_deviations[number]),
            float(relative[worst]),
            float(np.sqrt(1.0 + lost / freedom) - 1.0),
            lost / count,
            float(f_distribution.sf(lost / count, count, freedom)),
        )
        if step.probability < level:
            objected = step
            break
        steps.append(step)
        kept = fewer
        values = trial
        sigma = np.where(unexcited, np.inf, np.sqrt(np.maximum(np.diag(inverse), 0.0)))
    shift = values - estimate.values[kept]
    covariance = estimate.covariance[np.ix_(kept, kept)] + np.outer(shift, shift)
    deviations = np.where(np.isinf(sigma), np.inf, np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    return Essential(kept, tuple(steps), objected, values, covariance, deviations)


def reduce_to_essential(base: BaseParameters, estimate: Estimate, found: Essential) -> tuple[BaseParameters, Estimate]:
    """Base parameters and estimate that hold the essential parameters alone."""
    kept = found.kept
    fewer = replace(
        base,
        names=tuple(base.names[i] for i in kept),
        expressions=tuple(base.expressions[i] for i in kept),
        units=tuple(base.units[i] for i in kept),
        independent=base.independent[kept],
        mapping=base.mapping[kept],
    )
    lost = INTERVALS_LOST.found(
        "the intervals of the bootstrap belong to all parameters: the essential ones have standard deviations only",
    )
    hidden = {name for name, sigma in zip(fewer.names, found.standard_deviations, strict=True) if np.isinf(sigma)}
    return fewer, replace(
        estimate,
        values=found.values,
        covariance=found.covariance,
        standard_deviations=found.standard_deviations,
        unexcited=tuple(name for name in estimate.unexcited if name in hidden),
        intervals=None,
        findings=(*estimate.findings, *([] if estimate.intervals is None else [lost])),
    )


def _inverse(matrix: Array) -> tuple[Array, np.ndarray]:
    """Pseudo-inverse of a covariance or information, and the mask of parameters that are not excited."""
    size = np.diag(matrix)
    scale = np.sqrt(np.where(size > MIN_VARIANCE_RATIO * np.median(size), size, 0.0))
    matrix = np.where(np.outer(scale, scale) > 0.0, matrix, 0.0)
    unit = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(unit, unit))
    shown = values > MIN_EIGENVALUE_RATIO * values.max(initial=0.0)
    inverse = (vectors[:, shown] / values[shown]) @ vectors[:, shown].T / np.outer(unit, unit)
    return inverse, np.abs(vectors[:, ~shown]).max(axis=1, initial=0.0) > 1e-3
