# SPDX-License-Identifier: Apache-2.0
"""Noise of an estimated external torque and thresholds of its contact test, learned from motion without contact.

The variance of the estimate has three parts: the noise that is learned here, the covariance of the parameters at the
state, and the uncertainty of dry friction near zero velocity. The last one is at most the half range of the friction
there, as of a uniform distribution. Which share of it the robot shows while it turns round is learned from reversals; a
joint that stays slow for longer than there may be held by any friction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import InputError
from robot_dyn_id.online.changes import BLOCK, ChangeThresholds
from robot_dyn_id.online.momentum_observer import TorqueEstimate

LEAST_BLOCKS = 8
"""Least number of blocks of one second that noise and thresholds are learned from."""

DISTURBED = 1e-3
"""Probability that learning without a contact is refused for its largest block."""

PERSISTENT = 3.0
"""Ratio of the torque that lasts for seconds to the held-out error of the model above which learning is refused."""

LEAST_REVERSALS = 5
"""Number of reversals of a joint from which on the share of its friction range is learned."""

NEAR_ZERO = 0.5
"""Share of a joint's largest friction range from which on a sample counts as one of a reversal."""


def state_covariance(noise: Array, model: Array, reversal: Array, shares: Array) -> Array:
    """Covariance of an estimate, shape (..., n, n): noise, parameters, and friction near zero velocity.

    Args:
        noise: covariance of the noise, shape (n, n).
        model: covariance due to that of the parameters, shape (..., n, n).
        reversal: half range of the friction within the uncertainty of the velocity, shape (..., n).
        shares: share of that range which is uncertain, shape (..., n).
    """
    uniform = np.square(shares * reversal) / 3.0
    return np.asarray(noise + model + uniform[..., None] * np.eye(len(noise)))


def contact_statistics(torque: Array, covariance: Array) -> Array:
    """Test statistics of N estimates, shape (N, 1 + n): of all joints together, then of each joint.

    Joints of infinite variance do not count.

    Args:
        torque: shape (N, n).
        covariance: shape (N, n, n).
    """
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    unsure = ~np.isfinite(variance) | ~(variance > 0.0)
    joints = np.square(torque) / np.where(unsure, np.inf, variance)
    matrix = np.where(unsure[:, :, None] | unsure[:, None, :], 0.0, covariance)
    matrix += unsure[:, :, None] * np.eye(torque.shape[1])
    counted = np.where(unsure, 0.0, torque)
    whole = np.einsum("kn,kn->k", counted, np.linalg.solve(matrix, counted[..., None])[..., 0])
    return np.column_stack([whole, joints])


@dataclass(frozen=True)
class ContactNoise:
    """Learned noise and thresholds of n joints.

    Attributes:
        covariance: covariance of the noise, shape (n, n).
        shares: share of the friction range near zero velocity that is uncertain, shape (n,).
        thresholds: thresholds of the statistics, shape (1 + n,).
        crossing: longest time for which each joint was slow at a reversal [s], shape (n,).
        reversals: number of reversals of each joint in the learning, shape (n,).
    """

    covariance: Array
    shares: Array
    thresholds: Array
    crossing: Array
    reversals: Array

    def covariance_at(self, estimate: TorqueEstimate) -> Array:
        """Covariance of an estimate, shape (n, n)."""
        shares = np.where(estimate.slow > self.crossing, 1.0, self.shares)
        return state_covariance(self.covariance, estimate.model_covariance, estimate.reversal, shares)


@dataclass(frozen=True)
class QuietMotion:
    """Estimates of motion without contact, N samples.

    Attributes:
        block: number of the block of `BLOCK` seconds of each sample, shape (N,).
        torque: shape (N, n).
        model: covariance due to that of the parameters, shape (N, n, n).
        reversal: half range of the friction, shape (N, n).
        slow: time for which each joint has been slow [s], shape (N, n).
        effort: low-passed effort, shape (N, n).
    """

    block: Array
    torque: Array
    model: Array
    reversal: Array
    slow: Array
    effort: Array


def learn_noise(
    quiet: QuietMotion, interval: float, joint_names: Sequence[str], held_out_shares: Array
) -> ContactNoise:
    """Learn noise and thresholds.

    Args:
        quiet: estimates of motion without contact.
        interval: mean time between false alarms of all statistics together [s].
        joint_names: names of the n joints, for messages.
        held_out_shares: NRMSE of the model on held-out data, shape (n,); NaN where it is not known.

    Raises:
        InputError: the motion was too short, or disturbed; the joint or the time is named.
    """
    _, first = np.unique(quiet.block, return_index=True)
    if len(first) < LEAST_BLOCKS:
        raise InputError(f"{len(first)} s of motion are too short to learn from: at least {LEAST_BLOCKS} s are needed")
    products = quiet.torque[:, :, None] * quiet.torque[:, None, :]
    counts = np.diff(np.append(first, len(quiet.block)))
    moments = np.add.reduceat(products, first) / counts[:, None, None]
    calm = _calm_half(moments)
    reference = moments[calm].mean(axis=0)
    known = np.where(np.isfinite(quiet.model), quiet.model, 0.0)
    extent = np.ones(quiet.torque.shape[1])
    robust = contact_statistics(quiet.torque, state_covariance(reference, known, quiet.reversal, extent))
    _refuse_disturbance(np.maximum.reduceat(robust[:, 0], first))
    means = np.add.reduceat(quiet.torque, first) / counts[:, None]
    _refuse_persistent(means, known, quiet.effort, joint_names, held_out_shares)
    covariance = moments.mean(axis=0)
    floor = 1e-12 * max(float(np.trace(covariance)), 1e-12)
    covariance = covariance + floor * np.eye(len(covariance))
    shares, reversals = _reversal_shares(quiet, np.diag(covariance))
    statistics = contact_statistics(quiet.torque, state_covariance(covariance, quiet.model, quiet.reversal, shares))
    largest = np.maximum.reduceat(statistics, first)
    freedom = np.ones(largest.shape[1])
    freedom[0] = len(covariance)
    thresholds = ChangeThresholds(freedom)
    for block in largest:
        thresholds.add(block, BLOCK)
    crossing = np.where(np.isfinite(quiet.slow), quiet.slow, 0.0).max(axis=0)
    return ContactNoise(covariance, shares, thresholds.fit(interval * len(freedom)), crossing, reversals)


