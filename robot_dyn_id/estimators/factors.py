# SPDX-License-Identifier: Apache-2.0
"""Compressed least-squares problem: one triangular factor per joint (TSQR; Demmel et al. 2012).

The rows of a joint contain only the parameters that can appear in its torque, so each joint has its own small factor R
of [W tau], updated tile by tile. Weights per joint can be chosen afterwards: they only scale the factors. The method
`gram` accumulates R' R instead: about twice as fast, accurate up to a condition number of 1e4 with unit-norm columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.compression import add_products, add_rows
from robot_dyn_id.options import Choice

MIN_SINGULAR_VALUE_RATIO = 1e-7
"""Singular values of unit-norm columns below this share of the largest belong to directions that are not excited."""

MIN_COLUMN_RATIO = 1e-12
"""Columns of a joint below this share of its largest are rounding: those of the inertias that a joint at rest carries
are such columns, and scaled to unit norm they would look like data."""

QR_BLOCK_COLUMNS = 16
"""Block size of the triangular-pentagonal QR: the fastest of 4 to 24 for arms."""

METHODS = ("qr", "gram")
Method = Annotated[str, Choice(METHODS)]
"""Type of an option: how rows are compressed."""

MIN_CHOLESKY_PIVOT = 1e-5
"""Pivots of the scaled Gram matrix below this may be rounding: its rank is then determined by eigenvalues."""


def accumulate(
    problem: LinearProblem, tiles: Iterable[Tile] | None, add: Callable[[Array, Array], Array]
) -> tuple[list[Array], Integers]:
    """Accumulate each joint's rows over one pass of the tiles.

    Args:
        problem: the problem.
        tiles: tiles made from those of the problem; by default its own.
        add: function of the accumulated matrix of a joint, shape (support + 1, support + 1), at first zeros, and of
            further rows [W tau] in Fortran order; it returns the new matrix and may overwrite both.

    Returns:
        The accumulated matrix of each joint, and the number of its rows.

    Raises:
        InputError: no rows at all.
    """
    sizes = [len(support) + 1 for support in problem.supports]
    sums = [np.zeros((size, size), order="F") for size in sizes]
    counts = np.zeros(len(sizes), dtype=np.int64)
    for tile in problem.tiles() if tiles is None else tiles:
        counts[tile.joint] += np.count_nonzero(find_used_rows(tile.block))
        sums[tile.joint] = add(sums[tile.joint], tile.block.T)
    check_row_count(int(counts.sum()))
    return sums, counts


def check_row_count(rows: int) -> None:
    """Check that there are rows.

    Raises:
        InputError: there is no row.
    """
    if not rows:
        raise InputError("no rows are left to estimate from: the recording is too short or all of it was dropped")


@dataclass(frozen=True)
class Grams:
    """Gram matrices of the rows [W tau] of each joint: the squares of `Factors`, in half of the time.

    Attributes:
        parameters: number of parameters p.
        supports: for each joint the parameters in its rows.
        matrices: for each joint [W tau]' [W tau], shape (support + 1, support + 1).
        counts: number of rows of each joint without rows of zeros.
    """

    parameters: int
    supports: tuple[Integers, ...]
    matrices: tuple[Array, ...]
    counts: Integers

    @classmethod
    def from_problem(cls, problem: LinearProblem, tiles: Iterable[Tile] | None = None) -> Grams:
        """Accumulate Gram matrices over the problem's tiles, or over tiles made from them.

        Raises:
            InputError: no rows at all.
        """
        sums, counts = accumulate(problem, tiles, _add_products)
        matrices = tuple(np.triu(upper) + np.triu(upper, 1).T for upper in sums)
        return cls(len(problem.names), problem.supports, matrices, counts)

    def total(self, weights: Sequence[float] | Array) -> Array:
        """Gram matrix of the rows of all joints, with one weight per joint, shape (p + 1, p + 1)."""
        total = np.zeros((self.parameters + 1, self.parameters + 1))
        for support, matrix, weight in zip(self.supports, self.matrices, weights, strict=True):
            places = np.append(support, self.parameters)
            total[np.ix_(places, places)] += weight**2 * matrix
        return total

    def squared_residuals(self, values: Array) -> Array:
        """Sum of squared residuals of each joint, accurate to half of the digits, shape (n,)."""
        signed = [np.append(-values[support], 1.0) for support in self.supports]
        return np.array([max(0.0, v @ matrix @ v) for v, matrix in zip(signed, self.matrices, strict=True)])


@dataclass(frozen=True)
class Factors:
    """Compressed rows of a linear problem.

    Attributes:
        parameters: number of parameters p.
        supports: for each joint the parameters in its rows.
        triangles: for each joint the upper triangular R of [W tau], shape (>= support + 1, support + 1).
        counts: number of rows of each joint without rows of zeros.
    """

    parameters: int
    supports: tuple[Integers, ...]
    triangles: tuple[Array, ...]
    counts: Integers

    @classmethod
    def from_problem(cls, problem: LinearProblem, tiles: Iterable[Tile] | None = None, method: str = "qr") -> Factors:
        """Compress the problem's tiles, or tiles made from them, e.g. whitened ones.

        The blocks of the tiles are overwritten.

        Raises:
            UsageError: unknown method.
            InputError: no rows at all.
        """
        if method not in METHODS:
            raise UsageError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
        if method == "gram":
            grams = Grams.from_problem(problem, tiles)
            roots = tuple(zero_rounding_columns(_root(matrix)) for matrix in grams.matrices)
            return cls(len(problem.names), problem.supports, roots, grams.counts)
        triangles, counts = accumulate(problem, tiles, _add_rows)
        found = tuple(zero_rounding_columns(np.triu(triangle)) for triangle in triangles)
        return cls(len(problem.names), problem.supports, found, counts)

    @classmethod
    def merged(cls, parts: Sequence[Factors]) -> Factors:
        """Factors of the rows of several problems with the same parameters, in any grouping within rounding.

        Args:
            parts: at least one.
        """
        first = parts[0]
        triangles = tuple(
            np.asarray(np.linalg.qr(np.concatenate([part.triangles[joint] for part in parts]), mode="r"))
            for joint in range(len(first.triangles))
        )
        counts = np.asarray(np.sum([part.counts for part in parts], axis=0))
        return cls(first.parameters, first.supports, triangles, counts)

    def keep(self, parameters: Integers) -> Factors:
        """Factors of the same rows with only some of the parameters, given in ascending order."""
        position = np.full(self.parameters, -1)
        position[parameters] = np.arange(len(parameters))
        supports = []
        triangles = []
        for support, triangle in zip(self.supports, self.triangles, strict=True):
            kept = position[support] >= 0
            supports.append(position[support[kept]])
            triangles.append(triangle[:, np.append(kept, True)])
        return Factors(len(parameters), tuple(supports), tuple(triangles), self.counts)

    def solve(self, weights: Sequence[float] | Array, rows: Array | None = None) -> Solution:
        """Solve weighted least squares with one weight per joint; `rows` (k, p + 1) are appended."""
        return Solution.from_rows(self.stack(weights, rows))

    def root(self, weights: Sequence[float] | Array) -> Array:
        """Triangular R, shape (p, p), with R' R = W' W: the information of the rows with one weight per joint."""
        rows = np.concatenate([self.stack(weights)[:, :-1], np.zeros((self.parameters, self.parameters))])
        return np.asarray(np.linalg.qr(rows, mode="r"))

    def stack(self, weights: Sequence[float] | Array, rows: Array | None = None) -> Array:
        """The weighted rows [W tau] of all joints, compressed, with further `rows` (k, p + 1), shape (any, p + 1)."""
        blocks = [] if rows is None else [rows]
        for support, triangle, weight in zip(self.supports, self.triangles, weights, strict=True):
            block = np.zeros((len(triangle), self.parameters + 1))
            block[:, support] = triangle[:, :-1] * weight
            block[:, -1] = triangle[:, -1] * weight
            blocks.append(block)
        return np.concatenate(blocks)

    def squared_residuals(self, values: Array) -> Array:
        """Sum of squared residuals of each joint, shape (n,)."""
        return np.array(
            [
                float(np.sum((triangle[:, -1] - triangle[:, :-1] @ values[support]) ** 2))
                for support, triangle in zip(self.supports, self.triangles, strict=True)
            ]
        )


def zero_rounding_columns(rows: Array) -> Array:
    """Set columns that are rounding to zero, in place, in the rows [W tau] of a joint, shape (any, columns + 1)."""
    norms = np.linalg.norm(rows[:, :-1], axis=0)
    rows[:, :-1] *= norms > MIN_COLUMN_RATIO * norms.max(initial=0.0)
    return rows


def _add_products(products: Array, rows: Array) -> Array:
    """Add rows to the upper triangle of R' R."""
    if COMPILED:
        add_products(products, np.ascontiguousarray(rows.T))
        return products
    return np.asarray(blas.dsyrk(1.0, rows, beta=1.0, c=products, trans=1, overwrite_c=1))


