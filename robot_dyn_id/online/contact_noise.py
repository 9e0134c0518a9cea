# SPDX-License-Identifier: Apache-2.0
"""Noise of an estimated external torque and thresholds of its contact test, learned from motion without contact.

The variance of the estimate has three parts: the noise that is learned here, the covariance of the parameters at the
state, and the uncertainty of dry friction near zero velocity. The last one is at most the half range of the friction
there, as of a uniform distribution. Which share of it the robot shows while it turns round is learned from reversals; a
joint that stays slow for longer than there may be held by any friction.

Tested are the present torque and the lasting one, which is low-passed over `LASTING_S`. Their noise is learned
separately: how much of it the low-pass removes depends on its correlation in time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.recursive_filters import compute_steps_since
from robot_dyn_id.online.changes import BLOCK, ChangeThresholds
from robot_dyn_id.online.momentum_observer import ObserverFilter, TorqueEstimates
from robot_dyn_id.online.rows import Rows

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


LASTING_S = 0.1
"""Time constant of the low-pass of the lasting torque [s]: weak contacts stand out from noise that is averaged."""

LASTING_SETTLED = 6.0
"""Time constants after which its initial state has decayed, to 0.25 %."""


@dataclass(frozen=True)
class JudgedTorque(Rows):
    """Torque that is tested for a contact at M times, with what its variance is made of.

    Attributes:
        torque: shape (M, n).
        model: covariance due to that of the parameters, shape (M, n, n).
        turning: half range of the friction near zero velocity at reversals, shape (M, n).
        held: the same where the joint may be held by any friction, shape (M, n).
        settled: whether the torque is tested, shape (M,).
    """

    torque: Array
    model: Array
    turning: Array
    held: Array
    settled: Mask

    @classmethod
    def from_estimates(cls, estimates: TorqueEstimates, crossing: Array) -> JudgedTorque:
        """Present torque; `crossing` is the longest time for which joints are slow at reversals [s], shape (n,)."""
        held = estimates.slow > crossing
        split = np.where(held, 0.0, estimates.reversal), np.where(held, estimates.reversal, 0.0)
        return cls(estimates.torque, estimates.model_covariance, *split, np.full(len(estimates), True))


class LastingTorque:
    """First-order low-pass of the tested torque: a second, slower observer.

    Its variances are at most the low-passed ones, as the weights of the low-pass are positive and their sum is 1.
    """

    def __init__(self, joints: int) -> None:
        """Start without torques."""
        self._low_pass = ObserverFilter(np.full(joints, 1.0 / LASTING_S))
        self._piece, self._begun, self._last = -1, -np.inf, -np.inf

    def follow(self, present: JudgedTorque, t: Array, piece: Integers) -> JudgedTorque:
        """Lasting torque at the same times.

        Args:
            present: present torque at M times.
            t: times [s], shape (M,).
            piece: number of the uninterrupted piece of each, shape (M,).
        """
        ends = [*(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(t)]
        parts = []
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            if piece[begin] != self._piece:
                self._low_pass.reset()
                self._piece, self._begun, self._last = int(piece[begin]), float(t[begin]), float(t[begin])
            parts.append(self._follow(present.take(slice(begin, end)), t[begin:end]))
        return JudgedTorque.concatenate(parts)

    def _follow(self, present: JudgedTorque, t: Array) -> JudgedTorque:
        infinite = ~np.isfinite(np.diagonal(present.model, axis1=1, axis2=2))
        model = np.where(np.isfinite(present.model), present.model, 0.0)
        vectors = (present.torque, present.turning, present.held, infinite.astype(np.float64))
        rows = np.concatenate([model, *(vector[:, None] for vector in vectors)], axis=1)
        found = self._low_pass.follow(compute_steps_since(self._last, t), rows)
        self._last = float(t[-1])
        model, (torque, turning, held, infinite) = found[:, :-4], found[:, -4:].swapaxes(0, 1)
        joints = np.arange(torque.shape[1])
        unsure = infinite > math.exp(-LASTING_SETTLED)
        model[:, joints, joints] = np.where(unsure, np.inf, model[:, joints, joints])
        return JudgedTorque(torque, model, turning, held, t - self._begun >= LASTING_SETTLED * LASTING_S)


def state_covariance(noise: Array, model: Array, extent: Array) -> Array:
    """Covariance of an estimate, shape (..., n, n): noise, parameters, and friction near zero velocity.

    Args:
        noise: covariance of the noise, shape (n, n).
        model: covariance due to that of the parameters, shape (..., n, n).
        extent: half range of the friction that is uncertain, shape (..., n).
    """
    uniform = np.square(extent) / 3.0
    return np.asarray(noise + model + uniform[..., None] * np.eye(len(noise)))


def compute_contact_statistics(torque: Array, covariance: Array) -> Array:
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
        reversals: number of reversals of each joint in the learning, shape (n,).
    """

    covariance: Array
    shares: Array
    thresholds: Array
    reversals: Array

    def covariance_at(self, tested: JudgedTorque) -> Array:
        """Covariance of M torques, shape (M, n, n)."""
        return state_covariance(self.covariance, tested.model, self.shares * tested.turning + tested.held)

    def statistics_at(self, tested: JudgedTorque) -> Array:
        """Test statistics of M torques, shape (M, 1 + n); zero where the torque is not tested."""
        statistics = compute_contact_statistics(tested.torque, self.covariance_at(tested))
        return np.where(tested.settled[:, None], statistics, 0.0)


