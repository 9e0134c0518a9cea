# SPDX-License-Identifier: Apache-2.0
"""Products and triangles of narrow blocks, against BLAS and LAPACK."""

import numpy as np
import pytest
from scipy.linalg import lapack

from robot_dyn_id.estimators import factors
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.compression import (
    GROUP,
    add_few_rows,
    add_products,
    add_rows,
    sum_dots_in_turn,
    sum_dots_together,
)

compiled_only = pytest.mark.skipif(not COMPILED, reason="numba is not installed: BLAS and LAPACK are used")


def signed(triangle):
    """The same factor with a diagonal that is not negative: signs of rows are not determined."""
    return np.where(np.diag(triangle) < 0.0, -1.0, 1.0)[:, None] * np.triu(triangle)


def by_lapack(blocks):
    triangle = np.zeros((len(blocks[0]),) * 2, order="F")
    for block in blocks:
        triangle = lapack.dtpqrt(0, 1, triangle, np.asfortranarray(block.T))[0]
    return signed(triangle)


@compiled_only
@pytest.mark.parametrize(("columns", "samples"), [(1, 5), (3, 300), (4, 256), (15, 700), (48, 30), (49, 2048)])
def test_triangle_is_that_of_lapack(columns, samples):
    rng = np.random.default_rng(columns)
    blocks = [rng.normal(size=(columns, size)) * np.logspace(0, -6, columns)[:, None] for size in (samples, 7, samples)]
    expected, found = by_lapack(blocks), np.zeros((columns, columns), order="F")
    for block in blocks:
        kept = block.copy()
        add_rows(found, block)
        np.testing.assert_array_equal(block, kept)
    norms = np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(signed(found) / norms, expected / norms, rtol=0.0, atol=1e-13)


@compiled_only
def test_columns_of_zeros_and_repeated_columns_stay_what_they_are():
    block = np.random.default_rng(0).normal(size=(9, 400))
    block[2], block[7] = 0.0, block[5]
    triangle = np.zeros((9, 9))
    add_rows(triangle, block)
    np.testing.assert_array_equal(triangle[:, 2], 0.0)
    np.testing.assert_allclose(triangle.T @ triangle, block @ block.T, rtol=0.0, atol=1e-10)
    assert abs(triangle[7, 7]) < 1e-12
    assert np.isfinite(triangle).all()


@compiled_only
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-162, 1e-160, 1e-158, 1e-150, 1e150, 1e154, 1e170, 1e290])
@pytest.mark.parametrize("rows", [256, 700])
def test_columns_whose_squares_underflow_or_overflow_harm_none(scale, rows):
    """A whole column, or its first rows alone, of another magnitude than the others."""
    rng = np.random.default_rng(3)
    block = rng.normal(size=(9, 700))
    block[3, :rows] *= scale
    expected, found = by_lapack([block]), np.zeros((9, 9), order="F")
    add_rows(found, block)
    few = np.zeros((9, 9))
    add_few_rows(few, np.ascontiguousarray(block.T), 1.0)
    norms = np.abs(expected).max(axis=0)
    for one in (found, few):
        np.testing.assert_allclose(signed(one) / norms, expected / norms, rtol=0.0, atol=1e-13)


@compiled_only
@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 8), (15, 7), (65, 9), (65, 40)])
def test_triangle_of_a_scaled_one_and_few_rows_is_that_of_lapack(columns, rows):
    rng = np.random.default_rng(columns)
    block, found = rng.normal(size=(rows, columns)), np.tril(np.full((columns, columns), 7.0), -1)
    found += np.triu(rng.normal(size=(columns, columns)))
    block[:, columns // 2] = 0.0
    expected = signed(np.linalg.qr(np.vstack([0.7 * np.triu(found), block]), mode="r"))
    kept = block.copy()
    add_few_rows(found, block, 0.7)
    np.testing.assert_array_equal(block, kept)
    np.testing.assert_array_equal(np.tril(found, -1), np.tril(np.full((columns, columns), 7.0), -1))
    np.testing.assert_allclose(signed(found), expected, rtol=0.0, atol=1e-12)


@compiled_only
@pytest.mark.parametrize(("columns", "samples"), [(1, 5), (6, 1025), (48, 2500)])
def test_products_are_those_of_numpy(columns, samples):
    block = np.random.default_rng(columns).normal(size=(columns, samples))
    products = np.ones((columns, columns), order="F")
    add_products(products, block)
    np.testing.assert_allclose(np.triu(products), np.triu(1.0 + block @ block.T), rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(np.tril(products, -1), np.tril(np.ones_like(products), -1))


@compiled_only
@pytest.mark.parametrize("dots", [sum_dots_together, sum_dots_in_turn], ids=["many registers", "few"])
def test_scalar_products_are_those_of_numpy_whatever_the_processor(dots):
    numba = pytest.importorskip("numba")

    @numba.njit  # the kernels are called by others only
    def call(a, b, sums):
        dots((a[0], a[1], a[2], a[3]), (b[0], b[1], b[2], b[3]), a.shape[1], sums)

    a, b = np.random.default_rng(2).normal(size=(2, GROUP, 37))
    found = np.full((GROUP, GROUP), np.nan)
    call(a, b, found)
    np.testing.assert_allclose(found, a @ b.T, rtol=0.0, atol=1e-13)


def test_factors_without_numba_are_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    rows = np.asfortranarray(rng.normal(size=(500, 10)))
    found = []
    for compiled in (COMPILED, False):
        monkeypatch.setattr(factors, "COMPILED", compiled)
        zeros = [np.zeros((10, 10), order="F") for _ in range(2)]
        triangle, products = factors._add_rows(zeros[0], rows.copy(order="F")), factors._add_products(zeros[1], rows)
        found.append((signed(triangle), np.triu(products)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
