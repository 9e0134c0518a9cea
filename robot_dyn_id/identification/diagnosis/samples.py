# SPDX-License-Identifier: Apache-2.0
"""Samples of filtered trials that fit into memory, and rigid-body rows of them, for the diagnosis of recordings.

A diagnosis compares hypotheses about a recording (gravity, meaning of the efforts, delays). Each costs one small
least-squares problem on a few thousand rows, whatever the length of the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.presliding import slide
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials

LARGEST_SAMPLE_COUNT = 1500
"""Number of samples that a diagnosis uses at most."""

LARGEST_ENTRY_COUNT = 4_000_000
"""Number of regressor entries that a diagnosis holds at most; robots with many joints use fewer samples."""

SAMPLES_PER_ROW = 4
"""Number of samples per row that an estimation would use: presliding friction needs them close together."""

BREAKAWAY_DISPLACEMENTS = (1e-3, 1e-2, 1e-1)
"""Breakaway displacements of the presliding friction that a diagnosis leaves free [rad or m]."""

COULOMB_WIDTH = 0.02
"""Smoothing width of the Coulomb friction that a diagnosis leaves free [rad/s or m/s]."""

FIRST_FRICTION_COLUMN = 2
"""First of the friction columns that dissipate; offset and rotor inertia come before it."""

DRY_FRICTION_COLUMNS = [3, *range(5, 5 + len(BREAKAWAY_DISPLACEMENTS))]
"""Friction columns that have a step at a reversal of the velocity: Coulomb friction and presliding states."""

BLOCKS = 8
"""Number of contiguous blocks whose scatter gives the standard deviations (jackknife)."""


@dataclass(frozen=True)
class MotionSamples:
    """N samples of n joints, equally spaced along the trials.

    Attributes:
        t: time stamps [s], shape (N,).
        segment: segment of each sample, shape (N,).
        motion: motion at the samples.
        earlier: motion half a `spacing` before each sample.
        later: motion half a `spacing` after each sample.
        spacing: time between `earlier` and `later` [s].
        tau: low-passed efforts [N m or N], shape (n, N).
        valid: samples of each joint's effort that are usable, shape (n, N).
    """

    t: Array
    segment: Integers
    motion: Motion
    earlier: Motion
    later: Motion
    spacing: float
    tau: Array
    valid: Mask

    @classmethod
    def from_trials(cls, trials: FilteredTrials, largest_count: int = LARGEST_SAMPLE_COUNT) -> MotionSamples:
        """Sample filtered trials.

        Args:
            trials: trials with efforts.
            largest_count: largest number of samples.

        Raises:
            InputError: no sample is usable.
        """
        plan, joints = trials.plan, len(trials.joints)
        count = min(largest_count, LARGEST_ENTRY_COUNT // (10 * joints * joints))
        total = sum(trials.survey.durations) * plan.rate
        stride = max(1, plan.row_stride // SAMPLES_PER_ROW, int(np.ceil(total / max(count, 1))))
        shift = max(1, plan.row_stride // 4)
        parts: list[tuple[Any, ...]] = []
        for window in trials:
            index = np.arange(len(window.t))
            rows = window.used & (window.number % stride == 0) & (index >= shift) & (index < len(index) - shift)
            if window.tau is None or not rows.any():
                continue
            picked = np.flatnonzero(rows)
            motions = [
                getattr(window.motion, name)[:, picked + offset]
                for offset in (0, -shift, shift)
                for name in ("q", "dq", "ddq")
            ]
            tau = plan.low_pass.apply(window.tau, plan.rate)[:, picked]
            segment = np.full(len(picked), window.segment)
            parts.append((window.t[picked], segment, *motions, tau, window.valid[:, picked]))
        if not parts:
            raise InputError(f"{trials.sources}: no sample is left between the ends of the recordings: record longer")
        t, segment, *joined = (np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True))
        center, earlier, later = (Motion(*joined[first : first + 3]) for first in (0, 3, 6))  # type: ignore[arg-type]
        return cls(t, segment, center, earlier, later, 2 * shift / plan.rate, joined[9], joined[10])

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.t)

    def thinned(self, count: int) -> MotionSamples:
        """About `count` of the samples, equally spaced; presliding states then follow the motion between these."""
        rows = slice(None, None, max(1, len(self) // count))
        return replace(
            self,
            t=self.t[rows],
            segment=self.segment[rows],
            motion=self.motion.take(rows),
            earlier=self.earlier.take(rows),
            later=self.later.take(rows),
            tau=self.tau[:, rows],
            valid=self.valid[:, rows],
        )

    @cached_property
    def blocks(self) -> Integers:
        """Contiguous block of each sample, 0 to `BLOCKS` - 1, shape (N,)."""
        return np.asarray(np.arange(len(self)) * BLOCKS // max(len(self), 1))

    @cached_property
    def friction(self) -> Array:
        """Columns that friction, rotor inertia and a sensor offset can take, shape (columns, n, N).

        Offset, acceleration, viscous, Coulomb, square root of the speed, and presliding states.
        """
        dq = self.motion.dq
        direction = np.tanh(dq / COULOMB_WIDTH)
        return np.asarray(
            [
                np.ones_like(dq),
                self.motion.ddq,
                dq,
                direction,
                direction * np.sqrt(np.abs(dq)),
                *_presliding(self.motion.q, self.segment),
            ]
        )

    @cached_property
    def friction_bases(self) -> Array:
        """Orthonormal basis of the columns of `friction` of each joint at its usable samples, shape (n, N, columns)."""
        return np.stack([_orthonormal(of_joint.T) for of_joint in (self.friction * self.valid).transpose(1, 0, 2)])

    def with_order(self, order: Integers) -> MotionSamples:
        """The samples with the columns of all channels in another order.

        Args:
            order: column that becomes each joint, shape (n,).
        """

        def turned(motion: Motion) -> Motion:
            return Motion(motion.q[order], motion.dq[order], motion.ddq[order])

        moved = replace(
            self,
            motion=turned(self.motion),
            earlier=turned(self.earlier),
            later=turned(self.later),
            tau=self.tau[order],
            valid=self.valid[order],
        )
        vars(moved)["friction_bases"] = self.friction_bases[order]  # each joint's own: not computed again
        return moved

    def with_convention(self, joint: int, turn: float, signs: Sequence[float]) -> MotionSamples:
        """The samples with another convention of one joint.

        Args:
            joint: the joint, by number.
            turn: angle that is added to its positions [rad].
            signs: factors of its positions and efforts, 1 or -1; that of the positions comes first, before the turn.
        """
        scale, shift = np.ones((len(self.tau), 1)), np.zeros((len(self.tau), 1))
        scale[joint], shift[joint] = signs[0], turn
        tau = self.tau.copy()
        tau[joint] *= signs[1]

        def turned(motion: Motion) -> Motion:
            return replace(motion, q=scale * motion.q + shift, dq=scale * motion.dq, ddq=scale * motion.ddq)

        moved = replace(
            self, motion=turned(self.motion), earlier=turned(self.earlier), later=turned(self.later), tau=tau
        )
        vars(moved)["friction_bases"] = self.friction_bases  # friction is odd in the velocity: they span the same
        return moved

    def with_time(self, factor: float) -> MotionSamples:
        """The samples of the same positions and efforts, passed through `factor` times as fast."""

        def passed(motion: Motion) -> Motion:
            return replace(motion, dq=factor * motion.dq, ddq=factor**2 * motion.ddq)

        moved = replace(
            self,
            t=self.t / factor,
            motion=passed(self.motion),
            earlier=passed(self.earlier),
            later=passed(self.later),
            spacing=self.spacing / factor,
        )
        vars(moved)["friction_bases"] = self.friction_bases  # but for the smoothing of Coulomb friction the same
        return moved


def _presliding(q: Array, segment: Integers) -> Array:
    """States of Dahl elements along consecutive samples, shape (elements, n, N); 0 where a segment starts.

    Exact for motion that keeps its direction between samples.
    """
    elements, joints = len(BREAKAWAY_DISPLACEMENTS), len(q)
    moved = np.tile(np.diff(q, axis=1, prepend=q[:, :1]).T, (1, elements))
    states = np.zeros_like(moved)
    displacement = np.repeat(BREAKAWAY_DISPLACEMENTS, joints)
    edges = np.flatnonzero(np.diff(segment)) + 1
    for first, last in pairwise([0, *edges.tolist(), len(segment)]):
        slide(moved[first:last], displacement, states[first:last])
    return states.T.reshape(elements, joints, -1)


SMALLEST_RESIDUAL_RATIO = 1e-3
"""Smallest residual of a joint that differs from zero, as a ratio to its effort."""

RANK_TOLERANCE = 1e-6
"""Singular values of the scaled Gram matrix below this are zero."""

REWEIGHTINGS = 4
"""Number of times that the weights of the joints are computed from the residuals."""

RIDGE = 1e-9
"""Ridge of the normal equations relative to their diagonal; keeps combinations that are not excited at zero."""

SMALLEST_NORM_RATIO = 1e-5
"""Norm below which a projected column counts as zero, as a ratio to the largest one: friction explains all of it."""

SMALLEST_COLUMN_RATIO = 1e-8
"""Norm of a friction column below which it is left out, as a ratio to the largest one."""


@dataclass(frozen=True)
class RigidRows:
    """Rigid-body columns and efforts of samples, without what friction and offsets of each joint can explain.

    Attributes:
        columns: projected columns of the standard parameters, shape (n, N, c).
        tau: projected efforts [N m or N], shape (n, N).
        bases: orthonormal basis of each joint's friction columns, shape (n, N, k).
        counts: usable samples of each joint, at least 1, shape (n,).
        scale: RMS of each joint's effort about its mean [N m or N], shape (n,).
    """

    columns: Array
    tau: Array
    bases: Array
    counts: Integers
    scale: Array

    @classmethod
    def from_samples(cls, samples: MotionSamples, models: Sequence[RobotModel]) -> RigidRows:
        """Evaluate the rigid-body regressors of robot models at samples, and project friction out.

        Args:
            samples: the samples.
            models: models of the same joints, whose columns stand one after another.
        """
        usable = samples.valid
        columns = np.concatenate([Regressor(model).dense(samples.motion) for model in models]).transpose(1, 2, 0)
        tau = np.where(usable, samples.tau, 0.0)
        counts = np.maximum(usable.sum(axis=1), 1)
        mean = tau.sum(axis=1) / counts
        scale = np.sqrt((np.where(usable, tau - mean[:, None], 0.0) ** 2).sum(axis=1) / counts)
        rows = cls(columns * usable[..., None], tau, samples.friction_bases, counts, scale)
        return replace(rows, columns=rows.project(rows.columns), tau=rows.project(tau[..., None])[..., 0])

    def project(self, columns: Array) -> Array:
        """Columns without what friction and offsets can explain, shape (n, N, c)."""
        return np.asarray(columns - self.bases @ (self.bases.transpose(0, 2, 1) @ columns))

    def with_efforts(self, tau: Array) -> RigidRows:
        """The rows with other efforts, 0 where they are not usable, shape (n, N); these may belong to other joints."""
        scale = np.sqrt(np.maximum((tau**2).sum(axis=1) / self.counts - (tau.sum(axis=1) / self.counts) ** 2, 0.0))
        return replace(self, tau=self.project(tau[..., None])[..., 0], scale=scale)

    def with_columns(self, columns: Array) -> RigidRows:
        """The rows with further projected columns behind their own, shape (n, N, k)."""
        return replace(self, columns=np.concatenate([self.columns, columns], axis=2))

    def grams(self, rows: Mask | slice = slice(None)) -> RigidGrams:
        """Gram matrices of the columns and efforts at the samples that `rows` selects."""
        columns, tau = self.columns[:, rows], self.tau[:, rows]
        transposed = columns.transpose(0, 2, 1)
        return RigidGrams(
            grams=np.asarray(transposed @ columns),
            products=np.asarray((transposed @ tau[..., None])[..., 0]),
            squares=np.asarray((tau**2).sum(axis=1)),
            counts=self.counts,
            scale=self.scale,
        )


@dataclass(frozen=True)
class RigidGrams:
    """Gram matrices of rigid-body rows, joint by joint.

    Attributes:
        grams: products of the columns with one another, shape (n, c, c).
        products: products of the columns with the efforts, shape (n, c).
        squares: sums of the squared efforts, shape (n,).
        counts: usable samples of each joint, shape (n,).
        scale: RMS of each joint's effort about its mean [N m or N], shape (n,).
    """

    grams: Array
    products: Array
    squares: Array
    counts: Integers
    scale: Array

    def fit(self, weights: Array | None = None) -> RigidFit:
        """Least squares with one weight per joint.

        Args:
            weights: inverse variance of each joint's residual, shape (n,); from the residuals by default.
        """
        floor = (SMALLEST_RESIDUAL_RATIO * np.maximum(self.scale, 1e-12)) ** 2
        used = 1.0 / np.maximum(self.squares / self.counts, floor) if weights is None else weights
        variances = np.zeros_like(floor)
        for _ in range(REWEIGHTINGS if weights is None else 1):
            values = solve_scaled(np.tensordot(used, self.grams, 1), used @ self.products)
            errors = self.squares - 2.0 * self.products @ values + (self.grams @ values) @ values
            variances = np.maximum(errors / self.counts, floor)
            used = 1.0 / variances if weights is None else used
        return RigidFit(values, np.sqrt(variances), used)

    @property
    def rank(self) -> int:
        """Number of combinations of the columns that the motion excites."""
        total = self.grams.sum(axis=0)
        norm = np.sqrt(np.maximum(np.diag(total), 0.0))
        scale = np.where(norm > SMALLEST_NORM_RATIO * norm.max(initial=0.0), norm, np.inf)
        return int(np.linalg.matrix_rank(total / np.outer(scale, scale), tol=RANK_TOLERANCE))

    def of(self, joints: Sequence[int]) -> RigidGrams:
        """Those of some joints, by number."""
        kept = list(joints)
        return RigidGrams(
            self.grams[kept], self.products[kept], self.squares[kept], self.counts[kept], self.scale[kept]
        )

    def scaled(self, gains: Array) -> RigidGrams:
        """The Gram matrices if each joint's effort were `gains` times the true one, shape (n,)."""
        return replace(self, grams=gains[:, None, None] ** 2 * self.grams, products=gains[:, None] * self.products)


