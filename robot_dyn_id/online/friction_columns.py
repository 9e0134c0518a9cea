# SPDX-License-Identifier: Apache-2.0
"""Columns of terms without acceleration, such as friction and springs, along a stream of joint states."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.momentum import accelerated
from robot_dyn_id.dynamics.regressor import Motion, Regressor


class FrictionColumns:
    """Columns of the terms of a regressor that do not depend on the acceleration.

    States of terms are integrated along the positions that are added. They are kept over interruptions.

    Attributes:
        rows: indices of these columns among all columns of the regressor, shape (k,).
        has_states: whether any of the terms has internal states.
    """

    def __init__(self, regressor: Regressor) -> None:
        """Start without samples."""
        smooth = np.array([accelerated(column.term) for column in regressor.term_columns], dtype=bool)
        self.rows = len(regressor.names) - len(smooth) + np.flatnonzero(~smooth)
        self._regressor = regressor.with_terms(tuple(pair for pair in regressor.terms if not accelerated(pair[1])))
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
        q = q[:, None]
        groups = self._regressor.state_groups
        if groups and np.isfinite(self._t):
            step = t - self._t
            self._states = {g.term: g.advance(self._states[g.term], self._q, q, step) for g in groups}
        self._t, self._q = t, q
        return self._evaluate(Motion(q, dq[:, None], np.zeros_like(q), states=self._states))[:, :, 0]

    def half_range(self, q: Array, dq: Array, width: Array, values: Array) -> Array:
        """Half the change of the torque of these terms within an interval of the velocity, shape (n,) [N m or N].

        States are those of long motions, so that the interval about zero holds friction of both directions.

        Args:
            q: positions, shape (n,).
            dq: velocities, shape (n,).
            width: half the width of the interval about the velocity of each joint, shape (n,).
            values: parameters of the columns, shape (k,).
        """
        ends = np.stack([dq - width, dq + width], axis=1)
        positions = np.repeat(q[:, None], 2, axis=1)
        columns = self._evaluate(Motion(positions, ends, np.zeros_like(ends)))
        low, high = np.tensordot(values, columns, 1).T
        return np.asarray(0.5 * np.abs(high - low))

    def _evaluate(self, motion: Motion) -> Array:
        """Columns at N states, shape (k, n, N)."""
        signals = self._regressor.signals(motion)
        columns = np.empty((len(self.rows), *motion.q.shape))
        for group in self._regressor.term_groups:
            values = group.columns(motion.q, motion.dq, motion.ddq, signals, motion.states)  # (symbols, g, N)
            columns[group.numbers] = values[:, :, None, :] * group.weights[:, :, None]
        return columns
