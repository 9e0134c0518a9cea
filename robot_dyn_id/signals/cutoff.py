# SPDX-License-Identifier: Apache-2.0
"""Choice of the low-pass cut-off from the spectrum of the motion."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Mask

BANDWIDTH_SHARE = 0.99
"""Share of a joint's velocity power that lies below its motion bandwidth."""

CUTOFF_PER_BANDWIDTH = 10.0
"""Cut-off chosen from the data, over the motion bandwidth (Gautier: ten times the dynamics)."""

LOWEST_CUTOFF_HZ = 2.0
"""Lowest cut-off that is chosen [Hz]."""

HIGHEST_CUTOFF_PER_RATE = 0.3
"""Highest cut-off that is chosen, as a fraction of the sample rate."""

NOISE_BAND = (0.2, 0.45)
"""Band of the position's spectrum that is taken for noise, in units of the sample rate."""

NOISE_RATIO = 10.0
"""Power of the position, over that of its noise, above which it is motion."""

ROLL_OFF_RATIO = 100.0
"""Power of the position at a frequency, over that one to two octaves above, at the end of the motion: at least 700 if
accelerations jump, at most 10 of white, correlated or integrated noise."""

PROPORTIONAL_BAND = 1.2
"""Ratio of the ends of the band, to its center, over which the power is smoothed by its median: narrow lines vanish."""

ACCELERATION_NOISE_SHARE = 1e-5
"""Power of an acceleration's noise, over that of the acceleration, that the motion filter leaves if the noise is white.
Quantization errors last longer near reversals, where they matter most for friction: see `benchmarks/cutoff.py`."""

FEWEST_BANDWIDTHS = 4.0
"""Least cut-off of the motion filter, in bandwidths of the motion."""

WINDOW_SPREAD = 1.5
"""Frequency by which a Hann window widens a line to one side, at 99 % of its power in the velocity, in units of the
resolution: the bandwidth of a slow motion is that of its harmonics only after it is subtracted."""

MOVING_SHARE = 0.05
"""Speed of a joint, relative to the fastest one, above which its bandwidth counts."""


def choose_cutoff(bandwidth: Array, speed: Array, rate: float) -> float:
    """Low-pass cut-off [Hz] for regressor and efforts: from the median bandwidth of the joints that move.

    Args:
        bandwidth: motion bandwidth of each joint [Hz], shape (n,); 0 for joints at rest.
        speed: RMS velocity of each joint [rad/s or m/s], shape (n,).
        rate: sample rate [Hz].
    """
    moving = _find_moving(bandwidth, speed)
    chosen = CUTOFF_PER_BANDWIDTH * float(np.median(bandwidth[moving])) if moving.any() else 0.0
    return float(np.clip(chosen, LOWEST_CUTOFF_HZ, max(LOWEST_CUTOFF_HZ, HIGHEST_CUTOFF_PER_RATE * rate)))


def choose_motion_cutoff(cutoff: float, bandwidth: Array, limit: Array, speed: Array, resolution: float) -> float:
    """Low-pass cut-off [Hz] for positions before they are differentiated: lower than `cutoff` if they are noisy.

    Args:
        cutoff: cut-off for regressor and efforts [Hz].
        bandwidth: motion bandwidth of each joint [Hz], shape (n,); 0 for joints at rest.
        limit: frequency below which accelerations are as exact as `ACCELERATION_NOISE_SHARE` [Hz], shape (n,).
        speed: RMS velocity of each joint [rad/s or m/s], shape (n,).
        resolution: resolution of the spectrum that the bandwidth is from, the inverse of its window's length [Hz].
    """
    moving = _find_moving(bandwidth, speed)
    if not moving.any():
        return cutoff
    widened = float(np.median(bandwidth[moving]))
    lowest = FEWEST_BANDWIDTHS * max(widened - WINDOW_SPREAD * resolution, 0.5 * widened)
    return float(np.clip(np.median(limit[moving]), min(lowest, cutoff), cutoff))


def _find_moving(bandwidth: Array, speed: Array) -> Mask:
    """Joints that move, shape (n,)."""
    return np.asarray((bandwidth > 0.0) & (speed > MOVING_SHARE * speed.max(initial=0.0)))


