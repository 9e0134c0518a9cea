# SPDX-License-Identifier: Apache-2.0
"""Linear parameters and constants searched together in a box, as populations do, without looking at the data again.

The columns of a term are smooth functions of the logarithms of its constants, so polynomials through their values at
Chebyshev nodes give them anywhere in the box. The columns of all nodes are compressed in one walk; after that a cost
takes a product with small triangular matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.constants.chebyshev import interpolation
from robot_dyn_id.estimators.constants.constants import Constants, compute_costs
from robot_dyn_id.estimators.constants.estimates import estimate_constants
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.constants.sampled import SampledProblem, sample_at_nodes
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, compress_rows
from robot_dyn_id.estimators.weighting import solve_reweighted

NODES_PER_CONSTANT = 24
"""For a constant on a box of a decade: exp(-(v / c)^2) is followed to 1e-6 of the column."""

MAX_NODES_PER_TERM = 144
"""Nodes of a term with several constants: the search is coarser there, what it ends with is evaluated exactly."""

BOX_DEVIATIONS = 3.0
"""Standard deviations of least squares, at the constants as given, that the box of a parameter without prior holds."""


@dataclass(frozen=True)
class SearchSpace:
    """A box of p parameters and k logarithms of constants, and the cost of its points.

    Attributes:
        constants: the k constants.
        weighted: see `compute_costs`.
        center, lower, upper: of the box, shape (p + k,).
        nodes: of each constant, shape (k, any).
        seen: the columns at the nodes.
        factors: their compressed rows.
    """

    constants: Constants
    weighted: bool
    center: Array
    lower: Array
    upper: Array
    nodes: tuple[Array, ...]
    seen: SampledProblem
    factors: Factors

    @classmethod
    def from_problem(cls, problem: LinearProblem, estimator: str, box: float, ratio: float, weighted: bool) -> Self:
        """The box around what is known before the search.

        Args:
            problem: with its prior. Parameters of which the prior knows nothing, such as friction, are taken from least
                squares at the constants that the terms have.
            estimator: for messages.
            box: half of its width, as a share of each parameter's size.
            ratio: of a constant's greatest and least values to the given one, and its inverse.
            weighted: see `compute_costs`.

        Raises:
            UsageError: no term has a free constant.
            InputError: fewer rows than parameters.
        """
        plain = compress_rows(problem)
        constants = Constants.from_problem(problem, estimator)
        center, half = _linear_box(problem, plain, box)
        middle, reach = constants.logarithms, np.log(ratio)
        low, high = np.maximum(middle - reach, constants.lower), np.minimum(middle + reach, constants.upper)
        nodes, seen = sample_at_nodes(constants, low, high, NODES_PER_CONSTANT, MAX_NODES_PER_TERM)
        return cls(
            constants, weighted, np.append(center, middle), np.append(center - half, low),
            np.append(center + half, high), nodes, seen, Factors.from_problem(seen.problem),
        )  # fmt: skip

    def compute_costs(self, points: Array) -> Array:
        """Of points of the box, shape (m, p + k); shape (m,)."""
        factors, p = self.factors, len(self.constants.parameters)
        values = np.zeros((len(points), factors.parameters))
        values[:, self.seen.fixed] = points[:, self.seen.fixed_parameters]
        for number, own in self.constants.numbers.items():
            shares = np.ones((len(points), 1))
            for i in own:
                one = interpolation(self.nodes[i], points[:, p + i])
                shares = (shares[:, :, None] * one[:, None, :]).reshape(len(points), -1)
            own_values = points[:, self.seen.parents[number]]
            for place, share in zip(self.seen.places[number], shares.T, strict=True):
                values[:, place] = share[:, None] * own_values
        squares = np.empty((len(points), len(factors.supports)))
        for joint, (support, triangle) in enumerate(zip(factors.supports, factors.triangles, strict=True)):
            rest = triangle[:, -1:] - triangle[:, :-1] @ values[:, support].T
            squares[:, joint] = np.einsum("im,im->m", rest, rest)
        return compute_costs(squares, factors.counts, self.weighted)

    def make_estimate(self, point: Array, order: int, course: Array) -> Estimate:
        """The estimate of a point, shape (p + k,); how far it is from the best parameters counts as an error.

        Args:
            point: of the box.
            order: past rows that a residual is predicted from.
            course: least cost after each step of the search.
        """
        p = len(self.constants.parameters)
        found = Linearized.from_constants(self.constants, point[p:], self.weighted)
        return estimate_constants(found, order, course, point[:p])


def _linear_box(problem: LinearProblem, plain: Factors, box: float) -> tuple[Array, Array]:
    """Center and half of the width for the p parameters."""
    _, solution, _ = solve_reweighted(plain)
    sigma = np.sqrt(np.maximum(np.diag(solution.inverse), 0.0))
    center, half = solution.values.copy(), np.maximum(box * np.abs(solution.values), BOX_DEVIATIONS * sigma)
    if problem.prior is not None:
        mapping, known = problem.prior.mapping, np.isfinite(problem.prior.scales)
        told = ~np.any(mapping[:, ~known] != 0.0, axis=1)
        size = np.sqrt(((mapping[:, known] * problem.prior.scales[known]) ** 2).sum(axis=1))
        center[told], half[told] = problem.prior.center[told], box * size[told]
    return center, half
