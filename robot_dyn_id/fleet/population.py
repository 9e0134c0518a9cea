# SPDX-License-Identifier: Apache-2.0
"""Distribution of the parameters over a fleet, and the estimate of a robot that borrows from it (empirical Bayes).

The parameters of robot r are theta_r = mu + b_r, where b_r varies from robot to robot: every standard parameter and
every friction parameter has a relative standard deviation, common to a body or to a term of a joint. The deviations are
variance components, estimated by restricted maximum likelihood with the MM algorithm of Zhou et al. (2019) from the
robots that count. For the test of a robot the covariance over the others is estimated itself, with that of the
deviations as its prior: variations need not be in proportion to the sizes.

The noise of a robot's score is not that of independent rows: its covariance is that of `RowStatistics`. All estimates
are best linear predictions under it (Henderson 1975; Efron and Morris 1975 for the empirical-Bayes view).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.fleet.evidence import Evidence

INITIAL_DEVIATION = 0.1
"""Relative standard deviation that the iteration starts from."""

ITERATIONS = 60
"""Largest number of iterations of the variance components."""

TOLERANCE = 1e-3
"""Relative change of all standard deviations below which the iteration ends."""

LEAST_DEVIATION = 1e-4
"""Relative standard deviations below this are zero."""


@dataclass(frozen=True)
class VariationModel:
    """Sources of variation from robot to robot, before the data determine their sizes.

    Attributes:
        loadings: change of the scaled base parameters if a source of variation changes by its size, shape (p, c).
        groups: number of the group of each source; a group has one relative standard deviation, shape (c,).
        names: names of the groups.
    """

    loadings: Array
    groups: Integers
    names: tuple[str, ...]

    @classmethod
    def from_sizes(
        cls, mapping: Array, sizes: Array, labels: Sequence[str], scales: Array, single: Mapping[int, str]
    ) -> VariationModel:
        """Independent variations of all columns, and of single base parameters in addition.

        The columns of a body vary alike only by assumption; single base parameters may vary more.

        Args:
            mapping: base = mapping @ full, shape (p, c).
            sizes: size of every column's parameter, shape (c,).
            labels: name of the group of every column, c.
            scales: size of one unit of each scaled base parameter, shape (p,).
            single: names of base parameters that may vary more than their columns, by their numbers.
        """
        columns = mapping * sizes / scales[:, None]
        own = np.zeros((len(scales), len(single)))
        places = list(single)
        own[places, np.arange(len(places))] = np.linalg.norm(columns[places], axis=1)
        labels = [*labels, *single.values()]
        names = tuple(dict.fromkeys(labels))
        groups = np.array([names.index(label) for label in labels])
        return cls(np.column_stack([columns, own]), groups, names)

    def covariance(self, deviations: Array) -> Array:
        """Covariance of the scaled base parameters over robots, shape (p, p).

        Args:
            deviations: relative standard deviation of each group, shape (g,).
        """
        root = self.loadings * deviations[self.groups]
        return np.asarray(root @ root.T)

    def sums(self, values: Array) -> Array:
        """Sums of values of columns over each group, shape (..., c) to (..., g)."""
        member = np.equal.outer(self.groups, np.arange(len(self.names))).astype(np.float64)
        return np.asarray(values @ member)


@dataclass(frozen=True)
class Moments:
    """Terms of the restricted likelihood of each robot, for all robots together.

    Attributes:
        mean: the fleet's mean in scaled parameters, shape (p,).
        mean_information: weighted sum of X' V^-1 X, whose inverse is the covariance of the mean, shape (p, p).
        parts: X' V^-1 X of each robot, where V is the covariance of y over robots, shape (N, p, p).
        targets: X' V^-1 y of each robot, shape (N, p).
        squares: quadratic term of each robot and group, shape (N, g).
        traces: expectation of these terms, shape (N, g).
        statistics: squared Mahalanobis distance of each robot from the mean, shape (N,).
    """

    mean: Array
    mean_information: Array
    parts: Array
    targets: Array
    squares: Array
    traces: Array
    statistics: Array


@dataclass(frozen=True)
class Population:
    """Distribution of the parameters of a fleet.

    Attributes:
        evidence: what the robots' recordings say.
        spread: how parameters vary.
        deviations: relative standard deviation of each group, shape (g,).
        counted: weight of each robot in mean and deviations, shape (N,).
    """

    evidence: Evidence = field(repr=False)
    spread: VariationModel = field(repr=False)
    deviations: Array
    counted: Array

    @classmethod
    def from_evidence(
        cls, evidence: Evidence, spread: VariationModel, counts: Mask, start: Population | None = None
    ) -> Population:
        """Estimate mean and deviations.

        Args:
            evidence: what the robots' recordings say.
            spread: how parameters vary.
            counts: robots that count, shape (N,).
            start: an earlier estimate to start from.
        """
        deviations = np.full(len(spread.names), INITIAL_DEVIATION) if start is None else start.deviations
        counted = counts.astype(np.float64)
        for _ in range(ITERATIONS):
            moments = cls(evidence, spread, deviations, counted).moments
            change = np.sqrt(_ratio(counted @ moments.squares, counted @ moments.traces))
            deviations = deviations * change
            deviations = np.where(deviations < LEAST_DEVIATION, 0.1 * LEAST_DEVIATION, deviations)
            moved = (np.abs(change - 1.0) > TOLERANCE) & (deviations > LEAST_DEVIATION)
            if not moved.any():
                break
        return cls(evidence, spread, deviations, counted)

    @cached_property
    def moments(self) -> Moments:
        """Mean, and the terms from which the deviations follow."""
        e, counted = self.evidence, self.counted
        variation = self.spread.covariance(self.deviations)
        total = e.noise + e.designs @ variation @ e.designs.transpose(0, 2, 1)
        inner = np.linalg.solve(total, e.designs)  # V^-1 X, (N, p, p)
        parts = e.designs.transpose(0, 2, 1) @ inner
        targets = np.einsum("rij,ri->rj", inner, e.targets)
        whole = np.einsum("r,rij->ij", counted, parts)
        inverse = np.linalg.pinv(whole, hermitian=True)
        mean = inverse @ (counted @ targets)
        residual = e.targets - e.designs @ mean
        roots = parts @ self.spread.loadings  # X' V^-1 X L
        pulls = np.einsum("rij,ri->rj", inner, residual) @ self.spread.loadings
        explained = np.einsum("rpc,rpc->rc", roots, inverse @ roots)
        traces = np.einsum("pc,rpc->rc", self.spread.loadings, roots) - explained
        solved = np.linalg.solve(total, residual[:, :, None])[:, :, 0]
        statistics = np.einsum("ri,ri->r", solved, residual)
        squares = self.spread.sums(pulls**2)
        return Moments(mean, whole, parts, targets, squares, self.spread.sums(traces), statistics)

    @property
    def mean(self) -> Array:
        """Mean of the base parameters over the fleet, shape (p,)."""
        return np.asarray(self.moments.mean * self.evidence.scales)

    @property
    def covariance(self) -> Array:
        """Covariance of the base parameters over robots, shape (p, p)."""
        return np.asarray(
            self.spread.covariance(self.deviations) * np.outer(self.evidence.scales, self.evidence.scales)
        )

    def predict(self, robot: int) -> tuple[Array, Array]:
        """Estimate a robot's parameters from its recordings and from the fleet.

        Args:
            robot: number of the robot.

        Returns:
            The base parameters, shape (p,), and their covariance, shape (p, p). The deviations count as known.
        """
        e, moments = self.evidence, self.moments
        of_mean = np.asarray(np.linalg.pinv(moments.mean_information, hermitian=True), dtype=np.float64)
        fleet = moments.mean, of_mean, self.spread.covariance(self.deviations)
        values, covariance = _borrow((e.designs[robot], e.targets[robot], e.noise[robot]), fleet)
        return values * e.scales, covariance * np.outer(e.scales, e.scales)

    def predict_without(self, robot: int, rows: RowStatistics | None) -> Array:
        """Estimate a robot's parameters from some of its rows and from the other robots, shape (p,).

        Args:
            robot: number of the robot, which the fleet is estimated without.
            rows: statistics of the rows; None: no rows.
        """
        e, fleet = self.evidence, self.leave_out(robot)
        if rows is None:
            return np.asarray(fleet[0] * e.scales)
        return np.asarray(_borrow(e.model_of(rows), fleet)[0] * e.scales)

    def leave_out(self, robot: int) -> tuple[Array, Array, Array]:
        """Distribution of the fleet without a robot: mean, its covariance, covariance over robots, all scaled.

        Args:
            robot: number of the robot.

        Returns:
            Mean, shape (p,), its covariance and the covariance over robots, shape (p, p) each.
        """
        moments, weight = self.moments, self.counted[robot]
        inverse = np.linalg.pinv(moments.mean_information - weight * moments.parts[robot], hermitian=True)
        mean = inverse @ (self.counted @ moments.targets - weight * moments.targets[robot])
        return mean, inverse, self._covariance_without(robot)

    @property
    def robots(self) -> int:
        """Number of robots that count."""
        return int(np.count_nonzero(self.counted))

    def _covariance_without(self, robot: int) -> Array:
        """Covariance over the other robots by a step of expectation maximization from that of the deviations.

        The deviations' covariance counts as much as one robot per parameter (inverse-Wishart prior).
        """
        prior, weight = len(self.evidence.scales), self.counted[robot]
        total = self._sum_of_second_moments - weight * self._second_moments[robot]
        return np.asarray((prior * self._variation + total) / (prior + self.counted.sum() - weight))

    @cached_property
    def _variation(self) -> Array:
        return self.spread.covariance(self.deviations)

    @cached_property
    def _sum_of_second_moments(self) -> Array:
        return np.asarray(np.einsum("r,rij->ij", self.counted, self._second_moments))

    @cached_property
    def _second_moments(self) -> Array:
        """Expectation of b b' of each robot given its recordings, shape (N, p, p)."""
        moments, variation = self.moments, self._variation
        pulls = moments.targets - moments.parts @ moments.mean  # X' V^-1 (y - X mu)
        expected = pulls @ variation
        return np.asarray(
            expected[:, :, None] * expected[:, None, :] + variation - variation @ moments.parts @ variation
        )


def _borrow(model: tuple[Array, Array, Array], fleet: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Best linear prediction of a robot's scaled parameters, and its covariance.

    Args:
        model: design, target and noise of the robot's rows.
        fleet: mean of the fleet, its covariance, and the covariance over robots.
    """
    design, target, noise = model
    mean, of_mean, variation = fleet
    gain = np.linalg.solve(noise + design @ variation @ design.T, design @ variation).T
    kept = np.eye(len(mean)) - gain @ design
    covariance = kept @ (variation + of_mean) @ kept.T + gain @ noise @ gain.T
    return mean + gain @ (target - design @ mean), covariance


def _ratio(squares: Array, traces: Array) -> Array:
    """Quadratic terms over their expectations; 1 where nothing is expected."""
    return np.divide(np.maximum(squares, 0.0), traces, out=np.ones_like(squares), where=traces > 1e-12)
