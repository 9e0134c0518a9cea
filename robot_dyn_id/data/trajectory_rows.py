# SPDX-License-Identifier: Apache-2.0
"""Points of a joint trajectory as a message or a file holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array

NANOSECONDS = 1_000_000_000

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TrajectoryRows:
    """Content of a `trajectory_msgs/JointTrajectory` with k points; no row is checked.

    Attributes:
        joint_names: joints in the order of the rows.
        times: times from the start [ns], k.
        positions: positions of each point [rad or m].
        velocities: velocities of each point; a row is empty where none are given.
        accelerations: accelerations of each point; a row is empty where none are given.
        efforts: efforts of each point [N m or N]; a row is empty where none are given.
        frame_id: frame of the header.
        stamp: stamp of the header [ns]; 0: from its arrival on.
    """

    joint_names: tuple[str, ...]
    times: tuple[int, ...]
    positions: Rows
    velocities: Rows
    accelerations: Rows
    efforts: Rows
    frame_id: str = ""
    stamp: int = 0

    @classmethod
    def from_arrays(cls, joint_names: Sequence[str], t: Array, q: Array, dq: Array, ddq: Array) -> TrajectoryRows:
        """Rows of k points without efforts, from times [s], shape (k,), and channels of shape (k, n)."""
        times = tuple(np.round(t * NANOSECONDS).astype(np.int64).tolist())
        return cls(tuple(joint_names), times, list_rows(q), list_rows(dq), list_rows(ddq), ((),) * len(t))

    @property
    def seconds(self) -> list[float]:
        """Times from the start [s]."""
        return [time / NANOSECONDS for time in self.times]


def list_rows(values: Array) -> Rows:
    """Rows of an array, shape (k, n)."""
    return tuple(map(tuple, values.tolist()))
