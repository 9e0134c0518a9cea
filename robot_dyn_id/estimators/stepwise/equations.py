# SPDX-License-Identifier: Apache-2.0
"""Compressed equations of groups of parameters, and their observability: rank and condition number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.base_parameters import compute_echelon
from robot_dyn_id.errors import InputError

MIN_RESIDUAL_RATIO = 1e-12
"""Minimum residual, as a share of the left side: weights of equations without noise would be infinite."""

SCALINGS = ("columns", "none")
"""Scalings of condition numbers: columns of unit norm, or columns in SI units."""


@dataclass(frozen=True)
class Group:
    """Parameters that are identified together.

    Attributes:
        name: name of the group.
        columns: indices of its parameters, shape (k,).
    """

    name: str
    columns: Integers


@dataclass(frozen=True)
class Equations:
    """Compressed rows z = W theta of one equation and experiment.

    Attributes:
        name: name of experiment and equation.
        family: equations of one family may be solved together if a single one is not sufficient.
        columns: indices of the parameters that appear, shape (k,).
        triangle: upper triangular R of [W z], shape (<= k + 1, k + 1).
        count: number of rows without those set to zero before a filter.
    """

    name: str
    family: str
    columns: Integers
    triangle: Array = field(repr=False)
    count: int

    @classmethod
    def from_rows(cls, name: str, family: str, rows: Array, target: Array) -> Equations:
        """Compress rows of all p parameters, shape (N, p), with their left side, shape (N,).

        Raises:
            InputError: a row that is not finite.
        """
        if not (np.isfinite(rows).all() and np.isfinite(target).all()):
            raise InputError(f"{name}: a row is not finite; leave such samples out")
        columns = np.flatnonzero(compute_echelon(rows).norms)
        triangle = np.asarray(np.linalg.qr(np.column_stack([rows[:, columns], target]), mode="r"))
        return cls(name, family, columns, triangle, len(target))

    def join_rows(self, more: Equations, parameters: int) -> Equations:
        """Join with further rows of the same equation; `parameters` is the total number of parameters."""
        rows = np.concatenate([one.expand(parameters) for one in (self, more)])
        both = Equations.from_rows(self.name, self.family, rows[:, :-1], rows[:, -1])
        return replace(both, count=self.count + more.count)

    @property
    def noise(self) -> float:
        """RMS of the residual of the best fit, known before the estimation; 1 if there is no residual."""
        size = len(self.columns)
        if len(self.triangle) <= size or self.count <= size:
            return 1.0
        left = abs(float(self.triangle[-1, -1]))
        whole = float(np.linalg.norm(self.triangle[:, -1]))
        return max(left, MIN_RESIDUAL_RATIO * whole) / math.sqrt(self.count - size) or 1.0

    def expand(self, parameters: int) -> Array:
        """Expand the compressed rows [W z] to all p parameters, shape (any, p + 1)."""
        rows = np.zeros((len(self.triangle), parameters + 1))
        rows[:, self.columns] = self.triangle[:, :-1]
        rows[:, -1] = self.triangle[:, -1]
        return rows


@dataclass(frozen=True)
class Observability:
    """Observability of parameters in given rows.

    Attributes:
        columns: number of parameters.
        rank: rank of the unit-norm columns; see `base_parameters.compute_echelon`.
        condition_numbers: condition numbers by scaling; infinite if the rank is deficient.
    """

    columns: int
    rank: int
    condition_numbers: dict[str, float]

    @classmethod
    def from_rows(cls, rows: Array) -> Observability:
        """Compute rank and condition numbers of rows of shape (N, k)."""
        form = compute_echelon(rows)
        plain = np.linalg.svd(rows, compute_uv=False)
        numbers = dict.fromkeys(SCALINGS, math.inf)
        if form.rank == rows.shape[1] > 0:
            scaled = form.singular_values
            numbers = {"columns": float(scaled[0] / scaled[-1]), "none": float(plain[0] / plain[-1])}
        return cls(rows.shape[1], form.rank, numbers)

    @classmethod
    def from_draws(cls, draws: Iterable[Array]) -> Observability:
        """Combine draws of pseudo-observations: the highest rank, and the median condition numbers at that rank."""
        found = [cls.from_rows(rows) for rows in draws]
        rank = max(one.rank for one in found)
        kept = [one.condition_numbers for one in found if one.rank == rank]
        medians = {scaling: float(np.median([numbers[scaling] for numbers in kept])) for scaling in SCALINGS}
        return cls(found[0].columns, rank, medians)

    def __str__(self) -> str:
        """Rank and both condition numbers in words."""
        numbers = self.condition_numbers
        known = f"condition {numbers['columns']:.3g} of unit-norm columns, {numbers['none']:.3g} raw"
        return f"rank {self.rank} of {self.columns}" + (f", {known}" if self.rank == self.columns else "")
