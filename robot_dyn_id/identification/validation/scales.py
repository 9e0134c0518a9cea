# SPDX-License-Identifier: Apache-2.0
"""Physical scales of the errors of a model: rated effort, friction, payload, smallest contact torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor, find_inertia_rows
from robot_dyn_id.dynamics.terms import Offset
from robot_dyn_id.identification.validation.extrapolation import compute_torque_deviation
from robot_dyn_id.parameters import Ranges
from robot_dyn_id.signals.processing import SignalPlan

MAX_RATED_RATIO = 10.0
"""Rated effort over the largest measured torque above which the limit of the URDF is not taken for the rated effort of
the drive: it may be a placeholder, or the motion uses very little of it."""

DETECTABLE_QUANTILE = 0.999
"""Share of the samples that an alarm threshold on the residual must not be exceeded in."""

FRICTION_SPEED_SHARE = 0.1
"""Speed at which the friction that holds a joint is evaluated, as a share of the trained speed."""

LOAD_BLOCK_S = 2.0
"""Length of the blocks that an apparent load is fitted to [s]: a stop with the payload in one position."""


def rate_effort(limits: Array, peak: Array) -> Array:
    """Rated effort of each joint [N m or N].

    It is the effort limit of the URDF, but not less than the largest measured torque, and not more than
    `MAX_RATED_RATIO` times that. Without a limit it is the largest measured torque.

    Args:
        limits: effort limits of the URDF, shape (n,); infinite or 0 without a limit.
        peak: largest measured torques, shape (n,).
    """
    known = np.isfinite(limits) & (limits > 0.0)
    return np.where(known, np.clip(limits, peak, MAX_RATED_RATIO * peak), peak)


@dataclass
class ErrorHistogram:
    """Counts of absolute errors on a logarithmic scale, from which quantiles follow in flat memory.

    Attributes:
        counts: number of samples by joint and bin, shape (n, bins).
    """

    counts: Array

    PER_DECADE = 40
    """Bins per decade: quantiles are exact to 6 %."""

    LOWEST, HIGHEST = -9, 9
    """Decades of the smallest and the largest error that is resolved [N m or N]."""

    @classmethod
    def empty(cls, joints: int) -> ErrorHistogram:
        """Histogram without samples."""
        return cls(np.zeros((joints, (cls.HIGHEST - cls.LOWEST) * cls.PER_DECADE + 1)))

    def add(self, errors: Array, valid: Mask) -> None:
        """Count valid errors, shapes (n, N)."""
        size = np.log10(np.maximum(np.abs(errors), 10.0**self.LOWEST)) - self.LOWEST
        bins = np.clip(np.ceil(self.PER_DECADE * size), 0, self.counts.shape[1] - 1).astype(np.int64)
        for counts, of_joint, kept in zip(self.counts, bins, valid, strict=True):
            counts += np.bincount(of_joint[kept], minlength=len(counts))

    def quantile(self, share: float) -> Array:
        """Absolute error that this share of the samples does not exceed, shape (n,); NaN without samples."""
        cumulated = np.cumsum(self.counts, axis=1)
        total = cumulated[:, -1:]
        bins = np.argmax(cumulated >= share * total, axis=1)
        return np.where(total[:, 0] > 0, 10.0 ** (bins / self.PER_DECADE + self.LOWEST), np.nan)


class ApparentLoadFit:
    """Fit of a point mass at the last link to the errors of a model, block by block.

    An arm without payload must show no payload: what the errors imitate is the resolution of payload estimation.
    """

    def __init__(self, regressor: Regressor, plan: SignalPlan) -> None:
        """Choose the last link: the body whose mass acts on most joints.

        Args:
            regressor: robot and terms.
            plan: decisions about the signals; the errors are thinned to what their band holds.
        """
        masses = 10 * np.arange(len(regressor.model.body_names))
        self._regressor = regressor
        self._column = masses[[int(np.argmax(regressor.structure[masses].sum(axis=1)))]]
        self._stride = plan.row_stride
        self._block = LOAD_BLOCK_S * plan.rate
        self._sums: dict[tuple[int, int], Array] = {}  # of each block: squares, products and count, shape (2 n + 1,)

    def add(self, segment: int, number: Integers, motion: Motion, error: Array, valid: Mask) -> None:
        """Add N samples of one segment with their grid numbers.

        Args:
            segment: number of the segment.
            number: grid number of each sample, shape (N,).
            motion: motion of the joints.
            error: predicted minus measured torques, shape (n, N).
            valid: samples of each joint that count, shape (n, N).
        """
        rows = np.flatnonzero(number % self._stride == 0)
        if not len(rows):
            return
        torque = self._regressor.torque(motion.take(rows), np.ones(1), self._column) * valid[:, rows]
        parts = np.concatenate([torque**2, -torque * error[:, rows], np.ones((1, len(rows)))])
        blocks = (number[rows] // self._block).astype(np.int64)
        for block in np.unique(blocks).tolist():
            key = segment, block
            self._sums[key] = self._sums.get(key, 0.0) + parts[:, blocks == block].sum(axis=1)

    def solve(self, variance: Array, counts: Mask) -> tuple[Array, float]:
        """Weighted least squares.

        Args:
            variance: mean squared error of each joint, shape (n,).
            counts: joints whose model explains their effort, shape (n,): a joint that measures little but friction and
                noise has small errors, which would hide a payload that it does not feel.

        Returns:
            RMS torque of 1 kg at each joint that counts, shape (n,), 0 at others, and the RMS of the fitted mass over
            the blocks [kg], weighted with their length; NaN without samples.
        """
        if not self._sums:
            return np.full(len(variance), np.nan), np.nan
        sums = np.array(list(self._sums.values()))
        squares, products = (part * counts for part in np.split(sums[:, :-1], 2, axis=1))
        weights = 1.0 / np.maximum(variance, 1e-300)
        count = sums[:, -1]
        information = squares @ weights
        used = information > 1e-6 * max(float(information.max()), 1e-300)
        load = (products @ weights)[used] / information[used] if used.any() else np.zeros(0)
        mass = float(np.sqrt(np.average(load**2, weights=count[used]))) if len(load) else np.nan
        return np.sqrt(squares.sum(axis=0) / count.sum()), mass


def find_friction_levels(
    regressor: Regressor, columns: Integers, values: Array, motion: Motion, trained: Ranges
) -> Array:
    """Friction torque of each joint at `FRICTION_SPEED_SHARE` of its trained speed [N m or N], shape (n,).

    It is the part of the torque that is odd in the velocity, (tau(q, dq) - tau(q, -dq)) / 2 with one joint moving at
    constant speed: rigid bodies contribute only even parts. States of terms have settled.

    Args:
        regressor: robot and terms.
        columns: independent columns, shape (p,).
        values: base parameters, shape (p,).
        motion: motion whose positions the median is taken over.
        trained: ranges of the training motion.
    """
    joints, samples = motion.q.shape
    torques = []
    for sign in (1.0, -1.0):
        dq = np.repeat(np.diag(sign * FRICTION_SPEED_SHARE * trained.dq_max), samples, axis=1)
        turned = _repeated(motion, dq, np.zeros_like(dq))
        torque = regressor.torque(turned, values, columns).reshape(joints, joints, samples)
        torques.append(np.einsum("jjk->jk", torque))
    return np.asarray(np.maximum(np.median(torques[0] - torques[1], axis=1) / 2.0, 0.0))


def find_constant_torques(regressor: Regressor, columns: Integers, values: Array, motion: Motion) -> Array:
    """Torque of each joint that depends on nothing, its identified offset [N m or N], shape (n,).

    Args:
        regressor: robot and terms.
        columns: independent columns, shape (p,).
        values: base parameters, shape (p,).
        motion: any motion of the robot.
    """
    first = 10 * len(regressor.model.body_names)
    constant = np.array([c >= first and isinstance(regressor.term_columns[c - first].term, Offset) for c in columns])
    if not constant.any():
        return np.zeros(len(motion.q))
    return np.asarray(regressor.torque(motion.take(slice(0, 1)), values[constant], columns[constant])[:, 0])


def compute_gravity_deviation(regressor: Regressor, columns: Integers, covariance: Array, motion: Motion) -> Array:
    """RMS standard deviation of the torque at rest due to the parameter covariance [N m or N], shape (n,)."""
    deviation = compute_torque_deviation(regressor, columns, covariance, motion.at_rest())
    return np.asarray(np.sqrt((deviation**2).mean(axis=1)))


def compute_inertia_deviation(
    regressor: Regressor, columns: Integers, values: Array, covariance: Array, motion: Motion
) -> Array:
    """Relative standard deviation of the diagonal of the mass matrix, median over the poses, shape (n,).

    Infinite where the inertia of the model is not positive.

    Args:
        regressor: robot and terms.
        columns: independent columns, shape (p,).
        values: base parameters, shape (p,).
        covariance: their covariance, shape (p, p).
        motion: motion whose positions are used.
    """
    ratios = np.empty(len(motion.q))
    for joint, rows in enumerate(find_inertia_rows(regressor, motion)):
        own = rows[columns]
        inertia = values @ own
        sigma = np.sqrt(np.maximum(np.einsum("in,in->n", own, covariance @ own), 0.0))
        ratio = np.divide(sigma, inertia, out=np.full(len(inertia), np.inf), where=inertia > 0.0)
        ratios[joint] = np.median(ratio)
    return ratios


def _repeated(motion: Motion, dq: Array, ddq: Array) -> Motion:
    """The positions of a motion once for each joint, with other velocities and accelerations, shape (n, n N)."""
    joints = len(motion.q)
    temperature = None if motion.temperature is None else np.tile(motion.temperature, joints)
    return Motion(np.tile(motion.q, joints), dq, ddq, temperature)
