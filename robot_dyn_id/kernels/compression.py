# SPDX-License-Identifier: Apache-2.0
"""Compression of the rows of a least-squares problem: products R' R, or the triangle R itself, of narrow blocks.

A joint's rows have 10 to 60 columns. The routines of BLAS and LAPACK for matrices of that width reach a third of the
speed that they have for wide ones. Here four columns meet four others: sixteen sums stay in registers while the samples
pass, or eight on processors with few registers, so that arithmetic and not memory limits the speed. The few rows of one
sample have too few entries per column for that: there the columns of eight rows pass instead. Without numba BLAS and
LAPACK are called.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.kernels.compiled import MANY_REGISTERS, compiled, inlined, inlined_sum

PRODUCT_SAMPLES = 1024
"""Samples whose products are summed together: 48 columns of them stay in the second cache."""

ROTATED_SAMPLES = 256
"""Samples that are added to a triangle together: 48 columns of them stay in the second cache."""

GROUP = 4
"""Columns worked on together."""

FEW = 8
"""Rows of one sample worked on together."""

SAFE_SQUARES = 1e-280, 1e280
"""Squares of lengths between which nothing that matters has underflowed or overflowed; others are computed again."""

SMALLEST_LENGTH = float(np.finfo(np.float64).tiny)
"""Length below which a column is zero: the inverse of a smaller one overflows."""


@inlined_sum
def sum_dots_together(a, b, n, sums):  # type: ignore[no-untyped-def]
    """Scalar products of four rows with four others, over n samples, to `sums`, shape (4, 4)."""
    a0, a1, a2, a3 = a
    b0, b1, b2, b3 = b
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for k in range(n):
        x0, x1, x2, x3 = a0[k], a1[k], a2[k], a3[k]
        y0, y1, y2, y3 = b0[k], b1[k], b2[k], b3[k]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3] = s00, s01, s02, s03
    sums[1, 0], sums[1, 1], sums[1, 2], sums[1, 3] = s10, s11, s12, s13
    sums[2, 0], sums[2, 1], sums[2, 2], sums[2, 3] = s20, s21, s22, s23
    sums[3, 0], sums[3, 1], sums[3, 2], sums[3, 3] = s30, s31, s32, s33


@inlined_sum
def sum_dots_in_turn(a, b, n, sums):  # type: ignore[no-untyped-def]
    """As `sum_dots_together`, two of the others after two: sixteen sums and their factors need 32 registers."""
    a0, a1, a2, a3 = a
    for c in range(0, GROUP, 2):
        b0, b1 = b[c], b[c + 1]
        s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = 0.0
        for k in range(n):
            x0, x1, x2, x3 = a0[k], a1[k], a2[k], a3[k]
            y0, y1 = b0[k], b1[k]
            s00 += x0 * y0
            s01 += x0 * y1
            s10 += x1 * y0
            s11 += x1 * y1
            s20 += x2 * y0
            s21 += x2 * y1
            s30 += x3 * y0
            s31 += x3 * y1
        sums[0, c], sums[1, c], sums[2, c], sums[3, c] = s00, s10, s20, s30
        sums[0, c + 1], sums[1, c + 1], sums[2, c + 1], sums[3, c + 1] = s01, s11, s21, s31


_dots = sum_dots_together if MANY_REGISTERS else sum_dots_in_turn


@inlined
def _rows(i, start, stop, block):  # type: ignore[no-untyped-def]
    """Four rows of a block from row i on; those after the last row are the last one again."""
    last = len(block) - 1
    return (
        block[i, start:stop],
        block[min(i + 1, last), start:stop],
        block[min(i + 2, last), start:stop],
        block[min(i + 3, last), start:stop],
    )


@compiled
def add_products(products, block):  # type: ignore[no-untyped-def]
    """Add block block' to the upper triangle of `products`.

    Args:
        products: shape (m, m), changed in place.
        block: shape (m, N), C-contiguous.
    """
    m, n = block.shape
    sums = np.empty((GROUP, GROUP))
    for start in range(0, n, PRODUCT_SAMPLES):
        stop = min(start + PRODUCT_SAMPLES, n)
        for i in range(0, m, GROUP):
            a = _rows(i, start, stop, block)
            for j in range(i, m, GROUP):
                _dots(a, _rows(j, start, stop, block), stop - start, sums)
                for r in range(min(GROUP, m - i)):
                    for c in range(r if i == j else 0, min(GROUP, m - j)):
                        products[i + r, j + c] += sums[r, c]


@inlined_sum
def _dot(a, b, n):  # type: ignore[no-untyped-def]
    """Scalar product of two rows over n samples."""
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@inlined
def _length(lead, column, n):  # type: ignore[no-untyped-def]
    """Length of [lead; column] over n samples, from shares of the largest magnitude; 0 if the column is zero."""
    largest = 0.0
    for k in range(n):
        largest = max(largest, abs(column[k]))
    if largest == 0.0:
        return 0.0
    largest = max(largest, abs(lead))
    if largest < SMALLEST_LENGTH:
        return 0.0
    total = (lead / largest) ** 2
    for k in range(n):
        total += (column[k] / largest) ** 2
    return largest * np.sqrt(total)


@inlined
def _reflect(j, n, work, triangle, factors):  # type: ignore[no-untyped-def]
    """Householder reflections that bring columns j to j + 3 of [triangle; samples] to triangular form.

    Their vectors, less the leading 1, replace the samples of these columns; `factors`, shape (4,), are 2 / |v|^2.
    """
    for i in range(j, j + GROUP):
        column = work[i]
        lead, square = triangle[i, i], _dot(column, column, n)
        total = lead * lead + square
        outside = total < SAFE_SQUARES[0] or total > SAFE_SQUARES[1]
        length = _length(lead, column, n) if outside else np.sqrt(total)
        if length == 0.0 or (square == 0.0 and not outside):
            factors[i - j] = 0.0
            continue
        length = -np.copysign(length, lead)
        factor, scale = (length - lead) / length, 1.0 / (lead - length)
        triangle[i, i], factors[i - j] = length, factor
        for k in range(n):
            column[k] *= scale
        for c in range(i + 1, j + GROUP):
            other = work[c]
            step = factor * (triangle[i, c] + _dot(column, other, n))
            triangle[i, c] -= step
            for k in range(n):
                other[k] -= step * column[k]


@inlined
def _subtract(v, w, n, steps):  # type: ignore[no-untyped-def]
    """Subtract four rows v, times the `steps`, shape (4, 4), from four rows w."""
    v0, v1, v2, v3 = v
    w0, w1, w2, w3 = w
    s00, s01, s02, s03 = steps[0, 0], steps[0, 1], steps[0, 2], steps[0, 3]
    s10, s11, s12, s13 = steps[1, 0], steps[1, 1], steps[1, 2], steps[1, 3]
    s20, s21, s22, s23 = steps[2, 0], steps[2, 1], steps[2, 2], steps[2, 3]
    s30, s31, s32, s33 = steps[3, 0], steps[3, 1], steps[3, 2], steps[3, 3]
    for k in range(n):
        x0, x1, x2, x3 = v0[k], v1[k], v2[k], v3[k]
        w0[k] -= s00 * x0 + s10 * x1 + s20 * x2 + s30 * x3
        w1[k] -= s01 * x0 + s11 * x1 + s21 * x2 + s31 * x3
        w2[k] -= s02 * x0 + s12 * x1 + s22 * x2 + s32 * x3
        w3[k] -= s03 * x0 + s13 * x1 + s23 * x2 + s33 * x3


@inlined
def _apply(j, n, work, triangle, factors, between, sums):  # type: ignore[no-untyped-def]
    """Apply the reflections of columns j to j + 3 to the columns after them.

    The i-th of four reflections in a row subtracts v_i w_i with w_i = f_i (r_i + v_i' b - sum_(l < i) v_i' v_l w_l).
    `between` and `sums` are workspaces, shape (4, 4).
    """
    v = work[j], work[j + 1], work[j + 2], work[j + 3]
    _dots(v, v, n, between)
    for c in range(j + GROUP, len(work), GROUP):
        w = work[c], work[c + 1], work[c + 2], work[c + 3]
        _dots(v, w, n, sums)
        for column in range(GROUP):
            for i in range(GROUP):
                step = triangle[j + i, c + column] + sums[i, column]
                for before in range(i):
                    step -= between[i, before] * sums[before, column]
                sums[i, column] = factors[i] * step
                triangle[j + i, c + column] -= sums[i, column]
        _subtract(v, w, n, sums)


@compiled
def add_rows(triangle, block):  # type: ignore[no-untyped-def]
    """Replace an upper triangular R by that of the QR factorization of [R; block'].

    Householder reflections, four columns together (compact WY form; Schreiber and Van Loan, 1989). What is below the
    diagonal is neither read nor changed.

    Args:
        triangle: shape (m, m), changed in place.
        block: shape (m, N).
    """
    m, n = block.shape
    padded = (m + GROUP - 1) // GROUP * GROUP
    work, root = np.zeros((padded, ROTATED_SAMPLES)), np.zeros((padded, padded))
    factors, between, sums = np.empty(GROUP), np.empty((GROUP, GROUP)), np.empty((GROUP, GROUP))
    for i in range(m):
        for c in range(i, m):
            root[i, c] = triangle[i, c]
    for start in range(0, n, ROTATED_SAMPLES):
        count = min(ROTATED_SAMPLES, n - start)
        for i in range(m):
            source = block[i, start : start + count]
            for k in range(count):
                work[i, k] = source[k]
        for j in range(0, padded, GROUP):
            _reflect(j, count, work, root, factors)
            _apply(j, count, work, root, factors, between, sums)
    for i in range(m):
        for c in range(i, m):
            triangle[i, c] = root[i, c]


@inlined
def _reflection(lead, v):  # type: ignore[no-untyped-def]
    """Reflection that brings [lead; v], with eight entries in v, to [length; 0].

    Returns:
        length, the factor 2 / |[1; w]|^2 and the scale with w = scale v; a factor of zero if nothing is to be done.
    """
    largest, square = 0.0, 0.0
    for k in range(FEW):
        largest, square = max(largest, abs(v[k])), square + v[k] * v[k]
    if largest == 0.0:
        return lead, 0.0, 0.0
    total = lead * lead + square
    length = np.sqrt(total)
    if total < SAFE_SQUARES[0] or total > SAFE_SQUARES[1]:
        largest = max(largest, abs(lead))
        if largest < SMALLEST_LENGTH:
            return lead, 0.0, 0.0
        total = (lead / largest) ** 2
        for k in range(FEW):
            total += (v[k] / largest) ** 2
        length = largest * np.sqrt(total)
    length = -np.copysign(length, lead)
    return length, (length - lead) / length, 1.0 / (lead - length)


@compiled
def add_few_rows(triangle, rows, scale):  # type: ignore[no-untyped-def]
    """Replace an upper triangular R by that of the QR factorization of [scale R; rows], for the rows of one sample.

    Householder reflections of eight rows at a time, each applied to all columns after it at once. What is below the
    diagonal is neither read nor changed.

    Args:
        triangle: shape (p, p), C-contiguous, changed in place.
        rows: shape (m, p), C-contiguous.
        scale: factor of the previous triangle.
    """
    p = rows.shape[1]
    work, steps, v = np.zeros((FEW, p)), np.empty(p), np.empty(FEW)
    for i in range(p):
        head = triangle[i, i:]
        for c in range(p - i):
            head[c] *= scale
    for start in range(0, len(rows), FEW):
        for k in range(FEW):
            for c in range(p):
                work[k, c] = rows[start + k, c] if start + k < len(rows) else 0.0
        for i in range(p):
            for k in range(FEW):
                v[k] = work[k, i]
            triangle[i, i], factor, share = _reflection(triangle[i, i], v)
            if factor == 0.0:
                continue
            v0, v1, v2, v3 = v[0] * share, v[1] * share, v[2] * share, v[3] * share
            v4, v5, v6, v7 = v[4] * share, v[5] * share, v[6] * share, v[7] * share
            after, head = i + 1, triangle[i, i + 1 :]
            w0, w1, w2, w3 = work[0, after:], work[1, after:], work[2, after:], work[3, after:]
            w4, w5, w6, w7 = work[4, after:], work[5, after:], work[6, after:], work[7, after:]
            for c in range(p - after):
                total = v0 * w0[c] + v1 * w1[c] + v2 * w2[c] + v3 * w3[c]
                total += v4 * w4[c] + v5 * w5[c] + v6 * w6[c] + v7 * w7[c]
                steps[c] = factor * (head[c] + total)
            # two loops: the compiler checks for fewer overlaps in each
            for c in range(p - after):
                head[c] -= steps[c]
                w0[c] -= steps[c] * v0
                w1[c] -= steps[c] * v1
                w2[c] -= steps[c] * v2
                w3[c] -= steps[c] * v3
            for c in range(p - after):
                w4[c] -= steps[c] * v4
                w5[c] -= steps[c] * v5
                w6[c] -= steps[c] * v6
                w7[c] -= steps[c] * v7
