# SPDX-License-Identifier: Apache-2.0
"""Variable projection on compressed rows: the cost over constants alone (Golub and Pereyra 1973).

Columns are polynomials through Chebyshev nodes of the logarithms of their constants, so Gram matrices of the columns at
all nodes, from one walk over the data, give the cost of any constants, its gradient and its second derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.estimators.constants.chebyshev import differentiation, interpolation
from robot_dyn_id.estimators.constants.constants import LOG_RANGE_MARGIN, MAX_LOG_STEP, Constants
from robot_dyn_id.estimators.constants.sampled import SampledProblem, sample_at_nodes
from robot_dyn_id.estimators.factors import Grams
from robot_dyn_id.estimators.weighting import compute_weights_from_squares

NODES_PER_CONSTANT = 64
"""Of a constant alone in its term: exp(-(v / c)^2) is followed to 3e-6 of the column over a range of 1 to 5000."""

MAX_NODES_PER_TERM = 144
"""Nodes of a term with several constants."""

MIN_EIGENVALUE_RATIO = 1e-13
"""Eigenvalues of a Gram matrix of unit-norm columns below this share of the largest are rounding."""

PROJECTED_RANK_TOLERANCE = 1e-10
"""The same of a Gram matrix from which other columns were taken off."""

MIN_CURVATURE_RATIO = 1e-6
"""Curvature, as a share of the greatest, below which a step is not longer."""

STEP_SHARES = 0.5 ** np.arange(10.0)
"""Of a step, tried in turn until the cost falls."""

MAX_NEWTON_STEPS = 50
"""Of Newton's method, at most: where it ends is only a start."""

CONVERGED_COST_DECREASE = 1e-10
"""Decrease of the cost, as a share of it, that is none."""


class Curvature(NamedTuple):
    """The cost at some constants, half of the sum of squares, with first and second derivatives by the logarithms."""

    cost: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True)
