# SPDX-License-Identifier: Apache-2.0
"""Directions of the parameters that only noise excites, and estimates without them.

Rounding is far below the noise of sensors: columns of a motion that does not excite a direction are noise, which is no
rounding, and least squares divides by it. Here a direction v of the parameters counts as excited if

    v' G v  >  v' (k N + M / T^2) v

with all rows weighted to unit noise of the torque: G = W' W; N is the same of the change of W by noise of the sensors;
M is the mean of W' W over random states of all joints as fast as the recorded motion, T^2 the mean square of the
torque. The first summand is for noise in the columns, where least squares would find values that are too small;
the second for noise in the torque, which must not leave uncertain more of a prediction than there is torque. All other
directions are held at the prior, or at zero where there is none, and what is left is estimated as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from scipy.linalg import eigh

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators import Estimate, Estimator
from robot_dyn_id.estimators.weighting import compute_weights_from_squares
from robot_dyn_id.identification.diagnosis.zeros import center_rows
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.reversals import estimate_sensor_noise
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.windows import Window

MIN_CONDITION_NUMBER = 100.0
"""Condition number of unit-norm columns below which all directions are excited far above the noise: not examined."""

NOISE_FACTOR = 4.0
"""k: noise of the columns must be less than a quarter of what they contain; the level of the noise is known within a
factor of about 2."""

STATES = 300
"""Number of random states of which M is the mean."""

MIN_SHARE = 0.01
"""Share of the variance of a parameter that the held directions leave, above which it is listed as not excited."""

RESTING_WEIGHT = 1e8
"""Squared weight of joints without a row, such as one at rest whose rows are left out, over that of the others: changes
of excited parameters are not to change its torque. Without residuals it would be 1e18, and the matrices singular."""

SLOWEST_RATIO = 0.05
"""Smallest speed of a joint in the random states, as a share of that of the fastest joint."""


@dataclass(frozen=True)
class NoiseDirections:
    """Division of the space of p parameters into excited directions and those that only noise excites.

    Attributes:
        excited: a basis of the excited directions, shape (p, k).
        held: a basis of the others, shape (p, p - k), orthogonal to the first in the metric of the data.
    """

    excited: Array
    held: Array

    @property
    def parameters(self) -> np.ndarray:
        """Mask of the parameters with a component in the held directions, shape (p,)."""
        held = np.sum(self.held**2, axis=1)
        return np.asarray(held > MIN_SHARE * (held + np.sum(self.excited**2, axis=1)))


class _NoisyTrials(FilteredTrials):
    """Trials with additional noise of positions and velocities, as large as that of the recordings."""

    def _windows(self, trial: int) -> Iterator[Window]:
        """See `FilteredTrials.windows`; every pass adds the same noise."""
        rng, (of_position, of_velocity) = np.random.default_rng(trial), self._noise
        for window in super()._windows(trial):
            q = window.q + of_position[:, None] * rng.normal(size=window.q.shape)
            dq = window.dq
            if dq is not None:
                dq = dq + of_velocity[:, None] * rng.normal(size=dq.shape)
            yield replace(window, q=q, dq=dq)

    @classmethod
    def from_trials(cls, trials: FilteredTrials) -> _NoisyTrials:
        """Add noise to trials."""
        return cls(**{item.name: getattr(trials, item.name) for item in fields(FilteredTrials)} | {"store": None})

    @cached_property
    def _noise(self) -> tuple[Array, Array]:
        """See `estimate_sensor_noise`."""
        return estimate_sensor_noise(self.without_noise())

    def without_noise(self) -> FilteredTrials:
        """The trials as they were recorded."""
        return FilteredTrials(**{item.name: getattr(self, item.name) for item in fields(FilteredTrials)})


def fit_excited(estimator: Estimator, problem: LinearProblem) -> tuple[Estimate, Estimator]:
    """Fit an estimator; if it reports a poor condition, in the directions that more than noise excites.

    Estimators of constants, of a simulated robot, and those with a prior need the columns themselves: they are fitted
    as they are.

    Returns:
        The estimate, and the estimator that repeats it with other torques: in the same directions.

    Raises:
        ConvergenceError: the estimator did not converge.
        InputError: too few rows.
    """
    estimate = estimator.fit(problem)
    if not (getattr(estimator, "any_columns", False) and isinstance(problem, RecordedProblem)):
        return estimate, estimator
    if estimate.condition_number <= MIN_CONDITION_NUMBER or not isinstance(problem.windows, FilteredTrials):
        return estimate, estimator
    found = find_noise_directions(problem, problem.windows, estimate)
    if not found.held.shape[1]:
        return estimate, estimator
    within = EstimatorInDirections(estimator, found)
    return within.fit(problem), cast(Estimator, within)  # its name is a property: that of the estimator


@dataclass(frozen=True)
class EstimatorInDirections:
    """An estimator that is fitted in the excited directions alone; the others stay at the prior, or at zero.

    Attributes:
        estimator: the estimator.
        directions: directions of the problem's parameters.
    """

    estimator: Estimator
    directions: NoiseDirections

    uses_prior: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name of the estimator."""
        return self.estimator.name

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`."""
        center = np.zeros(len(problem.names)) if problem.prior is None else problem.prior.center
        restricted = self.estimator.fit(_restricted(problem, self.directions, center))
        return _expanded(restricted, self.directions, center, problem)


def find_noise_directions(problem: RecordedProblem, trials: FilteredTrials, estimate: Estimate) -> NoiseDirections:
    """Find the directions that only noise excites, see the module.

    Args:
        problem: the problem.
        trials: its recordings.
        estimate: an estimate from the problem, whose residuals are the noise of the torque.
    """
    rows, noisy = (
        RecordedProblem.from_windows(problem.regressor, problem.columns, windows, problem.plan)
        for windows in (trials, _NoisyTrials.from_trials(trials))
    )
    if trials.zeros is not None:
        rows, noisy = center_rows(rows, trials.zeros), center_rows(noisy, trials.zeros)
    joints, p = len(problem.joint_names), len(problem.names)
    counts, squares = np.zeros(joints, dtype=np.int64), np.zeros(joints)
    gram, noise = np.zeros((joints, p, p)), np.zeros((joints, p, p))
    for tile, other in zip(rows.tiles(), noisy.tiles(), strict=True):
        support, block = np.ix_(problem.supports[tile.joint], problem.supports[tile.joint]), tile.block
        used = find_used_rows(block) & find_used_rows(other.block)
        change = (other.block[:-1] - block[:-1])[:, used]
        gram[tile.joint][support] += block[:-1] @ block[:-1].T
        noise[tile.joint][support] += change @ change.T
        counts[tile.joint] += np.count_nonzero(find_used_rows(block))
        squares[tile.joint] += float(block[-1] @ block[-1])
    rest = np.minimum(counts * estimate.residual_rms**2, squares)  # an estimate that fails leaves more than the torque
    weights = compute_weights_from_squares(rest, p, counts) ** 2
    weights[counts == 0] = RESTING_WEIGHT * weights[counts > 0].max()
    torque = float(weights @ (squares / np.maximum(counts, 1)))
    least = NOISE_FACTOR * np.tensordot(weights, noise, 1) + _mean_gram(problem, weights) / torque
    scale = np.sqrt(np.diag(least))
    unit = np.outer(scale, scale)
    ratios, directions = eigh(np.tensordot(weights, gram, 1) / unit, least / unit)
    directions = directions / scale[:, None]
    return NoiseDirections(directions[:, ratios > 1.0], directions[:, ratios <= 1.0])


def _mean_gram(problem: RecordedProblem, weights: Array) -> Array:
    """Mean of the weighted W' W over random states as fast as the recorded motion, shape (p, p)."""
    regressor: Regressor = problem.regressor
    speeds = problem.max_speeds()
    speeds = np.maximum(speeds, SLOWEST_RATIO * speeds.max())
    motion = draw_random_motion(regressor.model, STATES)
    scale = (speeds / np.abs(motion.dq).max(axis=1))[:, None]
    # accelerations in the ratio of `draw_random_motion`, 2.5 / s: that of a sine with a period of 2.5 s
    motion = replace(motion, dq=motion.dq * scale, ddq=motion.ddq * scale)
    rows = regressor.dense(motion)[problem.columns]
    return np.asarray(np.einsum("cjn,j,djn->cd", rows, weights, rows) / STATES)


def _restricted(problem: LinearProblem, found: NoiseDirections, center: Array) -> LinearProblem:
    """Problem of the excited directions alone, with the torque of the center subtracted."""
    every = np.arange(found.excited.shape[1])

    def tiles() -> Iterator[Tile]:
        for tile in problem.tiles():
            support = problem.supports[tile.joint]
            columns = found.excited[support].T @ tile.block[:-1]
            used = find_used_rows(tile.block)
            tau = np.where(used, tile.block[-1] - center[support] @ tile.block[:-1], 0.0)
            yield replace(tile, block=np.asfortranarray(np.concatenate([columns, tau[None]])))

    return LinearProblem(
        names=tuple(f"excited {number + 1}" for number in every),
        joint_names=problem.joint_names,
        supports=(every,) * len(problem.joint_names),
        tiles=tiles,
        rate=problem.rate,
        period=problem.period,
        values_only=problem.values_only,
    )


def _expanded(estimate: Estimate, found: NoiseDirections, center: Array, problem: LinearProblem) -> Estimate:
    """Estimate of all parameters from one of the excited directions."""
    listed = found.parameters
    covariance = found.excited @ estimate.covariance @ found.excited.T
    given: dict[str, Any] = {
        "values": center + found.excited @ estimate.values,
        "covariance": covariance,
        "standard_deviations": np.where(listed, np.inf, np.sqrt(np.maximum(np.diag(covariance), 0.0))),
        "condition_number": np.inf,
        "unexcited": tuple(np.array(problem.names)[listed].tolist()),
        "intervals": None,
    }
    if problem.prior is not None:
        given["regularized_towards"] = (
            f"{problem.prior.source}, in {found.held.shape[1]} directions that only noise excites"
        )
    return replace(estimate, **given)
