# SPDX-License-Identifier: Apache-2.0
"""Columns that change their sign within a sample of the decimated grid.

The decimated grid holds all that the motion filter leaves of the motion, but not the sign of a velocity. Smoothed over
a width w, it is tanh(a t / w) at a reversal with the acceleration a. What it contains above half of the sample rate
appears as an error of the band below, most of it from frequencies near the sample rate f:

- A sign has the spectrum of a step times x / sinh(x), x = pi^2 f w / a.
- Terms with another parameter in each direction have a kink: their difference and an offset leave 1 - |tanh(a t / w)|
  to be identified from. Its spectrum falls with the square of the frequency: at f it is (a / (2 pi f w))^2 / ln 2 of
  that at 0.

With the change of the velocity in a sample, a / f, these are bounds on its ratio to the width. Where they are exceeded,
columns are evaluated at the rate of the recording, and pass the anti-aliasing filter that the measured torque passes
too. Between two samples the velocity is the cubic polynomial of both velocities and accelerations: its error is below
3e-5 of a component at the cut-off of the motion filter.
"""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.dynamics.terms import TermGroup
from robot_dyn_id.signals.filtering import LowPass

STEP_PER_WIDTH = math.pi**2 / 6.0
"""Change of the velocity in a sample, over the width, above which a sign is sharp: x is 6, and the error 0.1 % of its
component at the cut-off, which is at most 1/32 of the sample rate."""

KINK_PER_WIDTH = 0.37
"""The same where the velocity changes its sign: the errors of a kink, from below and above f, are 1 % in all."""

NEAR_REST_WIDTHS = 3.0
"""Velocity, in widths, below which the sign has not yet its final value (tanh(3) = 0.995)."""

REPLACED_SAMPLES = 12
"""Samples on each side of a reversal that are replaced."""

MOST_REVERSALS = 1024
"""Reversals that are evaluated together: dense ones need many times the memory of the grid."""

SETTLING_SAMPLES = 12
"""Samples beyond them in which the anti-aliasing filter settles to 1e-5."""


def sharpen_columns(
    regressor: Regressor, layout: Layout, motion: Motion, filters: tuple[LowPass, float, int], packed: Array
) -> None:
    """Replace columns near sharp reversals by those of the rate of the recording, behind the anti-aliasing filter.

    Args:
        regressor: robot and terms.
        layout: layout of the columns.
        motion: consecutive samples of the decimated grid.
        filters: anti-aliasing filter of the efforts, rate of the recording [Hz], and decimation.
        packed: columns of the motion, see `Regressor.fill`; changed in place.
    """
    first = 10 * len(regressor.model.body_names)
    for group in regressor.term_groups:
        slots = layout.slots[first + group.numbers]
        if not math.isfinite(group.term.step_width) or group.term.state_count or not (slots >= 0).any():
            continue
        coordinates, centers = _find_sharp(group, motion)
        for begin in range(0, len(centers), MOST_REVERSALS):
            part = coordinates[begin : begin + MOST_REVERSALS]
            reversals = part, centers[begin : begin + MOST_REVERSALS]
            samples, columns = _evaluate(regressor, group, motion, filters, reversals)
            symbol, row, joint = np.nonzero(slots[:, part] >= 0)
            places = slots[symbol, part[row], joint]
            weights = group.weights[part[row], joint]
            packed[places[:, None], samples[row]] = weights[:, None] * columns[symbol, row]


def _find_sharp(group: TermGroup, motion: Motion) -> tuple[Integers, Integers]:
    """Coordinate and sample of each sharp reversal, of one in `REPLACED_SAMPLES` where they are dense, shape (R,)."""
    velocity, width = group.along(motion.dq), group.term.step_width
    before, after = velocity[:, :-1], velocity[:, 1:]
    crosses, change = before * after <= 0.0, np.abs(after - before)
    slow = np.minimum(np.abs(before), np.abs(after)) < NEAR_REST_WIDTHS * width
    sharp = (crosses & (change > KINK_PER_WIDTH * width)) | (slow & (change > STEP_PER_WIDTH * width))
    coordinates, samples = np.nonzero(sharp)
    kept, last = [], (-1, 0)
    for number, (coordinate, sample) in enumerate(zip(coordinates.tolist(), samples.tolist(), strict=True)):
        if coordinate != last[0] or sample - last[1] >= REPLACED_SAMPLES // 2:
            kept.append(number)
            last = coordinate, sample
    return coordinates[kept], samples[kept]


def _evaluate(
    regressor: Regressor,
    group: TermGroup,
    motion: Motion,
    filters: tuple[LowPass, float, int],
    reversals: tuple[Integers, Integers],
) -> tuple[Integers, Array]:
    """Samples around each reversal, shape (R, L), and the columns there, shape (symbols, R, L)."""
    anti_aliasing, rate, decimation = filters
    coordinates, centers = reversals
    reach = REPLACED_SAMPLES + SETTLING_SAMPLES
    length = min(2 * reach + 1, len(motion))
    start = np.clip(centers - reach, 0, len(motion) - length)
    index = start[:, None] + np.arange(length)

    def rows(values: Array) -> Array:
        return np.asarray(values[coordinates[:, None], index])

    step, share = decimation / rate, np.arange(decimation) / decimation
    position, velocity = rows(group.along(motion.q) + group.offsets), rows(group.along(motion.dq))
    acceleration = rows(group.along(motion.ddq))
    fine = (
        _interpolate(position, step * velocity, share),
        _interpolate(velocity, step * acceleration, share),
        _interpolate(acceleration, None, share),
    )
    columns = group.columns_along(*fine)
    if group.term.signal:
        signal = regressor.signals(motion).get(group.term.signal)
        factor = np.zeros(group.along(motion.q).shape) if signal is None else group.term.factor(group.weights, signal)
        columns = columns * _interpolate(rows(factor), None, share)
    smooth = anti_aliasing.apply(columns, rate)[..., ::decimation]
    # ends of rows that are not those of the window are left: there the filter has not settled
    near = np.clip(np.arange(-REPLACED_SAMPLES, REPLACED_SAMPLES + 1) + (centers - start)[:, None], 0, length - 1)
    return np.take_along_axis(index, near, axis=1), np.take_along_axis(smooth, near[None], axis=2)


def _interpolate(values: Array, slopes: Array | None, share: Array) -> Array:
    """Values between samples, shape (R, L) to (R, (L - 1) D + 1).

    Args:
        values: at the samples, shape (R, L).
        slopes: changes per sample, shape (R, L), for cubic polynomials; None: linear.
        share: places between two samples, the first of which is 0, shape (D,).
    """
    before, after = values[:, :-1, None], values[:, 1:, None]
    between = before + share * (after - before)
    if slopes is not None:  # Hermite form, as a correction of the line
        change = after - before
        left, right = slopes[:, :-1, None] - change, slopes[:, 1:, None] - change
        between = between + share * (1.0 - share) * ((1.0 - share) * left - share * right)
    return np.concatenate([between.reshape(len(values), -1), values[:, -1:]], axis=1)
