# SPDX-License-Identifier: Apache-2.0
"""Test of each robot against the rest of its fleet.

Two tests share the error of a robot. One takes single combinations of parameters: each base parameter, and the changes
that are to be expected (a heavier body, more friction in all joints), see `directions`. It finds a change of one part,
which a test of all parameters at once dilutes. The other finds changes of many parameters by little each:
its statistic is the squared Mahalanobis distance of its score from that of the mean of the others; its
covariance contains the noise of the robot's recordings, the variation from robot to robot, and the uncertainty of the
mean. Its distribution has the tail of F, as variances and covariances are estimates. Statistics that are too large
throughout the fleet are divided by the ratio of their median to the expected one (genomic control; Devlin and Roeder
1999): a noise model with too small variances would otherwise accuse sound robots.

Robots that differ must not widen the distribution that they are compared with. A forward search (Hadi 1992; Atkinson
and Riani 2000) begins with the half of the robots nearest to the median, and lets the nearest of those count in
addition that are not named with Holm's correction (1979), until all of them count.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc, fdtri

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.comparison.models import adjust_holm
from robot_dyn_id.fleet.directions import predict_probabilities
from robot_dyn_id.fleet.evidence import Evidence
from robot_dyn_id.fleet.population import Population, VariationModel

NOT_EXCITED = 1e-6
"""Part of a combination that a robot's recordings do not excite, above which it is not identifiable."""

FAMILY_WISE_ERROR = 0.01
"""Intended probability that any sound robot of a fleet is named; docs/fleet.md states the measured ones."""

ROUNDS = 20
"""Largest number of rounds of the forward search."""

GROWTH = 1.25
"""Largest ratio of the numbers of robots that count in successive rounds."""

MIN_COUNTED = 7
"""Fewest robots that count: the variance of the statistic exists from there on."""

MIN_ROBOTS = 8
"""Fewest robots that are compared."""


@dataclass(frozen=True)
class Comparison:
    """A fleet, and the test of its robots against it.

    Attributes:
        population: the distribution over the robots that are not named.
        statistics: squared Mahalanobis distance of each robot, inflation removed, shape (N,).
        freedom: its degrees of freedom, shape (N,).
        probabilities: probability of a statistic at least as large for a robot of the fleet, shape (N,).
        adjusted: that probability with Holm's correction, shape (N,).
        differs: robots that differ from the fleet, shape (N,).
        inflation: factor by which all statistics were too large, at least 1.
        single: probability of each base parameter of each robot, without a correction, shape (N, p).
    """

    population: Population
    statistics: Array
    freedom: Array
    probabilities: Array
    adjusted: Array
    differs: Mask
    inflation: float
    single: Array


def compare_robots(
    evidence: Evidence,
    spread: VariationModel,
    family_wise_error: float = FAMILY_WISE_ERROR,
    changes: Array | None = None,
) -> Comparison:
    """Test each robot against the others.

    Args:
        evidence: what the robots' recordings say, of at least `MIN_ROBOTS` robots.
        spread: how parameters vary.
        family_wise_error: intended probability that any sound robot is named.
        changes: changes of the scaled base parameters that are to be expected, shape (p, c); none by default.
    """
    changes = np.zeros((len(evidence.scales), 0)) if changes is None else changes
    counts = choose_nearest_half(evidence)
    population = Population.from_evidence(evidence, spread, counts)
    comparison = _compare(population, changes, family_wise_error)
    for _ in range(ROUNDS):
        sound = int(np.count_nonzero(~comparison.differs))
        size = max(min(math.ceil(GROWTH * population.robots), sound), MIN_COUNTED)
        nearest = np.argsort(-comparison.probabilities, kind="stable")[:size]
        following = np.isin(np.arange(len(evidence)), nearest)
        if (following == counts).all():
            break
        counts = following
        population = Population.from_evidence(evidence, spread, counts, population)
        comparison = _compare(population, changes, family_wise_error)
    return comparison


