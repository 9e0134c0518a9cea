# SPDX-License-Identifier: Apache-2.0
"""Candidate explanations of the residual: simultaneous estimates of parts that may have changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.online.changes import Part
from robot_dyn_id.online.recursion import RecursiveLeastSquares

DECISIVE = 10.0
"""Twice the logarithm of the Bayes factor above which evidence is very strong (Kass and Raftery 1995)."""


class Explanation:
    """Hypothesis that some parts have changed, with the estimated changes.

    Errors of the model are estimated at the same time, with their estimate before the change as prior. This separates
    them from a payload, whose standard deviations include their uncertainty.

    Attributes:
        numbers: indices of the changed parts, ascending.
        model: estimate of the model errors before the change.
    """

    def __init__(
        self,
        numbers: tuple[int, ...],
        parts: Sequence[Part],
        limits: Sequence[Array],
        model: RecursiveLeastSquares,
    ) -> None:
        """Start with no rows.

        Args:
            numbers: indices of the changed parts.
            parts: all parts.
            limits: prior standard deviations of each part's parameters.
            model: estimate of the errors of the base parameters before the change.
        """
        self.numbers, self.model = numbers, model
        self._sizes = [len(parts[number].symbols) for number in numbers]
        self._counted = sum(parts[number].shown for number in numbers)
        self._directions = np.concatenate([parts[number].directions for number in numbers], axis=1)
        self._filter = model.extended(np.concatenate([limits[number] for number in numbers]))
        self._rows = 0

    def update(self, rows: Array, residual: Array) -> None:
        """Add whitened rows of the base parameters, shape (n, p), and residuals, (n,)."""
        self._filter.update(self._columns(rows), residual)
        self._rows += int(np.count_nonzero(residual))

    def _columns(self, rows: Array) -> Array:
        return np.concatenate([rows @ self._directions, rows], axis=1)

    @property
    def evidence(self) -> float:
        """Drop of the sum of squares, less the penalty for the number of parameters (BIC, Schwarz 1978).

        Inertias of a payload are not counted: they are zero without its mass, and not observable within seconds.
        """
        return self._filter.gain - self._counted * math.log(max(self._rows, 2))

    def unexplained(self, rows: Array, residual: Array) -> tuple[Array, Array]:
        """Rows and residuals after subtraction of the explained part, down-weighted by its uncertainty."""
        columns = self._columns(rows)
        spread = np.sum((columns @ self._filter.inverse_root) ** 2, axis=1)
        weight = 1.0 / np.sqrt(1.0 + spread)
        return rows * weight[:, None], (residual - columns @ self._filter.values) * weight

    @property
    def estimates(self) -> list[tuple[int, Array, Array]]:
        """Number, values and standard deviations of each part's parameters."""
        values, sigmas = self._filter.values, np.linalg.norm(self._filter.inverse_root, axis=1)
        ends = np.cumsum(self._sizes)
        places = [slice(end - size, end) for end, size in zip(ends, self._sizes, strict=True)]
        return [(n, values[place], sigmas[place]) for n, place in zip(self.numbers, places, strict=True)]


def decide(explanations: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Keep only the best explanation if its evidence is decisive, otherwise all."""
    ordered = sorted(explanations, key=lambda one: one.evidence, reverse=True)
    return tuple(ordered[:1]) if ordered[0].evidence - ordered[1].evidence > DECISIVE else explanations
