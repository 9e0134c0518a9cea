# SPDX-License-Identifier: Apache-2.0
"""Robots drawn from the uncertainty of an identified model, each of them physically consistent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative, pseudo_inertia
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.parameters import ParameterSet

TRANSITIONS = 30
"""Steps of the Markov chain that replaces a rejected draw."""

HALVINGS = 30
"""Most times that an inconsistent draw moves halfway to a consistent robot before its chain begins."""

MIN_VARIANCE = 1e-15
"""Variance, as a share of the largest, below which a direction of the parameters counts as certain."""

PRIOR_STRENGTH = 1e-3
"""Information of the prior bodies where the consistent robot nearest to the estimate is found; see `Consistent`."""


@dataclass(frozen=True)
class RobotDraws:
    """E robots drawn from the posterior of the p base parameters, truncated to what a real robot can have.

    Attributes:
        values: base parameters, shape (E, p).
        bodies: standard parameters of b physically consistent bodies with these base parameters, shape (E, b, 10).
        rejected: number of independent draws from the normal distribution that no real robot has. Each was replaced by
            a draw of the truncated distribution from a Markov chain.
        held: names of the base parameters that the data do not determine; they keep their estimates.
    """

    values: Array
    bodies: Array
    rejected: int
    held: tuple[str, ...]


@dataclass(frozen=True)
class _Posterior:
    """Normal distribution of the base parameters, and how they are completed to all parameters of a robot.

    Attributes:
        center: all c parameters of the estimate, shape (c,).
        mapping: base parameters of all parameters, shape (p, c).
        lift: change of all parameters for a change of the base parameters, shape (c, p): the least one in terms of the
            mass and length of each body.
        root: square root of the covariance of the base parameters, shape (p, p).
        bodies: number of the bodies.
        bounded: mask of the terms that cannot be negative, shape (c - 10 b,).
        start: change that gives a consistent robot, shape (p,): zero for a consistent estimate.
    """

    center: Array
    mapping: Array
    lift: Array
    root: Array
    bodies: int
    bounded: Mask
    start: Array

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Changes of the base parameters, shape (count, p)."""
        return np.asarray(rng.normal(size=(count, len(self.root))) @ self.root.T)

    def complete(self, changes: Array) -> Array:
        """All parameters, shape (E, c), with changes of the base parameters, shape (E, p)."""
        return np.asarray(self.center + changes @ self.lift.T)

    def consistent(self, changes: Array) -> Mask:
        """Mask of the changes, shape (E, p), that give a real robot, shape (E,)."""
        full = self.complete(changes)
        first = 10 * self.bodies
        signs = (full[:, first:] >= np.minimum(self.center[first:], 0.0)) | ~self.bounded
        return np.asarray(signs.all(axis=1) & _are_bodies(full[:, :first].reshape(-1, self.bodies, 10)).all(axis=1))

    def move_inside(self, changes: Array) -> Array:
        """Consistent changes near inconsistent ones, shape (E, p), within the set rather than on its boundary.

        Terms with the wrong sign are reflected; what is still inconsistent moves halfway to the consistent robot of
        `start`, as often as needed. A chain from a corner of the set would hardly move.
        """
        first, full = 10 * self.bodies, self.complete(changes)
        reflected = np.zeros_like(full)
        terms = full[:, first:]
        reflected[:, first:] = np.where((terms < 0.0) & self.bounded, -2.0 * terms, 0.0)
        inside = changes + reflected @ self.mapping.T
        for _ in range(HALVINGS):
            outside = ~self.consistent(inside)
            inside[outside] = 0.5 * (inside[outside] + self.start)
        inside[~self.consistent(inside)] = self.start
        return np.asarray(inside)


