# SPDX-License-Identifier: Apache-2.0
"""Fit of an identified load to its own recordings, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem, find_used_rows
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.findings import Definition, Finding, Section

LOAD_FIT_ERROR = Definition(
    "load_fit_error",
    Section.LOADS,
    "error",
    "The identified payload or gains do not explain the recordings that they were identified from: another load, "
    "another arm, a collision, or terms that the model lacks.",
    "check the link, the payload, the model of the bare arm and the units of the efforts, then record again",
)


@dataclass(frozen=True)
class FittedCurve:
    """Measured and fitted values of one joint or channel, N samples in the order of the recordings.

    Attributes:
        row: the joint or channel.
        t: stamps [s], shape (N,); they jump between recordings.
        measured: measured values, low-passed, shape (N,); NaN where a sample is excluded.
        predicted: values of the identified load, low-passed alike, shape (N,); NaN there too.
    """

    row: str
    t: Array
    measured: Array
    predicted: Array


@dataclass(frozen=True)
class LoadFit:
    """Errors of an identified load on the recordings that it was identified from.

    Attributes:
        rows: joints, or channels of a sensor, n.
        errors: RMS of the residual relative to the RMS of the measured values, of each row, shape (n,); NaN where
            nothing but zeros was measured.
        overall: the same of all rows together.
        residuals: RMS of the residuals of each row, in the units of the measured values, shape (n,).
        problem: rows that were fitted; None where they are not kept.
        values: parameters of these rows, shape (p,); None without them.
    """

    rows: tuple[str, ...]
    errors: Array
    overall: float
    residuals: Array
    problem: LinearProblem | None = field(default=None, repr=False, compare=False)
    values: Array | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_factors(cls, problem: LinearProblem, factors: Factors, values: Array) -> LoadFit:
        """Fit of values to compressed rows, before any whitening.

        Args:
            problem: the rows, of n joints or channels.
            factors: the rows, compressed.
            values: parameters, shape (p,).
        """
        squares, measured = (factors.squared_residuals(one) for one in (values, np.zeros_like(values)))
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.sqrt(np.where(measured > 0.0, squares / measured, np.nan))
        total = float(measured.sum())
        overall = float(np.sqrt(squares.sum() / total)) if total > 0.0 else float("nan")
        residuals = np.sqrt(squares / np.maximum(factors.counts, 1))
        return cls(problem.joint_names, errors, overall, residuals, problem, values)

    def curves(self) -> tuple[FittedCurve, ...]:
        """Measured and fitted values of every joint or channel: one more pass over the data."""
        if self.problem is None or self.values is None:
            return ()
        parts: list[list[Array]] = [[] for _ in self.rows]
        for tile in self.problem.tiles():
            t = np.arange(tile.block.shape[1]) / self.problem.rate if tile.t is None else tile.t
            predicted = self.values[self.problem.supports[tile.joint]] @ tile.block[:-1]
            both = np.where(find_used_rows(tile.block), np.stack([tile.block[-1], predicted]), np.nan)
            parts[tile.joint].append(np.concatenate([t[None], both]))
        return tuple(
            FittedCurve(row, *np.concatenate(part, axis=1)) for row, part in zip(self.rows, parts, strict=True) if part
        )

    def verdict(self, complete: bool, max_error: float) -> str:
        """Word for the whole: `bad`, `suspect` or `good`.

        Args:
            complete: whether everything that was to be identified is.
            max_error: overall error above which the verdict is bad.
        """
        if not self.overall <= max_error:
            return "bad"
        return "good" if complete else "suspect"

    def findings(self, max_error: float) -> tuple[Finding, ...]:
        """Finding about a fit that makes the verdict bad."""
        if self.overall <= max_error:
            return ()
        worst = [row for row, error in zip(self.rows, self.errors, strict=True) if error > max_error]
        message = f"the fit differs from the measured values by {self.overall:.1%} of them, above {max_error:.0%}"
        return (LOAD_FIT_ERROR.found(message, worst),)

    def summary(self) -> dict[str, Any]:
        """Entries of an answer: errors by row, and of all rows."""
        errors = zip(self.rows, self.errors, strict=True)
        return {"fit_errors": {row: float(error) for row, error in errors}, "fit_error": self.overall}
