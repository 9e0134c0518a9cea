# SPDX-License-Identifier: Apache-2.0
"""Polynomials through Chebyshev nodes (Trefethen, Approximation Theory and Approximation Practice, 2013)."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array


def chebyshev_nodes(low: float, high: float, count: int) -> Array:
    """Chebyshev nodes of the first kind between two ends, ascending, shape (count,)."""
    angle = np.pi * (np.arange(count) + 0.5) / count
    return np.asarray(0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle))


def make_interpolation(nodes: Array, at: Array) -> Array:
    """Barycentric interpolation matrix from values at the nodes to values at m other points, shape (m, count)."""
    distance = at[:, None] - nodes
    exact = np.abs(distance) < 1e-14
    terms = _weights(len(nodes)) / np.where(exact, 1.0, distance)
    shares = terms / terms.sum(axis=1, keepdims=True)
    hit = exact.any(axis=1)
    shares[hit] = exact[hit]
    return np.asarray(shares)


def make_differentiation(nodes: Array) -> Array:
    """Differentiation matrix from a polynomial's values at the nodes to its derivatives there, shape (count, count)."""
    weights = _weights(len(nodes))
    distance = nodes[:, None] - nodes
    np.fill_diagonal(distance, 1.0)
    matrix = weights / weights[:, None] / distance
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return np.asarray(matrix)


def _weights(count: int) -> Array:
    return np.asarray((-1.0) ** np.arange(count) * np.sin(np.pi * (np.arange(count) + 0.5) / count))