def _calm_half(moments: Array) -> Mask:
    """Half of the blocks with the least second moments relative to their own mean, by repeated concentration.

    Contacts in less than half of the blocks do not hide each other in the mean that they are compared with (as in the
    minimum covariance determinant of Rousseeuw and Van Driessen 1999).
    """
    joints = moments.shape[1]
    chosen = np.full(len(moments), True)
    for _ in range(10):
        mean = moments[chosen].mean(axis=0)
        floor = 1e-12 * max(float(np.trace(mean)), 1e-12)
        energy = np.einsum("ij,bji->b", np.linalg.inv(mean + floor * np.eye(joints)), moments)
        closer = energy <= np.median(energy)
        if np.array_equal(closer, chosen):
            break
        chosen = closer
    return chosen


def _refuse_disturbance(largest: Array) -> None:
    """Refuse block maxima of which one contradicts the Gumbel law through the lower quartile and the median.

    Raises:
        InputError: with the time of the block.
    """
    values = np.sqrt(largest)  # amplitudes: motion changes the noise by factors
    lower, middle = np.quantile(values, [0.25, 0.5])
    scale = (middle - lower) / (math.log(math.log(4.0)) - math.log(math.log(2.0)))
    mode = middle + scale * math.log(math.log(2.0))
    limit = mode + scale * math.log(len(values) / DISTURBED)
    worst = int(np.argmax(values))
    if values[worst] > limit:
        raise InputError(
            f"a contact or another disturbance in the learning, after {worst * BLOCK:.0f} s of motion: the largest "
            f"residual there is {values[worst] / middle:.1f} times the usual one, by chance it is at most "
            f"{limit / middle:.1f} times"
        )


def _refuse_persistent(
    means: Array, model: Array, effort: Array, joint_names: Sequence[str], held_out_shares: Array
) -> None:
    """Refuse torques that last for seconds and exceed what held-out data let expect.

    Raises:
        InputError: with the joint.
    """
    lasting = np.sqrt(np.mean(means**2, axis=0))
    expected = np.nan_to_num(held_out_shares) * np.sqrt(np.mean(effort**2, axis=0))
    variance = np.mean(np.diagonal(model, axis1=1, axis2=2), axis=0)
    limit = PERSISTENT * np.sqrt(expected**2 + variance)
    ratio = lasting / np.maximum(limit, 1e-300)
    worst = int(np.argmax(np.where(np.isfinite(held_out_shares), ratio, 0.0)))
    if np.isfinite(held_out_shares[worst]) and ratio[worst] > 1.0:
        raise InputError(
            f"joint {joint_names[worst]} has an external torque of {lasting[worst]:.3g} that lasts, the model's errors "
            f"explain {limit[worst]:.3g}: a contact during the learning, a payload, or a model of another robot"
        )


def _reversal_shares(quiet: QuietMotion, noise: Array) -> tuple[Array, Array]:
    """Share of the friction range near zero velocity that is uncertain, and number of reversals, shape (n,) each.

    The share explains the excess of the second moment near zero velocity over the noise, at the upper 95 % confidence
    limit of a mean square of as many terms as there were reversals (Wilson and Hilferty 1931).
    """
    joints = quiet.torque.shape[1]
    shares, reversals = np.ones(joints), np.zeros(joints)
    for joint in range(joints):
        extent = quiet.reversal[:, joint]
        near = extent > NEAR_ZERO * extent.max(initial=0.0)
        count = float(np.count_nonzero(np.diff(near.astype(np.int8)) > 0))
        reversals[joint] = count
        if count < LEAST_REVERSALS or not near.any():
            continue
        spread = 2.0 / (9.0 * count)
        quantile = (1.0 - spread - 1.645 * math.sqrt(spread)) ** 3
        moment = float(np.mean(quiet.torque[near, joint] ** 2)) / max(quantile, 0.05)
        excess = max(moment - noise[joint], 0.0)
        shares[joint] = min(math.sqrt(3.0 * excess / float(np.mean(extent[near] ** 2))), 1.0)
    return shares, reversals
