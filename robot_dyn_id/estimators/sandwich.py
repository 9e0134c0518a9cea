# SPDX-License-Identifier: Apache-2.0
"""Sandwich covariance for autocorrelated residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.factors import Grams
from robot_dyn_id.estimators.weighting import degrees_of_freedom
from robot_dyn_id.estimators.whitening import LaggedGrams, fit_whitening

DEGREES_OF_FREEDOM_PASSES = 1
"""Iterations of the degrees-of-freedom correction of the residual autocovariance."""


def compute_sandwich(
    problem: LinearProblem,
    values: Array,
    bread: Array,
    weights: Array,
    order: int,
    scores: LinearProblem | None = None,
) -> tuple[Array, Array]:
    """Sandwich covariance G (sum w^4 Z' Omega Z) G' of the estimate G sum w^2 Z' tau.

    Args:
        problem: rows whose residuals are used.
        values: parameters, shape (p,).
        bread: G, shape (p, p).
        weights: weights of the joints, shape (n,).
        order: AR order of the noise model.
        scores: rows Z; by default those of the problem.

    Returns:
        RMS of each joint's white residual, shape (n,), and the covariance, shape (p, p); NaN, without a pass over the
        rows, if only the values of the estimate are used.
    """
    if problem.values_only:
        return np.full(len(weights), np.nan), np.full(bread.shape, np.nan)
    noise, middle = compute_score_covariance(problem, values, bread, weights, order, scores)
    return noise, bread @ middle @ bread.T


def compute_score_covariance(
    problem: LinearProblem,
    values: Array,
    bread: Array,
    weights: Array,
    order: int,
    scores: LinearProblem | None = None,
) -> tuple[Array, Array]:
    """Covariance sum w^4 Z' Omega Z of the score sum w^2 Z' tau, with the arguments of `compute_sandwich`.

    For weighted least squares G is the inverse of the normal matrix, and Z are its own rows. Omega = C C' is the
    covariance of a joint's residual, where C filters white noise with the AR model. For stationary residuals C' C is
    the same except near the ends, so that W' Omega W is the Gram matrix of the filtered columns C W. G corrects the
    residuals for degrees of freedom.

    Returns:
        RMS of each joint's white residual, shape (n,), and the covariance, shape (p, p).
    """
    noise, joints = compute_joint_scores(problem, values, bread, weights, order, scores)
    return noise, joints.total(weights**2)[:-1, :-1]


def compute_joint_scores(
    problem: LinearProblem,
    values: Array,
    bread: Array,
    weights: Array,
    order: int,
    scores: LinearProblem | None = None,
) -> tuple[Array, Grams]:
    """Covariances Z' Omega Z of the joints' scores, with the arguments of `compute_sandwich`.

    They are those of scores with weights of 1: of `total(weights**2)` the first p rows and columns are the covariance
    of the score with weights.

    Returns:
        RMS of each joint's white residual, shape (n,), and the covariances as Gram matrices of the colored rows times
        that RMS.
    """
    lagged = LaggedGrams.from_problem(problem, order)
    residual = lagged.residual_autocovariance(values)
    autocovariance = residual * (lagged.counts / degrees_of_freedom(len(values), lagged.counts))[:, None]
    for _ in range(1 + DEGREES_OF_FREEDOM_PASSES):
        whitening = fit_whitening(autocovariance, lagged.counts)
        colored = Grams.from_problem(problem, whitening.color_tiles(scores or problem))
        scaled = tuple(rms**2 * matrix for rms, matrix in zip(whitening.noise_rms, colored.matrices, strict=True))
        joints = replace(colored, matrices=scaled)
        middle = joints.total(weights**2)[:-1, :-1]
        autocovariance = residual + lagged.absorbed_autocovariance(bread @ middle @ bread.T)
    return whitening.noise_rms, joints


def rescale_covariance(covariance: Array, spread: Array) -> Array:
    """Covariance with the same correlations and other standard deviations `spread`, shape (p, p)."""
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    share = np.divide(spread, sigma, out=np.zeros_like(spread), where=sigma > 0.0)
    return np.asarray(covariance * np.outer(share, share))
