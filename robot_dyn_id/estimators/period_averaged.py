# SPDX-License-Identifier: Apache-2.0
"""Averages over the periods of a periodic motion, weighted by the noise between periods (Swevers et al. 1997)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import LinearProblem, find_used_rows
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Solution, compress_rows, zero_rounding_columns
from robot_dyn_id.estimators.sandwich import rescale_covariance
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.options import CheckedOptions

PERIODS_AVERAGED = Definition(
    "periods_averaged",
    Section.ESTIMATES,
    "info",
    "Rows were averaged over the periods of the motion.",
)

MIN_PERIODS = 3
"""Minimum number of whole periods."""

INTERVAL_QUANTILE = 0.975
"""Upper quantile of 95 % intervals."""

MIN_NOISE_RATIO = 1e-9
"""Minimum standard deviation of a joint's noise, relative to the largest, and minimum eigenvalue of the correlation."""


@dataclass(frozen=True)
class PeriodAveraged(CheckedOptions):
    """Least squares of rows averaged over the periods of each segment, joints weighted with their noise covariance.

    Differences between periods are noise; errors that repeat are model errors, which the standard deviations do not
    include. They are derived from the spread of the estimates of single periods by Student's t-distribution, such that
    intervals of 1.96 standard deviations have 95 % coverage with few periods, too. The covariance has these standard
    deviations and the correlations of white noise.
    """

    name: ClassVar[str] = "period_averaged"
    uses_prior: ClassVar[bool] = False
    any_columns: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: the period is not known, or does not hold a whole number of rows.
            InputError: fewer than 3 whole periods.
        """
        from scipy.stats import norm, t  # slow to import, and seldom used

        plain = compress_rows(problem)
        length = count_rows_per_period(problem)
        averages = Averages.from_problem(problem, length)
        first = Solution.from_rows(averages.stack(np.eye(len(problem.supports))))
        residuals = averages.residuals(problem, first.values)
        noise = estimate_noise_covariance(residuals)
        stack = averages.stack(noise)
        solution = Solution.from_rows(stack)
        residuals = averages.residuals(problem, solution.values)
        middle, freedom = averages.spread(noise, residuals)
        spread = np.sqrt(np.maximum(np.diag(solution.inverse @ middle @ solution.inverse), 0.0))
        spread *= t.ppf(INTERVAL_QUANTILE, freedom) / norm.ppf(INTERVAL_QUANTILE)
        covariance = rescale_covariance(solution.inverse, spread)
        ordinary = plain.solve(np.ones(len(plain.counts)))
        estimate = Estimate.from_solution(problem.names, plain, ordinary, solution, covariance, np.sqrt(np.diag(noise)))
        message = (
            f"rows are averages over {averages.periods} periods, standard deviations from Student's law with {freedom} "
            "degrees of freedom"
        )
        return replace(estimate, findings=(*estimate.findings, PERIODS_AVERAGED.found(message)))


def count_rows_per_period(problem: LinearProblem) -> int:
    """Number of rows of each joint in one period.

    Raises:
        UsageError: the period is not known, or does not hold a whole number of rows.
    """
    if problem.period is None:
        raise UsageError(
            "period_averaged: the period of the motion is not known: give `period` [s], or use another estimator"
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
    """Rows of each segment averaged over its whole periods.

    Attributes:
        length: number of rows P of a period.
        parameters: number of parameters p.
        kept: whole periods of each segment that has at least two with rows that are not left out, shape (periods,).
        rows: averaged [W tau] of each segment, zero where a joint's row is left out in any period, shape (n, P, p + 1).
        present: mask of the averaged rows that are not left out, shape (n, P).
    """

    length: int
    parameters: int
    kept: dict[int, Mask]
    rows: dict[int, Array]
    present: dict[int, Array]

    @classmethod
    def from_problem(cls, problem: LinearProblem, length: int) -> Averages:
        """Average the rows in two passes: the first finds the lengths of the segments.

        Raises:
            InputError: fewer than 3 whole periods.
        """
        kept = _find_periods(problem, length)
        counts = {segment: int(used.sum()) for segment, used in kept.items()}
        if sum(counts.values()) < MIN_PERIODS:
            raise InputError(
                f"period_averaged: {sum(counts.values())} whole periods of {problem.period:g} s without interruption: "
                f"record {MIN_PERIODS} at least, besides the ends that filters cut off"
            )
        p = len(problem.names)
        n = len(problem.supports)
        rows = {segment: np.zeros((n, length, p + 1)) for segment in counts}
        present = {segment: np.ones((n, length), dtype=bool) for segment in counts}
        for segment, joint, block, phase, _ in _by_phase(problem, kept, length):
            columns = np.append(problem.supports[joint], p)
            np.add.at(rows[segment][joint], (phase[:, None], columns), block.T / counts[segment])
            present[segment][joint, phase[~find_used_rows(block)]] = False
        for segment, used in present.items():
            rows[segment][~used] = 0.0
            for of_joint in rows[segment]:
                zero_rounding_columns(of_joint)
        return cls(length, p, kept, rows, present)

    @property
    def counts(self) -> dict[int, int]:
        """Number of periods of each segment."""
        return {segment: int(used.sum()) for segment, used in self.kept.items()}

    @property
    def periods(self) -> int:
        """Number of periods of all segments."""
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
        white = np.zeros_like(rows)
        present = self.present[segment]
        for joints in np.unique(present, axis=1).T:
            if joints.any():
                at = np.flatnonzero((present == joints[:, None]).all(axis=0))
                root = np.linalg.inv(np.linalg.cholesky(noise[np.ix_(joints, joints)]))
                where = np.ix_(np.flatnonzero(joints), at)
                white[where] = np.einsum("ij,jpk->ipk", root, rows[where])
        return white

    def residuals(self, problem: LinearProblem, values: Array) -> dict[int, Array]:
        """Residuals of each period minus their mean over periods, zero where rows are left out: (periods, n, P)."""
        n = len(problem.supports)
        found = {segment: np.zeros((count, n, self.length)) for segment, count in self.counts.items()}
        for segment, joint, block, phase, period in _by_phase(problem, self.kept, self.length):
            found[segment][period, joint, phase] = block[-1] - values[problem.supports[joint]] @ block[:-1]
        return {
            segment: np.where(self.present[segment], rest - rest.mean(axis=0), 0.0) for segment, rest in found.items()
        }

    def spread(self, noise: Array, residuals: dict[int, Array]) -> tuple[Array, int]:
        """Covariance of the sum of the scores of all periods, shape (p, p), and its degrees of freedom."""
        middle = np.zeros((self.parameters, self.parameters))
        for segment, rest in residuals.items():
            columns = self._whitened(segment, self.rows[segment], noise)[..., :-1]
            scores = np.array([np.einsum("npk,np->k", columns, self._white(segment, one, noise)) for one in rest])
            middle += self.counts[segment] / (self.counts[segment] - 1) * scores.T @ scores
        return middle, sum(count - 1 for count in self.counts.values())

    def _white(self, segment: int, rest: Array, noise: Array) -> Array:
        return self._whitened(segment, rest[..., None], noise)[..., 0]


def _find_periods(problem: LinearProblem, length: int) -> dict[int, Mask]:
    """Whole periods of each segment, and whether they have rows; segments with at least two such periods."""
    sizes: dict[tuple[int, int], int] = {}
    used: dict[int, set[int]] = {}
    for tile in problem.tiles():
        key = tile.segment, tile.joint
        start = sizes.get(key, 0)
        sizes[key] = start + tile.block.shape[1]
        used.setdefault(tile.segment, set()).update(
            ((start + np.flatnonzero(find_used_rows(tile.block))) // length).tolist()
        )
    found = {segment: np.isin(np.arange(size // length), list(used[segment])) for (segment, _), size in sizes.items()}
    return {segment: kept for segment, kept in found.items() if kept.sum() >= 2}


def _by_phase(
    problem: LinearProblem, kept: dict[int, Mask], length: int
) -> Iterator[tuple[int, int, Array, Integers, Integers]]:
    """Yield segment, joint, block, phases and numbers of the periods of the rows of the periods that are kept."""
    passed: dict[tuple[int, int], int] = {}
    for tile in problem.tiles():
        start = passed.get((tile.segment, tile.joint), 0)
        passed[tile.segment, tile.joint] = start + tile.block.shape[1]
        periods = kept.get(tile.segment, np.zeros(0, dtype=bool))
        number = start + np.arange(min(tile.block.shape[1], max(0, len(periods) * length - start)))
        rows = np.flatnonzero(periods[number // length])
        if len(rows):
            ordinal = np.cumsum(periods)[number[rows] // length] - 1
            yield tile.segment, tile.joint, tile.block[:, rows], number[rows] % length, ordinal


def estimate_noise_covariance(residuals: dict[int, Array]) -> Array:
    """Covariance of the joints' noise in one period, estimated from the differences between periods, shape (n, n)."""
    n = next(iter(residuals.values())).shape[1]
    products = np.zeros((n, n))
    pairs = np.zeros((n, n))
    for rest in residuals.values():
        used = (rest != 0.0).any(axis=0).astype(float)
        products += np.einsum("mip,mjp->ij", rest, rest)
        pairs += (len(rest) - 1) * used @ used.T
    noise = products / np.maximum(pairs, 1.0)
    size = np.sqrt(np.diag(noise))
    size = np.maximum(size, MIN_NOISE_RATIO * size.max(initial=0.0) or 1.0)
    values, vectors = np.linalg.eigh(noise / np.outer(size, size) + np.diag((np.diag(noise) == 0.0).astype(float)))
    correlation = (
        vectors * np.maximum(values, MIN_NOISE_RATIO)
    ) @ vectors.T  # rows left out may have made an eigenvalue negative
    return np.asarray(correlation * np.outer(size, size))
