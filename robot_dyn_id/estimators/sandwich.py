# SPDX-License-Identifier: Apache-2.0
"""Sandwich covariance for autocorrelated residuals."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.factors import Grams
from robot_dyn_id.estimators.weighting import degrees_of_freedom
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening

DEGREES_OF_FREEDOM_PASSES = 1
"""Passes that give the residual back what the fit has taken from it, before its autocovariance is used."""


def compute_sandwich(
    problem: LinearProblem,
    values: Array,
    bread: Array,
    weights: Array,
    order: int,
    scores: LinearProblem | None = None,
) -> tuple[Array, Array]:
    """RMS of each joint's white noise, and the covariance G (sum w^4 Z' Omega Z) G' of G sum w^2 Z' tau.

    Weighted least squares has the inverse of its normal matrix for G and its own rows for Z (`scores`). Omega is the
    covariance of a joint's residual, C C' with C the autoregressive model run forward on white noise. For stationary
    residuals C' C is the same up to the ends, so W' Omega W is the Gram matrix of the coloured columns C W.
    """
    lagged = LaggedGrams.from_problem(problem, order)
    residual = lagged.residual_autocovariance(values)
    autocovariance = residual * (lagged.counts / degrees_of_freedom(len(values), lagged.counts))[:, None]
    for _ in range(1 + DEGREES_OF_FREEDOM_PASSES):
        whitening = fit_whitening(autocovariance, lagged.counts)
        coloured = Grams.from_problem(problem, whitening.color_tiles(scores or problem))
        middle = coloured.total(weights**2 * whitening.noise_rms)[:-1, :-1]
        covariance = bread @ middle @ bread.T
        autocovariance = residual + lagged.absorbed_autocovariance(covariance)
    return whitening.noise_rms, covariance


def rescale_covariance(covariance: Array, spread: Array) -> Array:
    """The correlations of a covariance, with other standard deviations, shape (p, p)."""
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    share = np.divide(spread, sigma, out=np.zeros_like(spread), where=sigma > 0.0)
    return np.asarray(covariance * np.outer(share, share))