def learn_noise(quiet: JudgedTorque, block: Integers, interval: float) -> ContactNoise:
    """Learn noise and thresholds of motion without contact.

    Args:
        quiet: torque at N times.
        block: number of the block of `BLOCK` seconds of each, shape (N,).
        interval: mean time between false alarms of each statistic [s].

    Raises:
        InputError: the motion was too short.
    """
    quiet, block = quiet.take(quiet.settled), block[quiet.settled]
    first = _first_of(block)
    covariance = _moments(quiet.torque, first).mean(axis=0)
    floor = 1e-12 * max(float(np.trace(covariance)), 1e-12)
    covariance = covariance + floor * np.eye(len(covariance))
    shares, reversals = _reversal_shares(quiet, np.diag(covariance))
    noise = ContactNoise(covariance, shares, np.full(1 + len(covariance), np.nan), reversals)
    largest = np.maximum.reduceat(noise.statistics_at(quiet), first)
    freedom = np.ones(largest.shape[1])
    freedom[0] = len(covariance)
    thresholds = ChangeThresholds(freedom)
    for each in largest:
        thresholds.add(each, BLOCK)
    return replace(noise, thresholds=thresholds.fit(interval))


def check_quiet(
    quiet: JudgedTorque, block: Integers, effort: Array, joint_names: Sequence[str], held_out_shares: Array
) -> None:
    """Refuse motion with contacts.

    Args:
        quiet: torque at N times.
        block: number of the block of `BLOCK` seconds of each, shape (N,).
        effort: low-passed effort, shape (N, n).
        joint_names: names of the n joints, for messages.
        held_out_shares: NRMSE of the model on held-out data, shape (n,); NaN where it is not known.

    Raises:
        InputError: the motion was too short, or disturbed; the joint or the time is named.
    """
    first = _first_of(block)
    moments = _moments(quiet.torque, first)
    reference = moments[_calm_half(moments)].mean(axis=0)
    known = np.where(np.isfinite(quiet.model), quiet.model, 0.0)
    robust = compute_contact_statistics(quiet.torque, state_covariance(reference, known, quiet.turning))
    _refuse_disturbance(np.maximum.reduceat(robust[:, 0], first))
    counts = np.diff(np.append(first, len(block)))
    means = np.add.reduceat(quiet.torque, first) / counts[:, None]
    _refuse_persistent(means, known, effort, joint_names, held_out_shares)


def _first_of(block: Integers) -> Integers:
    """Index of the first sample of each block.

    Raises:
        InputError: there are too few blocks to learn from.
    """
    first = np.unique(block, return_index=True)[1]
    if len(first) < LEAST_BLOCKS:
        raise InputError(
            f"{len(first)} s of uninterrupted motion are too short to learn from: at least {LEAST_BLOCKS} s are needed"
        )
    return np.asarray(first)


def _moments(torque: Array, first: Integers) -> Array:
    """Second moments of each block, shape (blocks, n, n)."""
    products = torque[:, :, None] * torque[:, None, :]
    counts = np.diff(np.append(first, len(torque)))
    return np.asarray(np.add.reduceat(products, first) / counts[:, None, None])


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


def _reversal_shares(quiet: JudgedTorque, noise: Array) -> tuple[Array, Array]:
    """Share of the friction range near zero velocity that is uncertain, and number of reversals, shape (n,) each.

    The share explains the excess of the second moment near zero velocity over the noise, at the upper 95 % confidence
    limit of a mean square of as many terms as there were reversals (Wilson and Hilferty 1931).
    """
    joints = quiet.torque.shape[1]
    shares, reversals = np.ones(joints), np.zeros(joints)
    for joint in range(joints):
        extent = quiet.turning[:, joint]
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