class Projected:
    """Least squares with one weight per joint, of which only the k constants are left.

    Attributes:
        constants: the k constants.
        nodes: of each constant.
        seen: the columns at the nodes.
        grams: of those columns.
        weights: of the joints, shape (n,).
    """

    constants: Constants
    nodes: tuple[Array, ...]
    seen: SampledProblem
    grams: Grams
    weights: Array

    @classmethod
    def from_constants(cls, constants: Constants) -> Self:
        """Walk the data once; all rows alike."""
        nodes, seen = sample_at_nodes(
            constants, constants.lower, constants.upper, NODES_PER_CONSTANT, MAX_NODES_PER_TERM
        )
        grams = Grams.from_problem(seen.problem)
        return cls(constants, nodes, seen, grams, np.ones(len(grams.counts)))

    def reweight(self, logarithms: Array) -> Projected:
        """With weights 1 / RMS of the residuals at some constants."""
        mixing, _ = self.mixing(self._one(logarithms))
        _, values = self._solved(mixing)
        spread = mixing @ values
        fixed = self._left[1][:, -1] - self._left[1][:, :-1] @ spread
        squares = self.grams.squared_residuals(np.concatenate([fixed, spread]))
        return replace(
            self, weights=compute_weights_from_squares(squares, len(self.constants.parameters), self.grams.counts)
        )

    @cached_property
    def _total(self) -> Array:
        return self.grams.total(self.weights)

    @cached_property
    def _left(self) -> tuple[Array, Array]:
        """Gram matrix of the columns at the nodes and the torque, less what the fixed columns explain, and how."""
        total, f = self._total, len(self.seen.fixed)
        norms = np.sqrt(np.diag(total)[:f])
        scale = np.where(norms > 0.0, norms, 1.0)
        values, vectors = np.linalg.eigh(total[:f, :f] / np.outer(scale, scale))
        told = values > MIN_EIGENVALUE_RATIO * values.max(initial=0.0)
        root = vectors[:, told] / np.sqrt(values[told]) / scale[:, None]
        shares = root.T @ total[:f, f:]
        return total[f:, f:] - shares.T @ shares, root @ shares

    @cached_property
    def _slopes(self) -> tuple[Array, ...]:
        """Of polynomials through the nodes of each constant."""
        return tuple(differentiation(nodes) for nodes in self.nodes)

    def _shares(self, number: int, values: Array, *derived: int) -> Array:
        """What a term's nodes count at some values of its constants, shape (values, nodes).

        Args:
            number: of the term.
            values: logarithms, shape (values, constants of the term).
            derived: constants of the term by which it is derived.
        """
        shares = np.ones((len(values), 1))
        for place, i in enumerate(self.constants.numbers[number]):
            one = interpolation(self.nodes[i], values[:, place])
            for _ in range(derived.count(place)):
                one = one @ self._slopes[i]
            shares = (shares[:, :, None] * one[:, None, :]).reshape(len(values), -1)
        return shares

    def mixing(self, values: dict[int, Array]) -> tuple[Array, dict[int, Integers]]:
        """Columns at any values of the constants as combinations of those at the nodes, shape (nodes, columns).

        Beside it the places of each term's columns, shape (values, m).

        Args:
            values: logarithms of each term's constants, by its number, shape (values, constants of the term).
        """
        blocks, places, at = [], {}, 0
        for number, own in values.items():
            nodes = self.seen.places[number] - len(self.seen.fixed)
            count = nodes.shape[1]
            block = np.zeros((len(self._left[0]) - 1, len(own), count))
            shares = self._shares(number, own).T
            for column in range(count):
                block[nodes[:, column], :, column] = shares
            blocks.append(block.reshape(len(block), len(own) * count))
            places[number] = at + np.arange(len(own) * count).reshape(len(own), count)
            at += len(own) * count
        return np.concatenate(blocks, axis=1), places

    def left_over(self, mixing: Array) -> tuple[Array, Array]:
        """Of combinations of columns: Gram matrix and products with the torque, less what fixed columns explain."""
        left = self._left[0]
        return mixing.T @ left[:-1, :-1] @ mixing, mixing.T @ left[:-1, -1]

    def norms(self, mixing: Array) -> Array:
        """Of combinations of columns as they are; 1 of those that are zero."""
        f = len(self.seen.fixed)
        squares = np.einsum("ic,ic->c", mixing, self._total[f:-1, f:-1] @ mixing)
        norms = np.sqrt(np.maximum(squares, 0.0))
        return np.where(norms > 0.0, norms, 1.0)

    def _one(self, logarithms: Array) -> dict[int, Array]:
        return {number: logarithms[own][None] for number, own in self.constants.numbers.items()}

    def _solved(self, mixing: Array) -> tuple[float, Array]:
        """Half of the sum of squares, and the best parameters of columns."""
        gram, torque = self.left_over(mixing)
        values = least(gram, torque)
        return float(0.5 * (self._left[0][-1, -1] - torque @ values)), values

    def cost(self, logarithms: Array) -> float:
        """Half of the sum of squares."""
        return self._solved(self.mixing(self._one(logarithms))[0])[0]

    def curvature(self, logarithms: Array) -> Curvature:
        """The cost and its derivatives, the parameters y following as the best.

        Derivatives of |tau - T(x) y|^2 / 2 by x, less what y takes off them.
        """
        left, one = self._left[0], self._one(logarithms)
        mixing, columns = self.mixing(one)
        cost, values = self._solved(mixing)
        rest = left[:-1, -1] - left[:-1, :-1] @ (mixing @ values)
        ways = np.zeros((len(logarithms), len(rest)))
        cross, second = np.zeros((len(logarithms), len(values))), np.zeros((len(logarithms), len(logarithms)))
        for number, own in self.constants.numbers.items():
            nodes, y = self.seen.places[number] - len(self.seen.fixed), values[columns[number][0]]
            for a, i in enumerate(own):
                once = self._shares(number, one[number], a)[0]
                ways[i, nodes] = np.outer(once, y)
                cross[i, columns[number][0]] = -once @ rest[nodes]
                for b, j in enumerate(own):
                    second[i, j] = -self._shares(number, one[number], a, b)[0] @ rest[nodes] @ y
        through = ways @ left[:-1, :-1]
        cross += through @ mixing
        hessian = second + through @ ways.T - cross @ least(self.left_over(mixing)[0], cross.T)
        return Curvature(cost, -ways @ rest, 0.5 * (hessian + hessian.T))

    def descend(self, start: Array) -> Array:
        """The logarithms of the least cost nearby, within their ranges, shape (k,): Newton's method."""
        at: Array = start
        for _ in range(MAX_NEWTON_STEPS):
            here = self.curvature(at)
            found = self._lower(at, here)
            if found is None:
                return at
            at, cost = found
            if here.cost - cost <= CONVERGED_COST_DECREASE * here.cost:
                return at
        return at

    def _lower(self, at: Array, here: Curvature) -> tuple[Array, float] | None:
        """Logarithms of less cost, a step away, and the cost; None if halves of the step do not lower it."""
        lower, upper = self.constants.lower, self.constants.upper
        free = ~(
            ((at - lower <= LOG_RANGE_MARGIN) & (here.gradient > 0.0))
            | ((upper - at <= LOG_RANGE_MARGIN) & (here.gradient < 0.0))
        )
        step = np.zeros(len(at))
        step[free] = _downhill(here.gradient[free], here.hessian[np.ix_(free, free)])
        longest = np.abs(step).max()
        step *= MAX_LOG_STEP / longest if longest > MAX_LOG_STEP else 1.0
        for share in STEP_SHARES:
            trial = np.clip(at + share * step, lower, upper)
            cost = self.cost(trial)
            if cost < here.cost:
                return trial, cost
        return None


def least(gram: Array, torque: Array) -> Array:
    """Least squares by a Gram matrix of which little may be left, of the least norm of unit-norm columns."""
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    values = np.linalg.lstsq(gram / np.outer(scale, scale), (torque.T / scale).T, rcond=PROJECTED_RANK_TOLERANCE)[0]
    return np.asarray((values.T / scale).T)


def _downhill(gradient: Array, hessian: Array) -> Array:
    """Newton's step, turned round where the cost is not convex."""
    values, vectors = np.linalg.eigh(hessian)
    size = np.abs(values)
    return np.asarray(
        -vectors @ (vectors.T @ gradient / np.maximum(size, max(MIN_CURVATURE_RATIO * size.max(initial=0.0), 1e-300)))
    )
