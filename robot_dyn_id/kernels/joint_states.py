# SPDX-License-Identifier: Apache-2.0
"""Comparison of one joint state with those before and with thresholds."""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.kernels.compiled import compiled


@compiled
def measure_distances(position, other, wraps):  # type: ignore[no-untyped-def]
    """Distances of two configurations, shape (n,), modulo full turns for the joints `wraps`, shape (n,)."""
    difference = position - other
    turned = np.remainder(difference + np.pi, 2.0 * np.pi) - np.pi
    return np.where(wraps, turned, difference)


@compiled
def compare_positions(  # type: ignore[no-untyped-def]
    position, before, anchor, wraps, speed, most, distance, passed
):
    """Compare a configuration with two earlier ones, all of shape (n,).

    wraps: joints whose distances are those modulo full turns, shape (n,).
    speed: limits of the velocities, shape (n,).
    most: largest magnitude of positions.
    distance: way that noise explains.
    passed: time since the configuration before [s].

    Returns whether no magnitude is too large or NaN, whether a joint has left the anchor by more than noise, and
    whether all can have come from the configuration before.
    """
    plausible = np.all(np.abs(position) <= most)
    left = np.any(np.abs(measure_distances(position, anchor, wraps)) > distance)
    follows = np.all(np.abs(measure_distances(position, before, wraps)) <= distance + speed * passed)
    return plausible, left, follows


@compiled
def compare_magnitudes(values, threshold):  # type: ignore[no-untyped-def]
    """Compare measured values with their thresholds, shape (n,) each; NaN is not measured.

    Returns the largest magnitude relative to its threshold, NaN if none is measured, and whether one exceeds it.
    """
    largest, exceeded = math.nan, False
    for j in range(len(values)):
        magnitude = abs(values[j])
        share = magnitude / threshold[j]
        if not (math.isnan(share) or share <= largest):
            largest = share
        exceeded = exceeded or magnitude > threshold[j]
    return largest, exceeded
