# SPDX-License-Identifier: Apache-2.0
"""Estimates of parameters and constants: least squares of the problem linearized in the constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.constants.minima import Minimum
from robot_dyn_id.estimators.contract import Estimate, EstimatedConstant
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.findings import Definition, Finding, Section

CONSTANTS_NOT_IDENTIFIED = Definition(
    "constants_not_identified",
    Section.ESTIMATES,
    "warning",
    "Constants of a term, such as a Stribeck velocity, are not determined by the data.",
    "record more motion at low velocity, or fix the constants in the configuration",
)

CONSTANTS_AMBIGUOUS = Definition(
    "constants_ambiguous",
    Section.ESTIMATES,
    "warning",
    "Constants of terms, such as Stribeck velocities, have a second value that fits the data within the noise.",
    "record more motion at low velocity, or fix the constants in the configuration",
)

PEAK_NEGATIVE = Definition(
    "peak_negative",
    Section.ESTIMATES,
    "warning",
    "A peak of friction near rest is negative: the search of its width has ended in a false minimum.",
    "use the estimator `separable`, and leave rows near reversals out (`reversal_speed`)",
)

MIN_EFFECTIVE_ROWS = 10.0
"""Fewest effective rows of a constant, see `count_effective_rows`: the noise of fewer is not known from the others."""

NOISE_DEVIATIONS = 3.0
"""Standard deviations within which a second minimum fits as well, and beyond which its constants are others."""


def estimate_constants(found: Linearized, order: int, costs: Array, values: Array | None = None) -> Estimate:
    """Estimate parameters and constants at the result of a search.

    The covariance of parameters and logarithms of constants is that of least squares with a derivative column for each
    constant. Constants at a bound of their range, or that only a few rows show, are not identifiable, nor are the
    parameters of the peaks that they alone give a width.

    Args:
        found: the problem at the constants that were found.
        order: AR order of the noise model.
        costs: costs during the search.
        values: parameters of the search in place of the optimal ones; their difference d from the latter adds d d' to
            the covariance.
    """
    p = len(found.constants.parameters)
    kind = WeightedLeastSquares if found.weighted else OrdinaryLeastSquares
    chosen = found.inside
    chosen[chosen] = shown_by_rows(found, chosen)
    estimate = replace(
        split_constants(kind(order).fit(found.problem(found.values, chosen)), found, chosen), costs=costs
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


def count_effective_rows(problem: LinearProblem, parameters: int) -> Array:
    """Effective number of rows of each further column, (sum c^2)^2 / sum c^4, shape (columns - parameters,).

    A peak that lasts for a single sample at each reversal fits errors of single rows.
    """
    squares, fourths = np.zeros((2, len(problem.names) - parameters))
    for tile in problem.tiles():
        support = problem.supports[tile.joint]
        own = support >= parameters
        columns = tile.block[:-1][own] ** 2
        squares[support[own] - parameters] += columns.sum(axis=1)
        fourths[support[own] - parameters] += (columns**2).sum(axis=1)
    return np.asarray(np.divide(squares**2, fourths, out=np.zeros_like(squares), where=fourths > 0.0))


def shown_by_rows(found: Linearized, chosen: Mask) -> Mask:
    """Whether more than a few rows show each of the m chosen constants on which a column depends, shape (m,).

    Only where rows near reversals are kept: there a wrong sign of the velocity of a single sample looks like a peak.
    Where they are left out, see `RegressorProblem.min_speeds`, few rows show a peak as well as many.
    """
    problem = found.constants.problem
    slowest = problem.min_speeds()
    left_out = [
        bool(np.abs(problem.regressor.terms[number][0].weights) @ slowest > 0.0)
        for (number, _), own in zip(found.constants.places, chosen, strict=True)
        if own
    ]
    rows = count_effective_rows(found.problem(found.values, chosen), len(found.constants.parameters))
    return np.asarray(np.array(left_out, dtype=bool) | (rows == 0.0) | (rows >= MIN_EFFECTIVE_ROWS))


def list_faint(estimate: Estimate, found: Linearized) -> Integers:
    """Parameters that are not above zero by more than the noise, and that constants which are identified give a width.

    Without the peak there is nothing that its width could be identified from.
    """
    identified = np.isfinite([constant.standard_deviation for constant in estimate.constants])
    rising = found.rising_with(identified)
    return rising[estimate.values[rising] < NOISE_DEVIATIONS * estimate.standard_deviations[rising]]


def report_ambiguous(estimate: Estimate, found: Linearized, others: Iterable[Minimum]) -> tuple[Finding, ...]:
    """Findings about other minima whose cost is higher by less than the noise.

    The cost is that of white residuals: its differences are smaller in the noise by the ratio of the variances of the
    constants to those of white residuals.

    Args:
        estimate: estimate at the lowest minimum.
        found: the problem there.
        others: minima that may be others.
    """
    sigmas = np.array([constant.standard_deviation / constant.value for constant in estimate.constants])
    known = sigmas < 1.0
    if not known.any():
        return ()
    inflation = max(1.0, float(np.median((sigmas[known] / found.white_deviations()[known]) ** 2)))
    labels = found.constants.labels
    listed: dict[str, list[float]] = {}
    for other in others:
        excess = 2.0 * (other.cost - found.cost) / (inflation * (1.0 if found.weighted else found.variance))
        away = np.abs(other.logarithms - found.logarithms) > NOISE_DEVIATIONS * sigmas
        if excess < NOISE_DEVIATIONS**2:
            for i in np.flatnonzero(known & away):
                listed.setdefault(labels[i], [estimate.constants[i].value]).append(float(np.exp(other.logarithms[i])))
    if not listed:
        return ()
    texts = (f"{label}: {' or '.join(f'{value:.3g}' for value in values)}" for label, values in listed.items())
    return (CONSTANTS_AMBIGUOUS.found(f"several values fit these data within the noise: {', '.join(texts)}"),)


def split_constants(extended: Estimate, found: Linearized, chosen: Mask) -> Estimate:
    """Split an estimate of `found.problem(..., chosen)` into parameters and constants."""
    constants = found.constants
    p = len(found.constants.parameters)
    sigmas = np.full(len(found.logarithms), np.inf)
    sigmas[chosen] = extended.standard_deviations[p:]
    deviations = extended.standard_deviations[:p].copy()
    deviations[found.rising_with(sigmas == np.inf)] = np.inf
    estimated = tuple(
        EstimatedConstant(name, joint, float(value), float(value * sigma))
        for (name, joint), value, sigma in zip(constants.names, np.exp(found.logarithms), sigmas, strict=True)
    )
    unknown = [label for label, sigma in zip(constants.labels, sigmas, strict=True) if not sigma < 1.0]
    message = f"these data do not determine {', '.join(unknown)}"
    findings: tuple[Finding, ...] = (CONSTANTS_NOT_IDENTIFIED.found(message),) if unknown else ()
    values = extended.values[:p]
    rising = found.rising
    below = rising[values[rising] < -NOISE_DEVIATIONS * extended.standard_deviations[rising]]
    if len(below):
        names = ", ".join(f"{constants.parameters[i]} = {values[i]:.3g}" for i in below)
        findings += (PEAK_NEGATIVE.found(f"friction rises with speed near rest: {names}"),)
    return replace(
        extended,
        values=extended.values[:p],
        covariance=extended.covariance[:p, :p],
        standard_deviations=deviations,
        unexcited=tuple(name for name in extended.unexcited if name in constants.parameters),
        constants=estimated,
        regressor=constants.regressor(found.logarithms),
        findings=(*extended.findings, *findings),
    )
