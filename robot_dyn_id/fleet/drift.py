# SPDX-License-Identifier: Apache-2.0
"""Changes of a robot's parameters from recording to recording: linear drift, and agreement of its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri

from robot_dyn_id.arrays import Array
from robot_dyn_id.estimators.factors import Solution
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.fleet.evidence import Evidence

DAY_S = 86400.0
"""Seconds of a day."""

MIN_REPEATED = 5
"""Fewest robots with several recordings that the noise between recordings is estimated from."""

NORMAL_95 = 1.959963984540054
"""Half width of a 95 % interval in standard deviations."""


@dataclass(frozen=True)
class Drift:
    """Linear drift of the p base parameters of one robot.

    Attributes:
        rates: change per day, shape (p,).
        standard_deviations: standard deviations of the rates, infinite where the recordings do not determine them, for
            noise that does not differ between recordings; shape (p,).
    """

    rates: Array
    standard_deviations: Array

    def intervals(self, dispersion: float) -> Array:
        """95 % intervals of the rates, shape (p, 2).

        Args:
            dispersion: variance of the noise between recordings over that within one.
        """
        half = NORMAL_95 * np.sqrt(dispersion) * self.standard_deviations
        return np.stack([self.rates - half, self.rates + half], axis=1)


@dataclass(frozen=True)
class RecordingAgreement:
    """Agreement of the recordings of one robot with one set of parameters.

    Attributes:
        statistic: sum of the squared Mahalanobis distances of the recordings' scores from those of the common estimate.
        freedom: degrees of freedom; 0 for a single recording.
    """

    statistic: float
    freedom: int

    def probability(self, dispersion: float) -> float:
        """Probability of a statistic at least as large, if all recordings are of one robot.

        Args:
            dispersion: variance of the noise between recordings over that within one.
        """
        return float(chdtrc(self.freedom, self.statistic / dispersion)) if self.freedom else 1.0


def fit_drift(recordings: Sequence[RowStatistics], times: Sequence[float]) -> Drift | None:
    """Fit parameters that change linearly with time to the recordings of a robot, by weighted least squares.

    Args:
        recordings: statistics of the rows of each recording.
        times: time of each recording [s].

    Returns:
        The drift; None if all recordings have the same time.
    """
    days = (np.asarray(times, dtype=np.float64) - np.mean(times)) / DAY_S
    if len(days) < 2 or np.ptp(days) == 0.0:
        return None
    merged = RowStatistics.merged(recordings)
    weights = solve_reweighted(merged.factors)[2]
    stacks = [one.factors.stack(weights) for one in recordings]
    rows = [
        np.column_stack([stack[:, :-1], day * stack[:, :-1], stack[:, -1]])
        for stack, day in zip(stacks, days.tolist(), strict=True)
    ]
    solution = Solution.from_rows(np.concatenate(rows))
    middle = sum(
        np.kron(np.array([[1.0, day], [day, day**2]]), one.score_covariance(weights))
        for one, day in zip(recordings, days.tolist(), strict=True)
    )
    covariance = solution.inverse @ middle @ solution.inverse
    count = merged.factors.parameters
    sigma = np.sqrt(np.maximum(np.diag(covariance)[count:], 0.0))
    return Drift(solution.values[count:], np.where(solution.unexcited[count:], np.inf, sigma))


def compare_recordings(recordings: Sequence[RowStatistics]) -> RecordingAgreement:
    """Compare the recordings of one robot with their common estimate.

    Args:
        recordings: statistics of the rows of each recording.
    """
    if len(recordings) < 2:
        return RecordingAgreement(0.0, 0)
    each = Evidence.from_statistics(recordings)
    inner = np.linalg.solve(each.noise, each.designs)
    whole = np.einsum("rji,rjk->ik", each.designs, inner)
    target = np.einsum("rij,ri->j", inner, each.targets)
    common = np.linalg.pinv(whole, hermitian=True, rcond=1e-14) @ target
    residual = each.targets - each.designs @ common
    distances = np.einsum("ri,ri->r", np.linalg.solve(each.noise, residual[:, :, None])[:, :, 0], residual)
    rank = int(np.linalg.matrix_rank(whole, tol=1e-14 * np.linalg.norm(whole, 2), hermitian=True))
    return RecordingAgreement(float(distances.sum()), max(0, int(each.ranks.sum()) - rank))


def estimate_overdispersion(agreements: Sequence[RecordingAgreement]) -> float:
    """Variance of the noise between recordings of one robot over that within one (Birge ratio), at least 1.

    It is the median over the robots, so that a robot that wears does not widen the intervals of the others. Of fewer
    than `MIN_REPEATED` robots with several recordings it is 1, as such a median says little.

    Args:
        agreements: agreement of the recordings of each robot.
    """
    return _median_ratio(_ratios(agreements))


def estimate_overdispersion_of_others(agreements: Sequence[RecordingAgreement]) -> Array:
    """The same ratio for the test of each robot: that of the other robots, shape (N,).

    A robot whose own recordings counted would excuse their disagreement.

    Args:
        agreements: agreement of the recordings of each robot.
    """
    ratios = _ratios(agreements)
    return np.array([_median_ratio(np.delete(ratios, number)) for number in range(len(ratios))])


def _ratios(agreements: Sequence[RecordingAgreement]) -> Array:
    """Statistic of each robot over the median of its distribution; NaN without repetition, shape (N,)."""
    freedom = np.array([one.freedom for one in agreements], dtype=np.float64)
    statistics = np.array([one.statistic for one in agreements])
    return np.where(freedom > 0.0, statistics / chdtri(np.maximum(freedom, 1.0), 0.5), np.nan)


def _median_ratio(ratios: Array) -> float:
    known = ratios[~np.isnan(ratios)]
    return max(1.0, float(np.median(known))) if len(known) >= MIN_REPEATED else 1.0
