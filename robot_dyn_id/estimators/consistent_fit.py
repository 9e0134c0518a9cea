# SPDX-License-Identifier: Apache-2.0
"""Physically consistent least squares on compressed rows: all parameters, signs kept, every body a real one.

With G the Gram matrix of weighted rows [Y tau] of all columns, x0(k) the prior's bodies and D(k) their scales,

    minimize |Y x - tau|^2 / 2 + strength sum over k of |D(k)^-1 (x(k) - x0(k))|^2 / 2
    subject to P(x(k)) >= floor P(x0(k)), friction and rotor inertia >= 0

where P is the pseudo-inertia (Wensing, Kim and Slotine 2018; with a constant metric as Lee, Wensing and Park 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import convert_to_parameters, pseudo_inertia
from robot_dyn_id.estimators.cone_program import BASIS, ConeProgram, convert_to_coordinates

FLOOR = 0.01
"""Least pseudo-inertia of a body, as a share of the prior's: it keeps bodies off the boundary."""

MIN_STRENGTH_RATIO = 1e-11
"""Least strength relative to the information of the data: less would be lost in rounding."""

TERM_RIDGE = 1e-8
"""Ridge on unit-norm columns of terms: of collinear columns it takes equal parts."""

MIN_COLUMN_RATIO = 1e-12
"""Columns of terms whose norm is below this share of the largest are rounding: their parameters are zero."""

FLOOR_MARGIN = 1e-3
"""Bodies whose least share of the prior's pseudo-inertia is below the floor times 1 plus this lie on the boundary."""

GAP = 1e-13
"""Duality gap as a share of the squared torques."""


@dataclass(frozen=True)
class ConsistentFit:
    """Result of a physically consistent fit.

    Attributes:
        values: all c parameters, shape (c,); bounded ones may be exactly zero.
        at_zero: mask of the columns of terms whose bound holds, or that the data do not excite, shape (c - 10 b,).
        at_floor: mask of the bodies on the boundary of what is physically consistent, shape (b,).
        strength: strength of the prior that was used: at least that of rounding.
        live: mask of the columns that the data excite; all inertial ones, because the prior knows them, shape (c,).
        normal: regularized normal matrix, shape (c, c).
        right: right side of the normal equations, shape (c,).
    """

    values: Array
    at_zero: Mask
    at_floor: Mask
    strength: float
    live: Mask
    normal: Array
    right: Array


def fit_consistent(
    gram: Array, prior: BodyPrior, bounded: Mask, strength: float, *, links: bool = True, floor: float = FLOOR
) -> ConsistentFit:
    """Fit all parameters of a regressor to weighted rows, physically consistent.

    Args:
        gram: Gram matrix of the weighted rows [Y tau] over all c columns, shape (c + 1, c + 1); rows should have unit
            variance, so that strengths are comparable.
        prior: prior bodies and their scales; it determines what the rows do not.
        bounded: mask of the terms that are not negative, shape (c - 10 b,).
        strength: information of the prior: 1 takes an error as large as the scales for one standard deviation; 0 is
            replaced by the least that rounding allows.
        links: whether every body is physically consistent; False: only signs are kept.
        floor: least pseudo-inertia of a body, as a share of the prior's.

    Returns:
        The fit. Whatever the rows, its bodies are physically consistent and its bounded terms are not negative.
    """
    inertial = prior.bodies.size
    scales = prior.scales.ravel()
    information = scales[:, None] * gram[:inertial, :inertial] * scales
    if strength < MIN_STRENGTH_RATIO * float(np.trace(information)):  # the trace exceeds the largest eigenvalue
        strength = max(strength, MIN_STRENGTH_RATIO * float(np.linalg.eigvalsh(information)[-1]))
    size = np.sqrt(np.maximum(np.diag(gram)[inertial:-1], 0.0))
    weight = np.append(strength / scales**2, TERM_RIDGE * size**2)
    normal = gram[:-1, :-1] + np.diag(weight)
    right = gram[:-1, -1] + weight * np.append(prior.bodies.ravel(), np.zeros(len(size)))

    excited = size > MIN_COLUMN_RATIO * size.max(initial=0.0)
    live = np.append(np.ones(inertial, dtype=bool), excited)
    columns = np.flatnonzero(live)
    bounds = np.flatnonzero(bounded[excited]) + inertial
    transform = _Transform.from_prior(prior, size[excited])
    program = ConeProgram(
        quadratic=transform.find_quadratic(normal if live.all() else normal[columns[:, None], columns]),
        linear=-transform.find_linear(right[columns]),
        bodies=len(prior.bodies) if links else 0,
        bounded=bounds,
        floor=floor,
    )
    coordinates, multipliers = program.solve(GAP * float(gram[-1, -1]))
    coordinates[bounds] = np.where(coordinates[bounds] <= multipliers, 0.0, coordinates[bounds])
    at_floor = _least_share(coordinates[:inertial]) < (1.0 + FLOOR_MARGIN) * floor
    if links:
        coordinates[:inertial] = _inside(coordinates[:inertial], floor)
    values = np.zeros(len(live))
    values[columns] = transform.find_parameters(coordinates)
    return ConsistentFit(values, values[inertial:] == 0.0, at_floor, strength, live, normal, right)


