# SPDX-License-Identifier: Apache-2.0
"""Standard deviations and intervals of any estimator by a moving-block bootstrap of its residuals (Kuensch 1989).

Residuals are autocorrelated, so that blocks of them are drawn, the same for all joints, and added to the predicted
torques (circular: Politis and Romano 1992). Rows that are not used have no residuals: where joints use different rows,
a block begins at the same share of the rows of each. The estimator is applied to each draw.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.dynamics.problem import LinearProblem, RegressorProblem, find_used_rows
from robot_dyn_id.errors import ConvergenceError, UsageError
from robot_dyn_id.estimators.contract import Estimate, Estimator
from robot_dyn_id.estimators.sandwich import rescale_covariance
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.progress import Progress, Stage, ignore_progress

BOOTSTRAP_DEVIATIONS = Definition(
    "bootstrap_deviations",
    Section.ESTIMATES,
    "info",
    "Standard deviations were computed by a bootstrap of residuals.",
)

BLOCK_LENGTH_S = 2.0
"""Length of a block [s]: several times the correlation time of residuals of filtered torques."""

MAX_DRAWS = 100_000
"""Maximum number of draws: standard deviations are then known to 0.2 %."""

MIN_DRAWS = 20
"""Minimum number of draws: standard deviations are then known to about 17 %."""

NORMAL = 1.96
"""Upper quantile of normal 95 % intervals."""

INTERVAL_PERCENTILES = (2.5, 97.5)
"""Percentiles of the ends of the intervals."""

MAX_FAILED_SHARE = 0.1
"""Maximum share of the draws that may fail to converge."""


def check_bootstrap_draws(draws: int) -> None:
    """Check the number of draws; 0 disables the bootstrap.

    Raises:
        UsageError: a number between 1 and 19, a negative one, or one above `MAX_DRAWS`.
    """
    if draws != 0 and not MIN_DRAWS <= draws <= MAX_DRAWS:
        raise UsageError(f"bootstrap: draws must be 0 (none) or {MIN_DRAWS} to {MAX_DRAWS}, not {draws}")


def bootstrap_estimate(
    estimator: Estimator,
    problem: LinearProblem,
    estimate: Estimate,
    draws: int,
    progress: Progress = ignore_progress,
    seed: int = 0,
) -> Estimate:
    """Replace the standard deviations of an estimate by those of a bootstrap, and add intervals.

    Args:
        estimator: the estimator that made the estimate.
        problem: the problem that it was made from.
        estimate: the estimate; the correlations of its covariance are kept.
        draws: number of draws; the estimator is applied to each.
        progress: callback that receives every draw, in this process.
        seed: seed of the random numbers.

    Raises:
        UsageError: too few draws.
        ConvergenceError: more than `MAX_FAILED_SHARE` of the draws do not converge.
    """
    check_bootstrap_draws(draws)
    rest = Residuals.from_estimate(problem, estimate)

    def fit(draw: int) -> Array | str:
        """Parameters of a draw, which has random numbers of its own; the reason if it does not converge."""
        torques = rest.draw(np.random.default_rng((seed, draw)), round(BLOCK_LENGTH_S * problem.rate))
        try:
            return estimator.fit(problem.with_torques(torques)).values
        except ConvergenceError as error:
            return str(error)

    found: list[Array] = []
    failed = 0
    stage = Stage("estimating again from draws (bootstrap)", 0, draws)
    progress(stage)
    with closing(map_in_order(fit, range(draws))) as results:
        for number, values in enumerate(results):
            progress(replace(stage, done=number + 1))
            if isinstance(values, str):
                failed += 1
                if failed > MAX_FAILED_SHARE * draws:
                    raise ConvergenceError(f"bootstrap: {failed} draws of {draws} fail, the last: {values}")
            else:
                found.append(values)
    spread = np.std(found, axis=0, ddof=1)
    if estimate.unconstrained is None:
        # reflected percentiles: the bias is removed
        intervals = (2.0 * estimate.values - np.percentile(found, INTERVAL_PERCENTILES[::-1], axis=0)).T
        intervals[np.isinf(estimate.standard_deviations)] = -np.inf, np.inf
    else:
        spread, intervals = _bounded_intervals(estimate, spread)
    message = f"standard deviations from {draws} bootstrap samples of residuals in blocks of {BLOCK_LENGTH_S:g} s"
    return replace(
        estimate,
        covariance=rescale_covariance(estimate.covariance, spread),
        standard_deviations=np.where(np.isinf(estimate.standard_deviations), np.inf, spread),
        intervals=intervals,
        findings=(*estimate.findings, BOOTSTRAP_DEVIATIONS.found(message)),
    )


def _bounded_intervals(estimate: Estimate, spread: Array) -> tuple[Array, Array]:
    """Standard deviations, shape (p,), and intervals, shape (p, 2), of an estimate with bounds.

    Draws of a parameter at its bound scatter to one side only, or not at all: reflected, they would leave out every
    value that the bound allows. Where the interval of the estimator begins at zero, this one does too, and its
    deviation and upper end are at least those of the estimator.

    Args:
        estimate: the estimate, with the intervals of its estimator.
        spread: standard deviations of the draws, shape (p,).
    """
    at_zero = np.zeros(len(spread), dtype=bool) if estimate.intervals is None else estimate.intervals[:, 0] == 0.0
    own = estimate.standard_deviations
    spread = np.where(at_zero & np.isfinite(own), np.maximum(spread, own), spread)
    half = NORMAL * np.where(np.isinf(own), np.inf, spread)
    low, high = estimate.values - half, estimate.values + half
    if estimate.intervals is not None:
        low = np.where(at_zero, 0.0, low)
        high = np.where(at_zero, np.maximum(high, estimate.intervals[:, 1]), high)
    return spread, np.column_stack([low, high])


@dataclass(frozen=True)
class Residuals:
    """Predicted torques and residuals of each segment.

    Attributes:
        predicted: predicted torques of each segment, shape (n, rows).
        rest: residuals of each segment, scaled up for degrees of freedom, shape (n, rows).
        used: rows of each segment that are not excluded, shape (n, rows).
    """

    predicted: dict[int, Array]
    rest: dict[int, Array]
    used: dict[int, Mask]

    @classmethod
    def from_estimate(cls, problem: LinearProblem, estimate: Estimate) -> Residuals:
        """Evaluate an estimate, with its own nonlinear constants, in one pass over the problem."""
        at = problem
        if estimate.regressor is not None and isinstance(problem, RegressorProblem):
            at = problem.with_columns(estimate.regressor, problem.columns)
        parts: dict[int, list[list[Array]]] = {}
        rows = 0
        for tile in at.tiles():
            own = parts.setdefault(tile.segment, [[] for _ in problem.supports])
            predicted = estimate.values[problem.supports[tile.joint]] @ tile.block[:-1]
            used = find_used_rows(tile.block)
            own[tile.joint].append(np.array([predicted, tile.block[-1] - predicted, used]))
            rows += int(np.count_nonzero(used))
        joined = {segment: np.array([np.concatenate(one, axis=1) for one in own]) for segment, own in parts.items()}
        larger = np.sqrt(rows / max(1, rows - len(problem.names)))
        return cls(
            {segment: three[:, 0] for segment, three in joined.items()},
            {segment: larger * three[:, 1] for segment, three in joined.items()},
            {segment: three[:, 2] > 0.0 for segment, three in joined.items()},
        )

    def draw(self, rng: np.random.Generator, block: int) -> dict[int, Array]:
        """Draw torques: predictions plus residuals in random blocks of `block` rows."""
        torques = {}
        for segment, rest in self.rest.items():
            count = rest.shape[1]
            length = min(max(1, block), count)
            starts = rng.integers(0, count, -(-count // length))
            torques[segment] = self.predicted[segment].copy()
            for own, series, used in zip(torques[segment], rest, self.used[segment], strict=True):
                rows = np.flatnonzero(used)
                at = (starts[:, None] * len(rows) // count + np.arange(length)).ravel()[: len(rows)]
                own[rows] += series[rows[at % max(1, len(rows))]]
        return torques
