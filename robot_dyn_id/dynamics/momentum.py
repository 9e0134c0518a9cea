# SPDX-License-Identifier: Apache-2.0
"""Generalized momentum of a robot and its drift as columns of the parameters: momentum observers need no acceleration.

With p = M(q) dq and the motors' torque tau, dp/dt = tau + (C' dq - g) - f + external torque, where C' dq - g is the
drift of the rigid bodies and f the friction. See `kernels.momentum` for both.
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.momentum import fill_momentum_along


def is_accelerated(term: Term) -> bool:
    """Whether the columns of a term depend on the acceleration."""
    return bool(np.any(term.slopes(*np.ones((3, 1)))[2]))


def _momentum_per_speed(term: Term) -> Array:
    """Derivative of the columns of a term with respect to the acceleration, shape (symbols,).

    Raises:
        UsageError: it depends on the motion: the term has no momentum.
    """
    y, dy, ddy = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 16))
    slopes = term.slopes(y, dy, ddy)[2]
    if not np.allclose(slopes, slopes[:, :1], rtol=1e-9, atol=1e-12):
        raise UsageError(f"term {term.name} is not an inertia: it has no momentum, which the observer needs")
    return np.asarray(slopes[:, 0])


class MomentumRegressor:
    """Columns of momentum and drift of the rigid bodies and of terms of the acceleration, such as rotor inertias.

    Attributes:
        regressor: robot and terms; terms without acceleration have columns of zeros.
    """

    def __init__(self, regressor: Regressor) -> None:
        """Prepare the arrays of the kernel.

        Raises:
            UsageError: a term of the acceleration that is not an inertia.
        """
        self.regressor = regressor
        tree, offset = regressor.tree, regressor.model.offset
        self._bodies, joints = len(tree.parent), len(regressor.model.joint_names)
        links = tree.parent, tree.leader, tree.multiplier, np.ascontiguousarray(offset, dtype=np.float64)
        work = np.zeros((2 * self._bodies + 1, self._bodies, 6)), np.zeros((self._bodies, 3))
        self._arguments = (*links, tree.turn, tree.shift, tree.axis, tree.gravity), work
        self._inertias = np.zeros((len(regressor.names), joints, joints))
        for group in regressor.term_groups:
            if is_accelerated(group.term):
                weights = np.einsum("gi,gj->gij", group.weights, group.weights)
                for slope, numbers in zip(_momentum_per_speed(group.term), group.numbers, strict=True):
                    self._inertias[10 * self._bodies + numbers] = slope * weights
        self._rotors = np.flatnonzero(self._inertias.any(axis=(1, 2)))

    def columns(self, q: Array, dq: Array) -> tuple[Array, Array]:
        """Columns of momentum and drift at N states, shape (N, c, n) each.

        Args:
            q: positions [rad or m], shape (N, n).
            dq: velocities, shape (N, n).
        """
        momentum, drift = np.zeros((2, len(q), len(self.regressor.names), q.shape[1]))
        links, work = self._arguments
        q, dq = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(dq, dtype=np.float64)
        fill_momentum_along(*links, q, dq, *work, momentum, drift)
        momentum[:, self._rotors] += np.einsum("cij,kj->kci", self._inertias[self._rotors], dq)
        return momentum, drift
