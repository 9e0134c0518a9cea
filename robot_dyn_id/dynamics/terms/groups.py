# SPDX-License-Identifier: Apache-2.0
"""Vectorized evaluation of equal terms on many coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.terms.contract import Coordinate, Term

TermStates: TypeAlias = Mapping[Term, Array]
"""Internal states by term, for the s states of the g coordinates of its group at N samples: shape (s, g, N) each.

A term that is not in it is evaluated without a history, see `Term.columns`.
"""


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

    def columns(
        self,
        q: Array,
        dq: Array,
        ddq: Array,
        signals: Mapping[str, Array],
        states: TermStates | None = None,
    ) -> Array:
        """Columns at N motions of shape (n, N) each, shape (symbols, g, N).

        Args:
            q: positions.
            dq: velocities.
            ddq: accelerations.
            signals: signals of the joints by the names of `Term.signal`, shape (n, N) each; the columns of a term whose
                signal is missing are zero.
            states: internal states; None: without a history.
        """
        own = states.get(self.term) if states and self.term.state_count else None
        columns = self.columns_along(self.along(q) + self.offsets, self.along(dq), self.along(ddq), own)
        if not self.term.signal:
            return columns
        signal = signals.get(self.term.signal)
        return np.asarray(columns * (0.0 if signal is None else self.term.factor(self.weights, signal)))

    def columns_along(self, y: Array, dy: Array, ddy: Array, states: Array | None = None) -> Array:
        """Columns at motions of the coordinates, shape (g, N) each, without the factors of signals.

        Args:
            y: positions.
            dy: velocities.
            ddy: accelerations.
            states: internal states of the coordinates, shape (s, g, N); None: without a history.
        """
        motion = y.ravel(), dy.ravel(), ddy.ravel()
        if states is None:
            return self.term.columns(*motion).reshape(-1, *y.shape)
        return self.term.state_columns(*motion, states.reshape(len(states), -1)).reshape(-1, *y.shape)

    def initial_states(self, count: int) -> Array:
        """States of the coordinates at the beginning of `count` motions, shape (s, g, count)."""
        start = self.term.initial_states()[:, None, None]
        return np.broadcast_to(start, (len(start), len(self.weights), count)).copy()

    def integrate(self, q: Array, step: float, start: Array) -> Array:
        """States along positions of the joints at N consecutive samples, shape (s, g, N).

        Args:
            q: positions, shape (n, N).
            step: time between two samples [s].
            start: states at the first sample, shape (s, g).
        """
        return self.term.integrate(np.asarray(self.along(q) + self.offsets), step, start)

    def advance(self, states: Array, q: Array, next_q: Array, step: float) -> Array:
        """States of N robots after one step each, shape (s, g, N).

        Args:
            states: states before, shape (s, g, N).
            q: positions before, shape (n, N).
            next_q: positions after, shape (n, N).
            step: duration of the step [s].
        """
        before, after = (np.asarray(self.along(x) + self.offsets) for x in (q, next_q))
        path = np.stack([before.ravel(), after.ravel()], axis=1)
        return self.term.integrate(path, step, states.reshape(len(states), -1))[..., 1].reshape(states.shape)

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
