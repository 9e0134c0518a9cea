# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of parameters, and tests of shared ones, from leaving out parts of the data.

The errors that remain are mostly those of the model: correlated over seconds, and different in every part of a motion.
All that is assumed is that long parts of the data are independent of each other. Each is left out in turn, by the
Gauss-Newton equations of the result: the jackknife gives the covariance (CR3 of MacKinnon, Nielsen and Webb, 2023), and
the errors of the part that is left out compare two layouts of the parameters. A few long parts with quantiles of
Student's t are robust to correlation within them (Ibragimov and Mueller, 2010). Intervals are the widest of those of
such parts, of parts that are as long as a variance allows, a third of a recording, and of whole recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.actuators.equations import NormalEquations
from robot_dyn_id.actuators.layout import ParameterLayout
from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.chance import find_critical_ratio
from robot_dyn_id.identification.selection.engine import Tried, weigh

PARTS = 6
"""Number of parts of each recording that are left out in turn."""

LEAST_RECORDINGS = 3
"""Least number of recordings, or of parts of one, from whose differences a variance is computed."""

CONFOUNDED = 0.95
"""Correlation of two parameters above which their single values say little."""

LEAST_LEFT = 1e-9
"""Share of the information about a parameter below which what is left of it is rounding."""

RIDGE = 1e-12
"""Addition to the unit diagonal of normal matrices: what the rest of the data does not determine becomes very
uncertain instead of infinite."""


@dataclass(frozen=True)
class EstimateSpread:
    """Uncertainty of p parameters.

    Attributes:
        covariance: covariance, shape (p, p).
        half_width: half the width of the 95 % intervals, shape (p,); infinite where one part of the data alone
            determines a parameter.
        between: standard deviation of the values of single recordings, shape (p,); NaN with too few of them.
    """

    covariance: Array
    half_width: Array
    between: Array

    @classmethod
    def from_equations(cls, equations: NormalEquations) -> EstimateSpread:
        """Spread between parts of time, short and long, and, where there are enough, between recordings.

        The largest counts: what drifts during a recording differs between its long parts, and averages out in short
        ones; that long ones are alike by chance is less likely with short ones.
        """
        numbers = [number_parts(equations.recordings, count) for count in (PARTS, LEAST_RECORDINGS)]
        between = np.full(equations.scores.shape[1], np.nan)
        if len(np.unique(equations.recordings)) >= LEAST_RECORDINGS:
            numbers.append(equations.recordings)
            pairs = zip(*sum_parts(equations, equations.recordings), strict=True)
            between = np.array([solve_scaled(*pair) for pair in pairs]).std(axis=0, ddof=1)
        found = [_jackknife(*sum_parts(equations, one)) for one in numbers]
        covariance = found[0][0]
        variances = np.max([np.diag(one) for one, _ in found], axis=0)
        scale = np.sqrt(variances / np.maximum(np.diag(covariance), np.finfo(float).tiny))
        half_width = np.max([width for _, width in found], axis=0)
        return cls(covariance * scale * scale[:, None], half_width, between)


def number_parts(recordings: Integers, count: int = PARTS) -> Integers:
    """Number of the part that each block belongs to: some consecutive ones of each recording."""
    numbers = np.empty(len(recordings), dtype=np.int64)
    for recording in np.unique(recordings):
        places = np.flatnonzero(recordings == recording)
        numbers[places] = recording * count + np.arange(len(places)) * count // len(places)
    return numbers


def sum_parts(equations: NormalEquations, numbers: Integers) -> tuple[Array, Array]:
    """Normal matrices (parts, p, p) and gradients (parts, p) of blocks with the same number."""
    kinds = np.unique(numbers)
    return (
        np.array([equations.matrices[numbers == kind].sum(axis=0) for kind in kinds]),
        np.array([equations.scores[numbers == kind].sum(axis=0) for kind in kinds]),
    )


def solve_scaled(matrix: Array, vector: Array) -> Array:
    """Solution of normal equations, scaled to a unit diagonal with `RIDGE`, shape (p,)."""
    unit, scale = _scale(matrix)
    return np.asarray(scale * np.linalg.solve(unit, scale * vector))


def correlate(matrix: Array) -> Array:
    """Correlation of the parameters of normal equations under white noise, shape (p, p)."""
    inverse = np.linalg.inv(_scale(matrix)[0])
    deviations = np.sqrt(np.diag(inverse))
    return np.asarray(inverse / deviations / deviations[:, None])


def _scale(matrix: Array) -> tuple[Array, Array]:
    """Normal matrix with a unit diagonal and `RIDGE`, and the scale of each parameter, shape (p,)."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    return matrix * scale * scale[:, None] + RIDGE * np.eye(len(scale)), scale


def _jackknife(matrices: Array, scores: Array) -> tuple[Array, Array]:
    """Covariance, and half width of 95 % intervals, from parts that are left out in turn.

    A parameter that a single part determines alone has an infinite interval.
    """
    total, gradient, count = matrices.sum(axis=0), scores.sum(axis=0), len(matrices)
    pairs = zip(matrices, scores, strict=True)
    changes = np.array([solve_scaled(total - matrix, gradient - score) for matrix, score in pairs])
    apart = changes - changes.mean(axis=0)
    covariance = (count - 1) / count * apart.T @ apart
    half_width = find_critical_ratio(count, 2) * np.sqrt(np.diag(covariance))
    left = np.diag(total) - np.max([np.diag(matrix) for matrix in matrices], axis=0)
    return covariance, np.where(left > LEAST_LEFT * np.diag(total), half_width, np.inf)


def compare_layouts(
    equations: NormalEquations,
    values: Array,
    wide: ParameterLayout,
    narrow: ParameterLayout,
    *,
    name: str,
    alternatives: int = 1,
) -> Tried:
    """Gain of a layout against a narrower one in parts of the data that neither was fitted to, see `weigh`.

    Args:
        equations: equations at `values` in the wider layout.
        values: values of the actuators, shape (14, n).
        wide: parameters of the equations.
        narrow: the same with some of them shared.
        name: name of the wider layout.
        alternatives: number of layouts that are compared at once.
    """
    now = wide.read(values)
    merge = np.zeros((wide.count, narrow.count))
    known = wide.index >= 0
    merge[wide.index[known], narrow.index[known]] = 1.0

    def merge_step(left: Array, rest: Array) -> Array:
        return np.asarray(merge @ solve_scaled(merge.T @ left @ merge, merge.T @ (rest + left @ now)) - now)

    before, after = leave_out_parts(equations, merge_step), leave_out_parts(equations)
    return weigh("actuators", name, before, after, alternatives)


def leave_out_parts(equations: NormalEquations, solve: Callable[[Array, Array], Array] = solve_scaled) -> Array:
    """Weighted square errors of each part with the parameters that the rest of the data has, shape (parts,).

    Args:
        equations: equations.
        solve: step of the parameters from the normal matrix and the gradient of the rest.
    """
    numbers = number_parts(equations.recordings)
    matrices, scores = sum_parts(equations, numbers)
    squares = np.bincount(np.unique(numbers, return_inverse=True)[1], equations.squares)
    total, gradient = matrices.sum(axis=0), scores.sum(axis=0)
    errors = []
    for matrix, score, square in zip(matrices, scores, squares.tolist(), strict=True):
        step = solve(total - matrix, gradient - score)
        errors.append(max(square + step @ matrix @ step - 2.0 * score @ step, 0.0))
    return np.array(errors)
