# SPDX-License-Identifier: Apache-2.0
"""Averages of whole periods of a periodic motion, weighted by what differs between them (Swevers et al. 1997)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.stats import norm, t

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem, find_used_rows
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Solution, compress_rows, zero_rounding_columns
from robot_dyn_id.estimators.sandwich import rescale_covariance
from robot_dyn_id.findings import make_finding
from robot_dyn_id.options import CheckedOptions

MIN_PERIODS = 3
"""Periods that are needed."""

INTERVAL_QUANTILE = 0.975
"""Quantile at the end of 95 % intervals."""

MIN_NOISE_RATIO = 1e-9
"""Least standard deviation of a joint's noise, as a share of the largest, and of its share that is its own."""


@dataclass(frozen=True)
class PeriodAveraged(CheckedOptions):
    """Least squares of rows averaged over the periods of a stretch of time, joints weighted with their covariance.

    What differs between periods is noise, and what does not is model error, which the standard deviations then do not
    count. They are the spread of the periods' own estimates by Student's law: the value and 1.96 of them to either side
    hold the truth in 95 %, with few periods as well. The covariance has their sizes and the correlations of white
    noise.
    """

    name: ClassVar[str] = "period_averaged"
    uses_prior: ClassVar[bool] = False

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: the period is not known, or is no whole number of rows.
            InputError: fewer than 3 whole periods.
        """
        plain = compress_rows(problem)
        length = rows_per_period(problem)
        averages = Averages.from_problem(problem, length)
        first = Solution.from_rows(averages.stack(np.eye(len(problem.supports))))
        residuals = averages.residuals(problem, first.values)
        noise = between_periods(residuals)
        stack = averages.stack(noise)
        solution = Solution.from_rows(stack)
        residuals = averages.residuals(problem, solution.values)
        middle, freedom = averages.spread(noise, residuals)
        spread = np.sqrt(np.maximum(np.diag(solution.inverse @ middle @ solution.inverse), 0.0))
        spread *= t.ppf(INTERVAL_QUANTILE, freedom) / norm.ppf(INTERVAL_QUANTILE)
        covariance = rescale_covariance(solution.inverse, spread)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        estimate = Estimate.from_solution(problem, plain, ordinary, solution, covariance, np.sqrt(np.diag(noise)))
        message = (
            f"rows are averages over {averages.periods} periods, standard deviations from Student's law with {freedom} "
            "degrees of freedom"
        )
        return replace(estimate, findings=(*estimate.findings, make_finding("periods_averaged", message)))


def rows_per_period(problem: LinearProblem) -> int:
    """A whole number.

    Raises:
        UsageError: the period is not known, or is no whole number of rows.
    """
    if problem.period is None:
        raise UsageError(
            "period_averaged: the period of the motion is not known: give `period` [s] in the configuration, or use "
            "another estimator"
        )
    rows = problem.period * problem.rate
    if round(rows) < 1 or abs(rows - round(rows)) > 1e-3:
        raise UsageError(
            f"period_averaged: a period of {problem.period:g} s is {rows:.2f} rows of {problem.rate:g} per second: it "
            f"must be a whole number"
        )
    return round(rows)


@dataclass(frozen=True)
class Averages:
    """Rows of each stretch of time averaged over its whole periods.

    Attributes:
        length: rows of a period P.
        parameters: p.
        counts: whole periods of each stretch that has at least two.
        rows: averaged [W tau] of each stretch, zero where a joint's row is left out in any period, shape (n, P, p + 1).
        present: which are not, shape (n, P).
    """

    length: int
    parameters: int
    counts: dict[int, int]
    rows: dict[int, Array]
    present: dict[int, Array]

    @classmethod
    def from_problem(cls, problem: LinearProblem, length: int) -> Self:
        """Walk the problem twice: for the lengths of the stretches, and for the sums.

        Raises:
            InputError: fewer than 3 whole periods.
        """
        sizes: dict[tuple[int, int], int] = {}
        for tile in problem.tiles():
            key = tile.segment, tile.joint
            sizes[key] = sizes.get(key, 0) + tile.block.shape[1]
        counts = {segment: size // length for (segment, _), size in sizes.items() if size // length >= 2}
        if sum(counts.values()) < MIN_PERIODS:
            raise InputError(
                f"period_averaged: {sum(counts.values())} whole periods of {problem.period:g} s without interruption: "
                f"record {MIN_PERIODS} at least, besides the ends that filters cut off"
            )
        p, n = len(problem.names), len(problem.supports)
        rows = {segment: np.zeros((n, length, p + 1)) for segment in counts}
        present = {segment: np.ones((n, length), dtype=bool) for segment in counts}
        for segment, joint, block, phase in _by_phase(problem, counts, length):
            columns = np.append(problem.supports[joint], p)
            np.add.at(rows[segment][joint], (phase[:, None], columns), block.T / counts[segment])
            present[segment][joint, phase[~find_used_rows(block)]] = False
        for segment, seen in present.items():
            rows[segment][~seen] = 0.0
            for of_joint in rows[segment]:
                zero_rounding_columns(of_joint)
        return cls(length, p, counts, rows, present)

    @property
    def periods(self) -> int:
        """Of all stretches."""
        return sum(self.counts.values())

    def stack(self, noise: Array) -> Array:
        """All rows made white and of unit variance by the covariance of joints in one period, compressed."""
        stacks = [np.zeros((self.parameters + 1, self.parameters + 1))]
        for segment, rows in self.rows.items():
            white = np.sqrt(self.counts[segment]) * self._whitened(segment, rows, noise)
            stacks.append(np.asarray(np.linalg.qr(white.reshape(-1, white.shape[-1]), mode="r")))
        return np.concatenate(stacks)

    def _whitened(self, segment: int, rows: Array, noise: Array) -> Array:
        """Rows of one stretch, shape (n, P, any), with the joints of each instant made independent."""
        white, present = np.zeros_like(rows), self.present[segment]
        for joints in np.unique(present, axis=1).T:
            if joints.any():
                at = np.flatnonzero((present == joints[:, None]).all(axis=0))
                root = np.linalg.inv(np.linalg.cholesky(noise[np.ix_(joints, joints)]))
                where = np.ix_(np.flatnonzero(joints), at)
                white[where] = np.einsum("ij,jpk->ipk", root, rows[where])
        return white

    def residuals(self, problem: LinearProblem, values: Array) -> dict[int, Array]:
        """What each period leaves, less the mean of the periods, zero where rows are left out: (periods, n, P)."""
        n = len(problem.supports)
        found = {segment: np.zeros((count, n, self.length)) for segment, count in self.counts.items()}
        seen: dict[tuple[int, int], int] = {}
        for segment, joint, block, phase in _by_phase(problem, self.counts, self.length):
            start = seen.get((segment, joint), 0)
            seen[segment, joint] = start + len(phase)
            period = (start + np.arange(len(phase))) // self.length
            found[segment][period, joint, phase] = block[-1] - values[problem.supports[joint]] @ block[:-1]
        return {
            segment: np.where(self.present[segment], rest - rest.mean(axis=0), 0.0) for segment, rest in found.items()
        }

    def spread(self, noise: Array, residuals: dict[int, Array]) -> tuple[Array, int]:
        """Covariance of the sum of all periods' scores, shape (p, p), and its degrees of freedom."""
        middle = np.zeros((self.parameters, self.parameters))
        for segment, rest in residuals.items():
            columns = self._whitened(segment, self.rows[segment], noise)[..., :-1]
            scores = np.array([np.einsum("npk,np->k", columns, self._white(segment, one, noise)) for one in rest])
            middle += self.counts[segment] / (self.counts[segment] - 1) * scores.T @ scores
        return middle, sum(count - 1 for count in self.counts.values())

    def _white(self, segment: int, rest: Array, noise: Array) -> Array:
        return self._whitened(segment, rest[..., None], noise)[..., 0]


