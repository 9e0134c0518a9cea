# SPDX-License-Identifier: Apache-2.0
"""Variable projection on compressed rows: the cost over constants alone (Golub and Pereyra 1973).

Columns are approximated by polynomials through Chebyshev nodes of the logarithms of their constants. The Gram matrices
of the columns at all nodes, from one pass over the data, give the cost of any constants and its derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.estimators.constants.chebyshev import make_differentiation, make_interpolation
from robot_dyn_id.estimators.constants.constants import LOG_RANGE_MARGIN, MAX_LOG_STEP, Constants
from robot_dyn_id.estimators.constants.sampled import SampledProblem, sample_at_nodes
from robot_dyn_id.estimators.factors import Grams
from robot_dyn_id.estimators.non_negative import solve_bounded
from robot_dyn_id.estimators.weighting import compute_weights_from_squares

NODES_PER_CONSTANT = 64
"""Nodes of a constant that is the only one of its term: exp(-(v / c)^2) is accurate to 3e-6 over a ratio of 5000."""

MAX_NODES_PER_TERM = 144
"""Maximum number of nodes of a term with several constants."""

MIN_EIGENVALUE_RATIO = 1e-13
"""Eigenvalues of a Gram matrix of unit-norm columns below this share of the largest are rounding."""

PROJECTED_RANK_TOLERANCE = 1e-10
"""The same for a Gram matrix after other columns have been projected out."""

MIN_CURVATURE_RATIO = 1e-6
"""Curvature, as a share of the largest, below which it is increased to limit the step."""

STEP_SHARES = 0.5 ** np.arange(10.0)
"""Shares of a step, tried in turn until the cost decreases."""

MAX_NEWTON_STEPS = 50
"""Maximum number of Newton steps: their result is only a start for further steps."""

CONVERGED_COST_DECREASE = 1e-10
"""Relative decrease of the cost below which the iteration has converged."""


class Curvature(NamedTuple):
    """Cost at given constants, half of the sum of squares, with its derivatives with respect to the logarithms.

    They hold while the same parameters are at zero, and are zero for constants that only act on such parameters.
    """

    cost: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True)
class Projected:
    """Weighted least squares as a function of the k constants alone; the linear parameters are projected out.

    Parameters that cannot be negative at any constants, see `Term.rises`, are bounded: a friction that rises with speed
    near rest has a lower cost in many recordings, at constants where it takes the place of viscous friction, or of
    single samples at a reversal.

    Attributes:
        constants: the k constants.
        nodes: nodes of each constant.
        sampled: problem with the columns at the nodes.
        grams: Gram matrices of those columns.
        weights: weights of the joints, shape (n,).
    """

    constants: Constants
    nodes: tuple[Array, ...]
    sampled: SampledProblem
    grams: Grams
    weights: Array

    @classmethod
    def from_constants(cls, constants: Constants) -> Projected:
        """Accumulate the Gram matrices in one pass over the data, with weights of 1."""
        nodes, sampled = sample_at_nodes(
            constants, constants.lower, constants.upper, NODES_PER_CONSTANT, MAX_NODES_PER_TERM
        )
        grams = Grams.from_problem(sampled.problem)
        return cls(constants, nodes, sampled, grams, np.ones(len(grams.counts)))

    def reweight(self, logarithms: Array) -> Projected:
        """Return the same problem with weights 1 / RMS of the residuals at given constants."""
        squares = self.squares(logarithms)
        return replace(
            self, weights=compute_weights_from_squares(squares, len(self.constants.parameters), self.grams.counts)
        )

    def squares(self, logarithms: Array) -> Array:
        """Sums of squared residuals of each joint, without weights, at given constants, shape (n,)."""
        mixing, _ = self.mixing(self._one(logarithms))
        _, values, _ = self._solved(mixing)
        spread = mixing @ values
        fixed = self._left[1][:, -1] - self._left[1][:, :-1] @ spread
        return self.grams.squared_residuals(np.concatenate([fixed, spread]))

    @cached_property
    def _total(self) -> Array:
        return self.grams.total(self.weights)

    @cached_property
    def _left(self) -> tuple[Array, Array]:
        """Gram matrix of node columns and torque without the fixed columns, and the regression on these."""
        total = self._total
        f = len(self.sampled.fixed)
        norms = np.sqrt(np.diag(total)[:f])
        scale = np.where(norms > 0.0, norms, 1.0)
        values, vectors = np.linalg.eigh(total[:f, :f] / np.outer(scale, scale))
        regular = values > MIN_EIGENVALUE_RATIO * values.max(initial=0.0)
        root = vectors[:, regular] / np.sqrt(values[regular]) / scale[:, None]
        shares = root.T @ total[:f, f:]
        return total[f:, f:] - shares.T @ shares, root @ shares

    @cached_property
    def _slopes(self) -> tuple[Array, ...]:
        """Differentiation matrix of polynomials through the nodes of each constant."""
        return tuple(make_differentiation(nodes) for nodes in self.nodes)

    def _shares(self, number: int, values: Array, *derived: int) -> Array:
        """Interpolation weights of a term's nodes at given values of its constants, shape (values, nodes).

        Args:
            number: index of the term.
            values: logarithms, shape (values, constants of the term).
            derived: constants of the term with respect to which derivatives are taken.
        """
        shares = np.ones((len(values), 1))
        for place, i in enumerate(self.constants.numbers[number]):
            one = make_interpolation(self.nodes[i], values[:, place])
            for _ in range(derived.count(place)):
                one = one @ self._slopes[i]
            shares = (shares[:, :, None] * one[:, None, :]).reshape(len(values), -1)
        return shares

    def mixing(self, values: dict[int, Array]) -> tuple[Array, dict[int, Integers]]:
        """Combine columns at given constants from those at the nodes.

        Args:
            values: logarithms of each term's constants, by its index, shape (values, constants of the term).

        Returns:
            Interpolation matrix, shape (nodes, columns), and the columns of each term, shape (values, m).
        """
        blocks = []
        places = {}
        at = 0
        for number, own in values.items():
            nodes = self.sampled.places[number] - len(self.sampled.fixed)
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
        """Gram matrix and torque products of combined columns, after projection of the fixed columns."""
        left = self._left[0]
        return mixing.T @ left[:-1, :-1] @ mixing, mixing.T @ left[:-1, -1]

    def norms(self, mixing: Array) -> Array:
        """Norms of combined columns without projection; 1 for columns of zeros."""
        f = len(self.sampled.fixed)
        squares = np.einsum("ic,ic->c", mixing, self._total[f:-1, f:-1] @ mixing)
        norms = np.sqrt(np.maximum(squares, 0.0))
        return np.where(norms > 0.0, norms, 1.0)

    def _one(self, logarithms: Array) -> dict[int, Array]:
        return {number: logarithms[own][None] for number, own in self.constants.numbers.items()}

    def _solved(self, mixing: Array) -> tuple[float, Array, Mask]:
        """Half of the sum of squares, the optimal parameters of combined columns, and which of them are not zero."""
        gram, torque = self.left_over(mixing)
        rising = np.concatenate([self.sampled.rising[number] for number in self.constants.numbers])
        values = solve_gram(gram, torque)
        free = np.ones(len(values), dtype=bool)
        if np.any(values[rising] < 0.0):
            free = ~rising | (solve_bounded(gram, torque, rising) > 0.0)
            values = np.zeros(len(free))
            values[free] = solve_gram(gram[np.ix_(free, free)], torque[free])
        return float(0.5 * (self._left[0][-1, -1] - torque @ values)), values, free

    def positive(self, logarithms: Array) -> dict[int, Mask]:
        """Mask of each term's m parameters that are not at their bound of zero, by the index of the term."""
        mixing, columns = self.mixing(self._one(logarithms))
        free = self._solved(mixing)[2]
        return {number: free[own[0]] for number, own in columns.items()}

    def positive_parameters(self, logarithms: Array) -> Mask:
        """Mask of the p parameters that are not at their bound of zero, shape (p,)."""
        positive = np.ones(len(self.constants.parameters), dtype=bool)
        for number, own in self.positive(logarithms).items():
            positive[self.sampled.parents[number]] = own
        return positive

    def cost(self, logarithms: Array) -> float:
        """Half of the sum of squares."""
        return self._solved(self.mixing(self._one(logarithms))[0])[0]

    def curvature(self, logarithms: Array) -> Curvature:
        """Projected cost and its derivatives: those of |tau - T(x) y|^2 / 2 with the optimal parameters y(x)."""
        left = self._left[0]
        one = self._one(logarithms)
        mixing, columns = self.mixing(one)
        cost, values, free = self._solved(mixing)
        rest = left[:-1, -1] - left[:-1, :-1] @ (mixing @ values)
        ways = np.zeros((len(logarithms), len(rest)))
        cross = np.zeros((len(logarithms), len(values)))
        second = np.zeros((len(logarithms), len(logarithms)))
        for number, own in self.constants.numbers.items():
            nodes = self.sampled.places[number] - len(self.sampled.fixed)
            y = values[columns[number][0]]
            for a, i in enumerate(own):
                once = self._shares(number, one[number], a)[0]
                ways[i, nodes] = np.outer(once, y)
                cross[i, columns[number][0]] = -once @ rest[nodes]
                for b, j in enumerate(own):
                    second[i, j] = -self._shares(number, one[number], a, b)[0] @ rest[nodes] @ y
        through = ways @ left[:-1, :-1]
        cross += through @ mixing
        cross = cross[:, free]
        hessian = second + through @ ways.T - cross @ solve_gram(self.left_over(mixing[:, free])[0], cross.T)
        return Curvature(cost, -ways @ rest, 0.5 * (hessian + hessian.T))

    def descend(self, start: Array) -> Array:
        """Find the local minimum by Newton's method; return its logarithms, within their ranges, shape (k,)."""
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
        """Line search: logarithms of lower cost and their cost; None if no share of the step lowers it."""
        lower = self.constants.lower
        upper = self.constants.upper
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


def solve_gram(gram: Array, torque: Array) -> Array:
    """Minimum-norm least squares (in terms of unit-norm columns) by a Gram matrix, which may be singular."""
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    values = np.linalg.lstsq(gram / np.outer(scale, scale), (torque.T / scale).T, rcond=PROJECTED_RANK_TOLERANCE)[0]
    return np.asarray((values.T / scale).T)


def _downhill(gradient: Array, hessian: Array) -> Array:
    """Newton step with the absolute values of the eigenvalues, so that it is a descent direction."""
    values, vectors = np.linalg.eigh(hessian)
    size = np.abs(values)
    return np.asarray(
        -vectors @ (vectors.T @ gradient / np.maximum(size, max(MIN_CURVATURE_RATIO * size.max(initial=0.0), 1e-300)))
    )
