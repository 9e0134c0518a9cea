# SPDX-License-Identifier: Apache-2.0
"""Constrained completion: all standard parameters from base parameters, physically consistent and nearest to a prior.

With P(k) the pseudo-inertia of body k, P0(k) the prior's, x all parameters and b the estimate with information R' R,

    minimize |R (B x - b)|^2 / 2 + sum over k of D(P(k), P0(k)) / spread^2
    subject to P(k) > floor P0(k), friction and rotor inertia >= 0

D is tr((P0^-1 (P - P0))^2) / 2 (`euclidean`; Lee, Wensing and Park 2020, with a constant metric) or the divergence of
the log-determinant (`entropic`; the same to second order, infinite at the floor). Both are solved by damped Newton
steps with a log barrier from a feasible start, by a few dozen small Cholesky factorizations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.consistency import parameters_of, pseudo_inertia
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.factors import MIN_SINGULAR_VALUE_RATIO

METRICS = ("entropic", "euclidean")

FINAL_BARRIER_WEIGHT = 1e-10
"""Final weight of the barrier, as a share of the misfit: the error of the objective per bound."""

HESSIAN_REGULARIZATION = 1e-12
"""Added to the unit diagonal of a Hessian, so that it stays positive definite in spite of rounding."""

MAX_INFORMATION_RATIO = 1e6
"""Maximum information of a combination relative to the prior: more would be lost in rounding."""

MAX_NEWTON_STEPS = 300
"""Newton steps per barrier weight; five to ten are typical, more if precise data contradict physical consistency."""


def _symmetric_basis() -> Array:
    """Orthonormal basis of the symmetric 4 x 4 matrices, shape (10, 4, 4)."""
    basis = []
    for i in range(4):
        for j in range(i + 1):
            element = np.zeros((4, 4))
            element[i, j] = element[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(element)
    return np.array(basis)


BASIS = _symmetric_basis()


@dataclass(frozen=True)
class Completion:
    """Completion problem, solved in coordinates in which the pseudo-inertia of every prior body is the unit matrix.

    Attributes:
        root: R, shape (p, p).
        base: b, shape (p,).
        mapping: B, shape (p, c).
        bodies: parameters of the prior's bodies, physically consistent, shape (b, 10).
        bounded: mask of the terms that are not negative, shape (c - 10 b,).
        spread: relative standard deviation of the prior's pseudo-inertias.
        floor: minimum share of the prior's pseudo-inertia.
        metric: one of `METRICS`.
    """

    root: Array
    base: Array
    mapping: Array
    bodies: Array
    bounded: Mask
    spread: float
    floor: float
    metric: str

    @cached_property
    def shown(self) -> Array:
        """Square root of each term's information: norms of its columns, zero where they are rounding."""
        norms = np.linalg.norm(self.root @ self.mapping[:, self.bodies.size :], axis=0)
        return np.where(norms > MIN_SINGULAR_VALUE_RATIO * norms.max(initial=0.0), norms, 0.0)

    @cached_property
    def scale(self) -> Array:
        """Transformation from the coordinates to the parameters, shape (c, c), block diagonal."""
        inertial = self.bodies.size
        factor = np.linalg.cholesky(pseudo_inertia(self.bodies))
        scale = np.zeros((inertial + len(self.bounded),) * 2)
        for body, lower in enumerate(factor):
            of_body = slice(10 * body, 10 * body + 10)
            scale[of_body, of_body] = parameters_of(lower @ BASIS @ lower.T).T
        sizes = np.abs(np.linalg.lstsq(self.mapping, self.base, rcond=None)[0][inertial:])
        sigmas = np.divide(1.0, self.shown, out=np.zeros_like(sizes), where=self.shown > 0.0)
        found = np.maximum(sizes, sigmas)
        scale[inertial:, inertial:] = np.diag(np.where(found > 0.0, found, 1.0))
        return scale

    def solve(self) -> Array:
        """Solve for all parameters, shape (c,).

        Raises:
            ConvergenceError: the Newton steps did not converge.
        """
        inertial = self.bodies.size
        bounded = self.bounded
        rows = self.root @ self.mapping @ self.scale
        target = self.root @ self.base
        sharpness = np.linalg.norm(rows[:, :inertial], 2) * self.spread / MAX_INFORMATION_RATIO
        if sharpness > 1.0:
            rows = rows / sharpness
            target = target / sharpness
        point = np.concatenate([np.tile(_coordinates(np.eye(4)), len(self.bodies)), bounded * 1.0])
        # Terms that are not excited go to zero.
        weak = np.where(self.shown > 0.0, 1e-6 * np.maximum(1.0, 1e-6 * np.sum(rows[:, inertial:] ** 2, axis=0)), 1.0)
        rows = np.vstack([rows, np.eye(len(weak), len(point), inertial) * np.sqrt(weak)[:, None]])
        target = np.append(target, np.zeros(len(weak)))
        normal = rows.T @ rows
        # The initial weight equals the misfit of the start, so that the path leads through the interior.
        first = max(1.0, float(np.sum((rows @ point - target) ** 2)) / len(point))
        barrier = first
        fit = 0.0
        while barrier > FINAL_BARRIER_WEIGHT * max(1.0, fit):
            barrier *= 0.1
            objective = _Objective(rows, target, normal, bounded, barrier, self.spread**-2, self.floor, self.metric)
            point = _minimum(objective, point)
            fit = float(np.sum((rows @ point - target) ** 2))
        return np.asarray(self.scale @ point)


