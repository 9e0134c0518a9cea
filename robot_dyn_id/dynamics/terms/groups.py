# SPDX-License-Identifier: Apache-2.0
"""Vectorized evaluation of equal terms on many coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.terms.contract import Coordinate, Term


@dataclass(frozen=True)
class TermGroup:
    """One term, with the same constants, on g coordinates of a robot with n joints.

    Attributes:
        term: the term.
        weights: weights of the coordinates, shape (g, n).
        offsets: offsets of the coordinates [rad or m], shape (g, 1).
        numbers: indices of its columns among those of all terms, shape (symbols, g).
        joints: index of each coordinate's joint, shape (g,), or None if a coordinate is not the motion of one joint.
    """

    term: Term
    weights: Array
    offsets: Array
    numbers: Integers
    joints: Integers | None

    def columns(self, q: Array, dq: Array, ddq: Array, signals: Mapping[str, Array]) -> Array:
        """Columns at N motions of shape (n, N) each, shape (symbols, g, N).

        Args:
            q: positions.
            dq: velocities.
            ddq: accelerations.
            signals: signals of the joints by the names of `Term.signal`, shape (n, N) each; the columns of a term whose
                signal is missing are zero.
        """
        columns = self.columns_along(self.along(q) + self.offsets, self.along(dq), self.along(ddq))
        if not self.term.signal:
            return columns
        signal = signals.get(self.term.signal)
        return np.asarray(columns * (0.0 if signal is None else self.term.factor(self.weights, signal)))

    def columns_along(self, y: Array, dy: Array, ddy: Array) -> Array:
        """Columns at motions of the coordinates, shape (g, N) each, without the factors of signals."""
        return self.term.columns(y.ravel(), dy.ravel(), ddy.ravel()).reshape(-1, *y.shape)

    def slopes(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Derivatives of the columns with respect to the coordinates' motions, shape (3, symbols, g, N)."""
        y = self.along(q) + self.offsets
        dy = self.along(dq)
        ddy = self.along(ddq)
        return self.term.slopes(y.ravel(), dy.ravel(), ddy.ravel()).reshape(3, -1, *y.shape)

    def along(self, motion: Array) -> Array:
        """Positions less the offsets, velocities or accelerations of the coordinates, shape (g, N); may be a view."""
        if self.joints is None:
            return np.asarray(self.weights @ motion)
        return motion if self._every else motion[self.joints]

    @cached_property
    def _every(self) -> bool:
        """Whether the coordinates are the joints, in their order."""
        return self.joints is not None and np.array_equal(self.joints, np.arange(self.weights.shape[1]))


def group_terms(terms: Iterable[tuple[Coordinate, Term]]) -> tuple[TermGroup, ...]:
    """Group terms of the same class with the same constants."""
    members: dict[Term, tuple[list[Coordinate], list[Integers]]] = {}
    column = 0
    for coordinate, term in terms:
        coordinates, numbers = members.setdefault(term, ([], []))
        coordinates.append(coordinate)
        numbers.append(np.arange(column, column + len(term.symbols)))
        column += len(term.symbols)
    return tuple(_group(term, *parts) for term, parts in members.items())


def _group(term: Term, coordinates: list[Coordinate], numbers: list[Integers]) -> TermGroup:
    weights = np.array([coordinate.weights for coordinate in coordinates])
    simple = np.all(np.count_nonzero(weights, axis=1) == 1) and np.all(weights.sum(axis=1) == 1.0)
    offsets = np.array([[coordinate.offset] for coordinate in coordinates])
    return TermGroup(term, weights, offsets, np.array(numbers).T, np.argmax(weights, axis=1) if simple else None)
