# SPDX-License-Identifier: Apache-2.0
"""What a motion tells about the base parameters: the Fisher information, and its exact gradient.

M = sum over samples and joints of y y' / sigma^2, with y the row of the base columns and sigma the standard deviation
of the joint's torque; its inverse is the covariance of weighted least squares (Swevers et al., Optimal robot excitation
and identification, 1997).

Which independent columns the base parameters have is a choice: with others, theta' = T theta with a constant matrix T,
so M' = T^-T M T^-1. The difference of log det M between two motions does not depend on it. Condition numbers, variances
and weakest directions do: they speak about the very parameters that were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.base_parameters import BaseParameters
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.dynamics.terms import TermGroup
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.angles import within_reach
from robot_dyn_id.kernels.regressor_gradient import regressor_gradient_tiles

CHUNK = 1024
"""Samples worked on together: their base columns stay in the cache."""

MotionGradient = tuple[Array, Array, Array]
"""Derivatives of a number by q, dq and ddq, shape (n, N) each."""


@dataclass(frozen=True)
class Information:
    """Fisher information of p base parameters of a robot with n joints.

    Attributes:
        regressor: robot and terms.
        base: its base parameters.
        noise: standard deviation of each joint's torque, of one sample [N m or N], shape (n,). For information of a
            motion that is sampled more coarsely here than it will be recorded, multiply M by the ratio of the rates.
    """

    regressor: Regressor
    base: BaseParameters
    noise: Array

    def __post_init__(self) -> None:
        """Check that the parts fit together.

        Raises:
            UsageError: base parameters of another regressor, or noise that is not one positive number per joint.
        """
        joints = self.regressor.model.joint_names
        if self.base.column_names != self.regressor.names:
            raise UsageError("the base parameters are not those of this robot with these terms")
        noise = np.asarray(self.noise, dtype=np.float64)
        if noise.shape != (len(joints),) or not np.all((noise > 0.0) & np.isfinite(noise)):
            raise UsageError(f"torque noise {self.noise} must be one positive number for each of {', '.join(joints)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, shape (p,)."""
        return self.base.names

    def matrix(self, motion: Motion) -> Array:
        """M of the N samples of a motion, shape (p, p), symmetric to the last bit."""
        p, squares = len(self.names), np.zeros(len(self._entries))
        for part in _parts(motion):
            squares += np.concatenate([(block @ block.T).ravel() for block in self._blocks(part)])
        # bincount adds what falls on the same entry, ten times as fast as an indexed sum for every joint
        total = np.bincount(self._entries, squares * self._weights, minlength=p * p)
        return np.asarray(total, dtype=np.float64).reshape(p, p)

    def pull_back(self, motion: Motion, gradient: Array) -> MotionGradient:
        """Derivatives of a number by the motion, from those by M.

        Args:
            motion: N samples.
            gradient: derivatives by the entries of M, shape (p, p).
        """
        both, pieces = gradient + gradient.T, []
        by_square = [
            both[np.ix_(support, support)] / noise**2
            for support, noise in zip(self._layout.supports, self.noise, strict=True)
        ]
        for part in _parts(motion):
            cotangent = np.empty((self._layout.starts[-1], len(part)))
            for joint, block in enumerate(self._blocks(part)):
                np.matmul(by_square[joint], block, out=self._layout.block(cotangent, joint)[:-1])
            pieces.append(regressor_gradient(self.regressor, part, self._layout.slots, cotangent))
        by_q, by_dq, by_ddq = (np.concatenate(arrays, axis=1) for arrays in zip(*pieces, strict=True))
        return by_q, by_dq, by_ddq

    @cached_property
    def _layout(self) -> Layout:
        return Layout.from_columns(self.regressor, self.base.independent)

    @cached_property
    def _entries(self) -> Integers:
        """Where the squares of the joints' columns, one after the other, stand in M."""
        p = len(self.names)
        return np.concatenate([(p * support[:, None] + support).ravel() for support in self._layout.supports])

    @cached_property
    def _weights(self) -> Array:
        """What they are multiplied with."""
        return np.repeat(np.asarray(self.noise) ** -2.0, [len(support) ** 2 for support in self._layout.supports])

    def _blocks(self, motion: Motion) -> list[Array]:
        """For each joint its base columns, shape (support, N)."""
        packed = np.empty((self._layout.starts[-1], len(motion)))
        self.regressor.fill(motion, self._layout.slots, packed)
        return [self._layout.block(packed, joint)[:-1] for joint in range(len(self.noise))]


def _parts(motion: Motion) -> Iterator[Motion]:
    """The motion in chunks."""
    if len(motion) <= CHUNK:
        yield motion
    else:
        for start in range(0, len(motion), CHUNK):
            yield motion.take(slice(start, start + CHUNK))


def regressor_gradient(regressor: Regressor, motion: Motion, slots: Integers, cotangent: Array) -> MotionGradient:
    """Derivatives of a number by the motion, from those by the entries of the regressor.

    Args:
        regressor: robot and terms.
        motion: N samples.
        slots: row of `cotangent` for each column and joint, -1 for none, shape (c, n); see `Regressor.fill`.
        cotangent: derivatives by the entries, shape (rows, N).
    """
    tree, model = regressor.tree, regressor.model
    q, dq, ddq = regressor.by_body(motion)
    by_body = np.empty((3, *q.shape))
    regressor_gradient_tiles(
        tree.parent, tree.turn, tree.shift, tree.axis, tree.pair_start, tree.pair_from, tree.pair_gain, tree.gravity,
        within_reach(q), q, dq, ddq, tree.pair_slots(slots), cotangent, *by_body,
    )  # fmt: skip
    total = model.coupling.T @ by_body
    for group in regressor.term_groups:
        wanted = slots[10 * len(model.body_names) + group.numbers]
        if (wanted >= 0).any():
            total += _term_gradient(group, motion, wanted, cotangent)
    return total[0], total[1], total[2]


def _term_gradient(group: TermGroup, motion: Motion, slots: Integers, cotangent: Array) -> Array:
    """The part of a group of terms, shape (3, n, N); `slots` has the shape (symbols, g, n)."""
    slopes = group.slopes(motion.q, motion.dq, motion.ddq)
    by_column = np.zeros(slopes.shape[1:])
    symbol, coordinate, joint = np.nonzero(slots >= 0)
    for s, g, j in zip(symbol.tolist(), coordinate.tolist(), joint.tolist(), strict=True):
        by_column[s, g] += group.weights[g, j] * cotangent[slots[s, g, j]]
    return np.asarray(group.weights.T @ (slopes * by_column).sum(axis=1))