@dataclass(frozen=True)
class RigidFit:
    """Fit of rigid-body columns to efforts.

    Attributes:
        values: parameters of the columns, shape (c,).
        rms: RMS residual of each joint, at least `SMALLEST_RESIDUAL_RATIO` of its effort [N m or N], shape (n,).
        weights: weight of each joint, shape (n,).
    """

    values: Array
    rms: Array
    weights: Array

    def advantage(self, other: RigidFit) -> float:
        """Sum over the joints of the logarithm of the other fit's residual over that of this one."""
        return float(np.log(other.rms / self.rms).sum())


def solve_scaled(matrix: Array, product: Array) -> Array:
    """Solve normal equations that may be singular, with columns scaled to unit norm."""
    norm = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.maximum(norm, max(SMALLEST_NORM_RATIO * float(norm.max(initial=0.0)), 1e-150))
    scaled = matrix / (scale[:, None] * scale)
    scaled.flat[:: len(scaled) + 1] += RIDGE
    return np.asarray(np.linalg.solve(scaled, product / scale) / scale)


def _orthonormal(columns: Array) -> Array:
    """Orthonormal basis of columns, shape (N, k); zero columns where they are dependent."""
    norm = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(norm > SMALLEST_COLUMN_RATIO * norm.max(initial=0.0), norm, np.inf)
    left, singular, _ = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(left * (singular > 1e-6 * singular.max(initial=1e-300)))
