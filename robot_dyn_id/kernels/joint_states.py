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
def compare_positions(position, before, anchor, wraps, reach, distance):  # type: ignore[no-untyped-def]
    """Compare a configuration with two earlier ones, all of shape (n,).

    reach: ways that the joints can have gone since the one before, shape (n,).
    distance: way by which a joint must have left the anchor.

    Returns whether a joint has left the anchor, and whether all are within their reach of the one before.
    """
    left = np.any(np.abs(measure_distances(position, anchor, wraps)) > distance)
    return left, np.all(np.abs(measure_distances(position, before, wraps)) <= reach)


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
