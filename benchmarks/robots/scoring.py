# SPDX-License-Identifier: Apache-2.0
"""Errors of predicted efforts on a held-out recording."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import butter, sosfiltfilt

from robot_dyn_id.arrays import Array
from robots.sets import RobotSet

ORDER = 4
"""Order of the Butterworth low-pass, which runs forward and backward."""

LEAST_COVERAGE = 0.95
"""Share of the compared samples that a prediction must reach."""


class IncompleteError(Exception):
    """A prediction that leaves times out."""


@dataclass(frozen=True)
class Series:
    """Efforts over time.

    Attributes:
        t: stamps [s], shape (N,).
        effort: efforts, shape (N, n).
    """

    t: Array
    effort: Array

    @classmethod
    def read(cls, one: RobotSet, folder: Path) -> Series:
        """Measured efforts of the held-out recording, of the joints that are compared."""
        with np.load(folder / f"{one.held_out}.npz") as stored:
            t, effort, names = stored["t"], stored[one.effort], [str(name) for name in stored["joint_names"]]
        rising = np.append(True, np.diff(t) > 0)
        columns = [names.index(name) for name in one.joints or names]
        return cls(t[rising], effort[rising][:, columns])


def low_pass(values: Array, rate: float, cutoff: float) -> Array:
    """Low-pass of columns without a delay."""
    sections = butter(ORDER, cutoff / (rate / 2), output="sos")
    padding = min(len(values) - 1, int(3 * rate / cutoff))
    return np.asarray(sosfiltfilt(sections, values, axis=0, padlen=padding))


def on_grid(series: Series, grid: Array) -> Array:
    """Efforts at other times, by straight lines."""
    return np.column_stack([np.interp(grid, series.t, column) for column in series.effort.T])


def compare(one: RobotSet, measured: Series, predicted: Series) -> float:
    """Norm of all errors over the norm of all efforts, after the low-pass.

    Raises:
        IncompleteError: the prediction covers too little.
    """
    finite = np.isfinite(predicted.effort).all(axis=1)
    predicted = Series(predicted.t[finite], predicted.effort[finite])
    grid = np.arange(measured.t[0], measured.t[-1], 1.0 / one.rate)
    after = np.clip(np.searchsorted(predicted.t, grid), 1, len(predicted.t) - 1)
    gaps = predicted.t[after] - predicted.t[after - 1]
    covered = (grid >= predicted.t[0]) & (grid <= predicted.t[-1]) & (gaps <= 0.25 / one.cutoff)
    truth, model = (low_pass(on_grid(series, grid), one.rate, one.cutoff) for series in (measured, predicted))
    inside = slice(round(one.edge * one.rate), len(grid) - round(one.edge * one.rate))
    share = float(covered[inside].mean())
    if share < LEAST_COVERAGE:
        raise IncompleteError(f"the prediction covers only {share:.0%}")
    error, truth = (values[inside][covered[inside]] for values in (model - truth, truth))
    return float(np.linalg.norm(error) / np.linalg.norm(truth))
