# SPDX-License-Identifier: Apache-2.0
"""Continuation of a motion beyond the ends of its recording.

A zero-phase filter needs samples on both sides. Where a recording begins or ends, the usual reflection of the signal
pins it to its last, noisy sample and bends it there, and the second derivative of that is larger than any acceleration
of the robot. Here the signal is continued by its most probable course, a Gaussian process given the samples near the
end (kriging; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 2.2 and 5.4): one of two
covariances, of smooth motions (squared exponential) and of motions with abrupt accelerations (Matern 7/2), whichever
makes the samples more probable. Length and amplitude follow from the velocity and acceleration of the motion itself,
the noise from the part of the signal that the filter removes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.kernels.cholesky import CholeskyFactor
from robot_dyn_id.signals.filtering import LowPass, derivative

CONTINUATION_PERIODS = 3.0
"""Length of the continuation, in periods of the cut-off."""

MEMORY_LENGTHS = 5.0
"""Time before the end that the continuation rests on, in correlation lengths of the motion."""

POINTS_PER_LENGTH = 25
"""Means of samples per correlation length that the continuation is computed from."""

LENGTH_PERIODS = (0.3, 10.0)
"""Least and greatest correlation length, in periods of the cut-off."""

RELATIVE_NOISE = 1e-5
"""Least standard deviation of the noise, relative to the amplitude of the motion."""

SHORTEST = 16
"""Samples below which a signal is continued by a straight line."""


def filter_with_derivatives(
    values: Array, rate: float, low_pass: LowPass, starts: bool, ends: bool
) -> tuple[Array, Array, Array]:
    """Low-pass filter a motion, and differentiate it twice.

    Args:
        values: samples of a motion, shape (n, N).
        rate: samples per second [Hz].
        low_pass: the filter.
        starts: whether the recording begins with the first sample, so that the motion is continued before it.
        ends: whether it ends with the last one.

    Returns:
        Filtered motion, its first and its second derivative, shape (n, N) each.
    """
    count = values.shape[1]
    before = predict_continuation(values[:, ::-1], rate, low_pass)[:, ::-1] if starts else values[:, :0]
    after = predict_continuation(values, rate, low_pass) if ends else values[:, :0]
    smooth = low_pass.apply(np.concatenate([before, values, after], axis=1), rate)
    first = derivative(smooth, rate)
    inside = slice(before.shape[1], before.shape[1] + count)
    return smooth[:, inside], first[:, inside], derivative(first, rate)[:, inside]


def predict_continuation(values: Array, rate: float, low_pass: LowPass) -> Array:
    """Most probable course of a motion after its last sample, shape (n, `CONTINUATION_PERIODS` of the cut-off).

    Args:
        values: samples of a motion, shape (n, N).
        rate: samples per second [Hz].
        low_pass: filter that separates motion and noise.
    """
    joints, count = values.shape
    times = np.arange(1, math.ceil(CONTINUATION_PERIODS / low_pass.cutoff * rate) + 1) / rate
    if count < SHORTEST:
        line = np.polynomial.polynomial.polyfit(np.arange(1 - count, 1) / rate, values.T, min(1, count - 1))
        return np.asarray(np.polynomial.polynomial.polyval(times, line))
    smooth = low_pass.apply(values, rate)
    velocity = derivative(smooth, rate)
    trimmed = min(count // 4, math.ceil(rate / low_pass.cutoff))
    inside = slice(trimmed, count - trimmed)
    speed = np.mean(velocity[:, inside] ** 2, axis=1)
    acceleration = np.mean(derivative(velocity, rate)[:, inside] ** 2, axis=1)
    noise = np.mean((values - smooth)[:, inside] ** 2, axis=1)
    shortest, longest = (periods / low_pass.cutoff for periods in LENGTH_PERIODS)
    out = np.empty((joints, len(times)))
    for joint in range(joints):
        # squared exponential of amplitude a, length l: variances a^2 / l^2 of velocity, 3 a^2 / l^4 of acceleration
        length = math.sqrt(3.0 * speed[joint] / max(acceleration[joint], 1e-300))
        length = min(max(length, shortest), longest)
        amplitude = length * math.sqrt(speed[joint])
        group = max(1, int(length * rate / POINTS_PER_LENGTH))
        points = min(count // group, int(MEMORY_LENGTHS * POINTS_PER_LENGTH))
        means = values[joint, count - points * group :].reshape(points, group).mean(axis=1)
        if amplitude == 0.0:
            out[joint] = means.mean()
            continue
        last = 0.5 * (group - 1) / rate / length  # from the middle of the last mean to the last sample
        variance = noise[joint] / group / amplitude**2 + RELATIVE_NOISE**2
        spacing = group / rate / length
        out[joint] = _krige(spacing, means / amplitude, variance, last + times / length) * amplitude
    return out


def _krige(spacing: float, values: Array, variance: float, ahead: Array) -> Array:
    """Mean of the process of unit amplitude and length, and of unknown mean, given noisy values.

    Args:
        spacing: time between the values.
        values: the values, shape (k,).
        variance: variance of their noise.
        ahead: requested times after the last value, shape (m,).
    """
    distances: Array = np.arange(len(values), dtype=np.float64) * spacing
    best, found, chosen = -math.inf, np.empty(0), _squared_exponential
    means = 0.0
    for covariance in (_squared_exponential, _matern):
        row = covariance(distances)
        row[0] += variance
        matrix: Array = row[_lags(len(values))]
        factor = CholeskyFactor.from_matrix(matrix)
        ones, solved = factor.solve(np.stack([np.ones(len(values)), values], axis=1)).T
        mean = solved.sum() / ones.sum()
        weights = solved - mean * ones
        likelihood = -0.5 * float((values - mean) @ weights) - 0.5 * factor.log_determinant
        if likelihood > best:
            best, found, chosen, means = likelihood, weights, covariance, mean
    return np.asarray(means + chosen(ahead[:, None] + distances[::-1]) @ found)


@lru_cache(maxsize=16)
def _lags(count: int) -> Integers:
    """Numbers of steps between samples, shape (count, count): equal along diagonals."""
    return np.abs(np.subtract.outer(np.arange(count), np.arange(count)))


def _squared_exponential(distance: Array) -> Array:
    return np.asarray(np.exp(-0.5 * distance**2))


def _matern(distance: Array) -> Array:
    """Matern 7/2 with velocities of unit variance."""
    scaled = math.sqrt(5.0) * np.abs(distance)
    return np.asarray((1.0 + scaled + 0.4 * scaled**2 + scaled**3 / 15.0) * np.exp(-scaled))
