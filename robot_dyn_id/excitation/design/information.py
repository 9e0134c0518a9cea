# SPDX-License-Identifier: Apache-2.0
"""Fisher information of a motion about the base parameters, and its exact gradient.

M = sum over samples and joints of y y' / sigma^2, with y the row of the base columns and sigma the standard deviation
of the joint's torque; its inverse is the covariance of weighted least squares (Swevers et al., Optimal robot excitation
and identification, 1997).

The choice of the independent columns is not unique: another choice gives theta' = T theta with a constant matrix T, so
that M' = T^-T M T^-1. The difference of log det M between two motions does not depend on this choice; condition
numbers, variances and weakest directions do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.dynamics.terms import TermGroup
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.angles import wrap_within_reach
from robot_dyn_id.kernels.regressor_gradient import fill_regressor_gradient_tiles
from robot_dyn_id.parameters import BaseParameters

CHUNK_SAMPLES = 1024
"""Number of samples processed together, so that their base columns fit into the cache."""

MotionGradient = tuple[Array, Array, Array]
"""Derivatives of a scalar with respect to q, dq and ddq, shape (n, N) each."""


@dataclass(frozen=True)
class Information:
    """Fisher information of p base parameters of a robot with n joints.

    Attributes:
        regressor: regressor of the robot and its terms.
        base: base parameters of the regressor.
        noise: standard deviation of each joint's torque in one sample [N m or N], shape (n,). If the motion is
            evaluated at a lower rate than it is recorded, multiply M by the ratio of the rates.
    """

    regressor: Regressor
    base: BaseParameters
    noise: Array

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            UsageError: base parameters of another regressor, or not one positive noise value per joint.
        """
        joints = self.regressor.model.joint_names
        if self.base.column_names != self.regressor.names:
            raise UsageError("the base parameters are not those of this robot with these terms")
        noise = np.asarray(self.noise, dtype=np.float64)
        if noise.shape != (len(joints),) or not np.all((noise > 0.0) & np.isfinite(noise)):
            raise UsageError(f"torque noise {self.noise} must be one positive number for each of {', '.join(joints)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, shape (p,)."""
        return self.base.names

    def matrix(self, motion: Motion) -> Array:
        """Information matrix M of the N samples of a motion, shape (p, p), exactly symmetric."""
        p = len(self.names)
        squares = np.zeros(len(self._entries))
        for part in _parts(motion):
            squares += np.concatenate([(block @ block.T).ravel() for block in self._blocks(part)])
        # bincount sums the contributions to each entry ten times as fast as indexed addition per joint
        total = np.bincount(self._entries, squares * self._weights, minlength=p * p)
        return np.asarray(total, dtype=np.float64).reshape(p, p)

    def pull_back(self, motion: Motion, gradient: Array) -> MotionGradient:
        """Derivatives of a scalar with respect to the motion, from those with respect to M.

        Args:
            motion: motion with N samples.
            gradient: derivatives with respect to the entries of M, shape (p, p).
        """
        both = gradient + gradient.T
        pieces = []
        by_square = [
            both[np.ix_(support, support)] / noise**2
            for support, noise in zip(self._layout.supports, self.noise, strict=True)
        ]
        for part in _parts(motion):
            cotangent = np.empty((self._layout.starts[-1], len(part)))
            for joint, block in enumerate(self._blocks(part)):
                np.matmul(by_square[joint], block, out=self._layout.block(cotangent, joint)[:-1])
            pieces.append(compute_regressor_gradient(self.regressor, part, self._layout.slots, cotangent))
        by_q, by_dq, by_ddq = (np.concatenate(arrays, axis=1) for arrays in zip(*pieces, strict=True))
        return by_q, by_dq, by_ddq

    @cached_property
    def _layout(self) -> Layout:
        return Layout.from_columns(self.regressor, self.base.independent)

    @cached_property
    def _entries(self) -> Integers:
        """Indices in M of the products of the joints' columns, joint by joint."""
        p = len(self.names)
        return np.concatenate([(p * support[:, None] + support).ravel() for support in self._layout.supports])

    @cached_property
    def _weights(self) -> Array:
        """Weights of these products."""
        return np.repeat(np.asarray(self.noise) ** -2.0, [len(support) ** 2 for support in self._layout.supports])

    def _blocks(self, motion: Motion) -> list[Array]:
        """Base columns of each joint, shape (nonzero columns, N)."""
        packed = np.empty((self._layout.starts[-1], len(motion)))
        self.regressor.fill(motion, self._layout.slots, packed)
        return [self._layout.block(packed, joint)[:-1] for joint in range(len(self.noise))]


def _parts(motion: Motion) -> Iterator[Motion]:
    """Split a motion into chunks."""
    if len(motion) <= CHUNK_SAMPLES:
        yield motion
    else:
        for start in range(0, len(motion), CHUNK_SAMPLES):
            yield motion.take(slice(start, start + CHUNK_SAMPLES))


def compute_regressor_gradient(
    regressor: Regressor, motion: Motion, slots: Integers, cotangent: Array
) -> MotionGradient:
    """Derivatives of a scalar with respect to the motion, from those with respect to the regressor's entries.

    Args:
        regressor: regressor of the robot and its terms.
        motion: motion with N samples.
        slots: row of `cotangent` for each column and joint, or -1, shape (c, n); see `Regressor.fill`.
        cotangent: derivatives with respect to the entries, shape (rows, N).
    """
    tree, model = regressor.tree, regressor.model
    q, dq, ddq = regressor.by_body(motion)
    by_body = np.empty((3, *q.shape))
    fill_regressor_gradient_tiles(
        *tree.blocks,
        wrap_within_reach(q),
        q,
        dq,
        ddq,
        tree.pair_slots(slots),
        np.ascontiguousarray(cotangent),
        *by_body,
    )
    total = model.coupling.T @ by_body
    signals = regressor.signals(motion)
    by_load = np.zeros_like(motion.q)
    for group in regressor.term_groups:
        wanted = slots[10 * len(model.body_names) + group.numbers]
        if (wanted >= 0).any() and group.term.signal in ("", *signals):
            by_column = _column_cotangent(group, wanted, cotangent)
            if group.term.signal == "load":
                by_load += _load_cotangent(group, motion, signals["load"], by_column)
            if group.term.signal:
                by_column *= group.term.factor(group.weights, signals[group.term.signal])
            slopes = group.slopes(motion.q, motion.dq, motion.ddq)
            total += group.weights.T @ (slopes * by_column).sum(axis=1)
    if by_load.any():
        total[:2] += _load_gradient(regressor, motion, by_load)
    return total[0], total[1], total[2]


def _column_cotangent(group: TermGroup, slots: Integers, cotangent: Array) -> Array:
    """Derivatives with respect to the columns along the coordinates, shape (symbols, g, N).

    `slots` has the shape (symbols, g, n).
    """
    by_column = np.zeros((*slots.shape[:2], cotangent.shape[1]))
    symbol, coordinate, joint = np.nonzero(slots >= 0)
    for s, g, j in zip(symbol.tolist(), coordinate.tolist(), joint.tolist(), strict=True):
        by_column[s, g] += group.weights[g, j] * cotangent[slots[s, g, j]]
    return by_column


def _load_cotangent(group: TermGroup, motion: Motion, load: Array, by_column: Array) -> Array:
    """Derivatives with respect to the load of each joint, shape (n, N)."""
    y, dy, ddy = group.along(motion.q) + group.offsets, group.along(motion.dq), group.along(motion.ddq)
    columns = group.columns_along(y, dy, ddy)
    by_factor = (columns * by_column).sum(axis=0)
    return np.asarray(np.einsum("gk,gnk->nk", by_factor, group.term.factor_slopes(group.weights, load)))


def _load_gradient(regressor: Regressor, motion: Motion, by_load: Array) -> Array:
    """Derivatives with respect to q and dq, shape (2, n, N), from those with respect to the load."""
    bodies, parameters = regressor.bodies, regressor.load_bodies
    used = bodies.structure
    slots = np.where(used, np.cumsum(used).reshape(used.shape) - 1, -1)
    column, joint = np.nonzero(used)
    steady = Motion(motion.q, motion.dq, np.zeros_like(motion.ddq))
    by_q, by_dq, _ = compute_regressor_gradient(bodies, steady, slots, parameters[column, None] * by_load[joint])
    return np.array([by_q, by_dq])
