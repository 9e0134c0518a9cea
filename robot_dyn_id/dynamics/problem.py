# SPDX-License-Identifier: Apache-2.0
"""Linear problem tau = W theta that estimators solve, as a stream of tiles.

The regressor W is never stacked. It comes in tiles: some consecutive rows of one joint, and of these rows only the
columns that can be nonzero (the joint's support), with the measured torque as the last row of the tile's block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor

TILE_SAMPLES = 2048
"""Samples per tile of a problem that is made of samples without a recording."""


@dataclass(frozen=True)
class Tile:
    """Consecutive rows of the linear problem: N samples of one joint.

    Attributes:
        joint: number of the joint.
        segment: number of the uninterrupted stretch of time; samples of one segment follow one another.
        block: nonzero columns of the joint (in the order of its support) and its torque as the last row, shape
            (support + 1, N). Excluded samples are zero, so that the others keep their time. Valid until the next tile
            is requested.
        trial: number of the trial.
        t: stamps of the samples [s], shape (N,); None: unknown.
    """

    joint: int
    segment: int
    block: Array
    trial: int = 0
    t: Array | None = None

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        return self.block.nbytes + (0 if self.t is None else self.t.nbytes)


def find_used_rows(block: Array) -> Mask:
    """Samples of a tile's block that are not excluded, shape (N,)."""
    rows = np.asarray(block[-1] != 0.0)
    return rows if rows.all() else rows | block.any(axis=0)


@dataclass(frozen=True)
class LinearProblem:
    """tau = W theta as a stream of tiles; every pass yields the same tiles.

    Attributes:
        names: names of the p parameters.
        joint_names: names of the n joints.
        supports: parameters that can appear in the torque of each joint.
        tiles: function that starts a pass.
        rate: rows per second of every segment [Hz].
        prior: prior knowledge of the parameters, or None.
        period: period of the motion where it is known to be periodic [s].
        values_only: whether only the values of its estimate are used: estimators may leave out the covariance.
    """

    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    supports: tuple[Integers, ...]
    tiles: Callable[[], Iterator[Tile]]
    rate: float
    prior: Prior | None = None
    period: float | None = None
    values_only: bool = False

    def with_torques(self, torques: Mapping[int, Array]) -> LinearProblem:
        """The same problem with other torques; excluded samples stay excluded.

        Args:
            torques: torque of every row of each segment [N m or N], shape (n, rows).
        """

        def tiles() -> Iterator[Tile]:
            rows: dict[tuple[int, int], int] = {}
            for tile in self.tiles():
                start = rows.get((tile.segment, tile.joint), 0)
                stop = rows[tile.segment, tile.joint] = start + tile.block.shape[1]
                tau = np.where(find_used_rows(tile.block), torques[tile.segment][tile.joint, start:stop], 0.0)
                yield replace(tile, block=np.concatenate([tile.block[:-1], tau[None]]))

        return replace(self, tiles=tiles)

    def only_joints(self, kept: Sequence[int] | Integers) -> LinearProblem:
        """The rows of some joints, by their numbers in ascending order."""
        numbers = {int(joint): number for number, joint in enumerate(kept)}

        def tiles() -> Iterator[Tile]:
            for tile in self.tiles():
                if tile.joint in numbers:
                    yield replace(tile, joint=numbers[tile.joint])

        return LinearProblem(
            self.names,
            tuple(self.joint_names[joint] for joint in numbers),
            tuple(self.supports[joint] for joint in numbers),
            tiles,
            self.rate,
            period=self.period,
            values_only=self.values_only,
        )


@dataclass(frozen=True, kw_only=True)
class RegressorProblem(LinearProblem, ABC):
    """Linear problem that can be rebuilt with other columns, from the same motion and torques.

    Attributes:
        regressor: robot and terms.
        columns: columns of the regressor that are the problem's parameters, shape (p,).
        torques: torques that replace the measured ones, see `with_torques`; None: none are replaced.
    """

    regressor: Regressor
    columns: Integers
    torques: Mapping[int, Array] | None = field(default=None, repr=False, compare=False)

    @abstractmethod
    def max_speeds(self) -> Array:
        """Maximum speed of each joint in the data [rad/s or m/s], shape (n,)."""

    def min_speeds(self) -> Array:
        """Speed of each joint below which its rows are left out [rad/s or m/s], shape (n,); 0: none are."""
        return np.zeros(len(self.joint_names))

    @abstractmethod
    def _rebuild(self, regressor: Regressor, columns: Integers) -> RegressorProblem:
        """The problem of some columns of another regressor, with the measured torques."""

    def with_columns(self, regressor: Regressor, columns: Integers) -> RegressorProblem:
        """The problem of some columns of another regressor of the same robot, from the same data, without a prior."""
        rebuilt = self._rebuild(regressor, columns)
        return rebuilt if self.torques is None else rebuilt.with_torques(self.torques)

    def with_torques(self, torques: Mapping[int, Array]) -> RegressorProblem:
        """See `LinearProblem.with_torques`; problems that are rebuilt from this one have these torques too."""
        return replace(self, tiles=super().with_torques(torques).tiles, torques=torques)


@dataclass(frozen=True, kw_only=True)
class UnfilteredProblem(RegressorProblem):
    """Linear problem of samples without a recording: no filter is applied.

    Attributes:
        motion: N samples.
        torque: measured torque [N m or N], shape (n, N).
    """

    motion: Motion
    torque: Array

    @classmethod
    def from_samples(
        cls,
        regressor: Regressor,
        columns: Integers,
        motion: Motion,
        torque: Array,
        rate: float = 1.0,
        prior: Prior | None = None,
    ) -> UnfilteredProblem:
        """The problem of some columns of a regressor.

        Args:
            regressor: robot and terms.
            columns: columns that are the parameters, shape (p,).
            motion: N samples.
            torque: measured torque [N m or N], shape (n, N).
            rate: samples per second [Hz].
            prior: prior knowledge of the parameters, or None.
        """
        layout = Layout.from_columns(regressor, columns)
        return cls(
            names=tuple(regressor.names[column] for column in columns),
            joint_names=regressor.model.joint_names,
            supports=layout.supports,
            tiles=lambda: _sampled_tiles(regressor, layout, motion, torque),
            rate=rate,
            prior=prior,
            regressor=regressor,
            columns=columns,
            motion=motion,
            torque=torque,
        )

    def max_speeds(self) -> Array:
        """See `RegressorProblem.max_speeds`."""
        return np.asarray(np.abs(self.motion.dq).max(axis=1))

    def _rebuild(self, regressor: Regressor, columns: Integers) -> UnfilteredProblem:
        return UnfilteredProblem.from_samples(regressor, columns, self.motion, self.torque, self.rate)


def _sampled_tiles(regressor: Regressor, layout: Layout, motion: Motion, torque: Array) -> Iterator[Tile]:
    """Tiles of `TILE_SAMPLES` samples of each joint."""
    packed = np.empty((layout.starts[-1], TILE_SAMPLES))
    for start in range(0, len(motion), TILE_SAMPLES):
        part = slice(start, min(start + TILE_SAMPLES, len(motion)))
        full = part.stop - start == TILE_SAMPLES
        block = packed if full else np.empty((layout.starts[-1], part.stop - start))
        regressor.fill(motion.take(part), layout.slots, block)
        for joint, tau in enumerate(torque[:, part]):
            rows = layout.block(block, joint)
            rows[-1] = tau
            yield Tile(joint, 0, rows)