def _coordinates(matrices: Array) -> Array:
    """Coordinates of symmetric matrices, shape (..., 4, 4) -> (..., 10)."""
    return np.asarray(np.einsum("...ij,sij->...s", matrices, BASIS))


@dataclass(frozen=True)
class _Objective:
    """Objective with a barrier; coordinates: 10 per body, then one per term."""

    rows: Array
    target: Array
    normal: Array
    bounded: Mask
    barrier: float
    weight: float
    floor: float
    metric: str

    def bodies(self, coordinates: Array) -> Array:
        """Matrices of bodies, shape (b, 4, 4)."""
        inertial = len(coordinates) - len(self.bounded)
        return np.asarray(np.einsum("ks,sij->kij", coordinates[:inertial].reshape(-1, 10), BASIS))

    def room(self, point: Array) -> tuple[Array, Array]:
        """Quantities that must stay positive: Y = (Z - floor E) / (1 - floor) of the bodies, and the bounded terms."""
        inertial = len(point) - len(self.bounded)
        matrices = (self.bodies(point) - self.floor * np.eye(4)) / (1.0 - self.floor)
        return matrices, point[inertial:][self.bounded]

    @property
    def logarithm(self) -> float:
        """Weight of -log det Y: the barrier, and with the entropic metric the divergence itself."""
        return self.barrier + (self.weight * (1.0 - self.floor) ** 2 if self.metric == "entropic" else 0.0)

    def value(self, point: Array) -> float:
        """Value of the objective; infinite where a bound is violated."""
        matrices, terms = self.room(point)
        if np.any(terms <= 0.0):
            return np.inf
        signs, logarithms = np.linalg.slogdet(matrices)
        if np.any(signs <= 0.0) or np.any(np.linalg.eigvalsh(matrices)[:, 0] <= 0.0):
            return np.inf
        fit = 0.5 * float(np.sum((self.rows @ point - self.target) ** 2))
        barrier = -self.logarithm * logarithms.sum() - self.barrier * np.log(terms).sum()
        if self.metric == "entropic":
            distance = (1.0 - self.floor) ** 2 * np.trace(matrices, axis1=1, axis2=2).sum()
        else:
            distance = 0.5 * np.sum((self.bodies(point) - np.eye(4)) ** 2)
        return float(fit + barrier + self.weight * distance)

    def slopes(self, point: Array) -> tuple[Array, Array]:
        """Gradient (c,) and Hessian (c, c)."""
        matrices, terms = self.room(point)
        inertial = 10 * len(matrices)
        inverse = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
        gradient = self.rows.T @ (self.rows @ point - self.target)
        hessian = self.normal.copy()
        slope = np.asarray(-self.logarithm / (1.0 - self.floor) * inverse, dtype=np.float64)
        if self.metric == "entropic":
            slope += self.weight * (1.0 - self.floor) * np.eye(4)
        else:
            slope += self.weight * (self.bodies(point) - np.eye(4))
            hessian[range(inertial), range(inertial)] += self.weight
        gradient[:inertial] += _coordinates(slope).ravel()
        half = np.einsum("kij,sjl->ksil", inverse, BASIS)
        blocks = self.logarithm / (1.0 - self.floor) ** 2 * np.einsum("ksil,ktli->kst", half, half)
        for body, block in enumerate(blocks):
            of_body = slice(10 * body, 10 * body + 10)
            hessian[of_body, of_body] += block
        at = inertial + np.flatnonzero(self.bounded)
        gradient[at] -= self.barrier / terms
        hessian[at, at] += self.barrier / terms**2
        return gradient, hessian


def _minimum(objective: _Objective, point: Array) -> Array:
    """Minimize an objective by damped Newton steps from a feasible point.

    Raises:
        ConvergenceError: the line search failed, or the steps did not converge.
    """
    value = objective.value(point)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, hessian = objective.slopes(point)
        size = 1.0 / np.sqrt(np.diag(hessian))
        unit = hessian * size * size[:, None] + HESSIAN_REGULARIZATION * np.eye(len(size))
        step = -size * cho_solve(cho_factor(unit), size * gradient)
        decrease = float(-gradient @ step)
        if decrease < 1e-9 * max(1e-3, objective.barrier) + 1e-11 * abs(value):
            return point
        length = 1.0
        while not (trial := objective.value(point + length * step)) <= value - 0.1 * length * decrease:
            length *= 0.5
            if length < 1e-9:
                if decrease < 1e-6 * max(1.0, abs(value)):  # the remaining decrease is below rounding
                    return point
                raise ConvergenceError("consistent: line search failed before convergence")
        point = point + length * step
        value = trial
    raise ConvergenceError(f"consistent: not converged after {MAX_NEWTON_STEPS} Newton steps: try another spread")