def _by_phase(
    problem: LinearProblem, counts: dict[int, int], length: int
) -> Iterator[tuple[int, int, Array, np.ndarray]]:
    """Segment, joint, block and phases of the rows of whole periods, in order."""
    passed: dict[tuple[int, int], int] = {}
    for tile in problem.tiles():
        start = passed.get((tile.segment, tile.joint), 0)
        passed[tile.segment, tile.joint] = start + tile.block.shape[1]
        stop = min(tile.block.shape[1], counts.get(tile.segment, 0) * length - start)
        if stop > 0:
            yield tile.segment, tile.joint, tile.block[:, :stop], (start + np.arange(stop)) % length


def between_periods(residuals: dict[int, Array]) -> Array:
    """Covariance of the joints' noise in one period, from what differs between periods, shape (n, n)."""
    n = next(iter(residuals.values())).shape[1]
    products, pairs = np.zeros((n, n)), np.zeros((n, n))
    for rest in residuals.values():
        used = (rest != 0.0).any(axis=0).astype(float)
        products += np.einsum("mip,mjp->ij", rest, rest)
        pairs += (len(rest) - 1) * used @ used.T
    noise = products / np.maximum(pairs, 1.0)
    size = np.sqrt(np.diag(noise))
    size = np.maximum(size, MIN_NOISE_RATIO * size.max(initial=0.0) or 1.0)
    values, vectors = np.linalg.eigh(noise / np.outer(size, size) + np.diag((np.diag(noise) == 0.0).astype(float)))
    correlation = (vectors * np.maximum(values, MIN_NOISE_RATIO)) @ vectors.T  # rows left out may have spoilt a sign
    return np.asarray(correlation * np.outer(size, size))