@dataclass(frozen=True)
class _Transform:
    """Transformation T from coordinates to parameters, which is block-diagonal.

    In the coordinates the pseudo-inertias of the prior are unit matrices, and columns of terms have unit norm.

    Attributes:
        bodies: blocks of the bodies, shape (b, 10, 10).
        terms: diagonal of the terms, shape (l,).
    """

    bodies: Array
    terms: Array

    @classmethod
    def from_prior(cls, prior: BodyPrior, norms: Array) -> _Transform:
        """Transformation of the bodies of a prior and of columns of terms with some norms, shape (l,)."""
        lower = np.linalg.cholesky(pseudo_inertia(prior.bodies))[:, None]
        bodies = convert_to_parameters(lower @ BASIS @ np.swapaxes(lower, -1, -2))
        return cls(np.swapaxes(bodies, 1, 2), 1.0 / norms)

    def find_quadratic(self, normal: Array) -> Array:
        """T' N T of a symmetric matrix N, shape (c, c)."""
        inertial = 10 * len(self.bodies)
        scale = np.append(np.ones(inertial), self.terms)
        out = normal * scale * scale[:, None]
        rows = self._turn(out[:inertial])
        rows[:, :inertial] = self._turn(rows[:, :inertial].T)
        out[:inertial], out[:, :inertial] = rows, rows.T
        return out

    def find_linear(self, right: Array) -> Array:
        """T' times a vector, shape (c,)."""
        inertial = 10 * len(self.bodies)
        return np.append(self._turn(right[:inertial, None]), self.terms * right[inertial:])

    def find_parameters(self, coordinates: Array) -> Array:
        """T times some coordinates, shape (c,)."""
        inertial = 10 * len(self.bodies)
        of_bodies = self.bodies @ coordinates[:inertial].reshape(-1, 10, 1)
        return np.append(of_bodies.ravel(), self.terms * coordinates[inertial:])

    def _turn(self, rows: Array) -> Array:
        """Transposed blocks of the bodies times rows, shape (10 b, k)."""
        parts = np.swapaxes(self.bodies, 1, 2) @ rows.reshape(len(self.bodies), 10, rows.shape[1])
        return np.asarray(parts.reshape(rows.shape))


def _least_share(coordinates: Array) -> Array:
    """Smallest eigenvalue of each body's matrix, from coordinates of shape (10 b,)."""
    return np.asarray(np.linalg.eigvalsh(np.einsum("ks,sij->kij", coordinates.reshape(-1, 10), BASIS))[:, 0])


def _inside(coordinates: Array, floor: float) -> Array:
    """Bodies moved towards the prior until their smallest eigenvalue is the floor, where rounding has left it lower."""
    least = _least_share(coordinates)
    share = np.clip((floor - least) / np.maximum(1.0 - least, 1e-300), 0.0, 1.0)[:, None]
    bodies = coordinates.reshape(-1, 10)
    return np.asarray(bodies + share * (convert_to_coordinates(np.eye(4)) - bodies)).ravel()
