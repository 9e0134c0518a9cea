# SPDX-License-Identifier: Apache-2.0
"""Interpolation over missing samples.

A spline through two noisy samples far from each other continues their slope, which is noise, into the gap between them.
Here missing samples are replaced by a polynomial that is fitted to all samples near the gap, before the spline is
computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.resampling import interpolate_cubic

MISSED_STEPS = 2.5
"""Distance of two samples of a channel, in median steps, from which on samples are missing between them."""

CONTEXT_SHARE = 0.5
"""Time on either side of a gap that the polynomial is fitted to, as a share of the longest gap that is bridged."""

CONTEXT_SAMPLES = 4
"""Fewest samples on either side of a gap that the polynomial is fitted to."""

DEGREES = ((16, 5), (8, 3), (4, 1), (1, 0))
"""Number of samples from which on a polynomial has this degree."""

CHANNELS = ("q", "dq", "tau", "temperature", "reference")
"""Channels of a cleaned recording."""

EFFORT_DEGREE = 3
"""Highest degree for efforts, which friction makes less smooth than motion."""


@dataclass(frozen=True)
class Bridged:
    """Samples without gaps, and where they were missing.

    Attributes:
        samples: K samples, all of them finite.
        effort_missing: efforts of each joint that are interpolated, shape (K, n).
        motion_missing: samples in which the positions of all joints are interpolated, shape (K,).
        velocity_missing: samples in which the velocity of a joint is interpolated, shape (K,).
    """

    samples: Chunk
    effort_missing: Mask
    motion_missing: Mask
    velocity_missing: Mask


def bridge(samples: Chunk, step: float, longest: float) -> Bridged:
    """Interpolate over missing samples: gaps of the clock, and efforts and velocities that are not finite.

    Args:
        samples: consecutive samples with ascending stamps and finite positions.
        step: median distance of the stamps of the recording [s].
        longest: longest gap that is bridged by a polynomial [s]. Longer ones of single channels are bridged by a
            straight line, whose rows are not meant to be used.
    """
    gaps = np.flatnonzero(np.diff(samples.t) > MISSED_STEPS * step)
    count = len(samples)
    motion = np.zeros(count, dtype=bool)
    if len(gaps):
        stamps = [samples.t]
        for gap in gaps:
            start, stop = samples.t[gap], samples.t[gap + 1]
            stamps.append(np.linspace(start, stop, round((stop - start) / step) + 1)[1:-1])
        order = np.argsort(np.concatenate(stamps), kind="stable")
        rows = np.append(np.arange(count), np.full(len(order) - count, -1))[order]
        motion = rows < 0
        channels: dict[str, Any] = {name: _spread(getattr(samples, name), rows) for name in CHANNELS}
        samples = replace(samples, t=np.concatenate(stamps)[order], **channels)
    filled: dict[str, Any] = {}
    missing = {name: np.zeros(samples.q.shape, dtype=bool) for name in ("dq", "tau")}
    for name in CHANNELS:
        values = getattr(samples, name)
        if values is not None and not np.isfinite(values).all():
            degree = EFFORT_DEGREE if name == "tau" else DEGREES[0][1]
            values, missed = _fill(samples.t, values, longest, degree)
            if name in missing:
                missing[name] = missed
        filled[name] = values
    return Bridged(
        replace(samples, **filled),
        effort_missing=missing["tau"] | motion[:, None],
        motion_missing=motion,
        velocity_missing=missing["dq"].any(axis=1) | motion,
    )


def _spread(values: Array | None, rows: np.ndarray) -> Array | None:
    """Samples in new rows, NaN where the number of the row is negative."""
    return None if values is None else np.where(rows[:, None] < 0, np.nan, values[rows])


def _fill(t: Array, values: Array, longest: float, degree: int) -> tuple[Array, Mask]:
    """Replace NaN in columns of values, shape (K, n) each.

    Returns:
        Finite values; where they were missing for longer than `MISSED_STEPS` of the column's own samples.
    """
    values, missed = values.copy(), np.zeros(values.shape, dtype=bool)
    alike: dict[bytes, list[int]] = {}  # columns with the same missing samples share a spline
    for column, pattern in enumerate(np.ascontiguousarray(np.isfinite(values).T)):
        alike.setdefault(pattern.tobytes(), []).append(column)
    for columns in map(np.array, alike.values()):
        finite = np.isfinite(values[:, columns[0]])
        if finite.all():
            continue
        known = np.flatnonzero(finite)
        if not len(known):
            values[:, columns], missed[:, columns] = 0.0, True
            continue
        longest_step = MISSED_STEPS * float(np.median(np.diff(t[known]))) if len(known) > 1 else 0.0
        edges = np.flatnonzero(np.diff(np.concatenate([[True], finite, [True]]).astype(int)))
        curve = np.full((len(t), len(columns)), np.nan)
        if len(known) > 3:
            curve[~finite] = interpolate_cubic(t[~finite], t[known], values[np.ix_(known, columns)])
        for start, stop in edges.reshape(-1, 2):
            run = slice(start, stop)
            inside = known[0] < start and stop <= known[-1]
            if len(known) > 3 and inside and t[stop] - t[start - 1] <= longest_step:
                values[run, columns] = curve[run]
                continue
            values[run, columns] = _interpolate(t, values[:, columns], run, known, longest, degree)
            missed[run, columns] = True
    return values, missed


def _interpolate(t: Array, values: Array, run: slice, known: Integers, longest: float, degree: int) -> Array:
    """Values in a run of missing samples from the known samples before and after it, shape (samples, columns)."""
    before, after = known[known < run.start], known[known >= run.stop]
    left = before[t[before] >= t[before[-1]] - CONTEXT_SHARE * longest] if len(before) else before
    right = after[t[after] <= t[after[0]] + CONTEXT_SHARE * longest] if len(after) else after
    left = before[-CONTEXT_SAMPLES:] if len(left) < CONTEXT_SAMPLES else left
    right = after[:CONTEXT_SAMPLES] if len(right) < CONTEXT_SAMPLES else right
    if not (len(left) and len(right)):
        return np.broadcast_to(values[np.append(left, right)].mean(axis=0), (run.stop - run.start, values.shape[1]))
    near = np.append(left, right)
    start, stop = t[left[-1]], t[right[0]]
    if stop - start > longest:
        share = ((t[run] - start) / (stop - start))[:, None]
        return np.asarray((1.0 - share) * values[left].mean(axis=0) + share * values[right].mean(axis=0))
    fewest = min(len(left), len(right))
    power = min(degree, next(degree for samples, degree in DEGREES if 2 * fewest >= samples))
    middle, half = 0.5 * (t[near[0]] + t[near[-1]]), 0.5 * (t[near[-1]] - t[near[0]])
    basis = np.polynomial.legendre.legvander((t[near] - middle) / half, power)
    coefficients = np.linalg.lstsq(basis, values[near], rcond=None)[0]
    return np.asarray(np.polynomial.legendre.legvander((t[run] - middle) / half, power) @ coefficients)