def choose_nearest_half(evidence: Evidence) -> Mask:
    """The half of the robots whose own estimates are nearest to the median of the fleet, shape (N,).

    The distance is the mean square of the differences from the median of each parameter, in units of their median
    absolute value, over the parameters that the robot's recordings excite.
    """
    inverses = np.linalg.pinv(evidence.designs)
    own = np.einsum("rij,rj->ri", inverses, evidence.targets)
    excited = np.einsum("rij,rji->ri", inverses, evidence.designs) > 1.0 - 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # parameters that no robot excites, robots without any
        own = np.where(excited, own, np.nan)
        away = np.abs(own - np.nanmedian(own, axis=0))
        distance = np.nanmean((away / np.maximum(np.nanmedian(away, axis=0), 1e-300)) ** 2, axis=1)
    half = max(len(evidence) // 2 + 1, MIN_COUNTED)
    return np.isin(np.arange(len(evidence)), np.argsort(distance, kind="stable")[:half])


def _compare(population: Population, changes: Array, family_wise_error: float) -> Comparison:
    """Statistics and probabilities of all robots under a distribution that only some of them count in.

    The smaller one of the probabilities of the two tests counts, that of single combinations times their number, and
    twice (Bonferroni). The variances are estimates from the robots that count. The covariances are means of theirs and
    of as many of the prior as there are parameters; a Wishart matrix with (N + p)^2 / N degrees of freedom has the same
    variance.
    """
    evidence = population.evidence
    raw = np.array([_distance(population, robot) for robot in range(len(evidence))])
    scale, part = _heavier_tail(population.robots)
    freedom = np.maximum(evidence.ranks, 1) * part
    known = (population.robots + len(evidence.scales)) ** 2 / population.robots
    rest = known - np.maximum(evidence.ranks, 1) + 1.0
    share = rest / (known * scale * freedom)
    inflation = max(1.0, float(np.median(raw * share / fdtri(freedom, rest, 0.5))))
    statistics = raw / inflation
    together = np.asarray(fdtrc(freedom, rest, statistics * share))
    alone = _single_probabilities(population, changes)
    smallest = alone.min(axis=1) * alone.shape[1]
    probabilities = np.minimum(2.0 * np.minimum(together, smallest), 1.0)
    adjusted = adjust_holm(probabilities)
    differs = adjusted < family_wise_error
    single = alone[:, : len(evidence.scales)]
    return Comparison(population, statistics, freedom, probabilities, adjusted, differs, inflation, single)


def _single_probabilities(population: Population, changes: Array) -> Array:
    """Probabilities of single combinations, shape (N, p + c): of each base parameter, then of the size of each change.

    The size of a change is estimated with the weights of generalized least squares, whose covariance contains the
    noise of the median robot and the variation from robot to robot.
    """
    evidence = population.evidence
    inverses = np.linalg.pinv(evidence.designs)
    own = np.einsum("rij,rj->ri", inverses, evidence.targets)
    noise = inverses @ evidence.noise @ inverses.transpose(0, 2, 1)
    typical = np.median(noise, axis=0) + population.spread.covariance(population.deviations)
    weights = np.column_stack([np.eye(len(evidence.scales)), np.linalg.pinv(typical, hermitian=True) @ changes])
    kept = np.einsum("pm,rpq->rmq", weights, inverses @ evidence.designs)
    lost = np.linalg.norm(kept - weights.T, axis=2) > NOT_EXCITED * np.linalg.norm(weights, axis=0)
    variances = np.einsum("pm,rpq,qm->rm", weights, noise, weights)
    return predict_probabilities(own @ weights, np.where(lost, np.inf, variances), population.counted > 0.0)


def _heavier_tail(robots: int) -> tuple[float, float]:
    """Scale and share of the degrees of freedom of a chi-square statistic whose variances are estimates.

    Each term of the statistic is the square of a Student variate with the degrees of freedom of a variance over the
    other robots. The scaled chi-square distribution with mean and variance of their sum is used (Satterthwaite 1946).

    Args:
        robots: number of robots that the variances are estimated from, at least `MIN_COUNTED`.
    """
    known = float(max(robots, MIN_COUNTED) - 2)
    mean = known / (known - 2.0)
    variance = 2.0 * known**2 * (known - 1.0) / ((known - 2.0) ** 2 * (known - 4.0))
    scale = variance / (2.0 * mean)
    return scale, mean / scale


def _distance(population: Population, robot: int) -> float:
    """Squared Mahalanobis distance of a robot's score from that of the mean of the others."""
    e = population.evidence
    mean, of_mean, variation = population.leave_out(robot)
    design = e.designs[robot]
    total = e.noise[robot] + design @ (variation + of_mean) @ design.T
    residual = e.targets[robot] - design @ mean
    return float(residual @ np.linalg.solve(total, residual))


@dataclass(frozen=True)
class ParameterDifference:
    """A base parameter of a robot that differs from the fleet.

    Attributes:
        name: name of the parameter.
        value: estimate from the robot's own recordings.
        fleet: mean of the other robots.
        standard_deviation: standard deviation of the difference, variation from robot to robot included.
        probability: probability of such a difference for a robot of the fleet, with Holm's correction.
    """

    name: str
    value: float
    fleet: float
    standard_deviation: float
    probability: float


def compute_difference_from_others(comparison: Comparison, robot: int) -> tuple[Array, Array, Array]:
    """Own estimate of a robot, mean of the others, and covariance of their difference, SI.

    Args:
        comparison: the test of all robots.
        robot: number of the robot.

    Returns:
        Estimate and mean, shape (p,), and covariance, variation from robot to robot included, shape (p, p); its
        diagonal is infinite where the robot's recordings do not excite a parameter.
    """
    e = comparison.population.evidence
    mean, of_mean, variation = comparison.population.leave_out(robot)
    rank = int(e.ranks[robot])
    design = e.designs[robot, :rank]
    inverse = np.linalg.pinv(design)
    own = inverse @ e.targets[robot, :rank]
    covariance = inverse @ e.noise[robot, :rank, :rank] @ inverse.T + variation + of_mean
    covariance *= comparison.inflation
    excited = np.diag(inverse @ design) > 1.0 - NOT_EXCITED
    covariance[np.diag_indices(len(own))] += np.where(excited, 0.0, np.inf)
    return own * e.scales, mean * e.scales, covariance * np.outer(e.scales, e.scales)


def name_differences(
    comparison: Comparison, robot: int, names: Sequence[str], family_wise_error: float = FAMILY_WISE_ERROR
) -> tuple[ParameterDifference, ...]:
    """Name the parameters in which a robot differs from the fleet, the most significant first.

    A robot can differ without a single parameter that does so significantly: then none is named.

    Args:
        comparison: the test of all robots.
        robot: number of the robot.
        names: names of the base parameters, p.
        family_wise_error: probability that any parameter that does not differ is named.
    """
    own, mean, covariance = compute_difference_from_others(comparison, robot)
    sigma = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    adjusted = adjust_holm(comparison.single[robot])
    order = np.argsort(comparison.single[robot], kind="stable")
    count = int(np.count_nonzero(adjusted < family_wise_error))
    return tuple(
        ParameterDifference(
            names[place], float(own[place]), float(mean[place]), float(sigma[place]), float(adjusted[place])
        )
        for place in order[:count].tolist()
    )
