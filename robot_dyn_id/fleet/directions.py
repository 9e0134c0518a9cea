# SPDX-License-Identifier: Apache-2.0
"""Tests of single linear combinations of the parameters: each robot against the distribution of the others.

Estimates of a combination are normal about the mean of the fleet, with the variance of their noise and that from
robot to robot. Mean and variation are unknown: the probability of a robot's estimate is the mean, over their posterior
given the others, of its probability under each (posterior predictive check). Where noise dominates it has the tail of
a normal distribution, where variation does about that of Student's t.

The prior of the standard deviation from robot to robot is the positive half of a Cauchy distribution (Gelman 2006),
whose scale, in units of the noise, all combinations share: few robots say little about the variation of one
combination, but where none of many varies, it is unlikely that another one does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr

from robot_dyn_id.arrays import Array, Mask

GRID = 200
"""Number of values of the standard deviation from robot to robot."""

LEAST_SHARE, LARGEST_SHARE = 0.01, 30.0
"""Least value as a share of the noise, and largest one as a share of the range of the estimates."""

SCALES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Scales of the Cauchy distribution, as multiples of the noise, with equal probabilities before the data."""

MIN_OTHERS = 3
"""Fewest other robots that a combination is identifiable for."""


def predict_probabilities(estimates: Array, variances: Array, counts: Mask) -> Array:
    """Probability of an estimate at least as far from those of the other robots, two-sided, shape (N, m).

    Args:
        estimates: estimates of m combinations of N robots, shape (N, m).
        variances: variances of their noise, infinite where a combination is not identifiable, shape (N, m).
        counts: robots that count as others, shape (N,); a robot never counts for itself.
    """
    evidence = np.zeros((len(estimates), len(SCALES)))
    probabilities = np.ones(estimates.shape)
    combinations = [
        number for number, known in enumerate(np.isfinite(variances).T) if np.count_nonzero(counts & known) > MIN_OTHERS
    ]
    for number in combinations:
        evidence += _Others.from_estimates(estimates[:, number], variances[:, number], counts).evidence
    scales = np.exp(evidence - logsumexp(evidence, axis=1, keepdims=True))
    for number in combinations:
        others = _Others.from_estimates(estimates[:, number], variances[:, number], counts)
        probabilities[:, number] = others.probabilities(scales)
    return probabilities


@dataclass(frozen=True)
class _Others:
    """Distribution of one combination over the other robots of each robot.

    Attributes:
        known: robots that it is identifiable for, shape (N,).
        likelihood: logarithm of the likelihood of each standard deviation from robot to robot, shape (N, GRID).
        prior: logarithm of the prior of each, one row per scale, shape (scales, GRID).
        tails: probability of the robot's own estimate under each, shape (N, GRID).
    """

    known: Mask
    likelihood: Array
    prior: Array
    tails: Array

    @classmethod
    def from_estimates(cls, estimates: Array, variances: Array, counts: Mask) -> _Others:
        """Distribution over the other robots of estimates, shape (N,), with variances of their noise, shape (N,)."""
        known = np.isfinite(variances)
        counted = np.flatnonzero(counts & known)
        x = np.where(known, estimates - np.median(estimates[counted]), 0.0)[:, None]
        noise = max(float(np.sqrt(np.median(variances[counted]))), 1e-300)
        largest = max(LARGEST_SHARE * float(np.ptp(x[counted])) / noise, 10.0 * LEAST_SHARE)
        steps = np.linspace(0.0, np.arcsinh(largest / LEAST_SHARE), GRID)
        ratios, widths = LEAST_SHARE * np.sinh(steps), np.cosh(steps)
        totals = np.where(known, variances, noise**2)[:, None] + (noise * ratios) ** 2
        weights = 1.0 / totals
        own = (counts & known).astype(np.float64)[:, None]

        def others(values: Array) -> Array:
            """Sum of values, shape (N, GRID), over the robots that count except each in turn."""
            return np.asarray(np.sum(own * values, axis=0) - own * values)

        precision = others(weights)
        mean = others(weights * x) / precision
        squares = np.maximum(others(weights * x**2) - precision * mean**2, 0.0)
        likelihood = -0.5 * (others(np.log(totals)) + np.log(precision) + squares)
        tails = 2.0 * ndtr(-np.abs(x - mean) / np.sqrt(totals + 1.0 / precision))
        scales = np.array(SCALES)[:, None]
        prior = np.log(widths) - np.log1p((ratios / scales) ** 2)
        prior -= logsumexp(prior, axis=1, keepdims=True)
        return cls(known, likelihood, prior, tails)

    @property
    def evidence(self) -> Array:
        """Logarithm of the likelihood of each scale of the prior, shape (N, scales)."""
        return np.asarray(logsumexp(self.likelihood[:, None, :] + self.prior, axis=2))

    def probabilities(self, scales: Array) -> Array:
        """Probability of each robot's own estimate, shape (N,); 1 where it is not identifiable.

        Args:
            scales: probability of each scale of the prior, for each robot, shape (N, scales).
        """
        posterior = np.exp(self.likelihood - self.likelihood.max(axis=1, keepdims=True)) * (scales @ np.exp(self.prior))
        found = np.sum(posterior * self.tails, axis=1) / posterior.sum(axis=1)
        return np.where(self.known, np.minimum(found, 1.0), 1.0)
