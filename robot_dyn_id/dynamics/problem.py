# SPDX-License-Identifier: Apache-2.0
"""The linear problem that estimators solve: tau = W theta as a stream of tiles, and what else is known about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.errors import UsageError

TILE = 2048
"""Samples of a tile of samples as they are."""


@dataclass(frozen=True)
class Tile:
    """Consecutive rows of the linear problem: N samples of one joint.

    Attributes:
        joint: number of the joint.
        segment: number of the uninterrupted stretch of time; samples of one segment follow one another.
        block: the joint's columns (in the order of its support) and its torque as the last row, (support + 1, N).
            Rows of zeros are left out, and only keep time. Valid until the next tile is asked for.
    """

    joint: int
    segment: int
    block: Array


@dataclass(frozen=True)
class Smooth:
    """Filtered motion of one window beside its raw efforts.

    Attributes:
        segment: number of the segment.
        t: time [s], shape (N,).
        motion: of the joints.
        tau: efforts as recorded, shape (n, N), or None.
        number: grid number of each sample, shape (N,).
        own: which samples belong to this window and are not cut away, shape (N,).
        settled: the samples that no filter's start or end inside the segment has touched.
        reference: what the robot's controller was told to do, or None where it is not recorded.
    """

    segment: int
    t: Array
    motion: Motion
    tau: Array | None
    number: Integers
    own: Mask
    settled: slice
    reference: Motion | None = None


@dataclass(frozen=True)
class Origin:
    """What the rows of a linear problem were made of.

    Attributes:
        regressor: robot and terms.
        columns: of the regressor that are the problem's parameters, shape (p,).
        speeds: finds the greatest speed of each joint in the data [rad/s or m/s], shape (n,).
        problem_of: the problem of some columns of another regressor of the same robot, from the same data.
        along: the problem of the same columns along another motion, with its torque: what is given makes its windows of
            the recorded ones. Row by row the same instants; none is left out for being slow.
        low_pass: what positions pass before columns are made of them, samples along the last axis.
    """

    regressor: Regressor
    columns: Integers
    speeds: Callable[[], Array]
    problem_of: Callable[[Regressor, Integers], LinearProblem]
    along: Callable[[Callable[[Iterable[Smooth]], Iterator[Smooth]]], LinearProblem]
    low_pass: Callable[[Array], Array]


@dataclass(frozen=True)
class LinearProblem:
    """tau = W theta as a stream of tiles; walking it twice gives the same tiles.

    Attributes:
        names: the p parameters.
        joint_names: the n joints.
        supports: for each joint, the parameters that can appear in its torque.
        tiles: a function that starts a walk.
        rate: samples per second of every segment [Hz].
        origin: what the rows were made of, for estimators that look for constants of terms or need the robot.
        prior: what is known of the parameters without the data.
        period: of the motion, if it is periodic [s].
    """

    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    supports: tuple[Integers, ...]
    tiles: Callable[[], Iterator[Tile]]
    rate: float
    origin: Origin | None = None
    prior: Prior | None = None
    period: float | None = None


def raw_problem(
    regressor: Regressor, layout: Layout, motion: Motion, torque: Array, rate: float = 1.0, prior: Prior | None = None
) -> LinearProblem:
    """The linear problem of samples as they are, without filters, in tiles of `TILE` samples."""
    packed = np.empty((layout.starts[-1], TILE))

    def tiles() -> Iterator[Tile]:
        for start in range(0, len(motion), TILE):
            part = slice(start, min(start + TILE, len(motion)))
            block = packed if part.stop - start == TILE else np.empty((layout.starts[-1], part.stop - start))
            regressor.fill(motion.take(part), layout.slots, block)
            for joint, tau in enumerate(torque[:, part]):
                rows = layout.block(block, joint)
                rows[-1] = tau
                yield Tile(joint, 0, rows)

    names = tuple(regressor.names[column] for column in layout.columns)
    origin = Origin(
        regressor,
        layout.columns,
        speeds=lambda: np.abs(motion.dq).max(axis=1),
        problem_of=lambda other, columns: raw_problem(other, Layout.from_columns(other, columns), motion, torque, rate),
        along=_no_windows,
        low_pass=np.asarray,
    )
    joints = regressor.model.joint_names
    return LinearProblem(names, joints, layout.supports, tiles, rate, origin, prior)


def _no_windows(replay: object) -> LinearProblem:
    raise UsageError("samples as they are cannot be simulated along another motion: make the problem from a recording")