def _add_rows(triangle: Array, rows: Array) -> Array:
    """Add rows to the triangular R."""
    if COMPILED:
        add_rows(triangle, np.ascontiguousarray(rows.T))
        return triangle
    panel = min(QR_BLOCK_COLUMNS, len(triangle))
    return np.asarray(lapack.dtpqrt(0, panel, triangle, rows, overwrite_a=1, overwrite_b=1)[0])


def _root(gram: Array) -> Array:
    """Triangular R with R' R = gram, which may be semidefinite within rounding."""
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    scaled = gram / scale / scale[:, None]
    with suppress(np.linalg.LinAlgError):
        columns = np.linalg.cholesky(scaled[:-1, :-1]).T
        if np.diag(columns).min() > MIN_CHOLESKY_PIVOT:
            torque = solve_triangular(columns, scaled[:-1, -1], trans="T")
            left = math.sqrt(max(0.0, 1.0 - float(torque @ torque)))
            root = np.block([[columns, torque[:, None]], [np.zeros((1, len(columns))), np.array([[left]])]])
            return np.asarray(root * scale)
    values, vectors = np.linalg.eigh(scaled)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * scale
    return np.asarray(np.linalg.qr(root, mode="r"))


@dataclass(frozen=True)
class Solution:
    """Least-squares solution with its inverse normal matrix.

    Attributes:
        values: minimum-norm solution (in terms of unit-norm columns), shape (p,).
        inverse: pseudo-inverse of W' W, shape (p, p).
        condition_number: condition number of the unit-norm columns; infinite if a direction is not excited.
        unexcited: mask of the parameters with a component in a direction that is not excited, shape (p,).
        root: the k excited directions, each scaled to unit information: root root' = inverse, shape (p, k).
    """

    values: Array
    inverse: Array
    condition_number: float
    unexcited: np.ndarray
    root: Array

    @classmethod
    def from_rows(cls, stack: Array) -> Solution:
        """Solve the stacked [W tau], shape (rows, p + 1)."""
        norms = np.linalg.norm(stack[:, :-1], axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        factor = np.asarray(np.linalg.qr(stack / np.append(scale, 1.0), mode="r"))[: len(scale) + 1]
        left, singular, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
        shown = singular > MIN_SINGULAR_VALUE_RATIO * singular.max(initial=0.0)
        inverse_root = right[shown].T / singular[shown]
        if shown.all():  # rounds less than the solution by singular values
            values = solve_triangular(factor[: len(scale), :-1], factor[: len(scale), -1])
        else:
            values = inverse_root @ (left[:, shown].T @ factor[:, -1])
        hidden = np.abs(right[~shown]).max(axis=0, initial=0.0) > 1e-3
        condition = singular.max(initial=0.0) / singular.min(initial=np.inf) if shown.all() else np.inf
        root = inverse_root / scale[:, None]
        return cls(values / scale, root @ root.T, float(condition), hidden | (norms == 0), root)


def compress_rows(problem: LinearProblem, method: str = "qr") -> Factors:
    """Compress the rows of a problem.

    Raises:
        InputError: fewer rows than parameters.
    """
    factors = Factors.from_problem(problem, method=method)
    rows = int(factors.counts.sum())
    if rows < len(problem.names):
        raise _too_few(rows, problem)
    return factors


def check_rows(problem: LinearProblem) -> None:
    """Check that there are as many rows as parameters; the pass over the data ends as soon as there are.

    Raises:
        InputError: there are fewer.
    """
    rows = 0
    for tile in problem.tiles():
        rows += int(np.count_nonzero(find_used_rows(tile.block)))
        if rows >= len(problem.names):
            return
    check_row_count(rows)
    raise _too_few(rows, problem)


def _too_few(rows: int, problem: LinearProblem) -> InputError:
    return InputError(
        f"only {rows} rows for {len(problem.names)} parameters: record longer, or identify fewer joints or terms"
    )
