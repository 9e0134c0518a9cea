# SPDX-License-Identifier: Apache-2.0
"""What explains the residual best: estimates of several parts that may have changed, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.online.changes import Part
from robot_dyn_id.online.recursion import RecursiveLeastSquares

DECISIVE = 10.0
"""Twice the logarithm of a Bayes factor from which on evidence is very strong (Kass and Raftery 1995)."""


class Explanation:
    """Parts that may have changed together, with the estimate of by how much.

    The errors of the model itself are estimated beside them, from what was known of them before: a payload is told from
    them, and its standard deviations count for them.

    Attributes:
        numbers: of the parts, ascending.
        model: what was known of the model.
    """

    def __init__(
        self,
        numbers: tuple[int, ...],
        parts: Sequence[Part],
        limits: Sequence[Array],
        model: RecursiveLeastSquares,
    ) -> None:
        """Begin.

        Args:
            numbers: of the parts.
            parts: all of them.
            limits: standard deviations of their parameters before anything is seen.
            model: errors of the base parameters, as far as they were known before the change.
        """
        self.numbers, self.model = numbers, model
        self._sizes = [len(parts[number].symbols) for number in numbers]
        self._counted = sum(parts[number].shown for number in numbers)
        self._directions = np.concatenate([parts[number].directions for number in numbers], axis=1)
        self._filter = model.extended(np.concatenate([limits[number] for number in numbers]))
        self._rows = 0

    def update(self, rows: Array, residual: Array) -> None:
        """Take up whitened rows of the base parameters, shape (n, p), and residuals, (n,)."""
        self._filter.update(self._columns(rows), residual)
        self._rows += int(np.count_nonzero(residual))

    def _columns(self, rows: Array) -> Array:
        return np.concatenate([rows @ self._directions, rows], axis=1)

    @property
    def evidence(self) -> float:
        """What it explains, less what so many parameters explain by chance (Schwarz 1978).

        Inertias of a load are not counted: they are not there without its mass, and do not show in a moment.
        """
        return self._filter.gain - self._counted * math.log(max(self._rows, 2))

    def unexplained(self, rows: Array, residual: Array) -> tuple[Array, Array]:
        """Rows and residuals without what it explains, down-weighted as far as it is unsure of that."""
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


def decided(explanations: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """The best explanation alone if its evidence is decisive, else all of them."""
    ordered = sorted(explanations, key=lambda one: one.evidence, reverse=True)
    return tuple(ordered[:1]) if ordered[0].evidence - ordered[1].evidence > DECISIVE else explanations
