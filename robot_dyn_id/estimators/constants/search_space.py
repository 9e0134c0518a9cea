# SPDX-License-Identifier: Apache-2.0
"""Box of linear parameters and constants for population-based searches, with fast costs.

The columns of a term are smooth functions of the logarithms of its constants, so that polynomials through their values
at Chebyshev nodes give them anywhere in the box. The columns of all nodes are compressed in one pass over the data;
after that a cost takes a product with small triangular matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.constants.chebyshev import make_interpolation
from robot_dyn_id.estimators.constants.constants import Constants, compute_costs
from robot_dyn_id.estimators.constants.estimates import estimate_constants
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.constants.sampled import SampledProblem, sample_at_nodes
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, compress_rows
from robot_dyn_id.estimators.weighting import solve_reweighted

NODES_PER_CONSTANT = 24
"""Nodes of a constant that is the only one of its term: exp(-(v / c)^2) is accurate to 1e-6 over a decade."""

MAX_NODES_PER_TERM = 144
"""Maximum nodes of a term with several constants: the search is coarser there, but its result is evaluated exactly."""

BOX_DEVIATIONS = 3.0
"""Minimum half width of the box of a parameter without prior, in standard deviations of least squares."""


class SearchBox(Protocol):
    """Box of points with costs, as swarms and genetic algorithms search it."""

    @property
    def lower(self) -> Array:
        """Lower bounds, shape (d,)."""
        ...

    @property
    def upper(self) -> Array:
        """Upper bounds, shape (d,)."""
        ...

    def compute_costs(self, points: Array) -> Array:
        """Costs of m points, shape (m,); `points` has the shape (m, d)."""
        ...


@dataclass(frozen=True)
class SearchSpace:
    """Box of p parameters and k logarithms of constants, with the costs of its points.

    Attributes:
        constants: the k constants.
        weighted: see `compute_costs`.
        center: center of the box, shape (p + k,).
        lower: lower bounds, shape (p + k,).
        upper: upper bounds, shape (p + k,).
        nodes: nodes of each constant.
        sampled: problem with the columns at the nodes.
        factors: its compressed rows.
    """

    constants: Constants
    weighted: bool
    center: Array
    lower: Array
    upper: Array
    nodes: tuple[Array, ...]
    sampled: SampledProblem
    factors: Factors

    @classmethod
    def from_problem(
        cls, problem: LinearProblem, estimator: str, box: float, ratio: float, weighted: bool
    ) -> SearchSpace:
        """Make the box around the prior.

        Args:
            problem: problem with its prior. Parameters without prior, such as friction, are taken from least squares at
                the constants of the terms.
            estimator: name of the estimator, for messages.
            box: half width of the box, as a share of each parameter's size.
            ratio: maximum ratio of a constant to its given value, and of the given value to a constant.
            weighted: see `compute_costs`.

        Raises:
            UsageError: no term has a free constant.
            InputError: fewer rows than parameters.
        """
        plain = compress_rows(problem)
        constants = Constants.from_problem(problem, estimator)
        center, half = _linear_box(problem, plain, box)
        middle = constants.logarithms
        reach = np.log(ratio)
        low = np.maximum(middle - reach, constants.lower)
        high = np.minimum(middle + reach, constants.upper)
        nodes, sampled = sample_at_nodes(constants, low, high, NODES_PER_CONSTANT, MAX_NODES_PER_TERM)
        return cls(
            constants,
            weighted,
            np.append(center, middle),
            np.append(center - half, low),
            np.append(center + half, high),
            nodes,
            sampled,
            Factors.from_problem(sampled.problem),
        )

    def compute_costs(self, points: Array) -> Array:
        """Costs of m points of the box, shape (m,); `points` has the shape (m, p + k)."""
        factors = self.factors
        p = len(self.constants.parameters)
        values = np.zeros((len(points), factors.parameters))
        values[:, self.sampled.fixed] = points[:, self.sampled.fixed_parameters]
        for number, own in self.constants.numbers.items():
            shares = np.ones((len(points), 1))
            for i in own:
                one = make_interpolation(self.nodes[i], points[:, p + i])
                shares = (shares[:, :, None] * one[:, None, :]).reshape(len(points), -1)
            own_values = points[:, self.sampled.parents[number]]
            for place, share in zip(self.sampled.places[number], shares.T, strict=True):
                values[:, place] = share[:, None] * own_values
        squares = np.empty((len(points), len(factors.supports)))
        for joint, (support, triangle) in enumerate(zip(factors.supports, factors.triangles, strict=True)):
            rest = triangle[:, -1:] - triangle[:, :-1] @ values[:, support].T
            squares[:, joint] = np.einsum("im,im->m", rest, rest)
        return compute_costs(squares, factors.counts, self.weighted)

    def make_estimate(self, point: Array, order: int, course: Array) -> Estimate:
        """Make the estimate of a point; its distance from the optimal parameters is added to the covariance.

        Args:
            point: parameters and logarithms of constants, shape (p + k,).
            order: AR order of the noise model.
            course: lowest cost after each step of the search.
        """
        p = len(self.constants.parameters)
        found = Linearized.from_constants(self.constants, point[p:], self.weighted)
        return estimate_constants(found, order, course, point[:p])


def _linear_box(problem: LinearProblem, plain: Factors, box: float) -> tuple[Array, Array]:
    """Center and half width of the box for the p parameters."""
    _, solution, _ = solve_reweighted(plain)
    sigma = np.sqrt(np.maximum(np.diag(solution.inverse), 0.0))
    center = solution.values.copy()
    half = np.maximum(box * np.abs(solution.values), BOX_DEVIATIONS * sigma)
    if problem.prior is not None:
        mapping = problem.prior.mapping
        known = np.isfinite(problem.prior.scales)
        informed = ~np.any(mapping[:, ~known] != 0.0, axis=1)
        size = np.sqrt(((mapping[:, known] * problem.prior.scales[known]) ** 2).sum(axis=1))
        center[informed] = problem.prior.center[informed]
        half[informed] = box * size[informed]
    return center, half
