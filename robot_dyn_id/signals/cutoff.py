# SPDX-License-Identifier: Apache-2.0
"""Choice of the low-pass cut-off from the spectrum of the motion."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array

BANDWIDTH_SHARE = 0.99
"""Share of a joint's velocity power that lies below its motion bandwidth."""

CUTOFF_PER_BANDWIDTH = 10.0
"""Cut-off chosen from the data, over the motion bandwidth (Gautier: ten times the dynamics)."""

LOWEST_CUTOFF_HZ = 1.0
"""Lowest cut-off that is chosen [Hz]."""

HIGHEST_CUTOFF_PER_RATE = 0.15
"""Highest cut-off that is chosen, as a fraction of the sample rate."""


def choose_cutoff(bandwidth: Array, rate: float) -> float:
    """Low-pass cut-off [Hz] for positions and efforts.

    Args:
        bandwidth: motion bandwidth of each joint [Hz], shape (joints,); 0 for joints at rest.
        rate: sample rate [Hz].
    """
    chosen = CUTOFF_PER_BANDWIDTH * bandwidth.max(initial=0.0)
    return float(np.clip(chosen, LOWEST_CUTOFF_HZ, HIGHEST_CUTOFF_PER_RATE * rate))


def motion_bandwidth(frequency: Array, power: Array) -> float:
    """Frequency below which `BANDWIDTH_SHARE` of a velocity's power lies, its noise left aside [Hz].

    Noise is what the upper half of the spectrum holds; the motion is taken to end where its power, averaged over seven
    adjacent frequencies, first falls below ten times that.
    """
    floor = float(np.median(power[len(power) // 2 :]))
    level = np.convolve(power, np.ones(7) / 7, mode="same")
    below = np.flatnonzero(level[3:] < 10.0 * floor)
    end = int(below[0]) + 3 if len(below) else len(power)
    total = np.cumsum(power[:end])
    if total[-1] < 20.0 * floor * end or total[-1] == 0.0:
        return 0.0
    return float(frequency[min(int(np.searchsorted(total, BANDWIDTH_SHARE * total[-1])), len(frequency) - 1)])
