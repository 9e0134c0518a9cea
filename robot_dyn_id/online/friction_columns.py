# SPDX-License-Identifier: Apache-2.0
"""Columns of terms without acceleration, such as friction and springs, along a stream of joint states."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.momentum import is_accelerated
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.dynamics.terms.groups import TermStates
from robot_dyn_id.kernels.recursive_filters import compute_steps_since

EQUAL = 1e-3
"""Relative difference below which steps are equal: states are integrated along all of them at once."""


class FrictionColumns:
    """Columns of the terms of a regressor that do not depend on the acceleration.

    States of terms are integrated along the positions that are added. They are kept over interruptions.

    Attributes:
        rows: indices of these columns among all columns of the regressor, shape (k,).
        has_states: whether any of the terms has internal states.
    """

    def __init__(self, regressor: Regressor) -> None:
        """Start without samples."""
        smooth = np.array([is_accelerated(column.term) for column in regressor.term_columns], dtype=bool)
        self.rows = len(regressor.names) - len(smooth) + np.flatnonzero(~smooth)
        self._regressor = regressor.with_terms(tuple(pair for pair in regressor.terms if not is_accelerated(pair[1])))
        self.has_states = bool(self._regressor.state_groups)
        self.reset()

    def reset(self) -> None:
        """Restart without a history."""
        self._states = self._regressor.initial_states()
        self._t, self._q = -np.inf, np.empty((0, 1))

    def add(self, t: float, q: Array, dq: Array) -> Array:
        """Add positions and velocities at the time t [s], shape (n,) each, later than the previous ones.

        Returns:
            The columns at this state, shape (k, n).
        """
        return self.follow(np.array([t]), q[:, None], dq[:, None])[:, :, 0]

    def follow(self, t: Array, q: Array, dq: Array) -> Array:
        """Add N positions and velocities.

        Args:
            t: increasing times, later than the previous ones [s], shape (N,).
            q: positions, shape (n, N).
            dq: velocities, shape (n, N).

        Returns:
            The columns at these states, shape (k, n, N).
        """
        states: TermStates | None = None
        if self.has_states:
            begun = np.isfinite(self._t)
            path = np.concatenate([self._q, q], axis=1) if begun else q
            steps = compute_steps_since(self._t, t)[0 if begun else 1 :]
            states = self._integrate(path, steps)
            self._states = {term: values[..., -1:] for term, values in states.items()}
            states = {term: values[..., path.shape[1] - len(t) :] for term, values in states.items()}
        self._t, self._q = float(t[-1]), q[:, -1:]
        return self._evaluate(Motion(q, dq, np.zeros_like(q), states=states))

    def _integrate(self, path: Array, steps: Array) -> dict[Term, Array]:
        """States along positions of shape (n, M), with `steps`, shape (M - 1,), from the present states on."""
        step = float(np.mean(steps)) if len(steps) else 0.0
        if np.all(np.abs(steps - step) < EQUAL * step):
            return self._regressor.integrate(path, step, self._states)
        states = [self._states]
        for k, each in enumerate(steps.tolist()):
            pair = path[:, k : k + 1], path[:, k + 1 : k + 2]
            states.append(
                {
                    group.term: group.advance(states[-1][group.term], *pair, each)
                    for group in self._regressor.state_groups
                }
            )
        return {term: np.concatenate([one[term] for one in states], axis=2) for term in self._states}

    def half_range(self, q: Array, dq: Array, width: Array, values: Array) -> Array:
        """Half the change of the torque of these terms within an interval of the velocity, shape (n, N) [N m or N].

        States are those of long motions, so that the interval about zero holds friction of both directions.

        Args:
            q: positions, shape (n, N).
            dq: velocities, shape (n, N).
            width: half the width of the interval about the velocity of each joint, shape (n,).
            values: parameters of the columns, shape (k,).
        """
        ends = np.concatenate([dq - width[:, None], dq + width[:, None]], axis=1)
        columns = self._evaluate(Motion(np.tile(q, 2), ends, np.zeros_like(ends)))
        low, high = np.split(np.tensordot(values, columns, 1), 2, axis=1)
        return np.asarray(0.5 * np.abs(high - low))

    def _evaluate(self, motion: Motion) -> Array:
        """Columns at N states, shape (k, n, N)."""
        signals = self._regressor.signals(motion)
        columns = np.empty((len(self.rows), *motion.q.shape))
        for group in self._regressor.term_groups:
            values = group.columns(motion.q, motion.dq, motion.ddq, signals, motion.states)  # (symbols, g, N)
            columns[group.numbers] = values[:, :, None, :] * group.weights[:, :, None]
        return columns