def draw_robots(parameters: ParameterSet, count: int, seed: int, spread: float = 1.0) -> RobotDraws:
    """Draw robots from the posterior of an identified model.

    Base parameters are drawn from the normal distribution of the reported covariance, and completed to bodies by the
    least change, in terms of each body's mass and length, of those of the parameter set. A draw is consistent if every
    body's pseudo-inertia is positive definite, and friction and rotor inertia are not negative. The draws that are not
    are rejected, and replaced by elliptical slice sampling of the truncated distribution (Murray, Adams and MacKay
    2010), `TRANSITIONS` steps from a point of the consistent set near the rejected draw: its steps never leave the
    set, however small that is.

    Args:
        parameters: identified model.
        count: number E of robots.
        seed: seed of the draws; the same seed and count give the same robots.
        spread: factor of the standard deviations.

    Raises:
        UsageError: no robot is requested, or the spread is not a positive number.
        InputError: the model has no covariance, or no physically consistent robot is near it.
    """
    if count < 1:
        raise UsageError(f"number of robots: {count}; give 1 or more")
    if not 0.0 < spread < np.inf:
        raise UsageError(f"spread: {spread:g}; give a positive number")
    regressor = Regressor.from_parameters(parameters)
    known = np.isfinite(parameters.estimate.standard_deviations) & np.isfinite(np.diag(parameters.estimate.covariance))
    if not parameters.estimate.covariance[np.ix_(known, known)].any():
        raise InputError("the parameters have no covariance to draw from: identify with an estimator that reports one")
    posterior = _posterior(parameters, regressor, known, spread)
    rng = np.random.default_rng(seed)
    changes = posterior.sample(rng, count)
    accepted = posterior.consistent(changes)
    rejected = np.flatnonzero(~accepted)
    if len(rejected):
        changes[rejected] = _slice_sample(posterior, posterior.move_inside(changes[rejected]), rng)
    bodies = posterior.complete(changes)[:, : 10 * posterior.bodies].reshape(count, posterior.bodies, 10)
    held = tuple(name for name, flag in zip(parameters.base.names, known, strict=True) if not flag)
    return RobotDraws(parameters.estimate.values + changes, bodies, len(rejected), held)


def _posterior(parameters: ParameterSet, regressor: Regressor, known: Mask, spread: float) -> _Posterior:
    """The distribution; base parameters that are not `known`, shape (p,), do not vary.

    Raises:
        InputError: no consistent robot is near.
    """
    prior, terms = BodyPrior.from_model(regressor.model), len(regressor.term_columns)
    scales = np.append(prior.scales.ravel(), np.ones(terms))
    lift = scales[:, None] * np.linalg.pinv(parameters.base.mapping * scales)
    covariance = np.where(known[:, None] & known, parameters.estimate.covariance, 0.0)
    variances, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = spread * axes * np.sqrt(np.maximum(variances, 0.0))
    bounded, start = flag_not_negative(regressor), np.zeros(len(root))
    center = np.concatenate([parameters.bodies.standard_parameters, parameters.terms.values])
    if not parameters.bodies.physically_consistent:
        least = variances[variances > MIN_VARIANCE * variances[-1]].min()
        information = (axes / np.sqrt(np.maximum(variances, least))).T
        rows = information @ np.column_stack([parameters.base.mapping, parameters.estimate.values])
        nearest = fit_consistent(rows.T @ rows, prior, bounded, PRIOR_STRENGTH).values
        start = parameters.base.mapping @ nearest - parameters.estimate.values
        center = nearest - lift @ start
    posterior = _Posterior(center, parameters.base.mapping, lift, root, len(regressor.model.body_names), bounded, start)
    if not posterior.consistent(start[None]).all():
        raise InputError(
            "no physically consistent robot is near the identified parameters: identify with the estimator consistent"
        )
    return posterior


def _slice_sample(posterior: _Posterior, changes: Array, rng: np.random.Generator) -> Array:
    """Elliptical slice sampling of the truncated distribution, one chain from each of the changes, shape (E, p)."""
    for _ in range(TRANSITIONS):
        other = posterior.sample(rng, len(changes))
        angle = rng.uniform(0.0, 2.0 * np.pi, len(changes))
        low, high = angle - 2.0 * np.pi, angle.copy()
        moved, left = np.empty_like(changes), np.arange(len(changes))
        while len(left):
            turn = angle[left, None]
            moved[left] = changes[left] * np.cos(turn) + other[left] * np.sin(turn)
            left = left[~posterior.consistent(moved[left])]
            shrunk = angle[left]
            low[left], high[left] = (
                np.where(shrunk < 0.0, shrunk, low[left]),
                np.where(shrunk < 0.0, high[left], shrunk),
            )
            angle[left] = rng.uniform(low[left], high[left])
        changes = moved
    return changes


def _are_bodies(parameters: Array) -> Mask:
    """Mask of bodies, shape (..., 10), with a positive definite pseudo-inertia: all four pivots are positive."""
    matrix = pseudo_inertia(parameters)
    possible = np.ones(matrix.shape[:-2], dtype=bool)
    with np.errstate(all="ignore"):  # what follows a pivot of zero does not count
        for k in range(4):
            pivot = matrix[..., k, k]
            possible &= pivot > 0.0
            rest = matrix[..., k + 1 :, k]
            matrix[..., k + 1 :, k + 1 :] -= rest[..., :, None] * rest[..., None, :] / pivot[..., None, None]
    return possible
