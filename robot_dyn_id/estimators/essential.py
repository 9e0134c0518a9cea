# SPDX-License-Identifier: Apache-2.0
"""Essential parameters: those that the data tell, by backward elimination (Pressé and Gautier 1992; Janot et al. 2014).

The parameter with the greatest relative standard deviation is taken for zero, the others are estimated again, and so
on, as long as one is that uncertain and an F-test does not object to what has been left out altogether. All of
it from the estimate and its covariance, which is what least squares of the reduced problem would give.

What is left out is not zero: the others take over its share. With x, C the estimate of all and its covariance, x_r that
of the essential ones without the others and s = x_r - x their shift, their errors have the second moment C + s s' given
the data, where nothing else is known: E (x_r - t)(x_r - t)' = E (x - t)(x - t)' + s s', since x - t has mean 0 then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import f as f_distribution

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.base_parameters import BaseParameters
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.findings import make_finding

MAX_RELATIVE_DEVIATION = 0.3
"""Relative standard deviation of a parameter that is not essential."""

F_TEST_LEVEL = 0.05
"""Of the F-test."""

MIN_VARIANCE_RATIO = 1e-18
"""Variances below this share of the median are those of parameters that the data do not show at all, up to rounding."""

MIN_EIGENVALUE_RATIO = 1e-12
"""Eigenvalues of the correlations below this share of the largest: a direction that the data do not show."""


@dataclass(frozen=True)
class Elimination:
    """One step.

    Attributes:
        name: of the parameter that is left out.
        value, standard_deviation: of it, where nothing is left out; the latter infinite where the data do not show it.
        relative_deviation: its standard deviation as a share of its value, those before it taken for zero.
        residual_growth: norm of the residuals without all parameters left out so far, over that with them, less 1.
        statistic: of the F-test of all parameters left out so far.
        probability: that F is this large although they are zero.
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
    """What a backward elimination has come to.

    Attributes:
        kept: numbers of the essential parameters, ascending.
        left_out: the others, in order.
        objected: the step that the F-test did not allow, if one ended the elimination.
        values: of the essential parameters.
        covariance: second moments of their errors, the others not taken for zero.
        standard_deviations: one sigma; infinite for those with a share in a direction that the data do not show.
    """

    kept: Integers
    left_out: tuple[Elimination, ...]
    objected: Elimination | None
    values: Array
    covariance: Array
    standard_deviations: Array


def check_limit(limit: float) -> None:
    """Refuse limits that are none; 0 is no elimination.

    Raises:
        UsageError: negative or not finite.
    """
    if not 0.0 <= limit < np.inf:
        raise UsageError(f"essential: must be 0 (keep all) or a relative standard deviation above it, not {limit}")


def essential(
    estimate: Estimate, names: Sequence[str], limit: float = MAX_RELATIVE_DEVIATION, level: float = F_TEST_LEVEL
) -> Essential:
    """Leave out parameters that the data do not tell.

    Args:
        estimate: of p parameters, with a covariance.
        names: of them.
        limit: greatest relative standard deviation of an essential parameter.
        level: of the F-test.

    Raises:
        UsageError: an estimate with bounds, which has more than these parameters; a limit of 0 or less.
    """
    if estimate.full is not None:
        raise UsageError("essential: an estimate of all standard parameters cannot be reduced: use weighted")
    check_limit(limit)
    information, _ = _inverse(estimate.covariance)
    moment = information @ estimate.values
    explained, freedom = float(moment @ estimate.values), max(1, estimate.rows - len(names))
    kept = np.arange(len(names))
    values, sigma = estimate.values, estimate.standard_deviations
    steps: list[Elimination] = []
    objected = None
    while len(kept) > 1:
        relative = np.divide(sigma, np.abs(values), out=np.full(len(kept), np.inf), where=values != 0.0)
        worst = int(np.argmax(relative))
        if relative[worst] <= limit:
            break
        fewer = np.delete(kept, worst)
        inverse, unseen = _inverse(information[np.ix_(fewer, fewer)])
        trial = inverse @ moment[fewer]
        lost = max(0.0, explained - float(moment[fewer] @ trial))
        count = len(names) - len(fewer)
        number = int(kept[worst])
        step = Elimination(
            names[number], float(estimate.values[number]), float(estimate.standard_deviations[number]),
            float(relative[worst]), float(np.sqrt(1.0 + lost / freedom) - 1.0), lost / count,
            float(f_distribution.sf(lost / count, count, freedom)),
        )  # fmt: skip
        if step.probability < level:
            objected = step
            break
        steps.append(step)
        kept, values = fewer, trial
        sigma = np.where(unseen, np.inf, np.sqrt(np.maximum(np.diag(inverse), 0.0)))
    shift = values - estimate.values[kept]
    covariance = estimate.covariance[np.ix_(kept, kept)] + np.outer(shift, shift)
    deviations = np.where(np.isinf(sigma), np.inf, np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    return Essential(kept, tuple(steps), objected, values, covariance, deviations)


def reduced(base: BaseParameters, estimate: Estimate, found: Essential) -> tuple[BaseParameters, Estimate]:
    """Base parameters and estimate without those that are not essential, which are zero."""
    kept = found.kept
    fewer = replace(
        base,
        names=tuple(base.names[i] for i in kept),
        expressions=tuple(base.expressions[i] for i in kept),
        units=tuple(base.units[i] for i in kept),
        independent=base.independent[kept],
        mapping=base.mapping[kept],
    )
    lost = make_finding(
        "intervals_lost",
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
    """Pseudo-inverse of a covariance or information, and which parameters have a share in what it does not hold."""
    size = np.diag(matrix)
    scale = np.sqrt(np.where(size > MIN_VARIANCE_RATIO * np.median(size), size, 0.0))
    matrix = np.where(np.outer(scale, scale) > 0.0, matrix, 0.0)
    unit = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(unit, unit))
    shown = values > MIN_EIGENVALUE_RATIO * values.max(initial=0.0)
    inverse = (vectors[:, shown] / values[shown]) @ vectors[:, shown].T / np.outer(unit, unit)
    return inverse, np.abs(vectors[:, ~shown]).max(axis=1, initial=0.0) > 1e-3