def find_acceleration_limit(frequency: Array, power: Array, rate: float, derivatives: int) -> float:
    """Frequency up to which the noise of an acceleration is `ACCELERATION_NOISE_SHARE` of its power [Hz].

    The noise is taken for white: that of the band of `NOISE_BAND`, or that right above the motion if it is larger.

    Args:
        frequency: frequencies of the spectrum [Hz], ascending from 0.
        power: power spectral density of positions or velocities.
        rate: sample rate [Hz].
        derivatives: number of derivatives to the acceleration: 2 for positions, 1 for velocities.
    """
    noise = _find_noise(frequency, power, rate)
    end = _find_roll_off(frequency, power, noise)
    above = power[(frequency > 1.5 * end) & (frequency <= 4.0 * end)]
    noise = max(noise, float(np.median(above)) if len(above) else 0.0)
    inside = (frequency <= end) & (power > noise)
    turn = (2.0 * np.pi * frequency[inside]) ** (2 * derivatives)
    signal = float(((power[inside] - noise) * turn).sum() * frequency[1])
    exponent = 2 * derivatives + 1
    allowed = ACCELERATION_NOISE_SHARE * signal * exponent / (2.0 * np.pi) ** (2 * derivatives)
    return float(np.inf if noise == 0.0 else (allowed / noise) ** (1.0 / exponent))


def find_motion_bandwidth(frequency: Array, power: Array, rate: float) -> tuple[float, float]:
    """Bandwidth of a motion, and its RMS velocity, from the power spectrum of the position.

    Quantization and jitter are flat in the position, but grow with the square of the frequency in its derivative, whose
    power they dominate at high sample rates. The motion is taken to end at the highest frequency from which the power
    of the position rolls off steeply and at which it exceeds that of the noise; vibration lines above are left out.

    Args:
        frequency: frequencies of the spectrum [Hz], ascending from 0.
        power: power spectral density of the position [rad^2/Hz or m^2/Hz].
        rate: sample rate [Hz].

    Returns:
        Frequency below which `BANDWIDTH_SHARE` of the velocity's power lies [Hz]; 0 for a joint at rest. RMS velocity
        [rad/s or m/s].
    """
    noise = _find_noise(frequency, power, rate)
    end = _find_roll_off(frequency, power, noise)
    above = (power > NOISE_RATIO * noise) & (frequency <= end)
    velocity = np.where(above, power - noise, 0.0) * (2.0 * np.pi * frequency) ** 2
    total = np.cumsum(velocity)
    if total[-1] == 0.0:
        return 0.0, 0.0
    bandwidth = np.interp(BANDWIDTH_SHARE * total[-1], total, frequency + 0.5 * frequency[1])
    return float(bandwidth), float(np.sqrt(total[-1] * frequency[1]))


def _find_noise(frequency: Array, power: Array, rate: float) -> float:
    """Power spectral density of the noise."""
    low, high = (share * rate for share in NOISE_BAND)
    return float(np.median(power[(frequency >= low) & (frequency <= high)]))


def _find_roll_off(frequency: Array, power: Array, noise: float) -> float:
    """Highest frequency at which a motion has power [Hz]; 0 for a joint at rest."""
    count, step = len(frequency), frequency[1]
    numbers = np.unique(np.geomspace(count - 1, 1, 200).astype(int))[::-1]
    first = np.ceil(numbers / PROPORTIONAL_BAND).astype(int)
    stop = np.minimum((numbers * PROPORTIONAL_BAND).astype(int), count - 1) + 1
    exceeding = np.append(0, np.cumsum(power > NOISE_RATIO * noise))
    half = (stop - first + 1) // 2  # a median is only larger than what this many values exceed
    for place in np.flatnonzero(exceeding[stop] - exceeding[first] >= half).tolist():
        k = int(numbers[place])
        far = power[2 * k : 4 * k + 1]
        plateau = float(np.median(far)) if len(far) > k else 0.0
        if np.median(power[first[place] : stop[place]]) > max(NOISE_RATIO * noise, ROLL_OFF_RATIO * plateau):
            return float(k * PROPORTIONAL_BAND * step)
    return 0.0
